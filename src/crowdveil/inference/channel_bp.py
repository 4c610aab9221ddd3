"""Channel BP: choices by belief propagation between workers and questions, through the known channels.

Liu, Peng & Ihler (2012) showed that truth inference is belief propagation on the graph of who answered what; here the
worker's hidden type stands on one side, the truth on the other, and the channel's table in between.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.bounds.floor import fano_floor
from crowdveil.errors import InputError
from crowdveil.estimate import Estimate, Skills
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.blocks import context_of
from crowdveil.inference.channel_layout import MessageState, message_kernels, state_of
from crowdveil.inference.choice_model import Precision, working_precision
from crowdveil.inference.finishing import LEVEL, QUANTILE, chosen
from crowdveil.inference.fitting import carried_over, finished, fit_model, gold_codes, judged
from crowdveil.inference.leaning import VoteTable, part_of_classes, vote_table
from crowdveil.inference.message_model import MessageModel, normalised, reading
from crowdveil.inference.model import Block, Closing, Columns, Context, Parameters, Statistics, Verdict
from crowdveil.inference.participation import count_answered, shares
from crowdveil.inference.votes import CLASS_SMOOTHING, class_pull, noise_of, table_channels
from crowdveil.inference.worker_types import MANY_OPTIONS, WorkerTypes, worker_types
from crowdveil.reports import Reports

Array = NDArray[Any]
_NO_GOLD = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelBPModel(MessageModel):
    """Parameters: `belief` (log, worker × type), `share` answered per worker, `log_types`, `log_classes`.

    Where leanings and classes are weighed, also the answers `named`, the `part` of the classes and `log_learned`, their
    shares if all were due to them.

    Messages to the workers live in the blocks' state; messages to the questions are made anew in every sweep.
    """

    types: WorkerTypes
    type_weight: float
    class_prior: float | None
    """Pseudo-questions per class, or None where all classes are held equally likely."""
    damping: float
    votes: VoteTable | None
    """For telling leanings of the crowd from the classes' shares; None where it was said which of the two it is."""
    lean: float
    """How much of a leaning of the whole crowd is believed where that is not told from the reports."""

    shared: ClassVar[tuple[str, ...]] = ("log_types", "log_classes")

    def begin(self, block: Block) -> MessageState:
        symbol = self.emission.symbols(block.report, block.channel)
        message = np.full(len(symbol), -1, dtype=self.precision)
        return state_of(block, symbol, message, self.emission.n_options)

    def e_step(self, block: Block, parameters: Parameters, state: MessageState) -> tuple[Statistics, MessageState]:
        if "share" not in parameters:
            answered = count_answered(state.symbol, state.worker, self.emission, self.context.n_workers)
            return answered | ({} if self.votes is None else self.votes.count(state)), state
        total = np.zeros((self.context.n_workers, len(self.types)))
        moved = self._sweep(block, parameters, state, total)
        statistics = self.swept(total, moved, state, "classes")
        if self.votes is not None:
            statistics["classes"] = _counted_as(parameters, state)
            if "part" not in parameters:
                statistics |= self.votes.moments(state, parameters["share"], parameters["named"])
        return statistics, state

    def _sweep(self, block: Block, parameters: Parameters, state: MessageState, total: Array) -> float:
        ability = self.types.ability
        options = self.emission.table[: self.emission.n_options]
        guess = (1 - ability) * (self.types.leaning @ options).T
        moved: float = message_kernels().choice_sweep(
            state.starts,
            state.worker,
            state.symbol,
            state.message,
            *self.believed(parameters),
            ability.astype(self.precision),
            np.ascontiguousarray(guess, dtype=self.precision),
            np.ascontiguousarray(options.T, dtype=self.precision),
            self.empty(),
            parameters["log_classes"],
            _NO_GOLD if block.gold is None else block.gold,
            self.damping,
            state.posterior,
            total,
        )
        return moved

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        if "messages" not in statistics:
            named = {} if self.votes is None else {"named": statistics["named"]}
            return {**self.first(shares(statistics)), **named, **parameters}
        part = self._part(statistics, parameters)
        lean = self.lean if part is None else 1 - part
        belief = normalised(statistics["messages"] + parameters["log_types"])
        # Empirical Bayes with the prior as pseudo-workers and pseudo-questions: where the reports say nothing the
        # shares stay what they were before, which is why no class can swallow the others at small ε.
        types = self.type_weight * self.types.share + self.types.held(belief.sum(axis=0), lean)
        classes = np.ones(self.emission.n_options)
        if self.class_prior is not None:
            classes = self.class_prior + statistics["classes"]
        log_types, log_classes = np.log(types / types.sum()), np.log(classes / classes.sum())
        found = {"share": parameters["share"], "log_types": log_types, "log_classes": log_classes}
        if part is not None:
            # That part of the classes' log-odds counts; the crowd's leaning stands for the rest.
            weighed = normalised(part * log_classes[None])[0]
            told = {"named": parameters["named"], "part": np.array([part])}
            found |= {"log_classes": np.log(weighed), "log_learned": log_classes} | told
        return {"belief": statistics["messages"] + log_types, **found}

    def _part(self, statistics: Statistics, parameters: Parameters) -> float | None:
        """The part of an uneven count of answers that is due to the classes: found once, in the first sweep."""
        if self.votes is None:
            return None
        if "part" in parameters:
            return float(parameters["part"][0])
        return part_of_classes(parameters["named"], statistics["moments"])

    def first(self, share: Array) -> Parameters:
        """Before anything is known."""
        log_types = np.log(self.types.share)
        return {
            "belief": np.tile(log_types, (self.context.n_workers, 1)),
            "share": share,
            "log_types": log_types,
            "log_classes": np.full(self.emission.n_options, -np.log(self.emission.n_options)),
        }

    def finish(self, block: Block, parameters: Parameters, state: MessageState) -> Columns:
        posterior = state.posterior.copy()
        value, confidence = chosen(posterior.astype(np.float64), state.answered)
        low, high = self._bounds(posterior, value, parameters, state)
        return {"posterior": posterior, "value": value, "confidence": confidence, "low": low, "high": high}

    def verdict(self, parameters: Parameters, by_channel: Array, n_answered: int) -> Verdict:
        channels = table_channels(self.context.channels)
        floor = fano_floor(channels, by_channel / max(self.context.n_questions, 1), np.exp(parameters["log_classes"]))
        return Verdict(floor, () if floor.informative else (floor.sentence,))

    def prior(self, answered: NDArray[np.bool_], parameters: Parameters) -> Columns:
        classes = np.exp(parameters["log_classes"])
        best = np.where(answered, float(classes.max()), 0.0)
        value = np.where(answered, int(np.argmax(classes)), -1).astype(np.int32)
        posterior = np.tile(classes, (len(answered), 1))
        return {"value": value, "confidence": best, "low": best, "high": best, "posterior": posterior}

    def _bounds(
        self, posterior: Array, value: Array, parameters: Parameters, state: MessageState
    ) -> tuple[Array, Array]:
        """How far the value's probability moves when each worker's ability moves within its own uncertainty.

        The log-odds of the value against its closest rival are a sum over the reports; by the delta method their
        variance is Σ (d log-odds / d ability)² · Var(ability).
        """
        ranked = np.argsort(-posterior, axis=1, kind="stable")
        top, rival = np.maximum(value, 0), ranked[:, min(1, posterior.shape[1] - 1)]
        rival = np.where(rival == top, ranked[:, 0], rival)
        mean, variance = ability_moments(parameters["belief"], self.types.ability)
        options = self.emission.table[: self.emission.n_options].T
        empty = self.empty()
        who, what, question = state.worker, state.symbol, state.question
        share, able = parameters["share"][who], mean[who]
        even = options.mean(axis=1)[what]
        slope = np.zeros(len(who))
        for option, sign in ((top, 1.0), (rival, -1.0)):
            hit = options[what, option[question]]
            chance = share * (able * hit + (1 - able) * even) + (1 - share) * empty[what]
            slope += sign * share * (hit - even) / np.maximum(chance, 1e-12)
        spread = np.sqrt(np.bincount(question, slope**2 * variance[who], minlength=len(value)))
        sure = np.clip(posterior[np.arange(len(value)), top].astype(np.float64), 1e-12, 1 - 1e-12)
        odds = np.log(sure) - np.log1p(-sure)
        low, high = (1 / (1 + np.exp(-np.clip(odds + side * QUANTILE * spread, -700, 700))) for side in (-1, 1))
        return np.where(value >= 0, low, 0.0), np.where(value >= 0, high, 1.0)


