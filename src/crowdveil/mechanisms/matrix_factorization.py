"""Sun's MF: each worker fits a noisy profile to their answers and releases what it predicts (Sun et al. 2018, §V)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.domain import Domain
from crowdveil.entropy import Entropy, uniforms
from crowdveil.errors import UnservableError
from crowdveil.guarantee import Guarantee
from crowdveil.mechanisms._research_reports import all_rows, laplace_noise, number_range, number_reports
from crowdveil.mechanisms.base import Mechanism, NoiseEpsilon
from crowdveil.mechanisms.profiles import Factors, Sign, question_profiles
from crowdveil.progress import counted
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, NotNegative, Number, Seed, check_settings

Solver: TypeAlias = Literal["closed-form", "gradient"]
_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixFactorization(Mechanism):
    """Minimise Σ_T (answer − u·v)² + 2u·η + ridge·u², η ~ Laplace(range/ε)^d, and release u·V for every question.

    The paper's Theorem 4 is wrong for ∅: which questions were answered decides the shape of the whole release. With
    claimed ε = 1 an audit finds at least 3.9 (d = 1) or 10 (d = 20). For the *values* of answered questions the
    guarantee is right. With fewer answers than factors there is no minimiser, and a pseudo-inverse would
    reveal the answered questions outright: such workers are refused unless `ridge` is given.

    `factors` is the paper's d, `seed` draws the public V, `sign` lets it be signed or positive, `solver` takes the
    closed form or the printed gradient descent, `paper_scale` the printed noise |Γ|/ε.
    """

    name: ClassVar[str] = "matrix-factorization"
    summary: ClassVar[str] = "release what a noisy profile of the worker predicts; hides values, not participation"
    research_only: ClassVar[bool] = True
    epsilon: NoiseEpsilon
    factors: Factors = 20
    solver: Solver = "closed-form"
    ridge: NotNegative = 0.0
    sign: Sign = "signed"
    paper_scale: bool = False
    seed: Seed = 0
    max_iter: AtLeastOne = 2000
    tol: Number = 1e-8
    protect_participation: bool = False

    def __post_init__(self) -> None:
        check_settings(self)
        if self.protect_participation:
            raise UnservableError(
                "mechanism matrix-factorization does not hide participation, whatever the paper says",
                fix="use dense-factorization",
            )

    def noise_scale(self, domain: Domain) -> float:
        return (domain.size if self.paper_scale else number_range(domain)) / self.epsilon

    def guarantee(self, domain: Domain) -> Guarantee:
        width = number_range(domain)
        epsilon = self.epsilon * width / domain.size if self.paper_scale else self.epsilon
        return Guarantee(
            "value",
            epsilon,
            epsilon**2 / 2,
            research_only=True,
            note="values only and in real arithmetic only: the release depends on which questions were answered",
        )

    def randomize(self, answers: Answers, entropy: Entropy) -> Reports:
        profiles = question_profiles(self.factors, len(answers.questions), sign=self.sign, seed=self.seed)
        worker, question, flat = all_rows(answers)
        grid = flat.reshape(len(answers.workers), len(answers.questions))
        self._check_counts(answers, (grid >= 0).sum(axis=1))
        scale, numbers = self.noise_scale(answers.domain), answers.domain.numbers
        released, variance = np.empty(grid.shape), 0.0
        # Workers who answered the same questions share the matrix and the variance.
        shared: dict[bytes, tuple[_Floats, float]] = {}
        for row, codes in enumerate(counted(list(grid), "workers randomised")):
            answered = codes >= 0
            seen = profiles[:, answered]
            if answered.tobytes() not in shared:
                gram = seen @ seen.T + self.ridge * np.eye(self.factors)
                shared[answered.tobytes()] = gram, report_variance(gram, profiles, scale)
            gram, spread = shared[answered.tobytes()]
            target = seen @ numbers[codes[answered]] - laplace_noise(entropy, self.factors, scale)
            released[row] = self._profile(gram, target, entropy) @ profiles
            variance += spread / len(grid)
        record = NoiseRecord(self.name, variance, self.guarantee(answers.domain))
        return number_reports(answers, worker, question, released.ravel(), record)

    def _check_counts(self, answers: Answers, counts: NDArray[np.int64]) -> None:
        if self.ridge > 0 or not len(counts):
            return
        fewest = int(counts.argmin())
        if counts[fewest] < self.factors:
            raise UnservableError(
                f"worker {answers.workers[fewest]!r} answered {counts[fewest]} questions, fewer than the "
                f"{self.factors} factors, so no profile fits best",
                fix="give ridge, fewer factors, or use dense-factorization",
            )
        if counts[fewest] == self.factors:
            warnings.warn(
                f"{int((counts == self.factors).sum())} workers answered just as many questions as there are factors: "
                "their reports will be dominated by noise; give ridge or fewer factors",
                stacklevel=3,
            )

    def _profile(self, gram: _Floats, target: _Floats, entropy: Entropy) -> _Floats:
        if self.solver == "closed-form":
            return np.asarray(np.linalg.solve(gram, target), dtype=np.float64)
        return self._descend(gram, target, uniforms(entropy, self.factors))

    def _descend(self, gram: _Floats, target: _Floats, profile: _Floats) -> _Floats:
        """Algorithm 2 as printed; the learning rate it leaves open is 1/(2·largest curvature), which converges."""
        rate = 0.5 / np.linalg.eigvalsh(gram)[-1]
        for _ in range(self.max_iter):
            gradient = 2 * (gram @ profile - target)
            profile = profile - rate * gradient
            if np.abs(gradient).max() <= self.tol:
                break
        return profile


def report_variance(gram: _Floats, profiles: _Floats, scale: float) -> float:
    """The mean over questions of the noise variance in u·V when η has variance 2·scale² per factor."""
    carried = np.linalg.solve(gram, profiles)
    return float(2 * scale**2 * (carried**2).sum(axis=0).mean())
