"""What a reproduction is: rows that a run measured, and claims and a figure that are computed from those rows alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

Value: TypeAlias = str | float
Row: TypeAlias = dict[str, Value]
ClaimVerdict: TypeAlias = Literal["holds", "differs", "fails", "cannot tell"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is made: `seed` is drawn anew for each run and printed, so that it can be repeated."""

    seed: int
    trials: int
    quick: bool = False
    data: Path | None = None
    progress: Callable[[str], None] = field(default=lambda message: None)

    def seeds(self, trials: int | None = None) -> Iterator[int]:
        """A seed for each trial."""
        yield from (int(seed) for seed in np.random.SeedSequence(self.seed).generate_state(trials or self.trials))

    def generator(self) -> np.random.Generator:
        """Randomness for crowds; reports are drawn from keystreams seeded by `seeds`."""
        return np.random.default_rng(self.seed)


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says, what this run found, and whether that agrees."""

    claim: str
    published: str
    ours: str
    verdict: ClaimVerdict

    def to_json(self) -> dict[str, str]:
        return {"claim": self.claim, "published": self.published, "ours": self.ours, "verdict": self.verdict}


class Reproduction(ABC):
    """One table or figure of a paper.

    `rows` measures; `claims` and `draw` read only those rows, after they went through the CSV file, so every number
    in a note is a number of that run. `needs_data` names the datasets it reads.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    paper: ClassVar[str]
    interpretation: ClassVar[str] = ""
    needs_data: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def rows(self, settings: Settings) -> list[Row]:
        """Measure."""

    @abstractmethod
    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Compare with the paper."""

    @abstractmethod
    def draw(self, rows: Sequence[Row]) -> Any:
        """A Matplotlib figure."""


def select(rows: Sequence[Row], **wanted: Value) -> list[Row]:
    """The rows in which these columns have these values."""
    return [row for row in rows if all(row.get(name) == value for name, value in wanted.items())]


def add_columns(rows: Sequence[Row], **columns: Value) -> list[Row]:
    """The rows with these columns before their own."""
    return [columns | row for row in rows]


def column(rows: Sequence[Row], name: str) -> list[float]:
    """A numeric column of the rows."""
    return [float(row[name]) for row in rows]


def mean_column(rows: Sequence[Row], name: str, **wanted: Value) -> float:
    """The mean of a column over the rows that are wanted; NaN when there are none."""
    values = column(select(rows, **wanted), name)
    return float(np.mean(values)) if values else float("nan")


def paired_difference(rows: Sequence[Row], name: str, one: Row, other: Row) -> tuple[float, float]:
    """One minus the other on the same trials: the mean of the differences and its standard error."""
    gaps = [
        mean_column(rows, name, trial=trial, **one) - mean_column(rows, name, trial=trial, **other)
        for trial in dict.fromkeys(column(select(rows, **one), "trial"))
    ]
    spread = float(np.std(gaps, ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else float("inf")
    return float(np.mean(gaps)), spread


def smaller(gap: float, spread: float) -> ClaimVerdict:
    """Whether the first of a pair is smaller, as far as two standard errors tell; holds where both are the same."""
    return "holds" if gap <= -2 * spread else "fails" if gap > 2 * spread else "cannot tell"


def n_trials(rows: Sequence[Row]) -> int:
    """How many trials the rows come from; 0 where nothing was drawn."""
    return len({row["trial"] for row in rows if "trial" in row})


def said_trials(rows: Sequence[Row]) -> str:
    number = n_trials(rows)
    return "1 trial" if number == 1 else f"{number} trials"


def near(ours: float, published: float, tolerance: float) -> ClaimVerdict:
    """The verdict on one number."""
    if np.isnan(ours):
        return "cannot tell"
    return "holds" if abs(ours - published) <= tolerance else "differs"
