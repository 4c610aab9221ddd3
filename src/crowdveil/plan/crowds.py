"""Who answers: named crowds, or numbers, as a few classes of workers with their shares.

On choices a class is how often it is right; a wrong answer is any other option, all alike. On scales it is the spread σ
of its answers around the truth, rounded and clipped to the levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from crowdveil.domain import Choices, Domain, Scale
from crowdveil.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WorkerKind:
    """One class: `knowledge` is the share of questions it knows (it guesses the rest), `spread` is σ over the range."""

    share: float
    knowledge: float
    spread: float


_PARTS_OF_A_RANGE = 6
# Of a spread below a millionth of the range nothing is seen but rounding, and the squares of far smaller ones overflow.
_SHARPEST = 1e-6

EXPERT = (0.9, 0.05)
GOOD = (0.7, 1 / 9)
POOR = (0.3, 5 / 9)
SPAMMER = (0.0, 1.5)

SKILLS: dict[str, tuple[WorkerKind, ...]] = {
    "expert": (WorkerKind(1.0, *EXPERT),),
    "good": (WorkerKind(1.0, *GOOD),),
    "mixed": (WorkerKind(0.5, *GOOD), WorkerKind(0.5, *POOR)),
    "poor": (WorkerKind(1.0, *POOR),),
    "spammers": (WorkerKind(0.2, *EXPERT), WorkerKind(0.8, *SPAMMER)),
}
"""expert, good and poor crowds are all alike; mixed is half good, half poor (on 0..9: σ = 1 and 5, the crowd of Sun
2018); spammers are four who guess for one expert (Wang & Xu)."""


_DOUBT = 0.5
"""The part of its prior that a reader gives to kinds of workers who are not there, until the reports tell."""

POSSIBLE = tuple(WorkerKind(0.0, *kind) for kind in ((0.95, 0.03), (0.6, 0.15), (0.3, 0.4), (0.0, 1.0)))
"""Kinds that a reader who has not met the crowd holds possible."""


@dataclass(frozen=True, slots=True, eq=False)
class CrowdSkill:
    """The classes on one domain: their shares and `skill` (probability to be right, or σ in the scale's own unit).

    Classes with a share of 0 are not there; they only stand in what a reader has `believed` beforehand.
    """

    name: str
    shares: Floats
    skill: Floats
    believed: Floats

    @classmethod
    def from_name(cls, name: str, domain: Domain) -> CrowdSkill:
        """A name of SKILLS, or numbers: `0.8`, `0.9,0.6` in equal parts, or spread evenly from `0.5..0.9`."""
        if name in SKILLS:
            kinds = SKILLS[name]
            return cls._read(
                name,
                np.array([kind.share for kind in kinds]),
                np.array([_skill(kind, domain) for kind in kinds]),
                domain,
            )
        numbers = [_number(part, domain) for part in _parts(name)]
        return cls._read(name, np.full(len(numbers), 1 / len(numbers)), np.array(numbers), domain)

    @classmethod
    def _read(cls, name: str, shares: Floats, skill: Floats, domain: Domain) -> CrowdSkill:
        """With the kinds a reader holds possible beside the real ones."""
        possible_skill = np.array([_skill(kind, domain) for kind in POSSIBLE])
        believed = np.concatenate([(1 - _DOUBT) * shares, np.full(len(possible_skill), _DOUBT / len(possible_skill))])
        return cls(
            name,
            np.concatenate([shares, np.zeros(len(possible_skill))]),
            np.concatenate([skill, possible_skill]),
            believed,
        )

    @property
    def real(self) -> NDArray[np.int64]:
        """The classes that exist."""
        return np.flatnonzero(self.shares)

    def counts(self, n_workers: int) -> NDArray[np.int64]:
        """How many workers of each real class a crowd of this size has: its shares, rounded to whole people."""
        edges = np.rint(np.cumsum(self.shares[self.real]) * n_workers).astype(np.int64)
        return np.diff(edges, prepend=0)

    @property
    def rank(self) -> Floats:
        """A number that rises with skill, to sort beliefs by."""
        return np.argsort(np.argsort(self.skill)).astype(float)

    def answers(self, domain: Domain, truths: Floats) -> Floats:
        """P(answer | truth) of each class: classes × truths × levels."""
        tables = [
            _spread(domain, truths, skill) if isinstance(domain, Scale) else _right(domain, skill)
            for skill in self.skill
        ]
        return np.stack(tables)


def _skill(kind: WorkerKind, domain: Domain) -> float:
    if isinstance(domain, Scale):
        return kind.spread * domain.range
    return kind.knowledge + (1 - kind.knowledge) / domain.size


def _parts(name: str) -> list[str]:
    """The spelled numbers; a range becomes the middles of a few equal parts of it."""
    low, dots, high = name.partition("..")
    if not dots:
        return name.split(",")
    try:
        ends = float(low), float(high)
    except ValueError:
        return [name]
    edges = np.linspace(*ends, _PARTS_OF_A_RANGE + 1)
    return [repr(float(middle)) for middle in (edges[1:] + edges[:-1]) / 2]


def _number(text: str, domain: Domain) -> float:
    try:
        number = float(text)
    except ValueError:
        number = float("nan")
    if isinstance(domain, Scale) and _SHARPEST <= number / domain.range <= 1 / _SHARPEST:
        return number
    if isinstance(domain, Choices) and 0 <= number <= 1:
        return number
    wanted = "spreads, of the scale's own size" if isinstance(domain, Scale) else "probabilities of a right answer"
    raise InputError(f"skill must be one of {', '.join(SKILLS)} or {wanted}; got {text.strip()!r}")


def _right(domain: Domain, accuracy: float) -> Floats:
    wrong = (1 - accuracy) / max(domain.size - 1, 1)
    return np.full((domain.size, domain.size), wrong) + np.eye(domain.size) * (accuracy - wrong)


def _spread(domain: Scale, truths: Floats, sigma: float) -> Floats:
    levels = domain.numbers
    edges = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
    probabilities: Floats = np.diff(ndtr((edges - truths[:, None]) / sigma), axis=1)
    return probabilities
