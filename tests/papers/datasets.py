"""Small crowds written to disk in the form of the papers' datasets, so that every reproduction runs anywhere."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from crowdveil.domain import Choices, Scale
from crowdveil.simulate import ChoiceCrowd, ScaleCrowd
from crowdveil.simulate.presets import Recipe

CROWDS: dict[str, Recipe] = {
    "wsd": ChoiceCrowd(
        n_workers=12, n_questions=24, domain=Choices(("1", "2", "3")), ability=(0.6, 0.95), class_shares=(8, 1, 1)
    ),
    # More questions than a quick run takes (600), so that its choice among them runs too.
    "adult": ChoiceCrowd(
        n_workers=15, n_questions=620, domain=Choices(("0", "1", "2", "3")), share=0.05, class_shares=(7, 1, 1, 1)
    ),
    "duchenne": ChoiceCrowd(n_workers=16, n_questions=60, domain=Choices(("0", "1")), ability=(0.45, 0.9), share=0.4),
    "movielens_small": ScaleCrowd(
        n_workers=60,
        n_questions=16,
        domain=Scale("0.5", 5, "0.5"),
        sigmas=(0.8, 1.2),
        shift=0.3,
        share=0.6,
        truth="middle",
    ),
}
TRUTHS = {"adult": 80, "duchenne": 30}
"""Where only the first questions have a known truth."""
YEARS = {"movielens_small": (2004,) * 8 + (2005,) * 7 + (2007,)}


def write_datasets(folder: Path) -> None:
    """A folder for each dataset with its answers and truths; films also have a year."""
    for seed, (name, recipe) in enumerate(CROWDS.items()):
        home, crowd = folder / name, recipe.draw(seed)
        home.mkdir()
        answers, spelled = crowd.answers, crowd.answers.domain.decode(crowd.answers.answer)
        rows = zip(answers.workers[answers.worker], answers.questions[answers.question], spelled, strict=True)
        _write(home / "answers.csv", ("worker", "task", "answer"), rows)
        _write(home / "truth.csv", ("task", "truth"), list(crowd.truths().items())[: TRUTHS.get(name)])
        if years := YEARS.get(name):
            _write(home / "items.csv", ("task", "year"), zip(answers.questions, years, strict=True))


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows([header, *rows])
