"""The estimate: the complete, finished result of a method; nothing about it is filled in later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import frozen_ids
from crowdveil.domain import Choices, Domain


@dataclass(frozen=True, slots=True, eq=False)
class Skills:
    """One number per worker (1 is best for choices; the spread of errors for scales) with an interval."""

    workers: NDArray[Any]
    skill: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    meaning: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", frozen_ids(self.workers))


@dataclass(frozen=True, slots=True)
class Floor:
    """What the reports could tell at best, beside what was known before.

    `smallest_error` is the least error any method could have from these reports, a question having as many as there are
    on average, `prior_error` that of not looking at them (standard deviation for numbers, error rate for choices).
    `informative` is False when they cannot say more than the prior. A report through each channel tells so much of
    what is `needed` to say more: nats, or Fisher information.
    """

    smallest_error: float
    prior_error: float
    informative: bool
    sentence: str
    telling: tuple[float, ...] = ()
    needed: float = np.inf

    def told(self, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Questions with so many reports (channel × question) that these say more than the prior, each by itself."""
        told: NDArray[np.bool_] = np.asarray(self.telling) @ counts > self.needed
        return told


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Values with their uncertainty, the workers' skills, and how they were found.

    `value` holds option codes for choices (-1: nobody answered, no estimate) and numbers for scales (NaN then).
    `posterior` has one row per question and one column per option (choices) or is None; of methods that count votes it
    holds shares of votes, no probabilities, and `provenance["posterior"]` says so. `low` and `high` bound the number
    (scales), or the probability or share of the value (choices), at `level`. `trace` is the objective named in
    `objective`, iteration by iteration. `parameters` are what a warm start needs.
    """

    method: str
    domain: Domain
    questions: NDArray[Any]
    value: NDArray[Any]
    confidence: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    posterior: NDArray[Any] | None = None
    skills: Skills | None = None
    level: float = 0.95
    iterations: int = 0
    converged: bool = True
    objective: str = ""
    trace: tuple[float, ...] = ()
    warnings: tuple[str, ...] = ()
    floor: Floor | None = None
    provenance: Mapping[str, object] = field(default_factory=dict)
    parameters: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "questions", frozen_ids(self.questions))
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        for name in ("value", "confidence", "low", "high", "posterior"):
            if (column := getattr(self, name)) is not None:
                column = np.asarray(column).view()
                column.flags.writeable = False
                object.__setattr__(self, name, column)

    def __len__(self) -> int:
        return len(self.questions)

    @property
    def categorical(self) -> bool:
        """Values are option codes rather than numbers."""
        return np.issubdtype(self.value.dtype, np.integer)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Questions that have an estimate."""
        known: NDArray[np.bool_] = self.value >= 0 if self.categorical else ~np.isnan(self.value)
        return known

    def values(self) -> list[str | float | None]:
        """The estimates in the words of the domain; None where nobody answered."""
        if self.categorical and isinstance(self.domain, Choices):
            return list(self.domain.decode(self.value))
        if self.categorical:
            return [None if code < 0 else float(self.domain.numbers[code]) for code in self.value]
        return [None if np.isnan(number) else float(number) for number in self.value]

    def provenance_json(self) -> str:
        return json.dumps(dict(self.provenance), sort_keys=True, default=str)
