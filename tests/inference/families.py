"""Random families of crowds: the only ones on which a setting of a method is chosen (docs/explain/calibration.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil import Answers, Choices, Reports, Scale
from crowdveil.entropy import entropy_from
from crowdveil.mechanisms import mechanism

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class ChoiceFamily:
    """One kind of crowd; `drawn` takes one at random, over all shapes that a method should stand."""

    n_options: int
    n_questions: int
    per_question: int
    per_worker: int
    uneven: float
    """How unequally workers take part: the standard deviation of the logarithm of their activity."""
    classes: tuple[float, ...]
    right: float
    """Where between chance and certainty the typical honest worker is."""
    alike: float
    """How much workers resemble the typical one, in answers (the strength of a Dirichlet law)."""
    pairs: float
    """The share of the honest errors that goes to one confusable option, the same for everybody."""
    spammers: float
    contrary: float

    @property
    def n_workers(self) -> int:
        return max(self.per_question + 2, round(self.n_questions * self.per_question / self.per_worker))

    def draw(self, seed: int) -> tuple[Answers, Array]:
        rng = np.random.default_rng(seed)
        k = self.n_options
        truth = rng.choice(k, self.n_questions, p=self.classes)
        confusion = self._confusions(rng)
        activity = np.exp(rng.normal(0, self.uneven, self.n_workers))
        # Without replacement by weight: the largest of log-weight plus Gumbel noise.
        keys = np.log(activity) + rng.gumbel(size=(self.n_questions, self.n_workers))
        worker = np.argpartition(-keys, self.per_question - 1, axis=1)[:, : self.per_question].ravel()
        question = np.repeat(np.arange(self.n_questions), self.per_question)
        law = np.cumsum(confusion[worker, truth[question]], axis=1)
        answer = np.minimum((rng.random(len(worker))[:, None] > law).sum(axis=1), k - 1)
        domain = Choices(tuple(f"option {code}" for code in range(k)))
        return Answers(worker, question, answer, np.arange(self.n_workers), np.arange(self.n_questions), domain), truth

    def _confusions(self, rng: np.random.Generator) -> Array:
        """Worker × truth × answer."""
        k, chance = self.n_options, 1 / self.n_options
        right = chance + (1 - chance) * self.right
        typical = np.full((k, k), (1 - right) * (1 - self.pairs) / (k - 1))
        typical[np.arange(k), (np.arange(k) + 1) % k] += (1 - right) * self.pairs
        np.fill_diagonal(typical, right)
        rows = np.stack([rng.dirichlet(self.alike * row + 1e-3, self.n_workers) for row in typical], axis=1)
        kind = rng.random(self.n_workers)
        for worker in np.flatnonzero(kind < self.spammers):
            rows[worker] = rng.dirichlet(np.full(k, 0.7)) if rng.random() < 0.5 else np.full(k, chance)
        contrary = (kind >= self.spammers) & (kind < self.spammers + self.contrary)
        flipped = 1 - np.eye(k)
        rows[contrary] = 0.8 * flipped / (k - 1) + 0.2 * chance
        return rows


def drawn(seed: int) -> ChoiceFamily:
    """A kind of crowd: 2 to 8 options, 3 to 20 answers a question, 8 to 150 a worker, even or lopsided classes."""
    rng = np.random.default_rng(seed)
    k = int(rng.choice([2, 2, 2, 3, 4, 5, 8]))
    even = np.full(k, 1 / k)
    classes = even if rng.random() < 0.4 else 0.9 * rng.dirichlet(np.full(k, rng.choice([1.0, 3.0]))) + 0.1 * even
    return ChoiceFamily(
        n_options=k,
        n_questions=int(np.exp(rng.uniform(np.log(100), np.log(1000)))),
        per_question=int(np.exp(rng.uniform(np.log(3), np.log(21)))),
        per_worker=int(np.exp(rng.uniform(np.log(8), np.log(150)))),
        uneven=float(rng.choice([0.0, 1.0])),
        classes=tuple(classes),
        right=float(rng.uniform(0.35, 0.85)),
        alike=float(np.exp(rng.uniform(np.log(3), np.log(50)))),
        pairs=float(rng.choice([0.0, 0.5])) if k > 2 else 0.0,
        spammers=float(rng.choice([0.0, rng.uniform(0, 0.35)])),
        contrary=float(rng.choice([0.0, 0.0, rng.uniform(0, 0.1)])),
    )


def reported(answers: Answers, epsilon: float | None, seed: int, *, hidden: bool = False) -> Reports:
    """The answers through randomised response, or as they are."""
    if epsilon is None:
        return Reports.unprotected(answers)
    chosen = mechanism("randomized-response", epsilon=epsilon, protect_participation=hidden)
    return chosen.randomize(answers, entropy_from(seed))


def calibration_error(confidence: Array, right: Array) -> float:
    """The expected distance between confidence and accuracy, over ten bins."""
    bins = np.minimum((np.asarray(confidence) * 10).astype(int), 9)
    return float(
        sum(
            abs(confidence[bins == place].mean() - right[bins == place].mean()) * (bins == place).mean()
            for place in np.unique(bins)
        )
    )


def drawn_scale(seed: int) -> tuple[Answers, Array]:
    """A crowd that rates: 5 to 21 levels, 3 to 60 answers a question, truths well within the scale."""
    rng = np.random.default_rng(seed)
    top = int(rng.choice([4, 6, 10, 20]))
    per_question, n_questions = int(np.exp(rng.uniform(np.log(3), np.log(60)))), int(rng.integers(60, 200))
    per_worker = np.exp(rng.uniform(np.log(10), np.log(80)))
    n_workers = max(per_question + 5, int(n_questions * per_question / per_worker))
    least = rng.uniform(0.07, 0.12) * top
    sigma = rng.uniform(least, least * rng.choice([1.0, 2.0, 3.0]), n_workers)
    truth = rng.uniform(0.35 * top, 0.65 * top, n_questions)
    worker = np.concatenate([rng.choice(n_workers, per_question, replace=False) for _ in range(n_questions)])
    question = np.repeat(np.arange(n_questions), per_question)
    answer = np.clip(np.rint(rng.normal(truth[question], sigma[worker])), 0, top).astype(np.int32)
    return Answers(worker, question, answer, np.arange(n_workers), np.arange(n_questions), Scale(0, top)), truth
