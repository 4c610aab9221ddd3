"""What the crowd says about a worker before the worker's own answers do: a prior in two steps, fitted to the reports.

A worker's skill comes from the crowd's (a Beta law), and every row of the worker's confusion from the coin with that
skill: right with it, otherwise any other option (a Dirichlet law). How strong either law is follows from how much
workers differ from the crowd, and rows from their worker's coin: with i, j two reports of a worker and v their
unbiased votes, E[(v_i − m)(v_j − m)] is the variance of what they share, whatever the channel adds to each report
alone. Divided by m(1 − m) it is ρ, and the strength is 1/ρ − 1 (moments; weights as Paule and Mandel 1982).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.inference.kernels.layout import Layout
from crowdveil.inference.observations.likelihood import Emission, by_worker
from crowdveil.inference.protocols import Parameters, Statistics

Array = NDArray[Any]
ROUNDS = (8, 12, 16)
"""The iterations after which the strength is fitted; before the first, everybody is taken as the same worker."""
POOLED = 1e6
_ACCURACY, _LIKENESS = 0.7, 0.15
_LEAST_ALIKE, MOST_ALIKE = 0.002, 0.7
_ERRORS = 20.0
"""How many answers per truth it takes to learn where the crowd's errors go: chosen on simulated crowds."""


@dataclass(frozen=True, slots=True)
class CrowdPrior:
    """How often the crowd is right, how many answers that counts as for a worker, and a worker's skill for a row.

    `given` is the share of questions that the crowd answers, `age` the iterations so far.
    """

    accuracy: float = _ACCURACY
    skill: float = POOLED
    rows: float = POOLED
    given: float = 1.0
    age: float = 0.0

    @classmethod
    def of(cls, numbers: Array) -> CrowdPrior:
        return cls(*(float(number) for number in numbers))

    @classmethod
    def begin(cls, start: Parameters, *, with_empty: bool) -> CrowdPrior:
        """The prior that a fit begins with, cold or from an earlier one's parameters."""
        return cls.of(start["crowd"]).again() if start else cls(given=0.5 if with_empty else 1.0)

    @property
    def array(self) -> Array:
        return np.array([self.accuracy, self.skill, self.rows, self.given, self.age])

    @property
    def due(self) -> bool:
        """The next pass is one after which the strengths are fitted."""
        return int(self.age) + 1 in ROUNDS

    @property
    def apart(self) -> bool:
        """Workers are told apart. Before, shares of the classes are not learned: they would run away to the largest."""
        return self.age >= ROUNDS[0]

    @property
    def settled(self) -> bool:
        """The prior changes no more: from here on the objective may only rise."""
        return self.age >= ROUNDS[-1]

    def again(self) -> CrowdPrior:
        """Begin anew from how often the crowd is right.

        Strengths are fitted to workers who were all taken as the same; from workers already told apart they would come
        out otherwise, and otherwise again at every start. What a cold fit spends on finding the accuracy is spared.
        """
        return CrowdPrior(accuracy=self.accuracy, given=self.given, age=min(self.age, float(ROUNDS[0] - 2)))

    def skills(self, right: Array, answers: Array) -> Array:
        """Each worker's share of right answers, drawn towards the crowd's."""
        skills: Array = (right + self.skill * self.accuracy) / (answers + self.skill)
        return skills

    def counts(self, skills: Array, errors: Array, emission: Emission) -> Array:
        """Pseudo-answers, worker × answer × truth; ∅ as often as the crowd skips a question."""
        counts = np.empty((len(skills), emission.n_answers, emission.n_options))
        counts[:, : emission.n_options] = self.rows * coins(skills, errors)
        counts[:, emission.n_options :] = self.rows * (1 - self.given) / max(self.given, 1e-3)
        return counts

    def weights(self, answers: Array, noise: float) -> Array:
        """What an answer of each worker tells of the crowd.

        Answers of one worker resemble each other: n of them tell as much as n / (1 + (n − 1)·ρ) workers' one answer.
        """
        return 1 / (1 + np.maximum(answers / noise - 1, 0.0) / (1 + self.skill))

    def next(self, right: Array, answers: Array, empty: float, noise: float) -> CrowdPrior:
        """The prior after one more pass: so many of each worker's answers were right, so many were ∅."""
        weight = self.weights(answers, noise)
        # One unprotected answer's worth of the typical crowd keeps an empty table defined.
        accuracy = float((weight @ right + noise * _ACCURACY) / (weight @ answers + noise))
        total = float(answers.sum())
        return replace(self, accuracy=accuracy, given=(total + 1) / (total + empty + 1), age=self.age + 1)

    def errors(self, given: Array, noise: float) -> Array:
        """To which option the crowd's errors go at each truth, answer × truth; before workers are told apart, to any.

        `given` are the answers, worker × answer × truth.
        """
        even = no_errors(given.shape[1])
        if not self.apart:
            return even
        total = np.tensordot(self.weights(given.sum(axis=(1, 2)), noise), given, axes=1)
        np.fill_diagonal(total, 0.0)
        total += _ERRORS * noise * even
        errors: Array = total / np.maximum(total.sum(axis=0), 1e-300)
        return errors

    def refit(self, statistics: Statistics, skills: Array, errors: Array) -> CrowdPrior:
        """With the strengths that fit how workers differed in this pass, in which they had these skills."""
        if "deviation" not in statistics:
            return self
        rows = _likeness(statistics, coins(skills, errors))
        skill = _likeness(_by_skill(statistics, skills - self.accuracy), np.full((1, 1, 1), self.accuracy))
        return replace(self, rows=1 / rows - 1, skill=1 / skill - 1)


