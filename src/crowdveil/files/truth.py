"""Truth files: question, truth; for scoring estimates, never an input of inference."""

from __future__ import annotations

from pathlib import Path

from crowdveil.files.table import read_table


def read_truth(path: str | Path) -> dict[str, str]:
    """Read the columns `question` and `truth` of a CSV or Parquet file: each question's true value, as text."""
    table = read_table(path, ["question", "truth"])
    question, questions = table.ids("question")
    codes, texts = table.encode("truth")
    truths: dict[str, str] = {}
    for row, (question_code, code) in enumerate(zip(question, codes, strict=True)):
        text = texts[code]
        if text is None or questions[question_code] in truths:
            problem = "the truth is missing" if text is None else "this question has a truth in an earlier row"
            raise table.wrong(problem, row, "truth", "give each question one truth")
        truths[questions[question_code]] = text
    return truths


def read_ids(path: str | Path, name: str) -> list[str]:
    """Read the ids in one column of a file: all questions, or all workers, of a study, also those without a report."""
    return [str(entry) for entry in read_table(path, [name]).ids(name)[1]]
