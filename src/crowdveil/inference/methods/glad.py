"""GLAD: abilities of workers and difficulties of questions (Whitehill et al. 2009).

Worker i answers question j rightly with the probability σ(α_i β_j), α_i the ability and 1/β_j > 0 the difficulty; any
wrong option is as likely as another. α_i and log β_j have normal priors with mean and variance 1, as published. The
answer then passes through its channel.

The published M-step climbs by conjugate gradients. Here the logistic terms are bounded by quadratic ones (the
Pólya–Gamma augmentation of Polson, Scott & Windle 2013; the bound of Jaakkola & Jordan 2000), so that the M-step is in
closed form for α and a one-dimensional Newton search for log β, and the penalised likelihood rises with every pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import (
    align_parameters,
    build_estimate,
    fit_model,
    gold_codes,
    warm_start_parameters,
)
from crowdveil.inference.observations.debiasing import table_channels
from crowdveil.inference.observations.likelihood import TINY, Emission, build_emission
from crowdveil.inference.protocols import Block, Closing, Columns, Context, Goal, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.information_floor import choice_judgement, choice_skills, skill_tally
from crowdveil.inference.uncertainty.summaries import choose_map, odds_interval, rivals
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, Number

Array = NDArray[Any]
MIN_RESPONSE_RATE = 1e-6
PRIOR_MEAN, PRIOR_VARIANCE = 1.0, 1.0
"""Of α and of log β: Whitehill et al. 2009, section 3.1."""


@cache
def _kernels() -> ModuleType:
    """Numba is loaded with the first fit, not with the library."""
    return import_module("crowdveil.inference.kernels.difficulty")


@dataclass(frozen=True, slots=True, eq=False)
class GladBlock:
    """A block's rows by question, and what is known of its questions: posterior and log β."""

    starts: NDArray[np.int64]
    worker: NDArray[np.int32]
    symbol: NDArray[np.int32]
    gold: NDArray[np.int32]
    log_easiness: NDArray[np.float64]
    posterior: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class GladModel:
    """Parameters per worker: `ability` α, its `variance`, `accuracy` (share of right answers) and `response_rate`."""

    context: Context
    emission: Emission

    goal: ClassVar[Goal] = "rise"
    objective: ClassVar[str] = "log-likelihood"
    keeps_rows: ClassVar[bool] = False
    remembers: ClassVar[bool] = True
    by_worker: ClassVar[tuple[str, ...]] = ("ability", "variance", "accuracy", "response_rate")
    shared: ClassVar[tuple[str, ...]] = ()
    kept: ClassVar[tuple[str, ...]] = ()

    def init(self) -> Parameters:
        if self.context.warm:
            return self.context.start
        n_workers = self.context.n_workers
        return {
            "ability": np.full(n_workers, PRIOR_MEAN),
            "variance": np.full(n_workers, PRIOR_VARIANCE),
            "accuracy": np.full(n_workers, float(expit(PRIOR_MEAN * np.exp(PRIOR_MEAN)))),
            "response_rate": np.full(n_workers, 0.5 if self.emission.with_empty else 1.0),
        }

    def begin(self, block: Block) -> GladBlock:
        counts = np.bincount(block.question, minlength=block.n_questions)
        n_questions, n_options = block.n_questions, self.emission.n_options
        return GladBlock(
            np.concatenate(([0], np.cumsum(counts))),
            block.worker.copy(),
            self.emission.symbols(block.report, block.channel).astype(np.int32),
            np.full(n_questions, -1, np.int32) if block.gold is None else block.gold,
            np.full(n_questions, PRIOR_MEAN),
            np.full((n_questions, n_options), 1 / n_options),
        )

    def e_step(self, block: Block, parameters: Parameters, state: GladBlock) -> tuple[Statistics, GladBlock]:
        """Posteriors of the truths, then the questions' β; the sums that the workers' α needs."""
        advanced = replace(state, log_easiness=state.log_easiness.copy(), posterior=np.empty_like(state.posterior))
        sums = np.zeros((self.context.n_workers, 5))
        log_likelihood = self._sweep(parameters, advanced, sums)
        penalty = -((state.log_easiness - PRIOR_MEAN) ** 2).sum() / (2 * PRIOR_VARIANCE)
        rows = np.bincount(state.worker, minlength=self.context.n_workers).astype(np.float64)
        return {"sums": sums, "rows": rows, "log_likelihood": np.array(log_likelihood + penalty)}, advanced

    def _sweep(self, parameters: Parameters, state: GladBlock, sums: Array) -> float:
        n_options = self.emission.n_options
        table = self.emission.table
        empty = table[n_options] if self.emission.with_empty else np.zeros(self.emission.n_symbols)
        log_likelihood: float = _kernels().sweep_glad(
            state.starts,
            state.worker,
            state.symbol,
            parameters["ability"],
            parameters["response_rate"],
            np.ascontiguousarray(table[:n_options].T),
            empty,
            np.full(n_options, -np.log(n_options)),
            state.gold,
            state.log_easiness,
            PRIOR_MEAN,
            PRIOR_VARIANCE,
            state.posterior,
            sums,
        )
        return log_likelihood

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        penalty = -((parameters["ability"] - PRIOR_MEAN) ** 2).sum() / (2 * PRIOR_VARIANCE)
        return float(statistics["log_likelihood"] + penalty)

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        slope, curvature, squares, answered, right = statistics["sums"].T
        rows = statistics["rows"]
        rate = np.divide(answered, rows, out=np.ones_like(rows), where=rows > 0)
        return {
            "ability": (slope + PRIOR_MEAN / PRIOR_VARIANCE) / (curvature + 1 / PRIOR_VARIANCE),
            "variance": 1 / (squares + 1 / PRIOR_VARIANCE),
            "accuracy": (right + 1) / (answered + 2),
            "response_rate": np.clip(rate, MIN_RESPONSE_RATE if self.emission.with_empty else 1.0, 1.0),
        }

    def project(self, parameters: Parameters) -> Parameters:
        return parameters

    def finish(self, block: Block, parameters: Parameters, state: GladBlock) -> Columns:
        final = replace(state, log_easiness=state.log_easiness.copy(), posterior=np.empty_like(state.posterior))
        self._sweep(parameters, final, np.zeros((self.context.n_workers, 5)))
        posterior, answered = final.posterior, np.diff(state.starts) > 0
        value, _ = choose_map(posterior, answered)
        top = np.maximum(value, 0)
        variance = self._log_likelihood_variance(parameters, state)
        rows = np.arange(len(value))
        spread = np.sqrt(variance[rows, top] + variance[rows, rivals(posterior, top)])
        low, high = odds_interval(posterior, top, spread, answered)
        confidence = np.where(answered, posterior[rows, top], 0.0)
        easiness = np.exp(state.log_easiness)
        return {
            "posterior": posterior,
            "value": value,
            "confidence": confidence,
            "low": low,
            "high": high,
            "easiness": easiness,
        }

    def _log_likelihood_variance(self, parameters: Parameters, state: GladBlock) -> Array:
        """By question and option, the delta method: Σ (∂ log P(report | option)/∂α)² Var(α)."""
        n_options = self.emission.n_options
        question = np.repeat(np.arange(len(state.starts) - 1), np.diff(state.starts))
        easiness, rate = np.exp(state.log_easiness)[question], parameters["response_rate"][state.worker]
        correct = expit(parameters["ability"][state.worker] * easiness)
        table = self.emission.table[:n_options].T
        empty = self.emission.table[n_options:].sum(axis=0)[state.symbol]
        everywhere = table.sum(axis=1)[state.symbol]
        variance = np.empty((len(state.starts) - 1, n_options))
        for option in range(n_options):
            here = table[state.symbol, option]
            elsewhere = (everywhere - here) / max(n_options - 1, 1)
            chance = rate * (correct * here + (1 - correct) * elsewhere) + (1 - rate) * empty
            slope = rate * (here - elsewhere) * correct * (1 - correct) * easiness / np.maximum(chance, TINY)
            by_report = slope**2 * parameters["variance"][state.worker]
            variance[:, option] = np.bincount(question, by_report, minlength=len(variance))
        return variance


