"""Forty-eight simulated families of crowds on which methods for choices are compared.

They were fixed before any method was compared on them. Change one only for a reason that no result gave: a family that
is moved after looking at a table is no evidence any more.

A crowd is a mixture of kinds of workers. Each worker of a kind has a confusion, P(answer | truth), whose rows are drawn
from Dirichlet laws around the kind's mean. Questions may be hard (a share of the answers is a guess) or mislead (a
wrong option stands in for the truth for everybody). Copycats repeat the answers of another worker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil import Answers, Choices, Reports
from crowdveil.entropy import entropy_from
from crowdveil.mechanisms import mechanism

Array = NDArray[Any]
EPSILONS = (0.5, 1.0, 2.0, 4.0, None)
"""The privacy levels of every family; None is no privacy."""
MIXED_LEVELS = (0.5, 1.0, 2.0)
"""Where ε is mixed, a worker has one of these multiples of it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """Workers who know the answer with probability `ability` and otherwise draw from the kind's guesses.

    Guesses are even, go with probability `bias` to the first option, and with probability `neighbour` to the option
    after the truth. `concentration` is the strength of the Dirichlet law from which a worker's rows are drawn.
    A `repeats` worker gives one option, drawn once, whatever the truth; a `contrary` one avoids the truth.
    """

    ability: float
    bias: float = 0.0
    neighbour: float = 0.0
    concentration: float = 20.0
    repeats: bool = False
    contrary: bool = False

    def confusions(self, rng: np.random.Generator, n_workers: int, n_options: int) -> Array:
        """P(answer | truth): worker × truth × answer."""
        if self.repeats:
            rows = 0.02 / n_options + 0.98 * np.eye(n_options)[rng.integers(0, n_options, n_workers)]
            return np.repeat(rows[:, None, :], n_options, axis=1)
        guess = np.full((n_options, n_options), (1 - self.bias - self.neighbour) / n_options)
        guess[:, 0] += self.bias
        guess[np.arange(n_options), (np.arange(n_options) + 1) % n_options] += self.neighbour
        known = (1 - np.eye(n_options)) / (n_options - 1) if self.contrary else np.eye(n_options)
        mean = self.ability * known + (1 - self.ability) * guess
        return np.stack([rng.dirichlet(self.concentration * row + 1e-3, n_workers) for row in mean], axis=1)


HONEST = Kind(0.6)
EXPERT = Kind(0.9, concentration=60.0)
GUESSER = Kind(0.0, concentration=200.0)
REPEATER = Kind(0.0, repeats=True)
CONTRARY = Kind(0.6, contrary=True)
WEAK = Kind(0.35)
VARIED = Kind(0.55, concentration=4.0)


