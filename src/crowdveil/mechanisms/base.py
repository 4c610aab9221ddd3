"""What every mechanism is: frozen configuration that turns answers into reports and says what that protects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from crowdveil.answers import Answers
from crowdveil.channel import Channel
from crowdveil.domain import Domain
from crowdveil.entropy import Entropy, check_entropy
from crowdveil.errors import InputError
from crowdveil.guarantee import POSITIVE, Guarantee
from crowdveil.reports import Reports
from crowdveil.sampler import draw
from crowdveil.validation import Rule, check_settings

# Beyond, e^ε or the square of a noise that hides so much, or so little, is no number any more.
LEAST_EPSILON, LARGEST_EPSILON, LEAST_SIGMA = 1e-100, 700.0, 1e-100
ORDINARY = Rule(
    f"from {LEAST_EPSILON:g} to {LARGEST_EPSILON:g}",
    lambda epsilon: LEAST_EPSILON <= epsilon <= LARGEST_EPSILON,
    fix="use mechanism none for no privacy",
)
Requested: TypeAlias = Annotated[float, POSITIVE, ORDINARY]
NoiseEpsilon: TypeAlias = Annotated[float, POSITIVE, Rule("from 1e-100 to 1e+100", lambda e: 1e-100 <= e <= 1e100)]
Sigma: TypeAlias = Annotated[
    float | None,
    Rule(
        "a positive number of ordinary size",
        lambda sigma: LEAST_SIGMA <= sigma <= 1 / LEAST_SIGMA,
        fix="use mechanism none for no noise",
    ),
]


class Mechanism(ABC):
    """Base class of all mechanisms: configuration that randomises answers into reports and states their guarantee.

    Mechanisms with `research_only` exist for comparison with a paper and are never deployed.
    """

    __slots__ = ()
    name: ClassVar[str]
    summary: ClassVar[str]
    research_only: ClassVar[bool] = False

    def __init_subclass__(cls, **parameters: Any) -> None:
        """Whatever a mechanism is, its `randomize` checks at the door what it was given."""
        super().__init_subclass__(**parameters)
        if "randomize" in vars(cls) and not hasattr(cls.randomize, "__wrapped__"):
            cls.randomize = _check_arguments(cls.randomize)  # type: ignore[method-assign]

    @abstractmethod
    def guarantee(self, domain: Domain) -> Guarantee:
        """The privacy one released report really has."""

    @abstractmethod
    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        """The reports that leave the devices."""


def _check_arguments(randomize: Callable[..., Reports]) -> Callable[..., Reports]:
    @wraps(randomize)
    def checked(self: Mechanism, answers: Any, entropy: Entropy) -> Reports:
        if not isinstance(answers, Answers):
            fix = "make them with answers_from(frame, domain), or read_answers(path, domain)"
            raise InputError(f"a mechanism randomises Answers; got {type(answers).__name__}", fix=fix)
        check_entropy(entropy)
        return randomize(self, answers, entropy)

    return checked


class ChannelMechanism(Mechanism):
    """A mechanism that randomises each answer by itself, through a channel.

    With `protect_participation` ∅ is an input like any other and *every* worker × question pair of the answers'
    dictionaries reports: a missing report would tell what the symbol hides. `epsilon` is the one that was asked for,
    unless the mechanism was described by another parameter.
    """

    __slots__ = ()
    # Declared, not defined: of an inherited property a dataclass would make the default of the field.
    epsilon: float | None
    protect_participation: bool

    @abstractmethod
    def channel(self, domain: Domain) -> Channel:
        """The integer table for this domain."""

    def guarantee(self, domain: Domain) -> Guarantee:
        return self.channel(domain).guarantee

    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        return randomize_through(self.channel(answers.domain), answers, entropy)

    def symbols(self, domain: Domain) -> tuple[str | None, ...]:
        """The channel's inputs: the domain's answers, and ∅ where participation is protected."""
        return (*domain.symbols, None) if self.protect_participation else domain.symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class EpsilonMechanism(ChannelMechanism):
    """A channel mechanism that is described by its ε alone."""

    epsilon: Requested
    protect_participation: bool = False

    def __post_init__(self) -> None:
        check_settings(self)


def randomize_through(channel: Channel, answers: Answers, entropy: Entropy) -> Reports:
    """Draw a report for each answer, or for each worker × question pair where participation is protected."""
    worker, question, answer = answers.worker, answers.question, answers.answer
    if channel.protects_participation:
        n_workers, n_questions = len(answers.workers), len(answers.questions)
        worker = np.repeat(np.arange(n_workers, dtype=np.int32), n_questions)
        question = np.tile(np.arange(n_questions, dtype=np.int32), n_workers)
        answer = answers.grid().ravel()
    else:
        answered = answer >= 0
        worker, question, answer = worker[answered], question[answered], answer[answered]
    return Reports(
        worker,
        question,
        draw(channel, answer, entropy),
        np.zeros(len(answer), dtype=np.int16),
        answers.workers,
        answers.questions,
        (channel,),
        answers.domain,
    )
