"""Channel EM: truths of scale questions through the known channels.

A cell is empty with probability 1 − share, else the level nearest to N(truth, σ²) with a σ of the worker's own, and
then it goes through the channel. Truths and spreads are integrated out by messages between questions and workers, each
report's own message taken out of both; the laws of the truths and of the spreads are set by EM (type-II maximum
likelihood). The value is the posterior median.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.bounds.information import scale_floor
from crowdveil.domain import Scale
from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import (
    align_parameters,
    attach_floor,
    build_estimate,
    fit_model,
    warm_start_parameters,
)
from crowdveil.inference.kernels.message_state import MessageState, build_message_state, message_kernels
from crowdveil.inference.models.categorical_em import Precision, working_precision
from crowdveil.inference.models.message_passing import MessageModel, reading, summarize_skills
from crowdveil.inference.observations.debiasing import table_channels
from crowdveil.inference.observations.response_rate import count_answered, shares
from crowdveil.inference.priors.noise_scale import factors, first_spreads, fitted_spreads
from crowdveil.inference.priors.truth import ON_LEVELS, TruthLaw
from crowdveil.inference.priors.truth_grid import TruthGrid, finest, quantiles, truth_grid
from crowdveil.inference.protocols import Block, Closing, Columns, Context, Judgement, Parameters, Statistics
from crowdveil.inference.uncertainty.summaries import ENDS, LEVEL, normalize_logs
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, Number, Positive

Array = NDArray[Any]
Truths = Literal["anywhere", "on-scale"]
_AS_FOUND = 0.1
"""How likely the law that was found is where another one fits as well."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelEMModel(MessageModel):
    """Parameters: `belief` (log, worker × spread), `share` per worker, `log_spreads`, `prior` (weight of a point)."""

    grid: TruthGrid
    spread_weight: float
    truth_weight: float
    truths: Truths

    shared: ClassVar[tuple[str, ...]] = ("log_spreads", "law", "prior")

    def begin(self, block: Block) -> MessageState:
        symbol = self.emission.symbols(block.report, block.channel)
        message = np.ones((len(symbol), len(self.grid.spreads) + 1), dtype=self.precision)
        return build_message_state(block, symbol, message, len(self.grid.points))

    def e_step(self, block: Block, parameters: Parameters, state: MessageState) -> tuple[Statistics, MessageState]:
        if "share" not in parameters:
            return count_answered(state.symbol, state.worker, self.emission, self.context.n_workers), state
        total = np.zeros_like(parameters["belief"])
        prior = np.maximum(parameters["prior"], 1e-30).astype(self.precision)
        moved = message_kernels().scale_sweep(
            *self._inputs(parameters, state, self.grid), prior, state.posterior, total
        )
        return self.sweep_statistics(total, moved, state, "points"), state

    def _inputs(self, parameters: Parameters, state: MessageState, grid: TruthGrid) -> tuple[Array, ...]:
        """Rows, beliefs and tables as the kernels take them."""
        rows = state.starts, state.worker, state.symbol, state.message
        return *rows, *self.worker_beliefs(parameters), self.tables(grid), self.empty()

    def tables(self, grid: TruthGrid) -> Array:
        """P(symbol | truth, spread), symbol × spread × point."""
        through = grid.laws() @ self.emission.table[: self.emission.n_options]
        return np.ascontiguousarray(through.transpose(2, 0, 1), dtype=self.precision)

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        if "messages" not in statistics:
            return {**self.first(shares(statistics)), **parameters}
        belief = normalize_logs(statistics["messages"] + parameters["log_spreads"])
        log_spreads = np.log(fitted_spreads(belief.sum(axis=0), self.grid.spreads, self.spread_weight))
        law = TruthLaw.read(parameters["law"]).refit(self.grid, statistics["points"], self.truth_weight)
        return {
            "belief": statistics["messages"] + log_spreads,
            "share": parameters["share"],
            "log_spreads": log_spreads,
            "law": law.to_array(),
            "prior": law.weights(self.grid),
        }

    def first(self, share: Array) -> dict[str, Array]:
        """Before anything is known."""
        log_spreads, law = np.log(first_spreads(len(self.grid.spreads))), TruthLaw.first(self.grid)
        return {
            "belief": np.tile(log_spreads, (self.context.n_workers, 1)),
            "share": share,
            "log_spreads": log_spreads,
            "law": law.to_array(),
            "prior": law.weights(self.grid),
        }

    def finish(self, block: Block, parameters: Parameters, state: MessageState) -> Columns:
        weights, laws, grids = zip(*self._explanations(parameters), strict=True)
        logs = [self._logs(block, parameters, state, grid) for grid in grids]
        priors = [weight * law.parts(grid) for weight, law, grid in zip(weights, laws, grids, strict=True)]
        value, low, high = quantiles(grids[0], logs[:1], priors[:1], (0.5, *ENDS))
        if len(logs) > 1:
            low, high = quantiles(grids[0], logs, priors, ENDS)
        return self._build_columns([np.clip(value, low, high), low, high], state.answered) | {
            "confidence": np.where(state.answered, LEVEL, 0.0)
        }

    def _explanations(self, parameters: Parameters) -> list[tuple[float, TruthLaw, TruthGrid]]:
        """The laws that were found, and what else fits as well: how likely each is, the found one first."""
        known = factors(self.context.n_reports, self.context.n_questions)
        return [
            (weight * likely, law, replace(grid, spreads=factor * grid.spreads))
            for factor, likely in known
            for weight, law, grid in self._levels_or_exact(parameters)
        ]

    def _levels_or_exact(self, parameters: Parameters) -> list[tuple[float, TruthLaw, TruthGrid]]:
        """The law that was found, and one that no reports tell from it; how likely each is."""
        grid, law = finest(self.grid), TruthLaw.read(parameters["law"])
        known, exact = np.exp(parameters["log_spreads"])[:-1] / grid.spreads**2, grid.exact
        other, factor = law.unsure(float(known @ exact / known.sum()), self.context.n_questions)
        if factor >= 1 - ON_LEVELS:
            return [(1.0, law, grid)]
        spreads = np.where(exact, factor, 1.0) * grid.spreads
        return [(_AS_FOUND, law, grid), (1 - _AS_FOUND, other, replace(grid, spreads=spreads))]

    def _logs(self, block: Block, parameters: Parameters, state: MessageState, grid: TruthGrid) -> Array:
        logs = np.zeros((block.n_questions, len(grid.points)))
        message_kernels().scale_logs(*self._inputs(parameters, state, grid), logs)
        return logs

    def _build_columns(self, found: list[Array], known: Array) -> Columns:
        """Value and interval; of truths on the scale, the posterior of the latent number's nearest one."""
        low, high = float(self.grid.numbers.min()), float(self.grid.numbers.max())
        if self.truths == "on-scale":
            # Clipping keeps the order, so the quantiles of the clipped number are the clipped quantiles.
            found = [np.clip(each, low, high) for each in found]
        unknown = (np.nan, low, high)
        names = ("value", "low", "high")
        return {name: np.where(known, each, other) for name, each, other in zip(names, found, unknown, strict=True)}

    def judgement(self, parameters: Parameters, by_channel: Array) -> Judgement:
        if not isinstance(self.context.domain, Scale) or not self.context.n_questions:
            return Judgement()
        prior, points = parameters["prior"], self.grid.points
        centre = float(prior @ points)
        spread = float(np.sqrt(prior @ (points - centre) ** 2))
        floor = scale_floor(
            table_channels(self.context.channels),
            by_channel / self.context.n_questions,
            self.context.domain,
            sigmas=self.grid.spreads,
            weights=np.exp(parameters["log_spreads"])[:-1],
            share=float(parameters["share"].mean()),
            centre=centre,
            spread=spread,
            known=1 / spread**2 if spread > 0 else 0.0,
        )
        warnings = () if floor.informative else (floor.sentence,)
        return Judgement(floor, (*warnings, *self._too_exact(parameters)))

    def _too_exact(self, parameters: Parameters) -> tuple[str, ...]:
        """A warning where levels are too many to be looked between, and most workers are as exact as can be told."""
        if len(self.grid.levels) or np.exp(parameters["log_spreads"][0]) < 0.5:
            return ()
        least = f"{self.grid.spreads[0]:.2g}"
        warning = (
            f"most workers err by {least} or less, which is not told apart here; intervals may be too short or long"
        )
        return (warning,)

    def prior(self, answered: NDArray[np.bool_], parameters: Parameters) -> Columns:
        grid = finest(self.grid)
        law, nothing = TruthLaw.read(parameters["law"]), np.zeros((1, len(grid.points)))
        return self._build_columns(quantiles(grid, [nothing], [law.parts(grid)], (0.5, *ENDS)), answered)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelEM(IterativeMethod):
    """Numeric truths through the channel; `spread_weight` pseudo-workers, `truth_weight` pseudo-questions.

    Answers are clipped to the scale; `truths` says whether truths are too ("on-scale") or may lie "anywhere".

    >>> from crowdveil import Answers, Reports
    >>> crowd = [("ada", "13524152"), ("bob", "14524152"), ("cy", "51153521")]
    >>> rows = [(worker, f"q{n}", level) for worker, levels in crowd for n, level in enumerate(levels)]
    >>> estimate = ChannelEM().fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5))))
    >>> bool(estimate.value[0] < 2), bool(estimate.value[2] > 4)
    (True, True)
    """

    name: ClassVar[str] = "channel-em"
    summary: ClassVar[str] = "numbers on a scale, the workers' spreads and the channels taken into account"
    numeric: ClassVar[bool] = True

    max_iter: AtLeastOne = 100
    tol: Number = 3e-3
    spread_weight: Positive = 20.0
    truth_weight: Positive = 0.5
    truths: Truths = "anywhere"
    precision: Precision = "float32"

    def model(self, context: Context) -> ChannelEMModel:
        return ChannelEMModel(
            context=context,
            emission=reading(context),
            precision=working_precision(self.precision, context.n_reports),
            grid=_grid(context),
            spread_weight=self.spread_weight,
            truth_weight=self.truth_weight,
            truths=self.truths,
        )

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports, _start(self, reports, start)))
        done, columns = fit_model(self, model, reports)
        return attach_floor(build_estimate(self, model, reports, done, columns, start), model, done.parameters, reports)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        grid, belief = _grid(context), normalize_logs(parameters["belief"])
        # Answering at random counts as the whole range.
        spreads = np.append(grid.spreads, grid.range)
        return Closing(summarize_skills(belief, spreads, "the standard deviation of a worker's errors"))


def _grid(rows: Context | Reports) -> TruthGrid:
    return truth_grid(rows.domain, table_channels(rows.channels))


def _start(method: ChannelEM, reports: Reports, start: Estimate | None) -> Parameters:
    """An earlier estimate's beliefs; a worker it did not know begins as any other."""
    known, grid = warm_start_parameters(method, start, reports, "belief", *ChannelEMModel.shared), _grid(reports)
    # How fine the grid is depends on the channels, too.
    if not known or (len(known["prior"]), len(known["log_spreads"])) != (len(grid.points), len(grid.spreads) + 1):
        return {}
    belief = align_parameters(start, "belief", reports, known["log_spreads"])
    return {"belief": belief, **{name: known[name] for name in ChannelEMModel.shared}}