@dataclass(frozen=True, slots=True)
class Family:
    """One family: its questions, who answers how many of them, and how."""

    name: str
    kinds: tuple[tuple[float, Kind], ...] = ((1.0, HONEST),)
    n_options: int = 2
    n_questions: int = 400
    per_question: int = 8
    n_workers: int = 60
    classes: tuple[float, ...] = ()
    """The shares of the classes; even where nothing is said."""
    activity: float = 0.7
    """How unequally workers take part: the standard deviation of the logarithm of their activity."""
    hard: float = 0.0
    """The share of questions to which two thirds of all answers are guesses."""
    misleading: float = 0.0
    """The share of questions at which one wrong option stands in for the truth."""
    copycats: float = 0.0
    """So many workers as a share of all have a twin who repeats their answers."""
    mixed: bool = False

    def draw(self, seed: int) -> tuple[Answers, Array]:
        """A crowd of this family and the truths."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        k = self.n_options
        truth = rng.choice(k, self.n_questions, p=self.classes or np.full(k, 1 / k))
        confusion = self._confusions(rng)
        keys = rng.normal(0, self.activity, self.n_workers) + rng.gumbel(size=(self.n_questions, self.n_workers))
        worker = np.argpartition(-keys, self.per_question - 1, axis=1)[:, : self.per_question].ravel()
        question = np.repeat(np.arange(self.n_questions), self.per_question)
        shown = truth.copy()
        misled = rng.random(self.n_questions) < self.misleading
        shown[misled] = (truth[misled] + rng.integers(1, k, int(misled.sum()))) % k
        law = np.cumsum(confusion[worker, shown[question]], axis=1)
        answer = np.minimum((rng.random(len(worker))[:, None] > law).sum(axis=1), k - 1)
        guessed = (rng.random(self.n_questions) < self.hard)[question] & (rng.random(len(worker)) < 2 / 3)
        answer[guessed] = rng.integers(0, k, int(guessed.sum()))
        leaders = np.flatnonzero(rng.random(self.n_workers) < self.copycats)
        twin = np.full(self.n_workers, -1)
        twin[leaders] = self.n_workers + np.arange(len(leaders))
        copied = np.flatnonzero(twin[worker] >= 0)
        worker = np.concatenate([worker, twin[worker[copied]]])
        question, answer = (np.concatenate([column, column[copied]]) for column in (question, answer))
        domain = Choices(tuple(f"option {code}" for code in range(k)))
        workers = np.arange(self.n_workers + len(leaders))
        return Answers(worker, question, answer, workers, np.arange(self.n_questions), domain), truth

    def report(self, answers: Answers, epsilon: float | None, seed: int) -> Reports:
        """The answers through randomised response with this ε, or with a multiple of it where levels are mixed."""
        if epsilon is None:
            return Reports.unprotected(answers)
        if not self.mixed:
            return mechanism("randomized-response", epsilon=epsilon).randomize(answers, entropy_from(seed))
        level = np.random.default_rng([seed, 1]).integers(0, len(MIXED_LEVELS), len(answers.workers))
        tables = []
        for index, multiple in enumerate(MIXED_LEVELS):
            rows = level[answers.worker] == index
            part = Answers(
                answers.worker[rows],
                answers.question[rows],
                answers.answer[rows],
                answers.workers,
                answers.questions,
                answers.domain,
            )
            chosen = mechanism("randomized-response", epsilon=epsilon * multiple)
            tables.append(chosen.randomize(part, entropy_from(seed + 1000 * (index + 1))))
        columns = [
            np.concatenate([getattr(table, name) for table in tables]) for name in ("worker", "question", "report")
        ]
        channel = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        channels = tuple(table.channels[0] for table in tables)
        return Reports(*columns, channel, answers.workers, answers.questions, channels, answers.domain)

    def _confusions(self, rng: np.random.Generator) -> Array:
        """Each worker's P(answer | truth); the kinds have their exact shares of the crowd."""
        shares = np.array([share for share, _ in self.kinds])
        ends = np.rint(np.cumsum(shares / shares.sum()) * self.n_workers).astype(int)
        sizes = np.diff(ends, prepend=0).tolist()
        rows = [kind.confusions(rng, size, self.n_options) for (_, kind), size in zip(self.kinds, sizes, strict=True)]
        return rng.permutation(np.concatenate(rows))


def lopsided(*shares: float) -> tuple[float, ...]:
    """Shares of classes that add up to exactly one."""
    return (*shares, 1 - sum(shares))


