"""How often 95 % intervals of numbers hold, on ordinary crowds: rows of the table in docs/explain/calibration.md.

python tools/interval_table.py [--seed N] [--kinds 60] [--questions 2000] [METHOD …]
"""

from __future__ import annotations

import argparse
import itertools
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil import Answers, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.errors import CrowdveilError
from crowdveil.inference import method
from crowdveil.mechanisms import mechanism

METHODS = ("mean", "weighted-mean", "median", "channel-em", "population-mean", "frequency")
OTHERS = ("subset-selection", "discrete-laplace", "discrete-gaussian", "optimal-scale", "piecewise")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SPREADS = {".5": (0.5,), "1": (1.0,), "2": (2.0,), "mixed": (0.5, 1.0, 2.0)}
TRUTHS = ("even", "middle", "levels")
KINDS = tuple(itertools.product((5, 7, 10), SPREADS, (5, 10, 30), TRUTHS))
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Crowd:
    """Answers about known truths, and the law of the answers to every question."""

    answers: Answers
    truth: Floats
    law: Floats

    def target(self, name: str) -> Floats:
        """What the intervals of a method are about: the truth, or what the crowd thinks."""
        levels = np.arange(self.law.shape[1], dtype=np.float64)
        return {"population-mean": self.law @ levels, "frequency": self.law}.get(name, self.truth)


def crowd_of(kind: tuple[int, str, int, str], n_questions: int, seed: int) -> Crowd:
    n_levels, spread, per_question, where = kind
    rng, top = np.random.default_rng(seed), n_levels - 1
    truth = {
        "even": rng.uniform(0, top, n_questions),
        "middle": rng.normal(top / 2, top / 6, n_questions),
        "levels": rng.integers(0, n_levels, n_questions).astype(np.float64),
    }[where]
    n_workers = max(per_question + 5, n_questions * per_question // 50)
    sigma = rng.permutation(np.resize(SPREADS[spread], n_workers))
    worker = np.concatenate([rng.choice(n_workers, per_question, replace=False) for _ in range(n_questions)])
    question = np.repeat(np.arange(n_questions, dtype=np.int32), per_question)
    answer = np.clip(np.rint(rng.normal(truth[question], sigma[worker])), 0, top).astype(np.int32)
    ids = np.arange(n_workers), np.arange(n_questions)
    edges = np.arange(top) + 0.5
    below = np.mean([ndtr((edges - truth[:, None]) / each) for each in SPREADS[spread]], axis=0)
    law = np.diff(below, axis=1, prepend=0.0, append=1.0)
    return Crowd(Answers(worker, question, answer, *ids, Scale(0, top)), truth, law)


def reported(answers: Answers, rng: np.random.Generator) -> Iterator[tuple[float | None, Reports]]:
    """Without privacy, by randomised response at every ε, and by four of the other mechanisms at one each."""
    yield None, Reports.unprotected(answers)
    others = zip(rng.permutation(OTHERS)[:4], rng.permutation(EPSILONS), strict=True)
    for name, epsilon in [*(("randomized-response", each) for each in EPSILONS), *others]:
        chosen = mechanism(str(name), epsilon=float(epsilon))
        yield float(epsilon), chosen.randomize(answers, entropy_from(int(rng.integers(2**31))))


@dataclass(frozen=True, slots=True)
class Cell:
    method: str
    epsilon: float | None
    levels: bool
    held: float
    length: float
    whole: float
    error: float


def measured(name: str, epsilon: float | None, reports: Reports, crowd: Crowd, *, levels: bool) -> Cell:
    estimate, target = method(name).fit(reports), crowd.target(name)
    low, high = estimate.low, estimate.high
    top = 1.0 if name == "frequency" else float(crowd.law.shape[1] - 1)
    if name == "frequency":
        low, high = (estimate.parameters[side] for side in ("low", "high"))
    held = ((low <= target + 1e-9) & (target - 1e-9 <= high)).mean()
    whole = ((low <= 1e-9) & (high >= top - 1e-9)).mean()
    found = estimate.posterior if name == "frequency" else estimate.value
    error = np.abs(np.asarray(found) - target).mean() / top
    return Cell(name, epsilon, levels, float(held), float((high - low).mean() / top), float(whole), float(error))


def row(name: str, shown: str, cells: list[Cell]) -> str:
    above = [cell for cell in cells if cell.held > 0.98]
    whole = [cell for cell in above if cell.whole >= 0.5]
    levels = [cell for cell in above if cell.whole < 0.5 and cell.levels]
    below = sum(cell.held < 0.9 for cell in cells)
    held, length, error = (np.mean([getattr(cell, each) for cell in cells]) for each in ("held", "length", "error"))
    counts = f"{below}, {len(above) - len(whole) - len(levels)} | {len(whole)}, {len(levels)}"
    return f"| `{name}` | {shown} | {len(cells)} | {counts} | {held:.3f} | {length:.2f} | error {error:.4f} |"


def say(*what: object) -> None:
    sys.stdout.write(" ".join(map(str, what)) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*", default=METHODS)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(2**31))
    parser.add_argument("--kinds", type=int, default=60)
    parser.add_argument("--questions", type=int, default=2000)
    chosen = parser.parse_args()
    rng, cells = np.random.default_rng(chosen.seed), []
    say(f"seed {chosen.seed}, {chosen.kinds} of {len(KINDS)} kinds")
    for place in rng.permutation(len(KINDS))[: chosen.kinds]:
        crowd = crowd_of(KINDS[place], chosen.questions, int(rng.integers(2**31)))
        for epsilon, reports in reported(crowd.answers, rng):
            for name in chosen.methods:
                try:
                    cells.append(measured(name, epsilon, reports, crowd, levels=KINDS[place][3] == "levels"))
                except CrowdveilError:
                    # Votes of some channels cannot be unbiased, and what needs them refuses.
                    continue
                if not 0.9 <= cells[-1].held <= 0.98:
                    say(KINDS[place], reports.channels[0].guarantee.epsilon, cells[-1])
    for name in chosen.methods:
        for shown, some in (("none", (None,)), (".5 and 1", (0.5, 1.0)), ("2 and 4", (2.0, 4.0))):
            say(row(name, shown, [cell for cell in cells if cell.method == name and cell.epsilon in some]))


if __name__ == "__main__":
    main()
