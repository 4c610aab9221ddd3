"""Li's two-layer mechanism: each worker draws a secret flip probability once and keeps it (Li et al. 2018, §5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.channel import Channel
from crowdveil.channel.joint import JointChannel
from crowdveil.channel.two_layer import claimed_epsilon, value_epsilon, value_epsilon_at_most, vector_epsilon
from crowdveil.domain import Domain
from crowdveil.entropy import Entropy, below, uniforms
from crowdveil.errors import InputError, UnservableError
from crowdveil.guarantee import Guarantee
from crowdveil.mechanisms._research_reports import answered_rows, coded_reports, shift_codes
from crowdveil.mechanisms.base import LARGEST_EPSILON, Mechanism
from crowdveil.mechanisms.one_layer import flipping
from crowdveil.reports import Reports
from crowdveil.validation import PROBABILITY, Rule, check_settings

# Fractions grow with every answer; beyond, an upper bound takes over that is close by then.
_EXACT_UP_TO = 64
_CLAIMED = Rule(f"from 0 to {LARGEST_EPSILON:g}", lambda epsilon: 0 <= epsilon <= LARGEST_EPSILON)


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLayer(Mechanism):
    """p ~ U(low, high) once per worker; each answer flips with p to one of the other options.

    Give `low` and `high`, or the `epsilon` the paper would claim: then the widest interval with the right mean is
    taken. The claim holds for one answer. With more the reports share p, and `guarantee(domain, n_answers=…)` tells
    what they cost; so does the channel that travels with the reports.

    >>> from crowdveil import Choices
    >>> mechanism, domain = TwoLayer(low=0, high=1), Choices(("no", "yes"))
    >>> mechanism.paper_epsilon(domain), round(mechanism.guarantee(domain, n_answers=20).epsilon, 4)  # ln 20
    (0.0, 2.9957)
    """

    name: ClassVar[str] = "two-layer"
    summary: ClassVar[str] = "flip with a secret probability drawn once per worker; ε grows with the answers"
    research_only: ClassVar[bool] = True
    epsilon: Annotated[float | None, _CLAIMED] = None
    low: Annotated[float | None, PROBABILITY] = None
    high: Annotated[float | None, PROBABILITY] = None
    protect_participation: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        if self.protect_participation:
            raise UnservableError("mechanism two-layer has no report for ∅", fix="use sparse-two-layer")
        if (self.low is None) != (self.high is None) or (self.epsilon is None) == (self.low is None):
            raise InputError("mechanism two-layer needs either epsilon or both low and high")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InputError(f"low must be below high; got {self.low} and {self.high}")

    def bounds(self, domain: Domain) -> tuple[Fraction, Fraction]:
        """The interval of flip probabilities; from ε by (a + b)/2 = (s − 1)/(e^ε + s − 1) (Theorems 6.2 and 6.4)."""
        if domain.size < 2:
            raise UnservableError(
                f"mechanism {self.name} needs two options or more to flip between; got one",
                fix="use randomized-response",
            )
        if self.low is not None and self.high is not None:
            return Fraction(str(self.low)), Fraction(str(self.high))
        assert self.epsilon is not None
        mean = Fraction((domain.size - 1) / (exp(self.epsilon) + domain.size - 1))
        high = min(Fraction(1), 2 * mean)
        return 2 * mean - high, high

    def paper_epsilon(self, domain: Domain) -> float:
        """The ε of the paper's Theorem 6.3."""
        return claimed_epsilon(domain.size, *self.bounds(domain))

    def guarantee(self, domain: Domain, *, n_answers: int = 1) -> Guarantee:
        law = value_epsilon if n_answers <= _EXACT_UP_TO else value_epsilon_at_most
        epsilon = law(n_answers, domain.size, *self.bounds(domain))
        note = f"for a worker with {n_answers} answer{'s' if n_answers > 1 else ''}; it grows with their number"
        return Guarantee("value", epsilon, epsilon**2 / 2, research_only=True, note=note)

    def vector_guarantee(self, domain: Domain, *, n_answers: int) -> Guarantee:
        """All answers of a worker together."""
        epsilon = vector_epsilon(n_answers, domain.size, *self.bounds(domain))
        note = f"for a worker with {n_answers} answers; which questions were answered is visible"
        return Guarantee("vector", epsilon, epsilon**2 / 2, research_only=True, note=note)

    def channel(self, domain: Domain) -> Channel:
        """P(report | answer) of one report, the worker's p averaged out; reports of one worker are not independent."""
        low, high = self.bounds(domain)
        return Channel(domain.symbols, domain.symbols, 64, "rotate", flipping(domain.size, (low + high) / 2))

    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        low, high = (float(bound) for bound in self.bounds(answers.domain))
        worker, question, answer = answered_rows(answers)
        flip = low + (high - low) * uniforms(entropy, len(answers.workers))
        lies = uniforms(entropy, len(answer)) < flip[worker]
        others = below(entropy, len(answer), answers.domain.size - 1)
        report = shift_codes(answer, np.where(lies, others + 1, 0), answers.domain.size)
        return coded_reports(answers, worker, question, report, self._joint_channel(answers.domain, worker))

    def _joint_channel(self, domain: Domain, worker: NDArray[np.int32]) -> JointChannel:
        """The channel that travels with the reports, with the ε of whoever gave most answers."""
        most = max(int(np.bincount(worker).max()) if len(worker) else 1, 1)
        return JointChannel.of(self.channel(domain), self.name, self.guarantee(domain, n_answers=most))