def _counted_as(parameters: Parameters, state: MessageState) -> Array:
    """The classes as counted if their learned shares were believed wholly.

    Counted under shares that are believed in part, they would be taken for smaller again in every sweep.
    """
    more = np.exp(parameters.get("log_learned", parameters["log_classes"]) - parameters["log_classes"])
    weights = state.posterior[state.answered] * more
    counted: Array = (weights / weights.sum(axis=1, keepdims=True)).sum(axis=0)
    return counted


def ability_moments(log_belief: Array, ability: Array) -> tuple[Array, Array]:
    """Mean and variance of each worker's ability."""
    belief = normalised(log_belief)
    mean = belief @ ability
    return mean, np.maximum(belief @ ability**2 - mean**2, 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelBP(IterativeMethod):
    """Belief propagation for choices; `type_weight` pseudo-workers, `class_smoothing` pseudo-questions a class.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> estimate = ChannelBP().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y")))))
    >>> "".join(estimate.values()), bool(estimate.skills.skill[0] > estimate.skills.skill[2])
    ('nynyny', True)
    """

    name: ClassVar[str] = "channel-bp"
    summary: ClassVar[str] = "choices by belief propagation through the known channels"

    max_iter: int = 200
    tol: float = 1e-4
    type_weight: float = 10.0
    classes: Literal["weighed", "learned", "even"] = "learned"
    class_smoothing: float = CLASS_SMOOTHING
    damping: float = 0.3
    precision: Precision = "float32"
    gold: Mapping[Hashable, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        IterativeMethod.__post_init__(self)
        if self.classes not in ("weighed", "learned", "even"):
            raise InputError(f"classes must be weighed, learned or even; got {self.classes!r}")
        for name in ("type_weight", "class_smoothing"):
            if getattr(self, name) <= 0:
                raise InputError(f"{name} must be positive; got {getattr(self, name):g}")
        if not 0 <= self.damping < 1:
            raise InputError(f"damping must be from 0 to below 1; got {self.damping:g}")

    def model(self, context: Context) -> ChannelBPModel:
        emission = reading(context)
        channels = table_channels(context.channels)
        pull = class_pull(channels, self.class_smoothing)
        return ChannelBPModel(
            context=context,
            emission=emission,
            precision=working_precision(self.precision, context.n_reports),
            types=worker_types(emission.n_options),
            type_weight=self.type_weight,
            class_prior=None if self.classes == "even" else pull,
            damping=self.damping,
            votes=vote_table(channels, emission.n_options) if self._unsure(emission.n_options) else None,
            # As much as one report is worth of an unprotected answer: noise hides what tells leanings from classes.
            lean=1 / noise_of(channels),
        )

    def _unsure(self, n_options: int) -> bool:
        """Whether answers that are uneven may mean a leaning crowd as well as uneven classes."""
        return self.classes == "weighed" and 1 < n_options <= MANY_OPTIONS

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(context_of(reports, _start(reports, start)))
        done, columns = fit_model(self, model, reports, gold_codes(self.gold, reports))
        parameters = done.parameters
        if "share" not in parameters:
            parameters = model.first(np.ones(reports.n_workers))
        estimate = finished(self, model, reports, done, columns, parameters=parameters)
        return judged(estimate, model, parameters, reports)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        return Closing(_skills(parameters["belief"], worker_types(context.domain.size)))


def _skills(log_belief: Array, types: WorkerTypes) -> Skills:
    belief = normalised(log_belief)
    order = np.argsort(types.skill, kind="stable")
    ordered = types.skill[order]
    below = np.cumsum(belief[:, order], axis=1)
    places = [(below < p).sum(axis=1).clip(0, len(order) - 1) for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]
    meaning = "the probability of a right answer"
    return Skills(np.arange(len(belief)), belief @ types.skill, ordered[places[0]], ordered[places[1]], meaning)


def _start(reports: Reports, start: Estimate | None) -> Parameters:
    """An earlier estimate's beliefs; a worker it did not know begins as any other."""
    if start is None or not {"belief", "log_types", "log_classes"} <= set(start.parameters):
        return {}
    if len(start.parameters["log_classes"]) != reports.domain.size:
        return {}
    belief = carried_over(start, "belief", reports, start.parameters["log_types"])
    if belief is None:
        return {}
    return {
        "belief": belief,
        "log_types": start.parameters["log_types"],
        "log_classes": start.parameters["log_classes"],
    }
