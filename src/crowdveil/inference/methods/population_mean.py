"""Population mean: the average opinion when workers chose different levels of privacy (Kandappu et al. 2015, repaired).

Weighting each level by 1/(τ² + γ²) cuts the error by more than half, but only if people who choose more privacy think
like the others. So that is tested first; where they do not, every level counts by its number of workers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from crowdveil.estimate import Estimate
from crowdveil.inference.base import WithoutIteration
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.engine.em import run
from crowdveil.inference.engine.local import LocalEngine
from crowdveil.inference.estimation import attach_floor, from_columns
from crowdveil.inference.observations.numeric import domain_bounds, domain_middle, noise_of_channel, read_numbers
from crowdveil.inference.protocols import Block, Columns, Context, Goal, Judgement, Parameters, Statistics
from crowdveil.inference.uncertainty.fieller import Ratio, Sums, around, fieller_ratio, pooled_covariance, ratio_sums
from crowdveil.reports import Reports
from crowdveil.validation import Rule, check_settings

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationMean(WithoutIteration):
    """Inverse-variance weighting across levels of privacy where their opinions agree; a level is a channel.

    `significance` is the chance of rejecting agreement that holds; at 1 it is never believed in.

    >>> from crowdveil import Answers, Reports, Scale
    >>> rows = [("ada", "q1", 1), ("bob", "q1", 2), ("cy", "q1", 5)]
    >>> estimate = PopulationMean().fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5))))
    >>> round(float(estimate.value[0]), 3), estimate.provenance["weighting"]
    (2.667, 'plain')
    """

    name: ClassVar[str] = "population-mean"
    summary: ClassVar[str] = "the average opinion, levels of privacy weighted by their noise where opinions agree"
    numeric: ClassVar[bool] = True

    # Pass one finds the levels' variances, pass two whether their opinions agree.
    max_iter: ClassVar[int] = 2

    significance: Annotated[float, Rule("above 0 and at most 1", lambda level: 0 < level <= 1)] = 0.05

    def __post_init__(self) -> None:
        check_settings(self)

    def model(self, context: Context) -> PopulationMeanModel:
        return PopulationMeanModel(context=context, significance=self.significance)

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports))
        session = LocalEngine(threads=1).open(model, reports)
        done = run(model, session, max_iter=self.max_iter, tol=self.tol)
        return attach_floor(
            from_columns(self, reports, session.finish(done.parameters)), model, done.parameters, reports
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PopulationMeanModel:
    """Parameters by level: `reports`, `covariance` of one report and who answers (see ratios); `freedom`, `p_value`."""

    context: Context
    significance: float

    objective: ClassVar[str] = ""
    goal: ClassVar[Goal] = "vanish"
    keeps_rows: ClassVar[bool] = False
    remembers: ClassVar[bool] = False
    by_worker: ClassVar[tuple[str, ...]] = ()
    shared: ClassVar[tuple[str, ...]] = ()
    kept: ClassVar[tuple[str, ...]] = ()

    def init(self) -> Parameters:
        return {}

    def begin(self, block: Block) -> Sums:
        rows = read_numbers(block, self.context.channels, self.context.domain, as_answers=False)
        shape = (max(len(self.context.channels), 1), block.n_questions)
        cell = block.channel.astype(np.int64) * block.n_questions + rows.question
        return ratio_sums(rows, cell, shape, self.context.domain)

    def e_step(self, block: Block, parameters: Parameters, state: Sums) -> tuple[Statistics, Sums]:
        if not parameters:
            return state.statistics(), state
        return _disagreement(state, parameters), state

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        return 0.0 if parameters else float("nan")

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        if parameters:
            return {**parameters, "p_value": np.array(_p_value(statistics))}
        crowd, freedom = pooled_covariance(statistics), statistics["freedom"]
        covariance = self._covariance(crowd["covariance"], freedom)
        reports = statistics["count"]
        return {**crowd, "covariance": covariance, "freedom": freedom.sum(), "reports": reports}

    def project(self, parameters: Parameters) -> Parameters:
        return parameters

    def finish(self, block: Block, parameters: Parameters, state: Sums) -> Columns:
        by_noise = self._weighting(parameters)[0] == "inverse-variance"
        return _combine(state, parameters, by_noise=by_noise, context=self.context)

    def judgement(self, parameters: Parameters, by_channel: Array) -> Judgement:
        weighting, why = self._weighting(parameters)
        p_value = float(parameters["p_value"])
        facts = {"weighting": weighting, "why": why, "p_value": None if np.isnan(p_value) else p_value}
        several = int((parameters["reports"] > 0).sum()) > 1
        return Judgement(None, (f"{weighting} mean: {why}",) if several else (), facts)

    def prior(self, answered: NDArray[np.bool_], parameters: Parameters) -> Columns:
        return {}

    def by_channel(self, state: Sums) -> Array:
        return state.count

    def _weighting(self, parameters: Parameters) -> tuple[str, str]:
        p_value = float(parameters["p_value"])
        if int((parameters["reports"] > 0).sum()) < 2:
            return "plain", "all reports have the same level of privacy"
        if self.significance == 1:
            return "stratified", "levels of privacy are not to be taken as thinking alike (significance = 1)"
        if np.isnan(p_value):
            return "stratified", "too few reports to test whether levels of privacy think alike"
        if p_value < self.significance:
            return "stratified", f"levels of privacy do not think alike (p = {p_value:.2g})"
        return "inverse-variance", f"levels of privacy think alike as far as can be seen (p = {p_value:.2g})"

    def _covariance(self, own: Array, freedom: Array) -> Array:
        """Of one report around its question's mean, level by level: τ² + γ² where all reports are answers.

        γ² is the channel's own; τ², the spread of opinions, is what the levels' variances have in common beyond it.
        Where participation is hidden the two do not separate, and what was found at the level is taken.
        """
        channels, domain = self.context.channels, self.context.domain
        low, high = domain_bounds(domain)
        gamma = np.array([noise_of_channel(channel, domain) for channel in channels] or [0.0])
        hidden = np.array([channel.protects_participation for channel in channels] or [False])
        informative = ~hidden & (freedom > 0)
        trust = freedom[informative] / np.maximum(own[0][informative], 1e-12) ** 2
        most = (high - low) ** 2 / 4
        tau = (
            float(np.clip(trust @ (own[0][informative] - gamma[informative]) / trust.sum(), 0, most))
            if informative.any()
            else most / 3
        )
        alone = np.maximum(np.where(hidden & (freedom > 0), own[0], tau + gamma), 1e-12)
        return np.stack([alone, *np.where(hidden, own[1:], 0.0)])


def _disagreement(sums: Sums, parameters: Parameters) -> Statistics:
    """What two chi-squares need: single questions that differ, and levels that are shifted as a whole.

    A level's summed deviation has the covariance of residuals around the weighted mean of each question.
    """
    ratio = fieller_ratio(sums, parameters, parameters["covariance"][..., None])
    used = (sums.count >= 2) & (ratio.mass > 1e-9)
    mean = np.divide(ratio.total, ratio.mass, out=np.zeros_like(ratio.mass), where=used)
    variance = around(ratio.variance, mean)
    # Answers that are all alike and hardly noisy do not vary at all around their mean.
    precision = np.divide(ratio.mass**2, np.maximum(variance, 1e-12), out=np.zeros_like(variance), where=used)
    total = precision.sum(axis=0)
    centre = np.divide((precision * mean).sum(axis=0), total, out=np.zeros_like(total), where=total > 0)
    deviation = np.where(used, mean - centre, 0.0)
    return {
        "single": (precision * deviation**2).sum(),
        "freedom": np.maximum(used.sum(axis=0) - 1, 0).sum().astype(np.float64),
        "score": (precision * deviation).sum(axis=1),
        "spread": np.diag(precision.sum(axis=1)) - (precision / np.where(total > 0, total, 1.0)) @ precision.T,
    }


def _p_value(statistics: Statistics) -> float:
    """That all levels of privacy have the same opinions; the two chi-squares share the significance."""
    freedom = float(statistics["freedom"])
    if freedom < 1:
        return float("nan")
    single = float(chdtrc(freedom, statistics["single"]))
    score, spread = statistics["score"], statistics["spread"]
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    shifted = float(chdtrc(max(rank, 1), score @ np.linalg.pinv(spread, hermitian=True) @ score))
    return min(1.0, 2 * min(single, shifted))


def _combine(sums: Sums, parameters: Parameters, *, by_noise: bool, context: Context) -> Columns:
    """Value and interval of each question: weighted sums of all levels, divided by what they rest on."""
    covariance = parameters["covariance"][..., None]
    weight = 1 / covariance[0] if by_noise else np.ones_like(covariance[0])
    levels = fieller_ratio(sums, parameters, covariance)
    total, rests = ((weight * each).sum(axis=0) for each in (levels.total, levels.mass))
    whole = Ratio(total, rests, (weight**2 * levels.variance).sum(axis=1))
    mass = (weight * sums.mass).sum(axis=0)
    raw = np.divide(whole.total, mass, out=np.zeros_like(mass), where=mass > 1e-9) + domain_middle(context.domain)
    # Variances are pooled over all questions, so their freedom is that of the whole table.
    freedom = np.full(len(raw), float(parameters["freedom"]))
    return whole.columns(raw, freedom, sums.count.sum(axis=0) > 0, context.domain)
