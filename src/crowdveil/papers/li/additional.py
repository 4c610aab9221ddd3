"""Other laws of the flip, important users and scaling: the experiments that Li et al. (2018, §7.3) only mention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from crowdveil.answers import Answers
from crowdveil.domain import Choices
from crowdveil.inference import WeightedVote
from crowdveil.papers.core.reproduction import (
    Claim,
    Reproduction,
    Row,
    Settings,
    add_columns,
    column,
    mean_column,
    select,
)
from crowdveil.papers.li.trial import PAPER, as_answers, errors
from crowdveil.plot import Panel, Series, panels
from crowdveil.reports import Reports
from crowdveil.simulate import ChoiceCrowd

Floats = NDArray[np.float64]
FLIPS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "one layer": lambda rng, n: np.full(n, 0.35),
    "uniform": lambda rng, n: rng.uniform(0.0, 0.7, n),
    "beta": lambda rng, n: rng.beta(0.35 * 3, 0.65 * 3, n),
    "two points": lambda rng, n: np.where(rng.random(n) < 0.5, 0.05, 0.65),
    "normal, cut": lambda rng, n: np.clip(rng.normal(0.35, 0.2, n), 0.01, 0.99),
}
"""Laws of the flip with the same mean, .35."""


@dataclass(frozen=True, kw_only=True)
class Additional(Reproduction):
    """Other laws of the flip, important users and scaling."""

    id = "li-additional"
    title = "other hyper-distributions, important users, scaling"
    paper = PAPER
    interpretation = (
        "§7.3 only says that these were tested, without crowd or numbers. Flips have mean .35 under every law (claimed "
        "ε = .62 per value). The crowd has 60 workers and 100 questions; workers answer as large a share as "
        "the paper's peer graders (5 of 26, so 19 of 100), right with probability .5 to .7, and some important users "
        "are always right. A denser crowd with 50 answers each is shown beside it. The exact ε is for a worker with "
        "that many answers."
    )
    answers_each: int = 19
    others: tuple[int, ...] = (50,)
    least_trials: int = 12
    timed_workers: int = 200

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for each in (self.answers_each, *self.others):
            rows += add_columns(self._errors(settings, each), answers_each=each)
        return [*rows, *self._times(settings)]

    def _errors(self, settings: Settings, answers_each: int) -> list[Row]:
        rows: list[Row] = []
        for law in FLIPS:
            rows.append({"kind": "privacy", "law": law, "exact_epsilon": flip_epsilon(law, answers_each)})
        for seed in settings.seeds(self.least_trials if settings.quick else max(settings.trials, 100)):
            for important in (0, 3, 6, 12):
                crowd = _crowd(60, 100, important, answers_each).draw(seed)
                truth = crowd.truth.astype(np.float64)
                before = errors(Reports.unprotected(crowd.answers), truth)
                rows += [
                    {"kind": "none", "important": important, "aggregator": n, "error": e} for n, e in before.items()
                ]
                for law in FLIPS:
                    after = errors(flip_answers(crowd.answers, law, seed), truth)
                    shared: Row = {"kind": "error", "law": law, "important": important}
                    rows += [shared | {"aggregator": n, "error": e, "change": e - before[n]} for n, e in after.items()]
        return rows

    def _times(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for factor in (1, 2, 4, 8):
            crowd = _crowd(self.timed_workers * factor, 500, 20, 50).draw(settings.seed)
            reports = flip_answers(crowd.answers, "uniform", settings.seed)
            rows.append({"kind": "time", "n_reports": len(reports), "seconds": _seconds(as_answers(reports))})
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        dense = [claim for each in self.others for claim in self._laws(rows, each)]
        return [*self._laws(rows, self.answers_each), *dense, self._linear(rows)]

    def _laws(self, rows: Sequence[Row], answers_each: int) -> list[Claim]:
        rows = select(rows, answers_each=float(answers_each))
        label = f"{answers_each} answers each"
        laws = [law for law in FLIPS if law != "one layer"]
        one = mean_column(rows, "change", law="one layer", aggregator="TD", important=6.0)
        others = {law: mean_column(rows, "change", law=law, aggregator="TD", important=6.0) for law in laws}
        few, many = (mean_column(rows, "change", law="uniform", aggregator="TD", important=n) for n in (0.0, 12.0))
        exact = {str(row["law"]): float(row["exact_epsilon"]) for row in select(rows, kind="privacy")}
        return [
            Claim(
                f"the gain of two layers does not need the uniform law (6 important users, {label})",
                "general",
                f"change of TD: one layer {one:.3f}; "
                + ", ".join(f"{law} {value:.3f}" for law, value in others.items()),
                "holds" if max(others.values()) < one else "differs",
            ),
            Claim(
                f"the uniform law protects best ({label})",
                "stronger than any other",
                "exact ε per value: " + ", ".join(f"{law} {value:.2f}" for law, value in exact.items()),
                "holds" if exact["uniform"] <= min(exact.values()) else "fails",
            ),
            Claim(
                f"more important users, smaller change (uniform, TD, {label})",
                "smaller",
                f"0 important users {few:.3f}, 12 {many:.3f}",
                "holds" if many < few else "fails",
            ),
        ]

    def _linear(self, rows: Sequence[Row]) -> Claim:
        return Claim(
            "truth discovery scales linearly with the data",
            "linear",
            f"time grows with the power {scaling(rows):.2f} of the number of reports",
            "holds" if scaling(rows) < 1.25 else "differs",
        )

    def draw(self, rows: Sequence[Row]) -> Any:
        chosen = select(rows, answers_each=float(self.answers_each))
        return panels(
            [_important(chosen), self._privacy(chosen), _grown(select(rows, kind="time"))],
            caption=f"All laws of the flip have mean .35. 60 workers, 100 questions, {self.answers_each} answers each; "
            "exact ε per value of a worker with that many answers, claimed ε .62.",
        )

    def _privacy(self, rows: Sequence[Row]) -> Panel:
        privacy = select(rows, kind="privacy")
        places, exact = [float(i) for i in range(len(privacy))], column(privacy, "exact_epsilon")
        return Panel(
            "privacy of the laws",
            "law of the flip",
            "exact ε per value",
            [Series(f"exact ε, {self.answers_each} answers", places, exact, kind="bars")],
            {"claimed ε": float(np.log(0.65 / 0.35))},
            categories=[str(row["law"]).replace(" ", "\n") for row in privacy],
        )


def _important(rows: Sequence[Row]) -> Panel:
    numbers = sorted(set(column(select(rows, kind="none"), "important")))
    series = [
        Series(law, numbers, [mean_column(rows, "error", law=law, aggregator="TD", important=n) for n in numbers])
        for law in FLIPS
    ]
    plain = [mean_column(rows, "error", kind="none", aggregator="TD", important=n) for n in numbers]
    series.append(Series("no privacy", numbers, plain))
    return Panel(
        "important users", "number of important users of 60", "error rate, TD", series, {"coin, best constant": 0.5}
    )


def _grown(times: Sequence[Row]) -> Panel:
    first, sizes = float(times[0]["seconds"]), [size / 1000 for size in column(times, "n_reports")]
    series = [
        Series("time of truth discovery", sizes, [float(row["seconds"]) / first for row in times]),
        Series("linear", sizes, [size / sizes[0] for size in sizes], kind="points"),
    ]
    return Panel("scaling", "thousands of reports", "CPU time, smallest = 1", series)


def _seconds(reports: Reports, least: float = 0.25) -> float:
    """CPU time of one fit, over as many as it takes for a clock that may tick in hundredths of a second."""
    method, fits = WeightedVote(max_iter=10), 0
    method.fit(reports)
    start = process_time()
    while (spent := process_time() - start) < least:
        method.fit(reports)
        fits += 1
    return spent / fits


def scaling(rows: Sequence[Row]) -> float:
    times = select(rows, kind="time")
    return float(np.polyfit(np.log(column(times, "n_reports")), np.log(column(times, "seconds")), 1)[0])


def flip_answers(answers: Answers, law: str, seed: int) -> Reports:
    """Answers of two options, each flipped with its worker's own probability, read as answers."""
    rng = np.random.default_rng(seed)
    flip = FLIPS[law](rng, len(answers.workers))
    lies = rng.random(len(answers)) < flip[answers.worker]
    return Reports.unprotected(replace(answers, answer=np.where(lies, 1 - answers.answer, answers.answer)))


def flip_epsilon(law: str, n_answers: int) -> float:
    """ε per value of k answers that share one flip: max over d of the ratio of E[(1−p)^(k−d) p^d] at d and d + 1."""
    p = FLIPS[law](np.random.default_rng(0), 40_000)
    d = np.arange(n_answers + 1)[:, None]
    logs = logsumexp((n_answers - d) * np.log1p(-p) + d * np.log(p), axis=1)
    return float(np.abs(np.diff(logs)).max())


def _crowd(n_workers: int, n_questions: int, important: int, answers_each: int) -> ChoiceCrowd:
    return ChoiceCrowd(
        n_workers=n_workers,
        n_questions=n_questions,
        domain=Choices(("0", "1")),
        ability=(0.5, 0.7),
        experts=important,
        answers_per_worker=answers_each,
    )
