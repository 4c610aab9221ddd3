"""Sun's sparse two-layer mechanism: ∅ is a symbol and each worker draws an ε of their own (Sun et al. 2018, §VI)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import exp, log1p
from typing import ClassVar

import numpy as np

from crowdveil.answers import Answers
from crowdveil.channel import Channel
from crowdveil.channel.joint import JointChannel
from crowdveil.domain import Domain
from crowdveil.entropy import Entropy, below, uniforms
from crowdveil.guarantee import Guarantee
from crowdveil.mechanisms._research_reports import all_rows, coded_reports, shift_codes
from crowdveil.mechanisms.base import Mechanism, Requested
from crowdveil.mechanisms.one_layer import flipping
from crowdveil.reports import Reports
from crowdveil.validation import check_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseTwoLayer(Mechanism):
    """ε_i ~ U(0, 2ε) once per worker, then randomised response over the options and ∅ with ε_i.

    The paper calls this ε. But a worker may draw nearly 2ε, and nothing protects that worker better than 2ε does.
    Every worker × question pair reports; the channel of the reports is that of one report, ε_i averaged out.
    """

    name: ClassVar[str] = "sparse-two-layer"
    summary: ClassVar[str] = "randomised response with ∅ and a secret ε per worker between 0 and twice the request"
    research_only: ClassVar[bool] = True
    epsilon: Requested
    protect_participation: bool = True

    def __post_init__(self) -> None:
        check_settings(self)

    def guarantee(self, domain: Domain) -> Guarantee:
        largest = 2 * self.epsilon
        return Guarantee(
            "cell",
            largest,
            largest**2 / 2,
            protects_participation=True,
            research_only=True,
            note=f"claimed as {self.epsilon:g}, but a worker may draw up to twice that",
        )

    def channel(self, domain: Domain) -> Channel:
        """P(report | answer) of one report: the mean of e^x/(e^x + m) over U(0, 2ε), m the number of other symbols."""
        m, largest = domain.size, 2 * self.epsilon
        keep = (largest + log1p(m * exp(-largest)) - log1p(m)) / largest
        symbols = (*domain.symbols, None)
        return Channel(symbols, symbols, 64, "rotate", flipping(m + 1, Fraction(1 - keep)))

    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        m = answers.domain.size
        worker, question, answer = all_rows(answers)
        answer = np.where(answer < 0, m, answer)
        worker_epsilon = 2 * self.epsilon * uniforms(entropy, len(answers.workers))
        lies = (
            uniforms(entropy, len(answer)) < (m * np.exp(-worker_epsilon) / (1 + m * np.exp(-worker_epsilon)))[worker]
        )
        report = shift_codes(answer, np.where(lies, below(entropy, len(answer), m) + 1, 0), m + 1)
        promise = self.guarantee(answers.domain)
        channel = JointChannel.of(self.channel(answers.domain), self.name, promise)
        return coded_reports(answers, worker, question, report, channel)
