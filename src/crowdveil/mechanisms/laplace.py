"""Sun's LP: fill ∅ with a level, then add Laplace noise to every number (Sun et al. 2018, §IV-A)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from crowdveil.answers import Answers
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.domain import Domain
from crowdveil.entropy import Entropy
from crowdveil.guarantee import Guarantee
from crowdveil.mechanisms._research_reports import (
    Fill,
    all_rows,
    answered_rows,
    fill_empty,
    laplace_noise,
    number_range,
    number_reports,
)
from crowdveil.mechanisms.base import Mechanism, NoiseEpsilon
from crowdveil.reports import Reports
from crowdveil.validation import check_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Mechanism):
    """Laplace(range/ε) on each number. `paper_scale` uses |Γ|/ε as printed, |Γ| being the *number* of levels.

    That is too little noise on a wide scale: levels 0, 50, 100 with claimed ε = 1 really have ε = 33. With
    `protect_participation` ∅ is replaced by `fill` and every worker × question pair reports.

    >>> from crowdveil import Scale
    >>> round(Laplace(epsilon=1, paper_scale=True).guarantee(Scale(0, 100, 50)).epsilon, 2)
    33.33
    """

    name: ClassVar[str] = "laplace"
    summary: ClassVar[str] = "Laplace noise on the number, ∅ filled with a level; safe in real arithmetic only"
    research_only: ClassVar[bool] = True
    epsilon: NoiseEpsilon
    protect_participation: bool = False
    fill: Fill = "middle"
    paper_scale: bool = False

    def __post_init__(self) -> None:
        check_settings(self)

    def noise_scale(self, domain: Domain) -> float:
        return (domain.size if self.paper_scale else number_range(domain)) / self.epsilon

    def guarantee(self, domain: Domain) -> Guarantee:
        width = number_range(domain)
        epsilon = self.epsilon * width / domain.size if self.paper_scale else self.epsilon
        return Guarantee(
            "cell" if self.protect_participation else "value",
            epsilon,
            epsilon**2 / 2,
            protects_participation=self.protect_participation,
            research_only=True,
            note="in real arithmetic only: floating-point noise gives answers away",
        )

    def record(self, domain: Domain) -> NoiseRecord:
        """What inference is told about the reports."""
        return NoiseRecord(self.name, 2 * self.noise_scale(domain) ** 2, self.guarantee(domain))

    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        worker, question, answer = all_rows(answers) if self.protect_participation else answered_rows(answers)
        value = fill_empty(answers.domain, answer, self.fill, entropy)
        number = value + laplace_noise(entropy, len(value), self.noise_scale(answers.domain))
        return number_reports(answers, worker, question, number, self.record(answers.domain))
