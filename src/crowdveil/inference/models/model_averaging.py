"""Whether a crowd leans to an option or that option is the truth more often: both are tried, and weighed.

An option named too often may be named by a crowd that leans to it, or be the truth of most questions. Noise hides
which. So two explanations run beside each other, and each foretells every report from all the others. By how much one
does so better is its weight (Geisser & Eddy 1979); where they do equally well, both count by half.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.inference.kernels.message_state import MessageState
from crowdveil.inference.models.message_passing import MessageModel
from crowdveil.inference.models.worker_type import SETTLING, TypeModel
from crowdveil.inference.protocols import Block, Columns, Judgement, Parameters, State, Statistics
from crowdveil.inference.uncertainty.summaries import choose_map, normalize_logs
from crowdveil.inference.uncertainty.temperature import posterior_power, temper

Array = NDArray[Any]
States = tuple[MessageState, MessageState]
_OTHER = "_if_leaning"
_BOTH = ("share", "posterior_power")
"""What does not depend on the explanation."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BiasAveragedModel(MessageModel):
    """Parameters: those of both explanations, and `class_explanation_weight`, the weight of the first."""

    classes: TypeModel
    leaning: TypeModel

    by_worker: ClassVar[tuple[str, ...]] = tuple(name + end for end in ("", _OTHER) for name in TypeModel.by_worker)
    shared: ClassVar[tuple[str, ...]] = tuple(name + end for end in ("", _OTHER) for name in TypeModel.shared)
    kept: ClassVar[tuple[str, ...]] = (*TypeModel.kept, "class_explanation_weight")
    # A fit with learned classes knows only of the first explanation.
    spare: ClassVar[tuple[str, ...]] = tuple(name + _OTHER for name in (*TypeModel.by_worker, *TypeModel.shared))

    def begin(self, block: Block) -> States:
        state = self.classes.begin(block)
        copies = {name: getattr(state, name).copy() for name in ("message", "posterior", "foretold")}
        return state, replace(state, **copies)

    def e_step(self, block: Block, parameters: Parameters, state: States) -> tuple[Statistics, States]:
        reports = np.bincount(state[0].worker, minlength=self.context.n_workers).astype(np.float64)
        if "share" not in parameters:
            return self.classes.e_step(block, parameters, state[0])[0] | {"reports": reports}, state
        statistics: Statistics = {"reports": reports}
        ahead = 0.0
        for sign, end, model, each in ((1, "", self.classes, state[0]), (-1, _OTHER, self.leaning, state[1])):
            known = _one(parameters, end)
            statistics |= _add_suffix(model.e_step(block, known, each)[0] | {"named": _by_report(each)}, end)
            # Either could say how often an option is named; how far shrinkage lets it do so must not decide.
            ahead += sign * (each.foretold.sum() - model.usual(known["answers"], known["share"], each))
        return statistics | {"ahead": np.array(ahead)}, state

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        # One that is behind before it has come to rest may yet overtake the other.
        return max(self.classes.measure(_one(statistics, end), parameters) for end in ("", _OTHER))

    def settling(self, parameters: Parameters) -> bool:
        return self.classes.settling(parameters)

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        if "ahead" not in statistics:
            start = self.classes.m_step(statistics, {})
            # An earlier estimate has told classes from leanings already.
            grown = {"age": np.array([SETTLING + 1.0])} if parameters else {}
            both = {**_add_suffix(start, ""), **_add_suffix(start, _OTHER), **grown, **parameters}
            return both | self._predict_counts(both, statistics)
        first = self.classes.m_step(_one(statistics, ""), _one(parameters, ""))
        second = self.leaning.m_step(_one(statistics, _OTHER), _one(parameters, _OTHER))
        both = _add_suffix(first, "") | _add_suffix(second, _OTHER)
        weight = np.array([sigmoid(float(statistics["ahead"]))])
        return both | self._predict_counts(both, statistics) | {"class_explanation_weight": weight}

    def _predict_counts(self, both: Parameters, statistics: Statistics) -> dict[str, Array]:
        """The answers that each explanation expects of the reports as a whole."""
        reports, predicted = statistics["reports"], {}
        for model, end in ((self.classes, ""), (self.leaning, _OTHER)):
            classes = np.exp(both["log_classes" + end])
            if "named" + end in statistics:
                classes = statistics["named" + end] / max(float(reports.sum()), 1.0)
            predicted["answers" + end] = model.predict_counts(_one(both, end), reports, classes)
        return predicted

    def score_pass(self, block: Block, parameters: Parameters, state: States) -> Statistics:
        statistics: Statistics = {}
        for end, model, each in (("", self.classes, state[0]), (_OTHER, self.leaning, state[1])):
            statistics |= _add_suffix(model.score_pass(block, _one(parameters, end), each), end)
        return statistics

    def absorb_scores(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        foretold = [statistics["loo_log_predictive" + end] for end in ("", _OTHER)]
        return self.classes.absorb_scores({"loo_log_predictive": _average(_weights(parameters), foretold)}, parameters)

    def finish(self, block: Block, parameters: Parameters, state: States) -> Columns:
        weights, answered = _weights(parameters), state[0].answered
        mixed = _average(weights, [each.posterior for each in state])
        value, _ = choose_map(mixed.astype(np.float64), answered)
        posterior = temper(mixed.astype(self.precision), posterior_power(parameters))
        confidence = np.where(answered, posterior.max(axis=1).astype(np.float64), 0.0)
        bounds = [
            model.bounds(value, _one(parameters, end), each)
            for model, end, each in ((self.classes, "", state[0]), (self.leaning, _OTHER, state[1]))
        ]
        low, high = (_average(weights, side) for side in zip(*bounds, strict=True))
        # What is softened as a whole may lie beside what is softened in parts.
        low, high = np.minimum(low, confidence), np.maximum(high, confidence)
        return {"posterior": posterior, "value": value, "confidence": confidence, "low": low, "high": high}

    def judgement(self, parameters: Parameters, by_channel: Array) -> Judgement:
        known = {**parameters, "log_classes": self._log_classes(parameters)}
        diagnostics = self.classes.judgement(known, by_channel)
        return replace(
            diagnostics, facts={**diagnostics.facts, "class_explanation_weight": float(_weights(parameters)[0])}
        )

    def prior(self, answered: NDArray[np.bool_], parameters: Parameters) -> Columns:
        return self.classes.prior(answered, {"log_classes": self._log_classes(parameters)})

    def by_channel(self, state: State) -> Array:
        return self.classes.by_channel(state[0])

    def _log_classes(self, parameters: Parameters) -> Array:
        shares = [np.exp(parameters["log_classes" + end]) for end in ("", _OTHER)]
        logs: Array = np.log(_average(_weights(parameters), shares))
        return logs


def read_belief(parameters: Parameters) -> Array:
    """What is believed of each worker's type, under the explanations there are."""
    if "belief" + _OTHER not in parameters:
        return normalize_logs(parameters["belief"])
    return _average(_weights(parameters), [normalize_logs(parameters["belief" + end]) for end in ("", _OTHER)])


def _by_report(state: MessageState) -> Array:
    """How many reports are about questions of each class."""
    counted: Array = np.diff(state.starts).astype(np.float64) @ state.posterior
    return counted


def sigmoid(ahead: float) -> float:
    """The weight of an explanation that foretold the reports better by so many nats, both being as likely before."""
    return float(1 / (1 + np.exp(-np.clip(ahead, -700, 700))))


def _weights(parameters: Parameters) -> tuple[float, float]:
    due = float(parameters["class_explanation_weight"][0]) if "class_explanation_weight" in parameters else 0.5
    return due, 1 - due


def _average(weights: tuple[float, float], parts: Any) -> Array:
    mixed: Array = weights[0] * parts[0] + weights[1] * parts[1]
    return mixed


def _one(both: Any, end: str) -> dict[str, Array]:
    """The arrays of one explanation under the names that its model knows."""
    if not end:
        return {name: value for name, value in both.items() if not name.endswith(_OTHER)}
    parameters = {name.removesuffix(end): value for name, value in both.items() if name.endswith(end)}
    return parameters | {name: both[name] for name in _BOTH if name in both}


def _add_suffix(one: Any, end: str) -> dict[str, Array]:
    return {name if name in _BOTH else name + end: value for name, value in one.items()}
