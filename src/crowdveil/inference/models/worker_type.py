"""The model behind channel-bp: a hidden type for each worker, a truth for each question, messages along the reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.bounds.information import fano_floor
from crowdveil.inference.acceleration import squarem_step
from crowdveil.inference.kernels.message_state import MessageState, build_message_state, message_kernels
from crowdveil.inference.kernels.messages_reference import choice_chances
from crowdveil.inference.models.message_passing import MessageModel
from crowdveil.inference.observations.debiasing import table_channels
from crowdveil.inference.observations.response_rate import count_answered, shares
from crowdveil.inference.priors.worker_types import WorkerTypes
from crowdveil.inference.protocols import Block, Columns, Judgement, Parameters, Statistics
from crowdveil.inference.uncertainty.score_test import score_excess
from crowdveil.inference.uncertainty.summaries import choose_map, normalize_logs, odds_interval, rivals
from crowdveil.inference.uncertainty.temperature import (
    POWERS,
    loo_log_predictive,
    posterior_power,
    sample_questions,
    temper,
    with_posterior_power,
)

Array = NDArray[Any]
SETTLING = 16
"""Sweeps in which nobody is taken to lean while the shares of the classes are learned."""
_UNHEARD_OF = 40.0
"""So many nats less likely a type is that is not to be believed in yet."""
_LOOKED_AT = 1024
"""Reports that are looked at together: report × type then stays in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TypeModel(MessageModel):
    """Parameters: `belief` (log, worker × type), `share` answered per worker, `log_types`, `log_classes`; `age`.

    Messages to the workers live in the blocks' state; messages to the questions are made anew in every sweep.
    """

    types: WorkerTypes
    type_weight: float
    class_prior: float | None
    """Pseudo-questions per class if options are named evenly, or None where all classes are held equally likely."""
    lean: float
    """How much of a leaning of the whole crowd is believed."""
    damping: float

    shared: ClassVar[tuple[str, ...]] = ("log_types", "log_classes")
    kept: ClassVar[tuple[str, ...]] = (*MessageModel.kept, "posterior_power")

    def begin(self, block: Block) -> MessageState:
        symbol = self.emission.symbols(block.report, block.channel)
        message = np.full(len(symbol), -1, dtype=self.precision)
        state = build_message_state(block, symbol, message, self.emission.n_options)
        known = np.flatnonzero(block.known >= 0)
        state.posterior[known] = np.eye(self.emission.n_options)[block.known[known]]
        return state

    def e_step(self, block: Block, parameters: Parameters, state: MessageState) -> tuple[Statistics, MessageState]:
        if "share" not in parameters:
            counted = count_answered(state.symbol, state.worker, self.emission, self.context.n_workers)
            seen = np.bincount(state.symbol, minlength=self.emission.n_symbols).astype(np.float64)
            return counted | {"symbols": seen}, state
        total = np.zeros((self.context.n_workers, len(self.types)))
        moved = self._sweep(block, parameters, state, total)
        return self.sweep_statistics(total, moved, state, "classes"), state

    def _sweep(self, block: Block, parameters: Parameters, state: MessageState, total: Array) -> float:
        known = self._sweep_inputs(parameters)
        moved: float = message_kernels().choice_sweep(
            state.starts,
            state.worker,
            state.symbol,
            state.message,
            *known,
            parameters["log_classes"],
            block.known,
            self.damping,
            state.posterior,
            total,
            state.foretold,
            _at_once(*known[1:5]),
        )
        return moved

    def _sweep_inputs(self, parameters: Parameters) -> tuple[Array, ...]:
        """What a sweep reads: beliefs, shares, abilities; and by symbol what guesses, the options and ∅ make of it."""
        options = self.emission.table[: self.emission.n_options]
        guess = (1 - self.types.ability) * (self.types.leaning @ options).T
        return (
            *self.worker_beliefs(parameters),
            self.types.ability.astype(self.precision),
            np.ascontiguousarray(guess, dtype=self.precision),
            np.ascontiguousarray(options.T, dtype=self.precision),
            self.empty(),
        )

    def score_pass(self, block: Block, parameters: Parameters, state: MessageState) -> Statistics:
        """How well posteriors of each posterior_power foretell the reports."""
        known, total = self._sweep_inputs(parameters), np.zeros(len(POWERS))
        rows = np.flatnonzero(sample_questions(len(state.posterior), self.context.n_reports)[state.question])
        for part in np.split(rows, range(_LOOKED_AT, len(rows), _LOOKED_AT)):
            chance = choice_chances(state.worker[part], state.symbol[part], state.message[part], *known)
            total += loo_log_predictive(state.posterior[state.question[part]], chance)
        return {"loo_log_predictive": total}

    def absorb_scores(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        return with_posterior_power(statistics, parameters)

    def predict_counts(self, parameters: Parameters, reports: Array, classes: Array) -> Array:
        """How often each option is to be expected as an answer: of all who report, each by the number of reports."""
        types = reports @ normalize_logs(parameters["belief"]) / max(float(reports.sum()), 1.0)
        answers: Array = float(types @ self.types.ability) * classes
        answers += (types * (1 - self.types.ability)) @ self.types.leaning
        return answers

    def usual(self, answers: Array, share: Array, state: MessageState) -> float:
        """The logarithm of how likely the reports were if nothing but the frequencies of answers were known."""
        symbols = answers @ self.emission.table[: self.emission.n_options]
        if not self.emission.with_empty:
            seen = np.bincount(state.symbol, minlength=len(symbols))
            return float(seen @ np.log(np.maximum(symbols, 1e-300)))
        # How much is answered differs from worker to worker, and from channel to channel.
        response_rate = share[state.worker]
        chance = response_rate * symbols[state.symbol] + (1 - response_rate) * self.empty()[state.symbol]
        return float(np.log(np.maximum(chance, 1e-300)).sum())

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        if "messages" not in statistics:
            held, age = (
                np.array([self.class_pseudocount(statistics["symbols"])]),
                np.array([SETTLING + 1.0 if parameters else 0.0]),
            )
            return {**self.first(shares(statistics)), "held": held, "age": age, **parameters}
        belief = normalize_logs(statistics["messages"] + parameters["log_types"])
        # Empirical Bayes with the prior as pseudo-workers and pseudo-questions: where the reports say nothing the
        # shares stay what they were before, which is why no class can swallow the others at small ε.
        prior_weight = self.type_weight * self.types.share
        types = prior_weight + self.types.pool_bias_weights(belief.sum(axis=0), self.lean)
        held = parameters["held"] * np.ones(self.emission.n_options)
        classes = held if self.class_prior is None else held + statistics["classes"]
        fitted = {"log_types": np.log(types / types.sum()), "log_classes": np.log(classes / classes.sum())}
        least = {"log_types": np.log(prior_weight / types.sum()), "log_classes": np.log(held / classes.sum())}
        laws = self._laws(parameters, fitted, least)
        belief = statistics["messages"] + laws["log_types"]
        now = {"share": parameters["share"], "held": parameters["held"], "age": parameters["age"] + 1}
        return {"belief": belief, **now, **laws}

    def _laws(self, parameters: Parameters, fitted: dict[str, Array], least: dict[str, Array]) -> dict[str, Array]:
        """The laws to go on with.

        Where one class is common and answers hardly go together, "everybody leans to it and the truth is another" fits
        as well as the truth, and sweeps that may believe both from the beginning can end there. So classes are learned
        first; by then whoever does lean is told from the rest. Two options gain nothing by that.
        """
        if self._younger(parameters, SETTLING):
            leaning = np.ptp(self.types.leaning, axis=1) > 0
            logs = fitted["log_types"] - _UNHEARD_OF * leaning
            return fitted | {"log_types": logs - np.logaddexp.reduce(logs)}
        # A leap needs two steps between laws of the same kind.
        return fitted if self.settling(parameters) else fitted | squarem_step(parameters, fitted, least)

    def settling(self, parameters: Parameters) -> bool:
        """The sweep with these parameters did not believe in leanings yet."""
        return self._younger(parameters, SETTLING + 1)

    def _younger(self, parameters: Parameters, age: int) -> bool:
        first = self.class_prior is not None and self.emission.n_options > 2
        return first and "age" in parameters and float(parameters["age"][0]) < age

    def class_pseudocount(self, symbols: Array) -> float:
        """Pseudo-questions per class, the fewer the more unevenly all reports together name the options.

        They keep noise from passing for classes. Where options surely differ by more, no class is kept from being as
        common as it is; whether classes are the reason or a leaning crowd is not said by that.
        """
        if self.class_prior is None:
            return 1.0
        each = self.context.n_reports / max(self.context.n_questions, 1)
        # Reports of one question are about one truth: the less noise they have, the less they count as several.
        alike = 1 + max(each - 1, 0.0) * self.lean
        return self.class_prior / max(score_excess(symbols, self.emission, alike=alike), 1.0)

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
        value, _ = choose_map(state.posterior.astype(np.float64), state.answered)
        posterior = temper(state.posterior.copy(), posterior_power(parameters))
        confidence = np.where(state.answered, posterior.max(axis=1).astype(np.float64), 0.0)
        low, high = self.bounds(value, parameters, state)
        return {"posterior": posterior, "value": value, "confidence": confidence, "low": low, "high": high}

    def judgement(self, parameters: Parameters, by_channel: Array) -> Judgement:
        channels = table_channels(self.context.channels)
        floor = fano_floor(channels, by_channel / max(self.context.n_questions, 1), np.exp(parameters["log_classes"]))
        facts = {"posterior_power": posterior_power(parameters)}
        return Judgement(floor, () if floor.informative else (floor.sentence,), facts)

    def prior(self, answered: NDArray[np.bool_], parameters: Parameters) -> Columns:
        classes = np.exp(parameters["log_classes"])
        low, high = (np.where(answered, float(classes.max()), unknown) for unknown in (0.0, 1.0))
        value = np.where(answered, int(np.argmax(classes)), -1).astype(np.int32)
        posterior = np.tile(classes, (len(answered), 1))
        return {"value": value, "confidence": low, "low": low, "high": high, "posterior": posterior}

    def bounds(self, value: Array, parameters: Parameters, state: MessageState) -> tuple[Array, Array]:
        """How far the value's probability moves when each worker's ability moves within its own uncertainty.

        The log-odds of the value against its closest rival are a sum over the reports; by the delta method their
        variance is Σ (d log-odds / d ability)² · Var(ability).
        """
        top = np.maximum(value, 0)
        rival = rivals(state.posterior, top)
        mean, variance = _ability_moments(parameters["belief"], self.types.ability)
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
        spread = np.sqrt(np.bincount(question, slope**2 * variance[who], minlength=len(value))) * posterior_power(
            parameters
        )
        posterior = temper(state.posterior, posterior_power(parameters))
        return odds_interval(posterior, top, spread, value >= 0)


def _at_once(share: Array, ability: Array, guess: Array, hit: Array) -> int:
    """How many chances of reports can be multiplied before the smallest product would vanish in single precision."""
    ends = ability * np.stack([hit.min(axis=1), hit.max(axis=1)])[:, :, None]
    chances = guess + ends.min(axis=0)
    least = float(chances[chances > 0].min(initial=0.5)) * float(share.min(initial=1.0))
    return int(np.clip(np.log(1e-28) / np.log(least), 1, 16))


def _ability_moments(log_belief: Array, ability: Array) -> tuple[Array, Array]:
    """Mean and variance of each worker's ability."""
    belief = normalize_logs(log_belief)
    mean = belief @ ability
    return mean, np.maximum(belief @ ability**2 - mean**2, 0.0)
