"""Loki's ratings: Gaussian noise at the levels low, medium and high (Kandappu et al. 2015, §4.5.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Annotated, ClassVar

from scipy.special import log_ndtr, ndtr

from crowdveil.answers import Answers
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.domain import Domain
from crowdveil.entropy import Entropy
from crowdveil.errors import InputError, UnservableError
from crowdveil.guarantee import POSITIVE, Guarantee
from crowdveil.mechanisms._research_reports import (
    Fill,
    all_rows,
    answered_rows,
    fill_empty,
    normal_noise,
    number_range,
    number_reports,
)
from crowdveil.mechanisms.base import ORDINARY, Mechanism, Sigma
from crowdveil.reports import Reports
from crowdveil.validation import Rule, check_settings

# γ of the privacy levels on Loki's five-point scale, whose range is 4.
LEVELS = {"low": 3.0, "medium": 6.0, "high": 12.0}
_LOKI_RANGE = 4.0
_DELTA = Rule("above 0 and below 1", lambda delta: 0 < delta < 1, fix="choose for example 1e-6")


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Mechanism):
    """N(0, γ²) on each number: give Loki's `level`, or `sigma`, or `epsilon` with `delta`.

    The paper's formula (4.2) is not a guarantee. ε is computed here by the exact condition of the analytic Gaussian
    mechanism (Balle & Wang 2018): at δ = .01 the levels have ε 3.42, 1.35 and 0.53 where the paper prints 3.42,
    0.85 and 0.21.

    >>> from crowdveil import Scale
    >>> [round(Gaussian(level=level).guarantee(Scale(1, 5)).epsilon, 2) for level in ("low", "medium", "high")]
    [3.42, 1.35, 0.53]
    """

    name: ClassVar[str] = "gaussian"
    summary: ClassVar[str] = "Gaussian noise on the number at Loki's levels; δ > 0 and safe in real arithmetic only"
    research_only: ClassVar[bool] = True
    epsilon: Annotated[float | None, POSITIVE, ORDINARY] = None
    level: str | None = None
    sigma: Sigma = None
    delta: Annotated[float, _DELTA] = 0.01
    protect_participation: bool = False
    fill: Fill = "middle"

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.epsilon, self.level, self.sigma)) != 1:
            raise InputError("mechanism gaussian needs exactly one of epsilon, level and sigma")
        check_settings(self)
        if self.level == "none":
            raise UnservableError("level none is no privacy at all", fix="use mechanism none")
        if self.level is not None and self.level not in LEVELS:
            raise InputError(f"level must be one of {', '.join(LEVELS)}; got {self.level!r}")

    def noise_sigma(self, domain: Domain) -> float:
        """γ in the units of the scale; Loki's levels grow with the range."""
        if self.sigma is not None:
            return self.sigma
        if self.level is not None:
            return LEVELS[self.level] * number_range(domain) / _LOKI_RANGE
        assert self.epsilon is not None
        return number_range(domain) * _smallest_sigma(self.epsilon, self.delta)

    def guarantee(self, domain: Domain) -> Guarantee:
        sigma = self.noise_sigma(domain) / number_range(domain)
        return Guarantee(
            "cell" if self.protect_participation else "value",
            epsilon_at(sigma, self.delta) if self.epsilon is None else self.epsilon,
            1 / (2 * sigma**2),
            self.delta,
            protects_participation=self.protect_participation,
            research_only=True,
            note="in real arithmetic only: floating-point noise gives answers away",
        )

    def record(self, domain: Domain) -> NoiseRecord:
        """What inference is told about the reports."""
        return NoiseRecord(self.name, self.noise_sigma(domain) ** 2, self.guarantee(domain))

    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        worker, question, answer = all_rows(answers) if self.protect_participation else answered_rows(answers)
        value = fill_empty(answers.domain, answer, self.fill, entropy)
        number = value + normal_noise(entropy, len(value), self.noise_sigma(answers.domain))
        return number_reports(answers, worker, question, number, self.record(answers.domain))


def delta_at(sigma: float, epsilon: float) -> float:
    """δ(ε) of noise σ for numbers one apart: Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ) (Balle & Wang 2018, Theorem 5)."""
    return float(ndtr(0.5 / sigma - epsilon * sigma) - exp(epsilon + log_ndtr(-0.5 / sigma - epsilon * sigma)))


def epsilon_at(sigma: float, delta: float) -> float:
    """The smallest ε ≥ 0 with δ(ε) ≤ δ; the upper end of the bisection, so never too small."""
    if delta_at(sigma, 0.0) <= delta:
        return 0.0
    # The zCDP conversion gives an ε that is certainly enough.
    rho = 0.5 / sigma**2
    low, high = 0.0, rho + 2 * sqrt(rho * log(1 / delta))
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(sigma, middle) <= delta else (middle, high)
    return high


def _smallest_sigma(epsilon: float, delta: float) -> float:
    low, high = 0.0, 1.0
    while delta_at(high, epsilon) > delta:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        enough = middle > 0 and (delta_at(middle, epsilon) if middle > 1e-6 else inf) <= delta
        low, high = (low, middle) if enough else (middle, high)
    return high
