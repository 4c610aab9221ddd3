"""Sun's error bounds in their own worked examples beside the errors measured there (Sun et al. 2018, Theorems 2–5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crowdveil.answers import Answers
from crowdveil.bounds.sun import factorization_error, laplace_error, randomized_response_error
from crowdveil.bounds.theorem import Bound
from crowdveil.domain import Scale
from crowdveil.entropy import Keystream
from crowdveil.inference import Mean
from crowdveil.mechanisms import Laplace, MatrixFactorization, Mechanism, RandomizedResponse
from crowdveil.papers.core.reproduction import (
    Claim,
    ClaimVerdict,
    Reproduction,
    Row,
    Settings,
    column,
    mean_column,
    near,
    said_trials,
    select,
)
from crowdveil.papers.sun.trial import HOLLOW, PAPER, mae
from crowdveil.plot import Panel, Series, panels
from crowdveil.simulate import ScaleCrowd

_LEVELS = range(10)
_PRINTED = {"Theorem 2 (LP)": 14.13, "Theorem 3 (RR)": 3.551, "Theorem 5 (MF)": 1.8}


@dataclass(frozen=True, kw_only=True)
class Theorems(Reproduction):
    """Bounds and measurements. `ridge` stands in where a worker answered too few questions for d factors."""

    id = "sun-theorems"
    title = "the error bounds and the error"
    paper = PAPER
    interpretation = (
        "each example as printed: levels 0..9, s = .1, σ = 1, equal weights, ε = 1, truths 0; for MF n = 1000 and "
        "d = 100, where workers answer 100 questions on average, as many as there are factors, so a ridge is added. "
        "Weights are equal, so the truth is the plain mean of the reports read as answers. Truths uniform on the scale "
        "are shown beside truths of 0. ε is claimed per cell; exact: LP .9 per cell, RR 1 per cell, MF .9 per value."
    )
    ridge: float = 1e-2
    n_workers: int | None = None
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0)

    def rows(self, settings: Settings) -> list[Row]:
        rows: list[Row] = []
        for seed in settings.seeds(1 if settings.quick else settings.trials):
            for truths in ("zero", "uniform"):
                small = _crowd(self.n_workers or 1000, 100, truths, seed)
                for epsilon in self.epsilons:
                    for theorem, mechanism, bound in self._small(epsilon, small[1]):
                        rows.append(_row(theorem, truths, epsilon, bound, mechanism, small, seed))
                wide = _crowd(self.n_workers or (80 if settings.quick else 1000), 1000, truths, seed)
                mechanism = MatrixFactorization(epsilon=1, factors=100, ridge=self.ridge, paper_scale=True, seed=seed)
                bound = factorization_error(1000, 100, 10, 1, answered=100)
                rows.append(_row("Theorem 5 (MF)", truths, 1.0, bound, mechanism, wide, seed))
        return rows

    def _small(self, epsilon: float, truth: Any) -> list[tuple[str, Mechanism, Bound]]:
        shape: dict[str, Any] = {"shares": [0.1], "sigmas": [1.0]}
        truths = truth.tolist()
        laplace = Laplace(epsilon=epsilon, protect_participation=True, fill="random", paper_scale=True)
        response = RandomizedResponse(epsilon=epsilon, protect_participation=True)
        factors = MatrixFactorization(epsilon=epsilon, factors=2, ridge=self.ridge, paper_scale=True)
        return [
            ("Theorem 2 (LP)", laplace, laplace_error(truths, _LEVELS, epsilon, **shape)),
            ("Theorem 3 (RR)", response, randomized_response_error(truths, _LEVELS, epsilon, **shape)),
            ("Theorem 5 (MF), d = 2", factors, factorization_error(100, 2, 10, epsilon, answered=10)),
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        claims = []
        for theorem, published in _PRINTED.items():
            selected = select(rows, theorem=theorem, truths="zero", epsilon=1.0)
            bound, measured = mean_column(selected, "bound"), mean_column(selected, "mae")
            verdict: ClaimVerdict = near(bound, published, 0.006)
            claims.append(
                Claim(f"{theorem}: the worked example", f"{published:g}", f"formula gives {bound:.3f}", verdict)
            )
            claims.append(
                Claim(
                    f"{theorem}: the error in that example is below the bound",
                    f"at most {published:g}",
                    f"measured {measured:.2f}",
                    "holds" if measured <= published else "fails",
                )
            )
            other = select(rows, theorem=theorem, truths="uniform", epsilon=1.0)
            claims.append(
                Claim(
                    f"{theorem}: the same with truths uniform on the scale",
                    f"at most {mean_column(other, 'bound'):.2f}",
                    f"measured {mean_column(other, 'mae'):.2f}, "
                    f"best constant {mean_column(other, 'best_constant'):.2f}",
                    "holds" if mean_column(other, "mae") <= mean_column(other, "bound") else "fails",
                )
            )
        return claims

    def draw(self, rows: Sequence[Row]) -> Any:
        drawn = []
        for truths in ("zero", "uniform"):
            series, lines = [], {}
            for theorem in ("Theorem 2 (LP)", "Theorem 3 (RR)", "Theorem 5 (MF), d = 2"):
                part = [select(rows, theorem=theorem, truths=truths, epsilon=epsilon) for epsilon in self.epsilons]
                exact = [column(each, "exact_epsilon")[0] for each in part]
                for name, key in (("bound", "bound"), ("measured", "mae")):
                    y = [mean_column(each, key) for each in part]
                    series.append(Series(f"{theorem}: {name}", exact, y, claimed=self.epsilons))
                lines = {
                    label: mean_column([row for each in part for row in each], key)
                    for label, key in (
                        ("best constant", "best_constant"),
                        ("mid-level", "middle"),
                        ("no privacy", "none"),
                    )
                }
            title = "truths 0" if truths == "zero" else "truths uniform on 0..9"
            drawn.append(Panel(title, "exact ε per cell (MF: per value)", "MAE", series, lines, log_x=True, log_y=True))
        return panels(
            drawn,
            caption=f"1000 workers × 100 questions, s = .1, σ = 1, equal weights, {said_trials(rows)}. "
            "A bound should lie above its measurement. Where all truths are 0 the best constant has no error, and so "
            f"no place on this axis. {HOLLOW}",
        )


def _crowd(n_workers: int, n_questions: int, truths: str, seed: int) -> tuple[Answers, Any]:
    """A crowd of σ = 1; truths of 0 are drawn around 0 and the answers clipped at the end of the scale."""
    recipe = ScaleCrowd(
        n_workers=n_workers, n_questions=n_questions, domain=Scale(0, 9), sigmas=(1.0,), share=0.1, truth="uniform"
    )
    crowd = recipe.draw(seed)
    if truths == "uniform":
        return crowd.answers, crowd.truth
    noise = np.random.default_rng(seed).standard_normal(len(crowd.answers))
    codes = np.clip(np.rint(noise), 0, 9).astype(np.int32)
    return replace(crowd.answers, answer=codes), np.zeros(n_questions)


def _row(
    theorem: str, truths: str, epsilon: float, bound: Bound, mechanism: Mechanism, crowd: tuple[Answers, Any], seed: int
) -> Row:
    answers, truth = crowd
    guarantee = mechanism.guarantee(answers.domain)
    reports = mechanism.randomize(answers, Keystream(f"{seed}:{theorem}:{epsilon}"))
    answer_sums = np.bincount(answers.question, answers.answer, minlength=len(truth))
    plain = answer_sums / np.maximum(np.bincount(answers.question, minlength=len(truth)), 1)
    return {
        "theorem": theorem,
        "truths": truths,
        "epsilon": epsilon,
        "exact_epsilon": guarantee.epsilon,
        "unit": guarantee.unit,
        "bound": bound.value,
        "applies": str(bound.applies),
        "mae": mae(np.asarray(Mean(as_answers=True).fit(reports).value, dtype=np.float64), truth),
        "best_constant": float(np.abs(truth - np.median(truth)).mean()),
        "middle": float(np.abs(truth - 4.5).mean()),
        "none": float(np.abs(plain - truth).mean()),
        "trial": float(seed),
    }
