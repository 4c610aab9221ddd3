"""One trial of Li et al. (2018, §7): flip answers in one or two layers, aggregate by MV or TD, compare error rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import exp

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.channel import identity
from crowdveil.entropy import Keystream
from crowdveil.estimate import Estimate
from crowdveil.inference import Majority, Method, WeightedVote
from crowdveil.mechanisms import Mechanism, OneLayer, TwoLayer
from crowdveil.papers.core.datasets import Dataset, categorical, constant_error
from crowdveil.papers.core.reproduction import Row, Settings, add_columns, mean_column
from crowdveil.reports import Reports
from crowdveil.simulate import preset

PAPER = (
    "Li, Miao, Su, Gao, Li, Ding, Qin, Ren:"
    " An efficient two-layer mechanism for privacy-preserving truth discovery (2018)"
)
Floats = NDArray[np.float64]
AGGREGATORS: dict[str, Method] = {"MV": Majority(), "TD": WeightedVote(max_iter=20)}
SPOKEN = {"peer": "Peer grading (simulated)", "duchenne": "Duchenne smiles"}
READING = (
    "An answer is flipped to the other option; the flip of one layer is 1/(e^ε + 1), that of two layers is drawn once "
    "per worker from U(a, b) with the same mean and a = 0. TD is weighted voting with log-odds weights over the "
    "questions a worker answered, +1/+2 smoothed. A tie in a vote counts half. The error rate is over the questions "
    "with a known truth. ε is per value: the claim of Theorem 6.3 holds for one answer; the exact ε is that of a "
    "worker with the median number of answers, and which questions were answered is visible."
)


ABILITIES = (0.35, 0.82)
"""Of simulated peer graders: quality that “varies significantly” (§1), and some 73 % right without privacy (§7.2)."""


def peer_grading(seed: int, abilities: tuple[float, float] = ABILITIES) -> Dataset:
    """72 students, 26 groups, 360 grades; the original is not public."""
    crowd = preset("li-peer-grading", ability=abilities).draw(seed)
    return Dataset(crowd.answers, crowd.truth.astype(np.float64))


def duchenne(settings: Settings) -> Dataset:
    return categorical("duchenne", settings)


def build_mechanism(layers: str, epsilon: float) -> Mechanism:
    """ε = 0 is a coin for one layer and U(0, 1) for two."""
    if layers == "two":
        return TwoLayer(epsilon=epsilon)
    return OneLayer(flip=1 / (exp(epsilon) + 1))


def as_answers(reports: Reports) -> Reports:
    """Reports read as if they were answers, as the paper does: their channel is taken for the identity."""
    return replace(reports, channels=(identity(reports.domain),))


def errors(reports: Reports, truth: Floats) -> dict[str, float]:
    """The error rate of each aggregator."""
    return {name: error_rate(method.fit(as_answers(reports)), truth) for name, method in AGGREGATORS.items()}


def error_rate(estimate: Estimate, truth: Floats) -> float:
    """Over known truths; options that tie share the credit."""
    has_truth = ~np.isnan(truth)
    posterior = np.asarray(estimate.posterior, dtype=np.float64)[has_truth]
    best = posterior >= posterior.max(axis=1, keepdims=True) - 1e-9
    codes = truth[has_truth].astype(np.int64)
    credit = best[np.arange(len(codes)), codes] / best.sum(axis=1)
    return float(1 - credit.mean())


def trial_rows(data: Dataset, epsilons: Sequence[float], seed: int) -> list[Row]:
    """One and two layers at each ε, MV and TD."""
    before = errors(Reports.unprotected(data.answers), data.truth)
    rows: list[Row] = [{"layers": "none", "aggregator": name, "error": value} for name, value in before.items()]
    for epsilon in epsilons:
        for layers in ("one", "two"):
            reports = build_mechanism(layers, epsilon).randomize(data.answers, Keystream(f"{seed}:{layers}:{epsilon}"))
            for name, value in errors(reports, data.truth).items():
                row: Row = {"layers": layers, "aggregator": name, "epsilon": epsilon, "error": value}
                rows.append(row | {"change": value - before[name]})
    return add_columns(rows, trial=float(seed))


def median_answers(answers: Answers) -> int:
    """How many answers the median worker gave, of those who gave any."""
    counts = np.bincount(answers.worker, minlength=len(answers.workers))
    return int(np.median(counts[counts > 0]))


def privacy_rows(answers: Answers, epsilons: Sequence[float]) -> list[Row]:
    """The exact ε of both mechanisms for a worker with the median number of answers."""
    typical, rows = median_answers(answers), list[Row]()
    for epsilon in epsilons:
        two = TwoLayer(epsilon=epsilon)
        values = {
            "one": build_mechanism("one", epsilon).guarantee(answers.domain).epsilon,
            "two": two.guarantee(answers.domain, n_answers=typical).epsilon,
        }
        vector = {
            "one": values["one"] * typical,
            "two": two.vector_guarantee(answers.domain, n_answers=typical).epsilon,
        }
        for layers, exact in values.items():
            row: Row = {"layers": layers, "aggregator": "privacy", "epsilon": epsilon, "exact_epsilon": exact}
            rows.append(row | {"vector_epsilon": vector[layers], "n_answers": typical})
    return add_columns(rows, size=f"{len(answers.workers)} × {len(answers.questions)}")


def baseline_errors(data: Dataset) -> list[Row]:
    """The best constant; without an order of the options the mid-level is a coin."""
    return [
        {"layers": "baseline", "aggregator": "best constant", "error": constant_error(data.truth)},
        {
            "layers": "baseline",
            "aggregator": "coin (no mid-level for options)",
            "error": 1 - 1 / data.answers.domain.size,
        },
    ]


def error_change(rows: Sequence[Row], layers: str, aggregator: str, epsilon: float) -> float:
    return mean_column(rows, "change", layers=layers, aggregator=aggregator, epsilon=epsilon)
