"""What all models of choices share: one sweep for the log-likelihoods, a softmax, one sweep for the counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.kernels.bincount import pieces
from crowdveil.inference.kernels.em_reference import LEFT
from crowdveil.inference.kernels.layout import Layout, build_layout, kernels
from crowdveil.inference.observations.likelihood import Emission
from crowdveil.inference.protocols import SINGLE_BLOCK_REPORTS, Block, Columns, Context, Goal, Parameters, Statistics
from crowdveil.inference.uncertainty.parameter_variance import known_share, with_known
from crowdveil.inference.uncertainty.summaries import choose_map, normalize_logs, odds_interval, on_simplex, rivals
from crowdveil.inference.uncertainty.temperature import (
    POWERS,
    loo_log_predictive,
    posterior_power,
    sample_questions,
    temper,
    with_posterior_power,
)

Array = NDArray[Any]
Precision = Literal["auto", "float32", "float64"]
_COUNTABLE = 1 << 24
"""Single precision counts no further by ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceModel(ABC):
    """Truth, then worker, then channel; subclasses say how the worker errs. No state but the layout."""

    context: Context
    emission: Emission
    precision: Literal["float32", "float64"] = "float32"

    objective: ClassVar[str] = "log-likelihood"
    goal: ClassVar[Goal] = "rise"
    keeps_rows: ClassVar[bool] = False
    remembers: ClassVar[bool] = False
    by_worker: ClassVar[tuple[str, ...]]
    shared: ClassVar[tuple[str, ...]] = ("log_classes",)
    kept: ClassVar[tuple[str, ...]] = ("posterior_power", "known")

    @abstractmethod
    def logs(self, parameters: Parameters, layout: Layout) -> Array:
        """Log P(symbol | truth) of each cell: cell × truth, in working precision."""

    @abstractmethod
    def collect(self, counts: Array, parameters: Parameters, layout: Layout) -> Statistics:
        """What the M-step needs from how often each cell met each truth."""

    @abstractmethod
    def doubt(self, parameters: Parameters, layout: Layout) -> Array:
        """The variance of `logs` that comes from not knowing the worker exactly."""

    def more(self, counts: Array, posterior: Array, parameters: Parameters, layout: Layout) -> Statistics:
        """What some passes count beside that."""
        return {}

    def own(self, parameters: Parameters, layout: Layout) -> tuple[Array, Array] | None:
        """By cell: the share of a sure report in its own chance and in its worker's counts; None if they are kept."""
        return None

    def leave_one_out(self, posterior: Array, parameters: Parameters, layout: Layout) -> Array:
        """The posteriors when no report speaks for the worker who gave it (leave-one-out, or cavity, posteriors).

        A worker's counts hold the report itself, as if it had judged its own worker: here it is taken out. That says
        how sure the options are; their order stays the one that all reports together gave.
        """
        own_ratio = self.own(parameters, layout)
        if own_ratio is None:
            return posterior
        logs = np.zeros_like(posterior)
        kernels().sweep_apart(layout, posterior, *own_ratio, logs)
        for rows in pieces(len(posterior), 1 << 15):
            posterior[rows] = in_order(posterior[rows], logs[rows])
        return posterior

    @property
    def tempers(self) -> bool:
        """Whether posteriors are made no surer than the reports bear out."""
        return True

    def leave_one_out_log_ratio(self, posterior: Array, cell: Array, parameters: Parameters, layout: Layout) -> Array:
        """By report: what its worker's chances become, in logarithms, when it does not speak for them itself."""
        own_ratio = self.own(parameters, layout)
        if own_ratio is None:
            return np.zeros_like(posterior)
        here, seen = (table[cell] for table in own_ratio)
        logs: Array = np.log(np.maximum(1 - posterior * here, LEFT) / np.maximum(1 - posterior * seen, LEFT))
        return logs

    def begin(self, block: Block) -> Layout:
        symbol = self.emission.symbols(block.report, block.channel)
        return build_layout(block, symbol, self.emission.n_symbols, self.context.n_workers, self.emission.n_options)

    def e_step(self, block: Block, parameters: Parameters, layout: Layout) -> tuple[Statistics, Layout]:
        if parameters:
            posterior, objective, classes = self._posterior(block, parameters, layout)
        else:
            posterior, objective, classes = self._votes(block, layout)
        # A worker may have given all of a block's reports.
        wide = self.precision == "float64" or len(layout) > _COUNTABLE
        counts = np.empty((layout.n_cells, self.emission.n_options), dtype=np.float64 if wide else np.float32)
        kernels().sweep_counts(layout, posterior, counts)
        statistics = self.collect(counts, parameters, layout) | self.more(counts, posterior, parameters, layout)
        return statistics | {"classes": classes, "log_likelihood": np.array(objective)}, layout

    def score_pass(self, block: Block, parameters: Parameters, layout: Layout) -> Statistics:
        """How well posteriors of each posterior_power foretell the reports."""
        if not self.tempers:
            return {"loo_log_predictive": np.zeros(len(POWERS)), "known": np.zeros(2)}
        cell, question = layout.find_rows(sample_questions(block.n_questions, self.context.n_reports))
        logs = self.logs(parameters, layout)[cell].astype(np.float64)
        questions, index = np.unique(question, return_inverse=True)
        posterior = normalize_logs(_add_by_index(index, logs, len(questions)) + parameters["log_classes"])
        left = self.leave_one_out_log_ratio(posterior[index], cell, parameters, layout)
        posterior = in_order(posterior, _add_by_index(index, left, len(questions)))
        return {"loo_log_predictive": loo_log_predictive(posterior[index], np.exp(logs + left))} | known_share(
            posterior
        )

    def absorb_scores(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        return with_known(statistics, with_posterior_power(statistics, parameters))

    def finish(self, block: Block, parameters: Parameters, layout: Layout) -> Columns:
        posterior, _, _ = self._posterior(block, parameters, layout)
        posterior = self.leave_one_out(posterior, parameters, layout)
        variance = np.empty_like(posterior)
        kernels().sweep_logs(layout, self.doubt(parameters, layout), variance)
        power = posterior_power(parameters)
        # In pieces, so that what is computed on the way never takes as much memory as the results.
        parts = []
        for rows in pieces(len(posterior), 1 << 15):
            # Chosen before, so that how sure anybody is changes no value, however close another one comes.
            value, _ = choose_map(posterior[rows], layout.answered[rows])
            posterior[rows] = temper(posterior[rows], power)
            parts.append(_results(value, posterior[rows], variance[rows] * power**2))
        names = ("value", "confidence", "low", "high")
        columns = {name: np.concatenate([part[name] for part in parts]) for name in names if parts}
        return {"posterior": posterior} | (columns or _results(np.empty(0, np.int32), posterior, variance))

    @abstractmethod
    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """Better parameters."""

    def _posterior(self, block: Block, parameters: Parameters, layout: Layout) -> tuple[Array, float, Array]:
        total = self._room(block)
        log_classes = parameters["log_classes"].astype(total.dtype)
        logs = self.logs(parameters, layout)
        objective, classes = kernels().sweep_posterior(layout, logs, log_classes, block.known, total)
        return total, objective, classes

    def _votes(self, block: Block, layout: Layout) -> tuple[Array, float, Array]:
        """The shares of the votes: where EM starts when nothing is known."""
        total = self._room(block)
        symbols = np.arange(layout.n_cells) if layout.cells is None else layout.cells
        kernels().sweep_logs(layout, self._identity()[symbols % self.emission.n_symbols], total)
        posterior = on_simplex(total)
        gold = block.known
        known = np.flatnonzero(gold >= 0)
        posterior[known] = np.eye(self.emission.n_options, dtype=posterior.dtype)[gold[known]]
        return posterior, float("nan"), posterior[layout.answered].sum(axis=0, dtype=np.float64)

    def _identity(self) -> Array:
        return np.eye(self.emission.n_symbols, self.emission.n_options, dtype=self.precision)

    def _room(self, block: Block) -> Array:
        return np.empty((block.n_questions, self.emission.n_options), dtype=self.precision)


def working_precision(asked: Precision, n_reports: int) -> Literal["float32", "float64"]:
    """Single precision where speed matters; a small table is exact for nothing."""
    if asked == "auto":
        return "float64" if n_reports < SINGLE_BLOCK_REPORTS else "float32"
    return asked


def in_order(posterior: Array, logs: Array) -> Array:
    """The posteriors with `logs` added to their logarithms, given to the options in the order they had before."""
    left = posterior * np.exp(logs - logs.max(axis=1, keepdims=True))
    left /= left.sum(axis=1, keepdims=True)
    sure = np.empty_like(posterior)
    np.put_along_axis(sure, np.argsort(posterior, axis=1, kind="stable"), np.sort(left, axis=1), axis=1)
    return sure


def _add_by_index(index: Array, rows: Array, n_places: int) -> Array:
    """The sums of the rows that share a place."""
    return np.stack([np.bincount(index, column, minlength=n_places) for column in rows.T], axis=1)


def _results(value: Array, posterior: Array, variance: Array) -> Columns:
    """The value, its probability and the bounds of that, given that the workers' skills are estimates themselves.

    The log-odds of the value are a sum over its reports; by the delta method their variance is the sum of what each
    report's log-likelihood varies under the value and under its closest rival.
    """
    answered, rows, top = value >= 0, np.arange(len(value)), np.maximum(value, 0)
    rival = rivals(posterior, top)
    spread = np.sqrt(np.maximum(variance[rows, top] + variance[rows, rival], 0.0).astype(np.float64))
    share = posterior[rows, top].astype(np.float64)
    low, high = odds_interval(posterior, top, spread, answered)
    return {"value": value, "confidence": np.where(answered, share, 0.0), "low": low, "high": high}