@dataclass(frozen=True, slots=True, kw_only=True)
class Glad(IterativeMethod):
    """EM for the truths, one ability per worker and one difficulty per question.

    J. Whitehill, P. Ruvolo, T. Wu, J. Bergsma, J. Movellan: Whose Vote Should Count More. NeurIPS 2009.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> Glad().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y"))))).values()
    ['n', 'y', 'n', 'y', 'n', 'y']
    """

    name: ClassVar[str] = "glad"
    summary: ClassVar[str] = "abilities of workers and difficulties of questions (Whitehill et al. 2009)"

    max_iter: AtLeastOne = 500
    tol: Number = 1e-8
    gold: Mapping[Hashable, object] = field(default_factory=dict)

    def model(self, context: Context) -> GladModel:
        return GladModel(
            context=context,
            emission=build_emission(table_channels(context.channels), context.domain.size),
        )

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports, _start_parameters(self, reports, start)))
        done, columns = fit_model(self, model, reports, gold_codes(self.gold, reports))
        return build_estimate(self, model, reports, done, columns, start)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return skill_tally(rows, columns, context)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        skills = choice_skills(parameters["accuracy"], tally, "the share of right answers")
        return Closing(skills, choice_judgement(tally, context))


def _start_parameters(method: Glad, reports: Reports, start: Estimate | None) -> Parameters:
    """An earlier estimate's parameters; a worker it did not meet begins with the average ones."""
    earlier = warm_start_parameters(method, start, reports, *GladModel.by_worker)
    if not earlier:
        return {}
    return {name: align_parameters(start, name, reports, earlier[name].mean()) for name in GladModel.by_worker}