def no_errors(n_options: int) -> Array:
    """Errors that go to any other option alike, answer × truth."""
    even: Array = (1 - np.eye(n_options)) / max(n_options - 1, 1)
    return even


def coins(skills: Array, errors: Array) -> Array:
    """P(answer | truth) of workers who are right with their skill and otherwise err as the crowd does."""
    n_options = len(errors)
    coins: Array = (1 - skills)[:, None, None] * errors
    options = np.arange(n_options)
    coins[:, options, options] = skills[:, None] if n_options > 1 else 1.0
    return coins


def _by_skill(statistics: Statistics, ahead: Array) -> Statistics:
    """The same sums over all truths: how much more often than the crowd a worker was right."""
    met = statistics["met"].sum(axis=1)
    deviation = np.einsum("wtt->w", statistics["deviation"]) + ahead * met
    squares = np.einsum("wtt->w", statistics["squares"])
    return {
        "deviation": deviation[:, None, None],
        "squares": squares[:, None, None],
        "met": met[:, None],
        # The chances of a question's truths add up to one: every report is paired with itself once.
        "met_twice": met[:, None],
    }


def deviations(counts: Array, doubled: Array, given: Array, mean: Array, votes: Array, layout: Layout) -> Statistics:
    """Sums over a worker's reports at each truth, worker × answer × truth: of v − m, and of its squares.

    `counts` are the chances that a cell met a truth, `doubled` their squares: a report must not be paired with itself.
    """
    ones, n_workers = np.ones((len(votes), 1)), len(given)
    met, twice = (by_worker(ones, each.astype(np.float64), layout, n_workers) for each in (counts, doubled))
    centre = given[:, None, None] * mean
    cross = by_worker(votes, doubled, layout, n_workers)
    return {
        "deviation": by_worker(votes, counts, layout, n_workers) - centre * met,
        "squares": by_worker(votes**2, doubled, layout, n_workers) - 2 * centre * cross + centre**2 * twice,
        "met": met[:, 0] * given[:, None],
        "met_twice": twice[:, 0] * given[:, None] ** 2,
    }


def _likeness(statistics: Statistics, mean: Array) -> float:
    """ρ, the correlation of two answers that share something; pairs weigh by their variance at the ρ found so far."""
    squares, met, twice = statistics["squares"], statistics["met"], statistics["met_twice"]
    noise = squares.sum(axis=0) / np.maximum(twice.sum(axis=0), 1e-12)
    alone = twice[:, None] * noise
    # Uncertain truths hide differences, and no correction is made for that: what cannot be seen is not assumed.
    pairs = np.maximum(met**2 - twice, 0.0)[:, None] * (mean * (1 - mean))
    apart = statistics["deviation"] ** 2 - squares
    likeness = _LIKENESS
    for _ in range(4):
        weight = (met > 1e-6)[:, None] / np.maximum(alone + pairs * likeness, 1e-9) ** 2
        # One pair of workers as unlike as any two are taken to be before.
        total = float((weight * apart * pairs).sum()) + 1 / _LIKENESS
        likeness = total / (float((weight * pairs**2).sum()) + 1 / _LIKENESS**2)
        likeness = float(np.clip(likeness, _LEAST_ALIKE, MOST_ALIKE))
    return likeness


def votes_by_symbol(channels: tuple[Channel, ...], n_options: int) -> Array:
    """The unbiased votes of every output of every channel, symbol × option."""
    return np.vstack([np.empty((0, n_options)), *(channel.votes[:, :n_options] for channel in channels)])
