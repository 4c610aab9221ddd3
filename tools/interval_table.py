"""How often 95 % intervals of numbers hold, on ordinary crowds: rows of the table in docs/explain/calibration.md.

python tools/interval_table.py [--seed N] [--kinds 60] [--questions 2000] [METHOD …]
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from interval_crowds import Crowd, Held, arguments, counted, crowd_of, drawn_answerers, law_of, reported, say

from crowdveil import Answers, Reports

METHODS = ("mean", "weighted-mean", "median", "channel-em", "population-mean", "frequency")
OTHERS = ("subset-selection", "discrete-laplace", "discrete-gaussian", "optimal-scale", "piecewise")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SPREADS = {".5": (0.5,), "1": (1.0,), "2": (2.0,), "mixed": (0.5, 1.0, 2.0)}
TRUTHS = ("even", "middle", "levels")
KINDS = tuple(itertools.product((5, 7, 10), SPREADS, (5, 10, 30), TRUTHS))


@dataclass(frozen=True, slots=True)
class Cell:
    method: str
    epsilon: float | None
    levels: bool
    found: Held


def crowd(kind: tuple[int, str, int, str], n_questions: int, seed: int) -> Crowd:
    n_levels, spread, per_question, where = kind
    rng, top = np.random.default_rng(seed), n_levels - 1
    truth = {
        "even": rng.uniform(0, top, n_questions),
        "middle": rng.normal(top / 2, top / 6, n_questions),
        "levels": rng.integers(0, n_levels, n_questions).astype(np.float64),
    }[where]
    n_workers = max(per_question + 5, n_questions * per_question // 50)
    sigma = rng.permutation(np.resize(SPREADS[spread], n_workers))
    worker, question = drawn_answerers(n_workers, n_questions, per_question, rng)
    answer = np.clip(np.rint(rng.normal(truth[question], sigma[worker])), 0, top)
    law = law_of(truth, top, SPREADS[spread], [0.0] * len(SPREADS[spread]))
    return crowd_of((worker, question), answer, truth, law, n_workers=n_workers)


def tables(answers: Answers, rng: np.random.Generator) -> Iterator[tuple[float | None, Reports]]:
    """Without privacy, by randomised response at every ε, and by four of the other mechanisms at one each."""
    yield None, Reports.unprotected(answers)
    others = zip(rng.permutation(OTHERS)[:4], rng.permutation(EPSILONS), strict=True)
    for name, epsilon in [*(("randomized-response", each) for each in EPSILONS), *others]:
        yield float(epsilon), reported(answers, str(name), float(epsilon), rng)


def row(name: str, shown: str, cells: list[Cell]) -> str:
    above = [cell for cell in cells if cell.found.held > 0.98]
    whole = [cell for cell in above if cell.found.whole >= 0.5]
    levels = [cell for cell in above if cell.found.whole < 0.5 and cell.levels]
    below = sum(cell.found.held < 0.9 for cell in cells)
    means = (np.mean([getattr(cell.found, each) for cell in cells]) for each in ("held", "length", "error"))
    counts = f"{below}, {len(above) - len(whole) - len(levels)} | {len(whole)}, {len(levels)}"
    return f"| `{name}` | {shown} | {len(cells)} | {counts} | " + "{:.3f} | {:.2f} | error {:.4f} |".format(*means)


def main() -> None:
    chosen = arguments(str(__doc__), METHODS, kinds=60, questions=2000)
    rng, cells = np.random.default_rng(chosen.seed), list[Cell]()
    say(f"seed {chosen.seed}, {chosen.kinds} of {len(KINDS)} kinds")
    for place in rng.permutation(len(KINDS))[: chosen.kinds]:
        kind = KINDS[place]
        people = crowd(kind, chosen.questions, int(rng.integers(2**31)))
        for epsilon, reports in tables(people.answers, rng):
            for name in chosen.methods:
                found = counted(name, reports, people)
                if found is not None:
                    cells.append(Cell(name, epsilon, kind[3] == "levels", found))
                if found is not None and not found.as_promised:
                    say(kind, reports.channels[0].guarantee.epsilon, cells[-1])
    for name in chosen.methods:
        for shown, some in (("none", (None,)), (".5 and 1", (0.5, 1.0)), ("2 and 4", (2.0, 4.0))):
            say(row(name, shown, [cell for cell in cells if cell.method == name and cell.epsilon in some]))


if __name__ == "__main__":
    main()
