"""How often 95 % intervals of cross-tabulations hold, on ten kinds of simulated crowds.

python tools/joint_coverage.py [--seed N] [--crowds 300] [--jobs 1]

A profile-likelihood interval holds a value exactly when the likelihood ratio at that value is below the χ² quantile,
so that each crowd costs one constrained fit for each share instead of a search for both ends.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from crowdveil import Choices, Reports
from crowdveil.channel import Channel, identity
from crowdveil.inference.crosstab import cell_shares, conditional_shares, joint_distribution, margin_shares
from crowdveil.inference.joint_distribution import Difference, Share
from crowdveil.inference.uncertainty.summaries import QUANTILE
from crowdveil.mechanisms import ChannelMechanism, mechanism

SEED = 20_261_118


@dataclass(frozen=True, slots=True)
class Kind:
    """A crowd: options of both questions, workers, how the two answers depend, and each question's mechanisms."""

    name: str
    shape: tuple[int, int]
    n_workers: int
    dependence: float
    rows: tuple[tuple[str, float], ...]
    columns: tuple[tuple[str, float], ...]
    answered: float = 1.0
    concentration: float = 4.0


RR, SUBSET, NONE = "randomized-response", "subset-selection", "none"
KINDS = (
    Kind("no privacy, 3 × 3", (3, 3), 300, 0.5, ((NONE, 0),), ((NONE, 0),)),
    Kind("2 × 2, ε 1", (2, 2), 1000, 0.5, ((RR, 1),), ((RR, 1),)),
    Kind("2 × 2, ε .5", (2, 2), 5000, 0.5, ((RR, 0.5),), ((RR, 0.5),)),
    Kind("3 × 3, ε 2, independent", (3, 3), 1000, 0.0, ((RR, 2),), ((RR, 2),)),
    Kind("4 × 2, public groups, ε 1", (4, 2), 1000, 0.4, ((NONE, 0),), ((RR, 1),)),
    Kind("4 × 2, ε 2", (4, 2), 1000, 0.4, ((RR, 2),), ((RR, 2),)),
    Kind("3 × 2, levels mixed", (3, 2), 1000, 0.5, ((RR, 1), (RR, 2), (NONE, 0)), ((RR, 1), (RR, 2), (NONE, 0))),
    Kind("2 × 3, participation protected, ε 2", (2, 3), 2000, 0.5, ((RR, 2),), ((RR, 2),), answered=0.8),
    Kind("5 × 5, subset selection, ε 3", (5, 5), 2000, 0.6, ((SUBSET, 3),), ((SUBSET, 3),)),
    Kind("4 × 4, rare cells, ε 2", (4, 4), 2000, 0.5, ((RR, 2),), ((RR, 2),), concentration=0.7),
)


def draw(kind: Kind, seed: int) -> tuple[NDArray[np.float64], Reports, Reports]:
    """The joint distribution of the two answers, and the reports about both questions."""
    rng = np.random.default_rng([SEED, seed])
    rows, columns = kind.shape
    independent = np.outer(rng.dirichlet(np.full(rows, kind.concentration * 2)), rng.dirichlet(np.full(columns, 4.0)))
    dependent = rng.dirichlet(np.full(rows * columns, kind.concentration)).reshape(kind.shape)
    joint = (1 - kind.dependence) * independent + kind.dependence * dependent
    pair = rng.choice(rows * columns, kind.n_workers, p=joint.ravel())
    answers = [pair // columns, pair % columns]
    tables = []
    for side, mechanisms in enumerate((kind.rows, kind.columns)):
        domain = Choices(tuple(f"option {code}" for code in range(kind.shape[side])))
        if kind.answered < 1:
            answers[side] = np.where(rng.random(kind.n_workers) < kind.answered, answers[side], -1)
        tables.append(randomize(answers[side], domain, mechanisms, kind.answered < 1, rng))
    return joint, tables[0], tables[1]


def channel_of(name: str, epsilon: float, domain: Choices, hidden: bool) -> Channel:
    if name == NONE:
        return identity(domain)
    chosen = mechanism(name, epsilon=epsilon, protect_participation=hidden)
    assert isinstance(chosen, ChannelMechanism)
    return chosen.channel(domain)


def randomize(
    answer: NDArray[np.int64],
    domain: Choices,
    mechanisms: tuple[tuple[str, float], ...],
    hidden: bool,
    rng: np.random.Generator,
) -> Reports:
    """Reports drawn from the channels' tables; workers take the mechanisms in turn."""
    channels = tuple(channel_of(name, epsilon, domain, hidden) for name, epsilon in mechanisms)
    channel = (np.arange(len(answer)) % len(channels)).astype(np.int16)
    report = np.zeros(len(answer), dtype=np.int32)
    for index, each in enumerate(channels):
        mine = channel == index
        thresholds = np.cumsum(each.table, axis=1)[answer[mine]]
        report[mine] = np.minimum((rng.random((int(mine.sum()), 1)) > thresholds).sum(axis=1), len(each.outputs) - 1)
    workers = np.arange(len(answer), dtype=np.int32)
    zeros = np.zeros(len(answer), dtype=np.int32)
    return Reports(workers, zeros, report, channel, workers.astype(str), np.array(["q"]), channels, domain)


def covered(kind: Kind, seed: int) -> dict[str, NDArray[np.bool_]]:
    """Which true shares lie inside their intervals, for one crowd."""
    joint, row_reports, column_reports = draw(kind, seed)
    distribution = joint_distribution(row_reports, "q", column_reports, "q")
    best, truth, shape = distribution.maximum_likelihood(), joint.reshape(1, -1), kind.shape
    groups = [conditional_shares(shape, row) for row in (0, 1)]
    quantities: dict[str, Share | Difference] = {
        "cells": cell_shares(shape),
        "margins": margin_shares(shape, axis=0),
        "conditional": conditional_shares(shape),
        "difference": Difference(groups[0], groups[1]),
    }
    held = {}
    for name, quantity in quantities.items():
        ratio = distribution.likelihood_ratio(quantity, quantity.estimate(truth), best)
        held[name] = ratio <= QUANTILE**2
    raw, covariance = distribution.inversion()
    held["inversion"] = np.abs(raw - joint.ravel()) <= QUANTILE * np.sqrt(np.diag(covariance))
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--crowds", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    names = ("cells", "margins", "conditional", "difference", "inversion")
    sys.stdout.write(f"seed {chosen.seed}, {chosen.crowds} crowds of each kind\n")
    sys.stdout.write("| kind | " + " | ".join(names) + " |\n|---|" + "---|" * len(names) + "\n")
    seeds = range(chosen.seed, chosen.seed + chosen.crowds)
    with ProcessPoolExecutor(chosen.jobs) as pool:
        for kind in KINDS:
            held = list(pool.map(partial(covered, kind), seeds, chunksize=10))
            shares = [np.mean(np.concatenate([each[name] for each in held])) for name in names]
            sys.stdout.write(f"| {kind.name} | " + " | ".join(f"{100 * share:.1f}" for share in shares) + " |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
