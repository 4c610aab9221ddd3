"""Running a reproduction: measure, write the CSV file, read it back, and only then draw and judge."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

from crowdveil.errors import FileError
from crowdveil.files.datasets import data_folder
from crowdveil.files.folders import folder_for
from crowdveil.papers.core.reproduction import Claim, ClaimVerdict, Reproduction, Row, Settings, n_trials
from crowdveil.plot import save

VERDICTS: tuple[str, ...] = get_args(ClaimVerdict)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left behind."""

    id: str
    claims: list[Claim]
    files: list[Path]

    def to_json(self) -> dict[str, object]:
        return {
            "id": self.id,
            "claims": [claim.to_json() for claim in self.claims],
            "files": [str(path) for path in self.files],
        }


def reproduce(reproduction: Reproduction, settings: Settings, folder: Path) -> Outcome:
    """Run one reproduction into a folder: CSV, SVG, PNG and a note."""
    _need_data(reproduction, settings)
    with folder_for(folder), TemporaryDirectory(dir=folder, prefix=f".{reproduction.id}-") as unfinished:
        outcome = _run_reproduction(reproduction, settings, Path(unfinished))
        # All of them or none: a run that fails leaves what an earlier one wrote.
        return replace(outcome, files=[path.replace(folder / path.name) for path in outcome.files])


def _run_reproduction(reproduction: Reproduction, settings: Settings, folder: Path) -> Outcome:
    table = folder / f"{reproduction.id}.csv"
    write_rows(table, reproduction.rows(settings))
    rows = read_rows(table)
    figures = save(reproduction.draw(rows), folder / reproduction.id)
    claims = reproduction.claims(rows)
    note = folder / f"{reproduction.id}.md"
    note.write_text(note_text(reproduction, settings, rows), encoding="utf-8")
    return Outcome(reproduction.id, claims, [table, *figures, note])


def note_text(reproduction: Reproduction, settings: Settings, rows: Sequence[Row]) -> str:
    """The note: claim, published, ours, verdict, and how we read the paper's silences."""
    claims, trials = reproduction.claims(rows), n_trials(rows)
    lines = [f"## {reproduction.id}: {reproduction.title}", "", f"*{reproduction.paper}*", ""]
    lines += [f"![{reproduction.title}]({reproduction.id}.svg)", ""]
    lines += ["| claim | published | this run | verdict |", "|---|---|---|---|"]
    lines += [f"| {each.claim} | {each.published} | {each.ours} | {each.verdict} |" for each in claims]
    lines += [
        "",
        f"Seed {settings.seed}{', quick' * settings.quick}{f', {trials} trials' * (trials > 1)}; "
        f"rows in [{reproduction.id}.csv]({reproduction.id}.csv).",
    ]
    if reproduction.interpretation:
        lines += ["", f"How we read it: {reproduction.interpretation}"]
    return "\n".join(lines) + "\n"


def page(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """One page with all notes: how many claims hold, then each reproduction."""
    lines = [
        "# The papers, reproduced",
        "",
        "Every number below was computed by `crowdveil reproduce` with the seed under its note. *holds*: this run "
        "agrees; *differs*: the number is another, the statement may stand; *fails*: this run contradicts it; "
        "*cannot tell*: the paper gives no number, or the run cannot decide.",
        "",
        f"| reproduction | {' | '.join(VERDICTS)} |",
        "|---|" + "--:|" * len(VERDICTS),
    ]
    for outcome in outcomes:
        counts = [sum(claim["verdict"] == verdict for claim in outcome["claims"]) for verdict in VERDICTS]
        shown = " | ".join(str(count) for count in counts)
        lines.append(f"| {outcome['id']}{' (left out: no data)' if 'left_out' in outcome else ''} | {shown} |")
    notes = [Path(outcome["files"][-1]).read_text(encoding="utf-8") for outcome in outcomes if outcome["files"]]
    return "\n".join([*lines, "", "\n".join(notes)])


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Tidy rows; columns in order of first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, names, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: Path) -> list[Row]:
    """The rows of a run, numbers as numbers."""
    with path.open(encoding="utf-8", newline="") as stream:
        return [{name: _value(text) for name, text in row.items() if text != ""} for row in csv.DictReader(stream)]


def _value(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _need_data(reproduction: Reproduction, settings: Settings) -> None:
    for name in reproduction.needs_data:
        if not (data_folder(settings.data) / name / "answers.csv").is_file():
            raise FileError(
                f"{reproduction.id} needs the dataset {name!r} in {data_folder(settings.data)}",
                fix="download it or choose another id",
            )