FAMILIES = (
    # Typical crowds, from few answers to many.
    Family("honest, 3 per question", per_question=3),
    Family("honest, 5 per question", per_question=5),
    Family("honest, 8 per question"),
    Family("honest, 20 per question", per_question=20, n_questions=200),
    Family("honest, 5 per worker", per_question=5, n_workers=400),
    Family("honest, 15 per worker", n_workers=210),
    Family("honest, 20 workers answer everything", n_workers=20, per_question=20, n_questions=150, activity=0.0),
    Family("varied workers, sparse", ((1.0, VARIED),), per_question=5, n_workers=130),
    Family("varied workers, dense", ((1.0, VARIED),), per_question=15, n_questions=250),
    Family("weak workers, dense", ((1.0, WEAK),), per_question=15, n_questions=250),
    # Spammers, experts, contrary workers.
    Family("30 % guessers", ((0.7, HONEST), (0.3, GUESSER))),
    Family("60 % guessers, 12 per question", ((0.4, HONEST), (0.6, GUESSER)), per_question=12),
    Family("30 % repeaters", ((0.7, HONEST), (0.3, REPEATER))),
    Family("50 % repeaters, 12 per question", ((0.5, HONEST), (0.5, REPEATER)), per_question=12),
    Family("10 % experts among guessers", ((0.1, EXPERT), (0.9, GUESSER)), per_question=20, n_questions=250),
    Family("20 % experts among weak workers", ((0.2, EXPERT), (0.8, WEAK)), per_question=10),
    Family("15 % contrary", ((0.85, HONEST), (0.15, CONTRARY)), per_question=10),
    Family("experts, guessers, repeaters", ((0.3, EXPERT), (0.3, HONEST), (0.2, GUESSER), (0.2, REPEATER))),
    # Crowds that lean to one option.
    Family("lean to the first option", ((1.0, Kind(0.55, bias=0.6)),)),
    Family("lean strongly to the first option", ((1.0, Kind(0.4, bias=0.9)),), per_question=12),
    Family("half lean to the first option", ((0.5, HONEST), (0.5, Kind(0.4, bias=0.9)))),
    Family(
        "lean to the rare class",
        ((1.0, Kind(0.6, bias=0.8)),),
        classes=lopsided(0.2),
        per_question=10,
    ),
    Family("lean to the common class", ((1.0, Kind(0.6, bias=0.8)),), classes=lopsided(0.8), per_question=10),
    # Lopsided classes.
    Family("30 % rare class", classes=lopsided(0.7)),
    Family("20 % rare class", classes=lopsided(0.8)),
    Family("10 % rare class", classes=lopsided(0.9), n_questions=600),
    Family("5 % rare class, experts", ((1.0, EXPERT),), classes=lopsided(0.95), n_questions=600),
    Family("20 % rare class, spammers", ((0.7, HONEST), (0.3, REPEATER)), classes=lopsided(0.8)),
    Family("20 % rare class, sparse", classes=lopsided(0.8), per_question=4, n_workers=150),
    # Hard and misleading questions.
    Family("30 % hard questions", hard=0.3),
    Family("60 % hard questions, dense", hard=0.6, per_question=15, n_questions=250),
    Family("10 % misleading questions", misleading=0.1),
    Family("20 % misleading questions, experts", ((1.0, EXPERT),), misleading=0.2, per_question=10),
    Family("hard and lopsided", hard=0.4, classes=lopsided(0.75), per_question=10),
    # Copycats.
    Family("20 % have a copycat", copycats=0.2),
    Family("60 % have a copycat", copycats=0.6, per_question=6),
    # More options.
    Family("3 options", n_options=3),
    Family("4 options, neighbours confused", ((1.0, Kind(0.55, neighbour=0.7)),), n_options=4, per_question=10),
    Family("4 options, lopsided", n_options=4, classes=lopsided(0.55, 0.25, 0.15), per_question=10),
    Family("5 options, sparse", n_options=5, per_question=5, n_workers=130),
    Family("5 options, spammers", ((0.6, HONEST), (0.2, GUESSER), (0.2, REPEATER)), n_options=5, per_question=12),
    Family("5 options, lean to the first", ((1.0, Kind(0.5, bias=0.6)),), n_options=5, per_question=12),
    Family("7 options, hard questions", n_options=7, hard=0.3, per_question=12),
    Family("10 options, experts", ((1.0, EXPERT),), n_options=10, per_question=8),
    Family("10 options, varied workers", ((1.0, VARIED),), n_options=10, per_question=15, n_questions=250),
    # Mixed privacy.
    Family("mixed ε", mixed=True),
    Family("mixed ε, spammers, 20 % rare", ((0.7, HONEST), (0.3, GUESSER)), classes=lopsided(0.8), mixed=True),
    Family("mixed ε, 4 options, experts", ((0.3, EXPERT), (0.7, WEAK)), n_options=4, per_question=10, mixed=True),
)
