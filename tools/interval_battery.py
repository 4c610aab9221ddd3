"""How often 95 % intervals of numbers hold on ordinary crowds drawn at random: figures of docs/explain/calibration.md.

python tools/interval_battery.py [--seed N] [--kinds 150] [--truths 1000] [METHOD …]
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from interval_crowds import Crowd, Floats, arguments, counted, crowd_of, drawn_answerers, law_of, reported, say

from crowdveil.errors import CrowdveilError

METHODS = ("mean", "weighted-mean", "median", "channel-em", "population-mean")
MECHANISMS = (
    "randomized-response",
    "subset-selection",
    "discrete-laplace",
    "discrete-gaussian",
    "optimal-scale",
    "piecewise",
)
LEVELS = [2, 3, 4, 5, 5, 7, 10, 10, 11, 21, 21, 26, 51, 101, 101]
TRUTHS = ["uniform", "uniform", "normal", "skewed", "levels", "wide-normal"]
MOST_TABLES, MOST_REPORTS = 30, 30_000


@dataclass(frozen=True, slots=True)
class Kind:
    n_levels: int
    low: int
    truth: str
    spread: float
    crowd: str
    per_question: int
    n_questions: int
    load: int
    mechanism: str | None
    epsilon: float
    hidden: bool

    @property
    def top(self) -> int:
        return self.n_levels - 1


def drawn(rng: np.random.Generator) -> Kind:
    """One kind of crowd; an order of draws that a seed stands for."""
    n_levels, low = int(rng.choice(LEVELS)), int(rng.choice([0, 0, 1, -3]))
    truth = str(rng.choice(TRUTHS, p=[0.25, 0.2, 0.2, 0.15, 0.1, 0.1]))
    most = max((n_levels - 1) * 0.3, 0.6)
    spread = float(np.exp(rng.uniform(np.log(min(0.25, most / 2)), np.log(most))))
    crowd = str(rng.choice(["equal", "gamma", "spammers", "biased"], p=[0.4, 0.3, 0.2, 0.1]))
    per_question = int(rng.choice([3, 5, 5, 7, 10, 10, 15, 20, 30, 50]))
    n_questions = int(rng.choice([20, 50, 100, 200, 500, 1000, 2000], p=[0.1, 0.15, 0.2, 0.2, 0.15, 0.1, 0.1]))
    load, name, epsilon, hidden = int(rng.choice([5, 10, 20, 50])), None, 0.0, False
    if rng.random() < 0.5:
        name, epsilon = str(rng.choice(MECHANISMS)), float(rng.choice([0.5, 1, 2, 4]))
        if name == "optimal-scale" and n_levels > 11:
            name = "randomized-response"
        if name == "subset-selection" and n_levels > 12:
            name = "discrete-laplace"
        hidden = bool(rng.random() < 0.1 and name == "randomized-response")
    while n_questions * per_question > MOST_REPORTS:
        n_questions //= 2
    return Kind(n_levels, low, truth, spread, crowd, per_question, n_questions, load, name, epsilon, hidden)


def truths_of(kind: Kind, rng: np.random.Generator) -> Floats:
    top, n = kind.top, kind.n_questions
    if kind.truth == "uniform":
        return rng.uniform(0, top, n)
    if kind.truth == "skewed":
        return np.asarray(top * rng.beta(2, 5, n))
    if kind.truth == "levels":
        return rng.integers(0, top + 1, n).astype(np.float64)
    return np.clip(rng.normal(top / 2, top / (6 if kind.truth == "normal" else 4), n), 0, top)


def crowd(kind: Kind, rng: np.random.Generator) -> Crowd:
    top, n, each = kind.top, kind.n_questions, kind.per_question
    truth, n_workers = truths_of(kind, rng), max(each + 2, n * each // kind.load)
    sigma = np.full(n_workers, kind.spread)
    if kind.crowd == "gamma":
        sigma = kind.spread * rng.gamma(2, 0.5, n_workers) + 1e-3
    bias, random = np.zeros(n_workers), np.zeros(n_workers, bool)
    if kind.crowd == "biased":
        few = rng.random(n_workers) < 0.15
        bias = np.where(few, rng.choice([-1, 1], n_workers) * 1.5 * kind.spread, 0)
    if kind.crowd == "spammers":
        random = rng.random(n_workers) < 0.1
    worker, question = drawn_answerers(n_workers, n, each, rng)
    thought = truth[question] + bias[worker] + sigma[worker] * rng.standard_normal(n * each)
    guessed = rng.integers(0, top + 1, n * each)
    answer = np.where(random[worker], guessed, np.clip(np.rint(thought), 0, top))
    some = rng.choice(n_workers, min(n_workers, 60), replace=False) if n_workers > 60 else np.arange(n_workers)
    asked = np.arange(n_workers) if n_workers * n * top < 4e7 else some
    honest = asked[~random[asked]]
    law = law_of(truth, top, sigma[honest].tolist(), bias[honest].tolist(), 1 - len(honest) / len(asked))
    return crowd_of((worker, question), answer, truth, law, n_workers=n_workers, low=kind.low)


def shares_held(kind: Kind, seed: int, names: list[str], n_truths: int) -> dict[str, float]:
    """By method: how many of the truths (`population-mean`: of the crowd's means) its intervals hold."""
    rng, found = np.random.default_rng(seed), {name: list[float]() for name in names}
    hiding = {"protect_participation": True} if kind.hidden else {}
    for _ in range(min(MOST_TABLES, max(1, -(-n_truths // kind.n_questions)))):
        people = crowd(kind, rng)
        try:
            reports = reported(people.answers, kind.mechanism, kind.epsilon, rng, **hiding)
        except CrowdveilError:
            # Some mechanisms do not serve so many levels.
            return {}
        for name in names:
            if (each := counted(name, reports, people)) is not None:
                found[name].append(each.held)
    return {name: float(np.mean(each)) for name, each in found.items() if each}


def main() -> None:
    chosen = arguments(str(__doc__), METHODS, kinds=150, truths=1000)
    rng, cells = np.random.default_rng(chosen.seed), list[tuple[str, float]]()
    say(f"seed {chosen.seed}, {chosen.kinds} kinds")
    for _ in range(chosen.kinds):
        kind, seed = drawn(rng), int(rng.integers(2**31))
        held = shares_held(kind, seed, chosen.methods, chosen.truths)
        cells += held.items()
        outside = {name: round(share, 3) for name, share in held.items() if not 0.9 <= share <= 0.98}
        if outside:
            say(asdict(kind), outside)
    for name in chosen.methods:
        shares = np.array([share for each, share in cells if each == name])
        below, above = (shares < 0.9).sum(), (shares > 0.98).sum()
        say(f"| `{name}` | {len(shares)} | {below}, {above} | {shares.mean():.3f} | {shares.min():.3f} |")


if __name__ == "__main__":
    main()
