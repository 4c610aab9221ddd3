"""Private Dawid–Skene, Algorithm 1 of Wang & Xu: two options, abilities projected, then rescaled for the noise.

As published it reads reports as if they were answers and knows the channel only when it rescales the abilities at the
end. It is here for comparison; `one-coin` and `channel-bp` use the channel from the start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import build_estimate, fit_model
from crowdveil.inference.kernels.bincount import count_codes, sum_by_code
from crowdveil.inference.kernels.layout import Layout
from crowdveil.inference.methods.one_coin import LEAST, OneCoinModel, one_coin_start
from crowdveil.inference.models.categorical_em import Precision, working_precision
from crowdveil.inference.observations.debiasing import table_channels
from crowdveil.inference.observations.likelihood import as_labels
from crowdveil.inference.protocols import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.information_floor import choice_judgement, choice_skills, skill_tally
from crowdveil.reports import Reports
from crowdveil.validation import Rule

Array = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateDawidSkeneModel(OneCoinModel):
    """Equations (10), (7) and (8): no prior, even classes, abilities of *reports* kept within [λ, 1 − λ]."""

    margin: float

    @property
    def tempers(self) -> bool:
        """As in the paper."""
        return False

    def init(self) -> Parameters:
        return self.project(self.context.start) if self.context.warm else {}

    def more(self, counts: Array, posterior: Array, parameters: Parameters, layout: Layout) -> Statistics:
        return {}

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        return float(statistics["log_likelihood"]) if parameters else float("nan")

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        answered = statistics["given"]
        # (10) divides by the number of questions; on sparse data that of the worker's own reports is meant.
        ability = np.divide(statistics["right"], answered, out=np.full_like(answered, 0.5), where=answered > 0)
        return self.project(
            {
                "skill": ability,
                "given": np.ones_like(answered),
                "seen": answered,
                "log_classes": np.zeros(2),
                "crowd": np.zeros(5),
            }
        )

    def project(self, parameters: Parameters) -> Parameters:
        least = max(self.margin, LEAST)
        projected = np.clip(parameters["skill"], least, 1 - least)
        return dict(parameters) | {"skill": projected, "log_classes": np.log([0.5, 0.5])}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateDawidSkene(IterativeMethod):
    """Wang & Xu's Algorithm 1 with λ = `margin`, started from the shares of the votes.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> PrivateDawidSkene().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y"))))).values()
    ['n', 'y', 'n', 'y', 'n', 'y']
    """

    name: ClassVar[str] = "private-dawid-skene"
    summary: ClassVar[str] = "Wang & Xu's Algorithm 1: two options, abilities rescaled for the noise"

    accelerate: bool = False  # type: ignore[misc]
    margin: Annotated[float, Rule("from 0 to below 0.5", lambda margin: 0 <= margin < 0.5)] = 0.01
    precision: Precision = "auto"

    def model(self, context: Context) -> PrivateDawidSkeneModel:
        for channel in table_channels(context.channels):
            _check(channel)
        return PrivateDawidSkeneModel(
            context=context,
            emission=as_labels(2),
            precision=working_precision(self.precision, context.n_reports),
            noise=1.0,
            class_prior=None,
            votes=np.eye(2),
            margin=self.margin,
        )

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        if reports.domain.size != 2:
            raise InputError(
                f"private-dawid-skene is for two options; got {reports.domain.size}", fix="use one-coin or channel-bp"
            )
        model = self.model(table_context(reports, one_coin_start(self, reports, start)))
        done, columns = fit_model(self, model, reports)
        return build_estimate(self, model, reports, done, columns, start)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        """Also each worker's reports, and how many of them are expected to be lies."""
        channels, n_workers = table_channels(context.channels), context.n_workers
        lie = np.array([(channel.table[0, 1] + channel.table[1, 0]) / 2 for channel in channels])
        lies = sum_by_code(rows.worker, lambda part: lie[rows.channel[part]], n_workers)
        statistics = {"lies": lies, "reports": count_codes(rows.worker, n_workers).astype(np.float64)}
        return skill_tally(rows, columns, context) | statistics

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        skill = _rescale_ability(parameters["skill"], tally["lies"] / np.maximum(tally["reports"], 1))
        meaning = "the probability of a right answer, rescaled for the noise"
        return Closing(choice_skills(skill, tally, meaning), choice_judgement(tally, context))


def _check(channel: Channel) -> None:
    if channel.inputs != channel.outputs or channel.protects_participation or len(channel.inputs) != 2:
        raise InputError(
            "private-dawid-skene reads reports of two options and no others",
            fix="use dawid-skene, one-coin or channel-bp, which read any channel",
        )


def _rescale_ability(ability: Array, lie: Array) -> NDArray[np.float64]:
    """Step 7: (ability − lie) / (keep − lie), with a worker's average channel, within [0, 1]."""
    gap = 1 - 2 * lie
    skill: NDArray[np.float64] = np.divide(ability - lie, gap, out=np.full_like(ability, 0.5), where=gap > 0)
    return np.clip(skill, 0.0, 1.0)
