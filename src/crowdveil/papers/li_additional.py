"""Other laws of the flip, important users and scaling: the experiments that Li et al. (2018, §7.3) only mention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from crowdveil.answers import Answers
from crowdveil.domain import Choices
from crowdveil.inference import WeightedVote
from crowdveil.papers.li_trial import PAPER, as_answers, errors
from crowdveil.papers.reproduction import Claim, Reproduction, Row, Settings, column, mean_of, select
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
        "§7.3 only says that these were tested. Flips have mean .35 under every law (claimed ε = .62 per value); the "
        "exact ε is for a worker with 50 answers. The crowd has 60 workers, 100 questions and 50 answers each, right "
        "with probability .5 to .7, and some important users who are always right."
    )

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for law in FLIPS:
            rows.append({"kind": "privacy", "law": law, "exact_epsilon": flip_epsilon(law, 50)})
        for seed in settings.seeds(10 if settings.quick else max(settings.trials, 100)):
            for important in (0, 3, 6, 12):
                crowd = _crowd(60, 100, important).draw(seed)
                truth = crowd.truth.astype(np.float64)
                before = errors(Reports.unprotected(crowd.answers), truth)
                rows += [
                    {"kind": "none", "important": important, "aggregator": n, "error": e} for n, e in before.items()
                ]
                for law in FLIPS:
                    after = errors(flipped(crowd.answers, law, seed), truth)
                    shared: Row = {"kind": "error", "law": law, "important": important}
                    rows += [shared | {"aggregator": n, "error": e, "change": e - before[n]} for n, e in after.items()]
        return [*rows, *self._times(settings)]

    def _times(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for factor in (1, 2, 4, 8):
            crowd = _crowd(200 * factor, 500, 20).draw(settings.seed)
            reports = flipped(crowd.answers, "uniform", settings.seed)
            seconds = []
            for _ in range(3):
                start = perf_counter()
                WeightedVote(max_iter=10).fit(as_answers(reports))
                seconds.append(perf_counter() - start)
            rows.append({"kind": "time", "n_reports": len(reports), "seconds": min(seconds)})
        return rows

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        laws = [law for law in FLIPS if law != "one layer"]
        one = mean_of(rows, "change", law="one layer", aggregator="TD", important=6.0)
        others = {law: mean_of(rows, "change", law=law, aggregator="TD", important=6.0) for law in laws}
        few, many = (mean_of(rows, "change", law="uniform", aggregator="TD", important=n) for n in (0.0, 12.0))
        exact = {str(row["law"]): float(row["exact_epsilon"]) for row in select(rows, kind="privacy")}
        return [
            Claim(
                "the gain of two layers does not need the uniform law (6 important users, change of TD)",
                "general",
                f"one layer {one:.3f}; " + ", ".join(f"{law} {value:.3f}" for law, value in others.items()),
                "holds" if max(others.values()) < one else "differs",
            ),
            Claim(
                "the uniform law protects best",
                "stronger than any other",
                "exact ε per value, 50 answers: " + ", ".join(f"{law} {value:.2f}" for law, value in exact.items()),
                "holds" if exact["uniform"] <= min(exact.values()) else "fails",
            ),
            Claim(
                "more important users, smaller change (uniform, TD)",
                "smaller",
                f"0 important users {few:.3f}, 12 {many:.3f}",
                "holds" if many < few else "fails",
            ),
            Claim(
                "truth discovery scales linearly with the data",
                "linear",
                f"time grows with the power {scaling(rows):.2f} of the number of reports",
                "holds" if scaling(rows) < 1.25 else "differs",
            ),
        ]

    def draw(self, rows: Sequence[Row]) -> Any:
        numbers = sorted(set(column(select(rows, kind="none"), "important")))
        series = [
            Series(law, numbers, [mean_of(rows, "error", law=law, aggregator="TD", important=n) for n in numbers])
            for law in FLIPS
        ]
        plain = [mean_of(rows, "error", kind="none", aggregator="TD", important=n) for n in numbers]
        series.append(Series("no privacy", numbers, plain))
        privacy = select(rows, kind="privacy")
        bars = [
            Series(
                "exact ε, 50 answers",
                [float(i) for i in range(len(privacy))],
                column(privacy, "exact_epsilon"),
                kind="bars",
            )
        ]
        times = select(rows, kind="time")
        first = float(times[0]["seconds"])
        grown = [Series("time, relative", column(times, "n_reports"), [float(row["seconds"]) / first for row in times])]
        return panels(
            [
                Panel(
                    "important users",
                    "number of important users of 60",
                    "error rate, TD",
                    series,
                    {"coin, best constant": 0.5},
                ),
                Panel(
                    "privacy of the laws",
                    "law of the flip",
                    "exact ε per value",
                    bars,
                    {"claimed ε": float(np.log(0.65 / 0.35))},
                    categories=[str(row["law"]).replace(" ", "\n") for row in privacy],
                ),
                Panel("scaling", "reports", "time relative to the smallest", grown, log_x=True, log_y=True),
            ],
            caption="All laws of the flip have mean .35. 60 workers, 100 questions, 50 answers each.",
        )


def scaling(rows: Sequence[Row]) -> float:
    times = select(rows, kind="time")
    return float(np.polyfit(np.log(column(times, "n_reports")), np.log(column(times, "seconds")), 1)[0])


def flipped(answers: Answers, law: str, seed: int) -> Reports:
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


def _crowd(n_workers: int, n_questions: int, important: int) -> ChoiceCrowd:
    return ChoiceCrowd(
        n_workers=n_workers,
        n_questions=n_questions,
        domain=Choices(("0", "1")),
        ability=(0.5, 0.7),
        experts=important,
        answers_per_worker=50,
    )
