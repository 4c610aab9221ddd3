"""Error-rate change of one and two layers on both crowds, and the trade-off (Li et al. 2018, Tables 2, 3, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from crowdveil.papers.core.datasets import Dataset
from crowdveil.papers.core.reproduction import (
    Claim,
    Reproduction,
    Row,
    Settings,
    add_columns,
    column,
    mean_column,
    near,
    paired_difference,
    said_trials,
    select,
    smaller,
)
from crowdveil.papers.li.trial import (
    ABILITIES,
    PAPER,
    READING,
    SPOKEN,
    baseline_errors,
    duchenne,
    error_change,
    peer_grading,
    privacy_rows,
    trial_rows,
)
from crowdveil.plot import Panel, Series, panels

EPSILONS = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.01, 0.001, 0.0)
QUICK = (1.0, 0.5, 0.1, 0.0)
COLUMNS = (("one", "MV"), ("one", "TD"), ("two", "MV"), ("two", "TD"))
_TABLE2 = {1.0: (0.1019, 0.0850, 0.0885, 0.0619), 0.5: (0.1669, 0.1546, 0.1631, 0.1262)} | {
    0.1: (0.2269, 0.2088, 0.2165, 0.1723),
    0.0: (0.2504, 0.2212, 0.2419, 0.1992),
}
_TABLE3 = {1.0: (0.1228, 0.0735, 0.1240, 0.0560), 0.5: (0.1784, 0.1562, 0.1738, 0.0962)} | {
    0.1: (0.2335, 0.2086, 0.2248, 0.1511),
    0.0: (0.2516, 0.2277, 0.2447, 0.1793),
}


class _Table(Reproduction):
    paper = PAPER
    crowd: ClassVar[str]
    published: ClassVar[Mapping[float, tuple[float, ...]]]
    tolerance: ClassVar[float] = 0.02
    least_trials: int

    def data(self, settings: Settings, seed: int) -> Dataset:
        raise NotImplementedError

    def rows(self, settings: Settings) -> list[Row]:
        epsilons, trials = (
            (QUICK, max(settings.trials, self.least_trials))
            if settings.quick
            else (EPSILONS, max(settings.trials, 100))
        )
        data = self.data(settings, settings.seed)
        rows = [*privacy_rows(data.answers, epsilons), *baseline_errors(data), *_counts(data)]
        for seed in settings.seeds(trials):
            rows += trial_rows(self.data(settings, seed), epsilons, seed)
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for epsilon, values in self.published.items():
            for (layers, aggregator), published in zip(COLUMNS, values, strict=True):
                ours = error_change(rows, layers, aggregator, epsilon)
                claims.append(
                    Claim(
                        f"change of the error rate, {series_name(layers, aggregator)}, claimed ε {epsilon:g}",
                        f"{published:.3f}",
                        f"{ours:.3f}",
                        near(ours, published, self.tolerance),
                    )
                )
        return [*claims, _better(rows), _same_privacy(rows), _against_constant(rows)]

    def draw(self, rows: Sequence[Row]) -> Any:
        panel = tradeoff(rows, SPOKEN[self.crowd])
        return panels([panel], caption=tradeoff_caption([rows]))


@dataclass(frozen=True, kw_only=True)
class Table2(_Table):
    """Peer grading, simulated with the published counts. `others` are abilities shown beside the default."""

    id = "li-table2"
    title = "error-rate change on peer grading"
    interpretation = (
        "the data is not public: each trial draws 72 students, 26 groups and 5 grades per student (360 in all). What "
        "the paper prints of the students' abilities is that 73 % come out right without privacy; their spread is not "
        "printed. By default they are spread evenly from .35 to .82; equal abilities and a wider spread, both with "
        f"about the same 73 % for majority voting, are shown beside it. {READING}"
    )
    crowd = "peer"
    published = _TABLE2
    tolerance = 0.03
    least_trials: int = 60
    abilities: tuple[float, float] = ABILITIES
    others: tuple[tuple[float, float], ...] = ((0.58, 0.58), (0.2, 0.97))

    def data(self, settings: Settings, seed: int) -> Dataset:
        return peer_grading(seed, self.abilities)

    def rows(self, settings: Settings) -> list[Row]:
        rows = add_columns(super().rows(settings), reading="default")
        for other in self.others:
            for seed in settings.seeds(max(settings.trials, self.least_trials)):
                rows_of_trial = trial_rows(peer_grading(seed, other), (1.0, 0.5), seed)
                rows += add_columns(rows_of_trial, reading=_spread(other))
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        default = super().claims(select(rows, reading="default"))
        return [*default, *(self._beside(select(rows, reading=_spread(other)), other) for other in self.others)]

    def _beside(self, rows: Sequence[Row], other: tuple[float, float]) -> Claim:
        ours = {(e, column): error_change(rows, *column, e) for e in (1.0, 0.5) for column in COLUMNS}
        close = sum(
            abs(value - self.published[e][COLUMNS.index(c)]) <= self.tolerance for (e, c), value in ours.items()
        )
        right = {name: 1 - mean_column(rows, "error", layers="none", aggregator=name) for name in ("MV", "TD")}
        better = _better(rows)
        return replace(
            better,
            claim=f"{better.claim}, {_spread(other)}",
            ours=f"{better.ours}; {close} of {len(ours)} changes within {self.tolerance:g} of the table; right without "
            f"privacy: MV {right['MV']:.1%}, TD {right['TD']:.1%}",
        )

    def draw(self, rows: Sequence[Row]) -> Any:
        return super().draw(select(rows, reading="default"))


def _spread(abilities: tuple[float, float]) -> str:
    low, high = abilities
    return f"equal abilities {low:g}" if low == high else f"abilities {low:g} to {high:g}"


@dataclass(frozen=True, kw_only=True)
class Table3(_Table):
    """Duchenne smiles. Repeated answers of one worker to one image count once, which gives the published counts."""

    id = "li-table3"
    title = "error-rate change on Duchenne smiles"
    interpretation = (
        "a worker who saw an image again counts once (the first answer on disk), which gives the published counts. "
        f"{READING}"
    )
    needs_data = ("duchenne",)
    crowd = "duchenne"
    published = _TABLE3
    least_trials: int = 20

    def data(self, settings: Settings, seed: int) -> Dataset:
        return duchenne(settings)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        counts = [
            Claim(
                f"Table 1: number of {name}",
                str(published),
                f"{column(selected, 'error')[0]:.0f}",
                near(column(selected, "error")[0], published, 0.5),
            )
            for name, published in (("questions", 2134), ("users", 64), ("answers", 17729), ("truths", 159))
            if (selected := select(rows, layers="count", aggregator=name))
        ]
        return [*counts, *super().claims(rows)]


@dataclass(frozen=True, kw_only=True)
class Figure3(Reproduction):
    """Both trade-offs over the exact ε."""

    id = "li-fig3"
    title = "utility against privacy, exact"
    paper = PAPER
    needs_data = ("duchenne",)
    interpretation = READING
    epsilons: tuple[float, ...] = (2.0, 1.0, 0.5, 0.2, 0.05)
    least_trials: tuple[int, int] = (60, 12)

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        whole = duchenne(settings)
        for crowd, least in zip(SPOKEN, self.least_trials, strict=True):
            data = peer_grading(settings.seed) if crowd == "peer" else whole
            found = [*privacy_rows(data.answers, self.epsilons), *baseline_errors(data)]
            for seed in settings.seeds(max(settings.trials, least if settings.quick else 100)):
                found += trial_rows(peer_grading(seed) if crowd == "peer" else whole, self.epsilons, seed)
            rows += add_columns(found, crowd=crowd)
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for crowd, name in SPOKEN.items():
            part = select(rows, crowd=crowd)
            changes = [error_change(part, "two", "TD", epsilon) for epsilon in self.epsilons]
            claims += [
                Claim(
                    f"{name}: more privacy, less utility",
                    "trade-off",
                    "TD with two layers: "
                    + ", ".join(f"claimed ε {e:g}: {c:.3f}" for e, c in zip(self.epsilons, changes, strict=True)),
                    "holds" if changes[0] < changes[-1] else "fails",
                ),
                _better(part, name, 0.5),
                _same_privacy(part, name, 0.5),
            ]
        return claims

    def draw(self, rows: Sequence[Row]) -> Any:
        parts = [select(rows, crowd=crowd) for crowd in SPOKEN]
        drawn = [tradeoff(part, name) for part, name in zip(parts, SPOKEN.values(), strict=True)]
        return panels(drawn, caption=tradeoff_caption(parts))


def series_name(layers: str, aggregator: str) -> str:
    return f"{layers} layer{'s' * (layers == 'two')}, {aggregator}"


def tradeoff(rows: Sequence[Row], title: str) -> Panel:
    """Error over the exact ε per value; hollow at the ε that Theorem 6.3 claims. ε = 0 has no place on the axis."""
    series = []
    for layers, aggregator in COLUMNS:
        part = [row for row in select(rows, layers=layers, aggregator="privacy") if float(row["epsilon"]) > 0.005]
        claimed = column(part, "epsilon")
        y = [mean_column(rows, "error", layers=layers, aggregator=aggregator, epsilon=epsilon) for epsilon in claimed]
        series.append(Series(series_name(layers, aggregator), column(part, "exact_epsilon"), y, claimed=claimed))
    lines = {str(row["aggregator"]): float(row["error"]) for row in select(rows, layers="baseline")}
    lines["no privacy, TD"] = mean_column(rows, "error", layers="none", aggregator="TD")
    return Panel(title, "exact ε per value", "error rate", series, lines, log_x=True)


def tradeoff_caption(crowds: Sequence[Sequence[Row]]) -> str:
    privacy_rows = [select(rows, aggregator="privacy")[0] for rows in crowds]
    typical = " and ".join(f"{float(row['n_answers']):.0f}" for row in privacy_rows)
    sizes = " and ".join(f"{row['size']} ({said_trials(rows)})" for row, rows in zip(privacy_rows, crowds, strict=True))
    return (
        f"{sizes} workers × questions. Exact ε per value of a worker with the median number "
        f"of answers ({typical}); hollow: the ε of Theorem 6.3. Which questions were answered is not protected."
    )


def _counts(data: Dataset) -> list[Row]:
    counts = {
        "questions": len(data.answers.questions),
        "users": len(data.answers.workers),
        "answers": len(data.answers),
        "truths": int((~np.isnan(data.truth)).sum()),
    }
    return [{"layers": "count", "aggregator": name, "error": float(value)} for name, value in counts.items()]


def _better(rows: Sequence[Row], name: str = "", epsilon: float = 0.5) -> Claim:
    one, two = error_change(rows, "one", "TD", epsilon), error_change(rows, "two", "TD", epsilon)
    first, second = ({"layers": layers, "aggregator": "TD", "epsilon": epsilon} for layers in ("two", "one"))
    gap, spread = paired_difference(rows, "change", first, second)
    return Claim(
        f"{name + ': ' if name else ''}TD loses less with two layers than with one at the same claimed ε ({epsilon:g})",
        "two layers better",
        f"one {one:.3f}, two {two:.3f}; two − one {gap:+.3f} ± {spread:.3f}",
        smaller(gap, spread),
    )


def _same_privacy(rows: Sequence[Row], name: str = "", epsilon: float = 0.5) -> Claim:
    exact = {layers: select(rows, layers=layers, aggregator="privacy", epsilon=epsilon)[0] for layers in ("one", "two")}
    one, two = (float(exact[layers]["exact_epsilon"]) for layers in ("one", "two"))
    return Claim(
        f"{name + ': ' if name else ''}two layers give the same privacy as one (Theorem 6.4, claimed ε {epsilon:g})",
        "the same",
        f"exact ε per value with {float(exact['two']['n_answers']):.0f} answers: one {one:.2f}, two {two:.2f}",
        near(two, one, 0.005) if two <= one + 0.005 else "fails",
    )


def _against_constant(rows: Sequence[Row]) -> Claim:
    constant = mean_column(rows, "error", layers="baseline", aggregator="best constant")
    ours = {e: mean_column(rows, "error", layers="two", aggregator="TD", epsilon=e) for e in (1.0, 0.0)}
    return Claim(
        "two layers with TD beat always giving the commonest answer (claimed ε 1 and 0)",
        "not reported",
        f"error {ours[1.0]:.3f} and {ours[0.0]:.3f}, best constant {constant:.3f}, no privacy "
        f"{mean_column(rows, 'error', layers='none', aggregator='TD'):.3f}",
        "holds" if ours[1.0] < constant and ours[0.0] < constant else "fails",
    )
