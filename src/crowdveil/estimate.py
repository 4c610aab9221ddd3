"""The estimate: the complete, finished result of a method; nothing about it is filled in later."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import constructor_arguments, frozen_ids
from crowdveil.display import bar_chart, html_table
from crowdveil.domain import Choices, Domain, Label, spell_label
from crowdveil.optional import load_package

_SHOWN_VALUES, _SHOWN_ROWS, _SHOWN_OPTIONS, _HISTOGRAM_BINS = 3, 10, 10, 8


class _Tabular:
    """Something that is a table: its columns as a frame of whichever library is installed."""

    __slots__ = ()

    def columns(self) -> dict[str, list[Any]]:
        """The columns by name."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """A DataFrame of pandas; ids and labels keep their type."""
        pandas = load_package("pandas")
        return pandas.DataFrame({name: pandas.Series(*_with_dtype(values)) for name, values in self.columns().items()})

    def to_polars(self) -> Any:
        """A DataFrame of polars; ids and labels keep their type."""
        return load_package("polars").from_arrow(self.to_arrow())

    def to_arrow(self) -> Any:
        """An Arrow table; ids of mixed types are texts."""
        arrow = load_package("pyarrow")
        return arrow.table({name: _arrow_array(arrow, values) for name, values in self.columns().items()})


def _with_dtype(values: list[Any]) -> tuple[list[Any], None, type | None]:
    """Values, no index, and their type for pandas, which makes floats of whole numbers where some are missing."""
    kinds = {type(value) for value in values if value is not None}
    if None not in values:
        return values, None, None
    return values, None, float if kinds <= {float} else object


def _arrow_array(arrow: Any, values: list[Any]) -> Any:
    if len({type(value) for value in values if value is not None}) > 1:
        values = [None if value is None else spell_label(value) for value in values]
    return arrow.array(values)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Skills(_Tabular):
    """One number per worker (1 is best for choices; the spread of errors for scales) with an interval."""

    workers: NDArray[Any]
    skill: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    meaning: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", frozen_ids(self.workers))

    def __len__(self) -> int:
        return len(self.workers)

    def __repr__(self) -> str:
        return f"Skills of {len(self):,} workers: {self.meaning}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), constructor_arguments(self)

    def columns(self) -> dict[str, list[Any]]:
        """Worker, skill, low and high, one entry per worker."""
        numbers = {name: getattr(self, name).tolist() for name in ("skill", "low", "high")}
        return {"worker": self.workers.tolist()} | numbers


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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Estimate(_Tabular):
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

    def values(self) -> list[Label | None]:
        """The estimates in the words of the domain, of the type the labels have; None where nobody answered."""
        if self.categorical and isinstance(self.domain, Choices):
            labels = self.domain.labels
            return [None if code < 0 else labels[code] for code in self.value.tolist()]
        if self.categorical:
            return [None if code < 0 else float(self.domain.numbers[code]) for code in self.value]
        return [None if np.isnan(number) else float(number) for number in self.value]

    def provenance_json(self) -> str:
        return json.dumps(dict(self.provenance), sort_keys=True, default=str)

    def columns(self) -> dict[str, list[Any]]:
        """What an estimates file holds: question, value, confidence, low, high, and p:<option> of each option."""
        answered = self.answered
        columns: dict[str, list[Any]] = {"question": self.questions.tolist(), "value": self.values()}
        numbers = {name: getattr(self, name) for name in ("confidence", "low", "high")}
        if self.posterior is not None and self.categorical:
            numbers |= {f"p:{option}": self.posterior[:, code] for code, option in enumerate(self.domain.symbols)}
        for name, column in numbers.items():
            columns[name] = [value if known else None for value, known in zip(column.tolist(), answered, strict=True)]
        return columns

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuilt by the constructor: read-only mappings cannot be pickled, and arrays would come back writable."""
        names = ("provenance", "parameters")
        arguments = constructor_arguments(self)[: -len(names)]
        return type(self), (*arguments, *(dict(getattr(self, name)) for name in names))

    def __repr__(self) -> str:
        first = ", ".join(
            f"{question!r}: {_shorten(value)}"
            for question, value in zip(
                self.questions[:_SHOWN_VALUES].tolist(), self._first_values(_SHOWN_VALUES), strict=True
            )
        )
        more = ", …" if len(self) > _SHOWN_VALUES else ""
        return f"Estimate of {len(self):,} questions by {self.method}: {{{first}{more}}}"

    def _first_values(self, n: int) -> list[Label | None]:
        if self.categorical and isinstance(self.domain, Choices):
            return [None if code < 0 else self.domain.labels[code] for code in self.value[:n].tolist()]
        return self.values()[:n]

    def summary(self) -> str:
        """What the estimate says, from what, and what to mind: a few lines to print."""
        counts = {name: self.provenance.get(name) for name in ("n_reports", "n_workers")}
        from_what = ", ".join(f"{count:,} {name[2:]}" for name, count in counts.items() if isinstance(count, int))
        answered = self.answered
        lines = [f"{self.method}: {int(answered.sum()):,} of {len(self):,} questions estimated"]
        lines[0] += f" from {from_what}" if from_what else ""
        if self.iterations:
            lines.append(f"{'converged' if self.converged else 'stopped'} after {self.iterations} iterations")
        labels, sizes = self._distribution()
        if labels:
            sized = ", ".join(f"{label}: {size:,}" for label, size in zip(labels, sizes, strict=True))
            lines.append(f"questions by value: {sized}")
        if self.categorical and answered.any():
            what = "share of votes" if "shares" in str(self.provenance.get("posterior")) else "confidence"
            lines.append(f"mean {what} {float(np.mean(self.confidence[answered])):.3f}")
        if self.skills is not None and len(self.skills):
            low, middle, high = np.quantile(self.skills.skill, [0.1, 0.5, 0.9])
            lines.append(f"workers' skill (10 %, median, 90 %): {low:.3g}, {middle:.3g}, {high:.3g}")
        lines += [self.floor.sentence] if self.floor is not None and self.floor.sentence else []
        return "\n".join(dict.fromkeys([*lines, *self.warnings]))

    def _distribution(self) -> tuple[list[str], list[int]]:
        """How many questions have each value: the commonest options, or ranges of numbers."""
        known = self.value[self.answered]
        if not len(known):
            return [], []
        if self.categorical:
            sizes = np.bincount(known, minlength=self.domain.size)
            if len(sizes) <= _SHOWN_OPTIONS:
                return list(self.domain.symbols), sizes.tolist()
            common = np.argsort(-sizes, kind="stable")[:_SHOWN_OPTIONS]
            return [self.domain.symbols[code] for code in common], sizes[common].tolist()
        sizes, edges = np.histogram(known, bins=min(_HISTOGRAM_BINS, len(known)))
        return [f"{low:.3g} to {high:.3g}" for low, high in pairwise(edges)], sizes.tolist()

    def _repr_html_(self) -> str:
        labels, sizes = self._distribution()
        chart = bar_chart(f"questions by value, {self.method}", labels, sizes) if labels else ""
        header = ["question", "value", "confidence", "low", "high"]
        values = self._first_values(_SHOWN_ROWS)
        rows = [
            [str(self.questions[row]), _shorten(value), *(f"{getattr(self, name)[row]:.3g}" for name in header[2:])]
            for row, value in enumerate(values)
        ]
        title = f"<p><b>Estimate</b> of {len(self):,} questions by {self.method}</p>"
        return f"<div>{title}{chart}{html_table(header, rows, n_rows=len(self))}</div>"


def _shorten(value: Label | None) -> str:
    return "no estimate" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)[:40]
