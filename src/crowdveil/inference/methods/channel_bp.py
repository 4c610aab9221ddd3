"""Channel BP: choices by belief propagation between workers and questions, through the known channels.

Liu, Peng & Ihler (2012) showed that truth inference is belief propagation on the graph of who answered what; here the
worker's hidden type stands on one side, the truth on the other, and the channel's table in between.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Literal

from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import (
    align_parameters,
    attach_floor,
    build_estimate,
    fit_model,
    gold_codes,
    warm_start_parameters,
)
from crowdveil.inference.models.categorical_em import Precision, working_precision
from crowdveil.inference.models.message_passing import reading, summarize_skills
from crowdveil.inference.models.model_averaging import BiasAveragedModel, read_belief
from crowdveil.inference.models.worker_type import TypeModel
from crowdveil.inference.observations.debiasing import CLASS_SMOOTHING, channel_noise, class_pull, table_channels
from crowdveil.inference.priors.worker_types import MANY_OPTIONS, worker_types
from crowdveil.inference.protocols import Closing, Context, Parameters, Statistics, start_names
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, Number, Positive, Rule


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

    max_iter: AtLeastOne = 200
    tol: Number = 1e-4
    type_weight: Positive = 10.0
    classes: Literal["weighed", "learned", "even"] = "weighed"
    class_smoothing: Positive = CLASS_SMOOTHING
    damping: Annotated[float, Rule("from 0 to below 1", lambda damping: 0 <= damping < 1)] = 0.3
    precision: Precision = "float32"
    gold: Mapping[Hashable, object] = field(default_factory=dict)

    def model(self, context: Context) -> TypeModel | BiasAveragedModel:
        emission = reading(context)
        channels = table_channels(context.channels)
        model = TypeModel(
            context=context,
            emission=emission,
            precision=working_precision(self.precision, context.n_reports),
            types=worker_types(emission.n_options),
            type_weight=self.type_weight,
            class_prior=None if self.classes == "even" else class_pull(channels, self.class_smoothing),
            # As much as one report is worth of an unprotected answer: noise hides what tells leanings from classes.
            lean=1 / channel_noise(channels),
            damping=self.damping,
        )
        if self.classes != "weighed" or not 1 < emission.n_options <= MANY_OPTIONS:
            return model
        shared = {name: getattr(model, name) for name in ("context", "emission", "precision")}
        return BiasAveragedModel(classes=model, leaning=replace(model, class_prior=None, lean=1.0), **shared)

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports))
        model = replace(model, context=replace(model.context, start=_start(self, model, reports, start)))
        gold = gold_codes(self.gold, reports)
        done, columns = fit_model(self, model, reports, gold)
        return attach_floor(
            build_estimate(self, model, reports, done, columns, start), model, done.parameters, reports, gold
        )

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        types = worker_types(context.domain.size)
        return Closing(summarize_skills(read_belief(parameters), types.skill, "the probability of a right answer"))


def _start(
    method: ChannelBP, model: TypeModel | BiasAveragedModel, reports: Reports, start: Estimate | None
) -> Parameters:
    """An earlier estimate's beliefs; a worker it did not know begins as any other."""
    known = warm_start_parameters(method, start, reports)
    by_worker, shared = start_names(model, known)
    parameters = {name: known[name] for name in shared}
    typical = {name: parameters[name.replace("belief", "log_types")] for name in by_worker}
    return parameters | {name: align_parameters(start, name, reports, value) for name, value in typical.items()}
