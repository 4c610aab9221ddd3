"""Weighted vote: votes count by how often their worker agrees with the outcome (Li et al. 2018, eqs. 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from crowdveil.channel import Channel
from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import align_parameters, build_estimate, fit_model, warm_start_parameters
from crowdveil.inference.kernels.layout import row_kernels
from crowdveil.inference.observations.debiasing import channel_worth, effective_counts, table_channels
from crowdveil.inference.protocols import Block, Closing, Columns, Context, Goal, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.information_floor import choice_judgement, choice_skills, skill_tally
from crowdveil.inference.uncertainty.summaries import choose_map, on_simplex, wilson
from crowdveil.reports import Reports
from crowdveil.validation import Number

Array = NDArray[Any]
Weighing = Literal["log-odds", "linear", "crh", "catd"]


@dataclass(frozen=True, slots=True, eq=False)
class Ballots:
    """A block's votes: one row per report, one column per option, and the values of the last pass."""

    question: NDArray[np.int32]
    worker: NDArray[np.int32]
    votes: NDArray[np.float64]
    worth: NDArray[np.float64]
    answered: NDArray[np.bool_]
    count: NDArray[np.float64]
    value: NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedVoteModel:
    """Parameters: `weight` and `agreement` per worker. The residual is the share of questions that changed."""

    context: Context
    weighing: Weighing
    as_answers: bool

    goal: ClassVar[Goal] = "vanish"
    objective: ClassVar[str] = "share of values that changed"
    keeps_rows: ClassVar[bool] = False
    remembers: ClassVar[bool] = True
    by_worker: ClassVar[tuple[str, ...]] = ("weight", "agreement")
    shared: ClassVar[tuple[str, ...]] = ()
    kept: ClassVar[tuple[str, ...]] = ()

    def init(self) -> Parameters:
        if self.context.warm:
            return self.context.start
        return {"weight": np.ones(self.context.n_workers), "agreement": np.ones(self.context.n_workers)}

    def begin(self, block: Block) -> Ballots:
        channels, n_options = table_channels(self.context.channels), self.context.domain.size
        votes, worth = np.zeros((len(block), n_options)), np.ones(len(block))
        for index, channel in enumerate(channels):
            rows = slice(None) if len(channels) == 1 else block.channel == index
            votes[rows] = self._votes(channel)[block.report[rows], :n_options]
            worth[rows] = 1.0 if self.as_answers else channel_worth(channel)
        if self.as_answers:
            worth *= votes.any(axis=1)
        answered = np.bincount(block.question, minlength=block.n_questions) > 0
        count = effective_counts(block, channels, block.n_questions)
        value = np.full(block.n_questions, -1, dtype=np.int32)
        return Ballots(block.question, block.worker, votes, worth, answered, count, value)

    def _votes(self, channel: Channel) -> Array:
        if not self.as_answers:
            return channel.votes
        if channel.inputs != channel.outputs:
            raise InputError("reports of this channel are not options, so they cannot be read as answers")
        return np.eye(len(channel.outputs))

    def e_step(self, block: Block, parameters: Parameters, state: Ballots) -> tuple[Statistics, Ballots]:
        value, _ = choose_map(self._tally(block, parameters, state), state.answered)
        # Counted in unprotected answers, so that noise does not pass for evidence.
        agreed, answered = row_kernels().agreements(*self._ballots(state), value, self.context.n_workers)
        statistics = {
            "agreed": agreed,
            "given": answered,
            "changed": np.array(float((value != state.value).sum())),
            "questions": np.array(float(state.answered.sum())),
        }
        return statistics, replace(state, value=value)

    def _tally(self, block: Block, parameters: Parameters, state: Ballots) -> Array:
        # A report counts by its worker and by what its channel leaves of it, so that mixed channels mix well.
        sums: Array = row_kernels().tally(*self._ballots(state), parameters["weight"], block.n_questions)
        return sums

    def _ballots(self, state: Ballots) -> tuple[Array, Array, Array, Array]:
        return state.question, state.worker, state.votes, state.worth

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        return float(statistics["changed"] / max(float(statistics["questions"]), 1.0))

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        answered = np.maximum(statistics["given"], 0.0)
        agreed = np.clip(statistics["agreed"], 0.0, answered)
        # Over the questions the worker answered: dividing by all, as printed, breaks on sparse data.
        agreement = (agreed + 1.0) / (answered + 2.0)
        return {"weight": self._weights(agreement, answered - agreed, answered), "agreement": agreement}

    def _weights(self, agreement: Array, errors: Array, given: Array) -> NDArray[np.float64]:
        if self.weighing == "linear":
            return agreement
        if self.weighing == "crh":
            wrong = 1.0 - agreement
            return np.asarray(np.log(max(float(wrong.sum()), 1e-12) / wrong))
        if self.weighing == "catd":
            # With fewer answers than that all weights would vanish.
            return np.asarray(chdtri(np.maximum(given, 0.02), 0.975) / (errors + 1.0))
        # Against chance: with two options log p / (1 − p); with more, a worker right half of the time still informs.
        return np.asarray(np.log(max(self.context.domain.size - 1, 1) * agreement / (1.0 - agreement)))

    def project(self, parameters: Parameters) -> Parameters:
        return parameters

    def finish(self, block: Block, parameters: Parameters, state: Ballots) -> Columns:
        votes = self._tally(block, parameters, state)
        value, _ = choose_map(votes, state.answered)
        shares = on_simplex(votes)
        share = np.where(state.answered, shares[np.arange(len(value)), np.maximum(value, 0)], 0.0)
        low, high = wilson(share, state.count)
        return {"posterior": shares, "value": value, "confidence": share, "low": low, "high": high}


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedVote(IterativeMethod):
    """Truth discovery by voting: `weighing` is log-odds (Li), linear, crh or catd.

    With `as_answers` reports are read as if they were answers, as the paper does.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> WeightedVote().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y"))))).values()
    ['n', 'y', 'n', 'y', 'n', 'y']
    """

    name: ClassVar[str] = "weighted-vote"
    summary: ClassVar[str] = "Li's truth discovery: votes count by how often their worker agrees with the outcome"
    shares: ClassVar[bool] = True

    tol: Number = 0.0
    weighing: Weighing = "log-odds"
    as_answers: bool = False

    def model(self, context: Context) -> WeightedVoteModel:
        return WeightedVoteModel(context=context, weighing=self.weighing, as_answers=self.as_answers)

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports, _start(self, reports, start)))
        done, columns = fit_model(self, model, reports)
        return build_estimate(self, model, reports, done, columns, start)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return skill_tally(rows, columns, context)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        skills = choice_skills(parameters["agreement"], tally, "the share of answers that agree with the outcome")
        return Closing(skills, choice_judgement(tally, context))


def _start(method: WeightedVote, reports: Reports, start: Estimate | None) -> Parameters:
    known = warm_start_parameters(method, start, reports, *WeightedVoteModel.by_worker)
    if not known:
        return {}
    names = WeightedVoteModel.by_worker
    return {name: align_parameters(start, name, reports, float(np.median(known[name]))) for name in names}
