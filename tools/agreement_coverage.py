"""How often 95 % intervals of κ and α hold, on ten kinds of simulated crowds.

python tools/agreement_coverage.py [--seed N] [--crowds 1000]

Questions are drawn anew for every crowd, workers' confusion matrices are fixed for each kind; the true coefficient is
that of infinitely many questions.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np
from joint_coverage import NONE, RR, SUBSET, channel_of
from numpy.typing import NDArray

from crowdveil import Choices, Reports
from crowdveil.inference.agreement import Agreement, cohen_kappa, fleiss_kappa, krippendorff_alpha

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Kind:
    """A crowd: options, questions, workers, how often each worker is right, mechanisms in turn, part answered."""

    name: str
    n_options: int
    n_questions: int
    n_workers: int
    accuracy: float
    mechanisms: tuple[tuple[str, float], ...]
    answered: float = 1.0


KINDS = (
    Kind("no privacy, 2 options", 2, 150, 3, 0.8, ((NONE, 0),)),
    Kind("no privacy, 5 options", 5, 100, 5, 0.7, ((NONE, 0),)),
    Kind("2 options, ε 1", 2, 1000, 3, 0.8, ((RR, 1),)),
    Kind("2 options, ε 2", 2, 300, 4, 0.7, ((RR, 2),)),
    Kind("2 options, ε .5, 20 workers", 2, 500, 20, 0.75, ((RR, 0.5),)),
    Kind("3 options, ε 2", 3, 500, 5, 0.6, ((RR, 2),)),
    Kind("4 options, ε 3", 4, 400, 4, 0.8, ((RR, 3),)),
    Kind("3 options, levels mixed", 3, 400, 6, 0.7, ((NONE, 0), (RR, 1), (RR, 3))),
    Kind("5 options, subset selection, ε 2", 5, 500, 8, 0.7, ((SUBSET, 2),)),
    Kind("3 options, participation protected, ε 3", 3, 800, 5, 0.7, ((RR, 3),), answered=0.7),
)


def confusions(kind: Kind) -> tuple[Array, Array]:
    """Shares of the truths, and P(answer | truth) of each worker; options next to the truth are likelier."""
    rng = np.random.default_rng(kind.n_options * 1000 + kind.n_workers)
    k = kind.n_options
    prior = np.linspace(1.5, 1.0, k)
    near = np.exp(-np.abs(np.subtract.outer(np.arange(k), np.arange(k)))) * (1 - np.eye(k))
    near /= near.sum(axis=1, keepdims=True)
    right = np.clip(kind.accuracy + rng.uniform(-0.1, 0.1, kind.n_workers), 0, 1)[:, None, None]
    return prior / prior.sum(), right * np.eye(k) + (1 - right) * near


def true_coefficients(kind: Kind) -> dict[str, float]:
    prior, confusion = confusions(kind)
    margins = np.einsum("t,wtk->wk", prior, confusion)
    pairs = np.einsum("t,wtk,vtl->wvkl", prior, confusion, confusion)
    off = ~np.eye(kind.n_workers, dtype=bool)
    joint, mean = pairs[off].mean(axis=0), margins.mean(axis=0)
    middle = np.cumsum(mean) - mean / 2
    places = np.arange(kind.n_options, dtype=np.float64)
    distances = {
        "nominal": 1 - np.eye(kind.n_options),
        "ordinal": np.subtract.outer(middle, middle) ** 2,
        "interval": np.subtract.outer(places, places) ** 2,
    }
    alpha = {
        name: 1 - float((joint * square).sum() / (np.outer(mean, mean) * square).sum())
        for name, square in distances.items()
    }
    by_chance = float(margins[0] @ margins[1])
    cohen = (float(np.trace(pairs[0, 1])) - by_chance) / (1 - by_chance)
    return {"cohen": cohen, "fleiss": alpha["nominal"]} | alpha


def draw(kind: Kind, seed: int) -> Reports:
    rng = np.random.default_rng([kind.n_options, kind.n_questions, seed])
    prior, confusion = confusions(kind)
    domain = Choices(tuple(str(code) for code in range(kind.n_options)))
    hidden = kind.answered < 1
    channels = tuple(channel_of(name, epsilon, domain, hidden) for name, epsilon in kind.mechanisms)
    truth = rng.choice(kind.n_options, kind.n_questions, p=prior)
    columns = []
    for worker in range(kind.n_workers):
        index = worker % len(channels)
        answer = (rng.random((len(truth), 1)) > np.cumsum(confusion[worker], axis=1)[truth][:, :-1]).sum(axis=1)
        if hidden:
            answer = np.where(rng.random(len(truth)) < kind.answered, answer, -1)
        law = np.cumsum(channels[index].table, axis=1)[answer][:, :-1]
        report = (rng.random((len(truth), 1)) > law).sum(axis=1)
        columns.append((np.full(len(truth), worker), np.arange(len(truth)), report, np.full(len(truth), index)))
    rater, question, reported, used = (np.concatenate(each) for each in zip(*columns, strict=True))
    return Reports(
        rater.astype(np.int32),
        question.astype(np.int32),
        reported.astype(np.int32),
        used.astype(np.int16),
        np.arange(kind.n_workers).astype(str),
        np.arange(kind.n_questions).astype(str),
        channels,
        domain,
    )


def coefficients(reports: Reports) -> dict[str, Agreement]:
    return {
        "cohen": cohen_kappa(reports, "0", "1"),
        "fleiss": fleiss_kappa(reports),
        "nominal": krippendorff_alpha(reports),
        "ordinal": krippendorff_alpha(reports, metric="ordinal"),
        "interval": krippendorff_alpha(reports, metric="interval"),
    }


def covered(kind: Kind, seed: int) -> dict[str, bool]:
    """Which true coefficients lie inside their intervals, for one crowd."""
    truth = true_coefficients(kind)
    return {name: each.low <= truth[name] <= each.high for name, each in coefficients(draw(kind, seed)).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--crowds", type=int, default=1000)
    chosen = parser.parse_args()
    sys.stdout.write(f"seed {chosen.seed}, {chosen.crowds} crowds of each kind\n")
    sys.stdout.write(
        "| kind | Cohen's κ | Fleiss' κ | α nominal | α ordinal | α interval |\n|---|---|---|---|---|---|\n"
    )
    for kind in KINDS:
        held = [covered(kind, seed) for seed in range(chosen.seed, chosen.seed + chosen.crowds)]
        shares = [100 * np.mean([each[name] for each in held]) for name in held[0]]
        sys.stdout.write(f"| {kind.name} | " + " | ".join(f"{share:.1f}" for share in shares) + " |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
