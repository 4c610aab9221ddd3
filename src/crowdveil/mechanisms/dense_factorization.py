"""Dense factorisation: Sun's MF repaired by filling ∅ with a public value and fitting all questions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from crowdveil.answers import Answers
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.domain import Domain
from crowdveil.entropy import Entropy
from crowdveil.errors import UnservableError
from crowdveil.guarantee import Guarantee
from crowdveil.mechanisms._research_reports import (
    Fill,
    all_rows,
    fill_empty,
    laplace_noise,
    number_range,
    number_reports,
)
from crowdveil.mechanisms.base import Mechanism, NoiseEpsilon
from crowdveil.mechanisms.matrix_factorization import report_variance
from crowdveil.mechanisms.profiles import Factors, Sign, question_profiles
from crowdveil.reports import Reports
from crowdveil.validation import NotNegative, Seed, check_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseFactorization(Mechanism):
    """u = (VVᵀ + ridge·I)⁻¹ (V·g − η) with g the answers, ∅ fill_empty, and η ~ Laplace(range/ε)^d; releases u·V.

    All n columns take part whatever was answered, so VVᵀ is public and a change of one cell, ∅ included, moves V·g by
    at most the range: cell-ε. It saves communication (d numbers instead of n); it is no gain in accuracy.
    """

    name: ClassVar[str] = "dense-factorization"
    summary: ClassVar[str] = "matrix factorisation with ∅ filled and every question fitted: the repaired guarantee"
    research_only: ClassVar[bool] = True
    epsilon: NoiseEpsilon
    factors: Factors = 20
    ridge: NotNegative = 0.0
    sign: Sign = "signed"
    fill: Fill = "middle"
    seed: Seed = 0
    protect_participation: bool = True

    def __post_init__(self) -> None:
        check_settings(self)

    def guarantee(self, domain: Domain) -> Guarantee:
        number_range(domain)  # refuses a domain without numbers
        return Guarantee(
            "cell",
            self.epsilon,
            self.epsilon**2 / 2,
            protects_participation=True,
            research_only=True,
            note="in real arithmetic only: floating-point noise gives answers away",
        )

    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        n_workers, n_questions = len(answers.workers), len(answers.questions)
        if self.ridge == 0 and n_questions < self.factors:
            raise UnservableError(
                f"dense-factorization has {self.factors} factors but only {n_questions} questions",
                fix="give ridge or fewer factors",
            )
        profiles = question_profiles(self.factors, n_questions, sign=self.sign, seed=self.seed)
        gram = profiles @ profiles.T + self.ridge * np.eye(self.factors)
        worker, question, answer = all_rows(answers)
        value = fill_empty(answers.domain, answer, self.fill, entropy).reshape(n_workers, n_questions)
        scale = number_range(answers.domain) / self.epsilon
        noise = laplace_noise(entropy, n_workers * self.factors, scale).reshape(self.factors, n_workers)
        released = np.linalg.solve(gram, profiles @ value.T - noise).T @ profiles
        record = NoiseRecord(self.name, report_variance(gram, profiles, scale), self.guarantee(answers.domain))
        return number_reports(answers, worker, question, released.ravel(), record)
