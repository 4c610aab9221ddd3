"""One-coin Dawid–Skene: a worker is right with one probability, and otherwise any other option is as likely."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.blocks import context_of
from crowdveil.inference.choice_model import ChoiceModel, Precision, working_precision
from crowdveil.inference.emission import TINY, emission_of
from crowdveil.inference.fitting import carried_over, finished, fit_model, gold_codes
from crowdveil.inference.floors import choice_skills, choice_verdict, skill_tally
from crowdveil.inference.layout import Layout
from crowdveil.inference.model import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.votes import class_pull, noise_of, table_channels
from crowdveil.reports import Reports

Array = NDArray[Any]
_LEAST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCoinModel(ChoiceModel):
    """Parameters: `skill` and `given` (share of questions answered) per worker, `seen` (answers), `log_classes`."""

    right: float
    wrong: float
    class_prior: float | None
    """Pseudo-questions per class, or None where all classes are held equally likely."""

    by_worker: ClassVar[tuple[str, ...]] = ("skill", "given", "seen")

    def init(self) -> Parameters:
        if self.context.warm:
            return self.project(self.context.start)
        if self.emission.plain:
            return {}
        n_workers = self.context.n_workers
        even = np.full(self.emission.n_options, -np.log(self.emission.n_options))
        return {
            "skill": np.full(n_workers, 0.7),
            "given": np.full(n_workers, 0.5 if self.emission.with_empty else 1.0),
            "seen": np.ones(n_workers),
            "log_classes": even,
        }

    def confusion(self, parameters: Parameters) -> Array:
        """P(answer | truth), worker × answer × truth."""
        n_options = self.emission.n_options
        right = parameters["skill"] * parameters["given"]
        wrong = (1 - parameters["skill"]) * parameters["given"] / max(n_options - 1, 1)
        confusion = np.empty((len(right), self.emission.n_answers, n_options))
        confusion[:, :n_options] = wrong[:, None, None]
        options = np.arange(n_options)
        confusion[:, options, options] = right[:, None]
        confusion[:, n_options:] = (1 - parameters["given"])[:, None, None]
        return confusion

    def logs(self, parameters: Parameters, layout: Layout) -> Array:
        if not (self.emission.plain and layout.cells is None):
            return self.emission.logs(self.confusion(parameters), layout, self.precision)
        n_options = self.emission.n_options
        skill = parameters["skill"]
        right, wrong = np.log(skill), np.log((1 - skill) / max(n_options - 1, 1))
        table = np.empty((len(skill), n_options, n_options), dtype=self.precision)
        table[:] = wrong[:, None, None]
        options = np.arange(n_options)
        table[:, options, options] = right[:, None]
        return table.reshape(-1, n_options)

    def collect(self, counts: Array, parameters: Parameters, layout: Layout) -> Statistics:
        n_options = self.emission.n_options
        if not (self.emission.plain and layout.cells is None):
            known = parameters or {
                "skill": np.full(self.context.n_workers, 0.5),
                "given": np.ones(self.context.n_workers),
            }
            counts = self.emission.answers(counts, self.confusion(known), layout)
        counts = counts.reshape(-1, self.emission.n_answers, n_options)
        return {
            "right": np.einsum("wtt->w", counts[:, :n_options]).astype(np.float64),
            "given": counts[:, :n_options].sum(axis=(1, 2), dtype=np.float64),
            "empty": counts[:, n_options:].sum(axis=(1, 2), dtype=np.float64),
        }

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        if not parameters:
            return float("nan")
        skill = parameters["skill"]
        penalty = self.right * np.log(skill).sum() + self.wrong * np.log1p(-skill).sum()
        if self.class_prior is not None:
            penalty += self.class_prior * parameters["log_classes"].sum()
        return float(statistics["log_likelihood"] + penalty)

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        given, empty = statistics["given"], statistics["empty"]
        skill = (statistics["right"] + self.right) / np.maximum(given + self.right + self.wrong, TINY)
        classes = np.ones(self.emission.n_options)
        if self.class_prior is not None:
            classes = statistics["classes"] + self.class_prior
        return self.project(
            {
                "skill": np.where(given + self.right + self.wrong > 0, skill, 0.5),
                "given": np.divide(given, given + empty, out=np.ones_like(given), where=given + empty > 0),
                "seen": given,
                "log_classes": np.log(np.maximum(classes, _LEAST)),
            }
        )

    def project(self, parameters: Parameters) -> Parameters:
        classes = np.exp(parameters["log_classes"] - parameters["log_classes"].max())
        return {
            "skill": np.clip(parameters["skill"], _LEAST, 1 - _LEAST),
            "given": np.clip(parameters["given"], _LEAST if self.emission.with_empty else 1.0, 1.0),
            "seen": np.maximum(parameters["seen"], 0.0),
            "log_classes": np.log(classes / classes.sum()),
        }

    def doubt(self, parameters: Parameters, layout: Layout) -> Array:
        skill = parameters["skill"]
        spread = skill * (1 - skill) / (parameters["seen"] + 2)
        shape = (len(skill), self.emission.n_answers, self.emission.n_options)
        variance = np.broadcast_to((spread / max(self.emission.n_options - 1, 1) ** 2)[:, None, None], shape).copy()
        options = np.arange(self.emission.n_options)
        variance[:, options, options] = spread[:, None]
        return self.emission.doubts(self.confusion(parameters), variance, layout).astype(self.precision)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneCoin(IterativeMethod):
    """EM for the truths and one skill per worker; `right` and `wrong` are pseudo-answers of the skill's prior.

    All classes are held equally likely unless `classes` is "learned": a single coin leaves so much unexplained that
    learned shares run away to the larger class.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> estimate = OneCoin().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y")))))
    >>> estimate.skills.skill.round(2)
    array([0.85, 0.85, 0.5 ])
    """

    name: ClassVar[str] = "one-coin"
    summary: ClassVar[str] = "one probability of being right per worker, by EM through the channel"

    max_iter: int = 500
    tol: float = 1e-8
    right: float = 1.0
    wrong: float = 1.0
    classes: Literal["even", "learned"] = "even"
    class_smoothing: float = 1.0
    precision: Precision = "auto"
    gold: Mapping[Hashable, object] = field(default_factory=dict)

    def model(self, context: Context) -> OneCoinModel:
        channels = table_channels(context.channels)
        emission = emission_of(channels, context.domain.size)
        noise = noise_of(channels)
        pull = class_pull(noise, context.n_questions, emission.n_options)
        class_prior = self.class_smoothing + pull if self.classes == "learned" else None
        return OneCoinModel(
            context=context,
            emission=emission,
            precision=working_precision(self.precision, context.n_reports),
            # Pseudo-answers mean unprotected ones; under noise a worker is trusted more by default.
            right=self.right * noise + noise - 1.0,
            wrong=self.wrong * noise,
            class_prior=class_prior,
        )

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(context_of(reports, one_coin_start(reports, start)))
        done, columns = fit_model(self, model, reports, gold_codes(self.gold, reports))
        return finished(self, model, reports, done, columns)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return skill_tally(rows, columns, context)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        skills = choice_skills(parameters["skill"], tally, "the probability of a right answer")
        return Closing(skills, choice_verdict(tally, context))


def one_coin_start(reports: Reports, start: Estimate | None) -> Parameters:
    """An earlier estimate's parameters; a worker it did not know begins with the average skill."""
    if start is None or "skill" not in start.parameters:
        return {}
    names = ("skill", "given", "seen")
    carried = {}
    for name in names:
        values = carried_over(start, name, reports, np.asarray(start.parameters[name].mean()))
        if values is None:
            return {}
        carried[name] = values
    return carried | {"log_classes": start.parameters["log_classes"]}
