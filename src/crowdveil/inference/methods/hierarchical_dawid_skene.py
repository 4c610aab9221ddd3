"""Hierarchical Dawid–Skene: confusions around a crowd's mean, seen through the known channels (Kim & Ghahramani 2012).

Question j has the truth y_j ~ Categorical(π). A worker i attends to the questions with probability ρ, or else answers
without regard to the truth. The report s of an answer x comes from the channel, C(x, s) = P(report s | answer x):

    attentive:    s_ij | y_j = y  ~ Categorical(φ_i(y, ·)),  φ_i(y, ·) ~ Dirichlet(κ v · M_y C)
    inattentive:  s_ij            ~ Categorical(ψ_i(·)),     ψ_i(·)    ~ Dirichlet(τ v · b C)

M_y is the crowd's mean confusion at the truth y, b the mean of what inattentive workers answer, κ and τ are strengths
in answers, and v is how many reports of the channel tell as much as one answer. Rows of different truths and workers
are independent given the crowd. Where participation is protected, M_y C becomes s_i M_y C + (1 − s_i) C(∅, ·), with s_i
the worker's response rate.

The fit is variational: q(y) q(z) q(φ, ψ | z) with z_i = attentive or not. All updates are in closed form. The trace is
the evidence lower bound, which they raise (Minka's proof for κ and τ asks for counts of at least one; expected counts
may be smaller, so the driver checks):

    E-step  q(y_j = y) ∝ π_y exp Σ_i E[log P(s_ij | y)],  E log φ(s) = Ψ(n_s + κ v (M C)_s) − Ψ(N + κ v)
    M-step  n = expected reports by worker, symbol and truth; κ, τ, M, b by type-II maximum likelihood: Minka's fixed
            point for the Dirichlet-multinomial law; π and ρ by their expected counts
    stop    when the bound rises by less than `tol` of itself; steps are extrapolated (SQUAREM)

H.-C. Kim, Z. Ghahramani. Bayesian classifier combination. AISTATS 2012. T. P. Minka. Estimating a Dirichlet
distribution. 2000. The channel and the inattentive workers are ours.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, polygamma

from crowdveil.errors import InputError
from crowdveil.estimate import Estimate
from crowdveil.inference.base import IterativeMethod
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.estimation import (
    align_parameters,
    build_estimate,
    fit_model,
    gold_codes,
    warm_start_parameters,
)
from crowdveil.inference.kernels.layout import Layout
from crowdveil.inference.models.categorical_em import ChoiceModel, Precision, working_precision
from crowdveil.inference.observations.debiasing import (
    CLASS_SMOOTHING,
    channel_noise,
    channel_worth,
    table_channels,
)
from crowdveil.inference.observations.likelihood import TINY, build_emission
from crowdveil.inference.observations.response_rate import answered_scores, shares
from crowdveil.inference.priors.dirichlet_multinomial import STRENGTHS, Dirichlets, log_logistic
from crowdveil.inference.protocols import Closing, Columns, Context, Parameters, Rows, Statistics
from crowdveil.inference.uncertainty.information_floor import choice_judgement, choice_skills, skill_tally
from crowdveil.inference.uncertainty.temperature import posterior_power
from crowdveil.reports import Reports
from crowdveil.validation import AtLeastOne, NotNegative, Number

Array = NDArray[Any]
MAX_ENTRIES = 1 << 28
"""Entries of worker × symbol × truth: 2 GiB in double precision."""
TYPICAL_ACCURACY, TYPICAL_ANSWERS = 0.7, 20.0
"""The mean of the crowd before anything is known, and how many answers to each truth that counts as: chosen on
simulated crowds only (docs/explain/calibration.md)."""
ATTENTIVE_SHARE, ATTENTIVE_WORKERS = 0.8, 20.0
"""The same for the share of attentive workers, in workers."""
TYPICAL_STRENGTH = 17 / 3
"""The median of κ a priori: two answers of a worker correlate by 1 / (1 + κ) = .15, as in `priors/crowd.py`."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """What all workers share: `mean` (truth × answer) and `strength` κ of attentive ones, b and τ of the others, ρ."""

    mean: Array
    strength: float
    habit: Array
    habit_strength: float
    attentive: float

    @classmethod
    def typical(cls, n_options: int) -> Crowd:
        """Before anything is known."""
        even = np.full(n_options, 1 / n_options)
        return cls(typical_confusion(n_options), TYPICAL_STRENGTH, even, float(n_options), ATTENTIVE_SHARE)

    @classmethod
    def unpack(cls, logs: Array, n_options: int) -> Crowd:
        """From the array of an estimate or of an extrapolation, whose rows need not add up to one."""
        rows = np.exp(np.clip(logs[:-3], -700, 0)).reshape(n_options + 1, n_options)
        rows = np.maximum(rows, TINY)
        rows /= rows.sum(axis=1, keepdims=True)
        strength, habit_strength = np.clip(np.exp(np.clip(logs[-3:-1], -20, 20)), *STRENGTHS)
        return cls(
            rows[:-1], float(strength), rows[-1], float(habit_strength), float(np.clip(expit(logs[-1]), 1e-9, 1 - 1e-9))
        )

    def pack(self) -> Array:
        """Logarithms, along which SQUAREM extrapolates."""
        odds = np.log(self.attentive) - np.log1p(-self.attentive)
        rows = np.log(np.maximum(np.vstack([self.mean, self.habit]), TINY))
        return np.concatenate([rows.ravel(), [np.log(self.strength), np.log(self.habit_strength), odds]])


def typical_confusion(n_options: int) -> Array:
    """P(answer | truth) of the typical worker: right with one probability, otherwise any other option."""
    if n_options == 1:
        return np.ones((1, 1))
    confusion: Array = np.full((n_options, n_options), (1 - TYPICAL_ACCURACY) / (n_options - 1))
    np.fill_diagonal(confusion, TYPICAL_ACCURACY)
    return confusion


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalModel(ChoiceModel):
    """Parameters: `counts` (worker × symbol × truth), `crowd` (Crowd.pack) and `log_classes`.

    From these follow `log_chance` (E log P(symbol | truth)), `attentive` by worker and the `bound` of the parameters'
    part in the objective.
    """

    reports_per_answer: Array
    """By channel."""
    noise: float
    """The same over all channels."""
    class_prior: float

    objective: ClassVar[str] = "evidence lower bound"
    by_worker: ClassVar[tuple[str, ...]] = ("counts",)
    shared: ClassVar[tuple[str, ...]] = ("log_classes", "crowd")
    kept: ClassVar[tuple[str, ...]] = (*ChoiceModel.kept, "attentive")

    def init(self) -> Parameters:
        """An earlier estimate's parameters, or everybody as the typical worker."""
        if self.context.warm:
            return self.project(self.context.start)
        n_options = self.emission.n_options
        counts = np.zeros((self.context.n_workers, self.emission.n_symbols, n_options))
        return self._derive(counts, Crowd.typical(n_options), np.full(n_options, -np.log(n_options)))

    def logs(self, parameters: Parameters, layout: Layout) -> Array:
        return self._by_cell(parameters["log_chance"], layout)

    def collect(self, counts: Array, parameters: Parameters, layout: Layout) -> Statistics:
        shape = (self.context.n_workers, self.emission.n_symbols, self.emission.n_options)
        if layout.cells is None:
            return {"counts": counts.astype(np.float64).reshape(shape)}
        total = np.zeros((shape[0] * shape[1], shape[2]))
        total[layout.cells] = counts
        return {"counts": total.reshape(shape)}

    def measure(self, statistics: Statistics, parameters: Parameters) -> float:
        return float(statistics["log_likelihood"] + parameters["bound"])

    def m_step(self, statistics: Statistics, parameters: Parameters) -> Parameters:
        """One step of each fixed point, with what was believed of the workers' attention before."""
        counts, n_options = statistics["counts"], self.emission.n_options
        crowd = Crowd.unpack(parameters["crowd"], n_options)
        attentive, inattentive = self._laws(counts, crowd)
        weight, rate = parameters["attentive"], self._response_rate(counts)
        noise = self.noise
        draws, strength = attentive.fit_strength(crowd.strength, weight, median=TYPICAL_STRENGTH)
        mean = self._to_answers(draws, attentive, crowd.mean, rate)
        mean += TYPICAL_ANSWERS * noise * typical_confusion(n_options)
        draws, habit_strength = inattentive.fit_strength(crowd.habit_strength, 1 - weight, median=n_options)
        habit = self._to_answers(draws, inattentive, crowd.habit[None], rate)[0] + noise / n_options
        share = (weight.sum() + ATTENTIVE_WORKERS * ATTENTIVE_SHARE) / (len(weight) + ATTENTIVE_WORKERS)
        crowd = Crowd(
            mean / mean.sum(axis=1, keepdims=True), strength, habit / habit.sum(), habit_strength, float(share)
        )
        classes = statistics["classes"] + self.class_prior
        return self._derive(counts, crowd, np.log(np.maximum(classes / max(classes.sum(), TINY), TINY)))

    def project(self, parameters: Parameters) -> Parameters:
        classes = parameters["log_classes"] - parameters["log_classes"].max()
        crowd = Crowd.unpack(parameters["crowd"], self.emission.n_options)
        counts = np.maximum(parameters["counts"], 0.0)
        return self._derive(counts, crowd, np.log(np.maximum(np.exp(classes) / np.exp(classes).sum(), TINY)))

    def own(self, parameters: Parameters, layout: Layout) -> tuple[Array, Array]:
        """The share of a sure report in its own count and in its worker's, where the worker is attentive."""
        law, _ = self._laws(parameters["counts"], Crowd.unpack(parameters["crowd"], self.emission.n_options))
        weight = parameters["attentive"][:, None, None]
        whole = law.spread(law.totals() + law.strength[law.starts][:, None])
        return self._by_cell(weight / (law.counts + law.prior), layout), self._by_cell(weight / whole, layout)

    def doubt(self, parameters: Parameters, layout: Layout) -> Array:
        """The posterior variance of log φ, and what not knowing whether the worker is attentive adds."""
        laws = self._laws(parameters["counts"], Crowd.unpack(parameters["crowd"], self.emission.n_options))
        weight = parameters["attentive"][:, None, None]
        attentive, inattentive = laws
        whole = attentive.totals() + attentive.strength[attentive.starts][:, None]
        variance = polygamma(1, attentive.counts + attentive.prior) - attentive.spread(polygamma(1, whole))
        apart = attentive.mean_log() - inattentive.mean_log()
        return self._by_cell(weight * variance + weight * (1 - weight) * apart**2, layout)

    def confusions(self, parameters: Parameters) -> Array:
        """P(answer | truth) of each worker, worker × truth × answer: unbiased votes, drawn towards the crowd's mean."""
        counts, n_options = parameters["counts"], self.emission.n_options
        crowd = Crowd.unpack(parameters["crowd"], n_options)
        channels = table_channels(self.context.channels)
        worth = 1 / self.reports_per_answer
        votes = np.vstack(
            [channel.votes[:, :n_options] * share for channel, share in zip(channels, worth, strict=True)]
        )
        answers = np.einsum("wst,sa->wta", counts, votes) + crowd.strength * crowd.mean
        answers = np.maximum(answers, 0.0)
        confusion: Array = answers / np.maximum(answers.sum(axis=2, keepdims=True), TINY)
        weight = parameters["attentive"][:, None, None]
        blind: Array = (1 - weight) * confusion.mean(axis=1, keepdims=True)
        return weight * confusion + blind

    def _derive(self, counts: Array, crowd: Crowd, log_classes: Array) -> Parameters:
        """The posterior of the workers at these counts, and what it adds to the evidence lower bound.

        With q(φ) = Dirichlet(n + prior) and q(z) ∝ P(z) P(n | z), the bound is Σ_i log Σ_z P(z) P(n_i | z) less
        Σ n E log φ, which the log-likelihood of the E-step holds again.
        """
        attentive, inattentive = self._laws(counts, crowd)
        logs = attentive.log_evidence() + np.log(crowd.attentive)
        others = inattentive.log_evidence() + np.log1p(-crowd.attentive)
        weight = expit(logs - others)
        mean_log = weight[:, None, None] * attentive.mean_log()
        mean_log += (1 - weight)[:, None, None] * inattentive.mean_log()
        noise, n_options = self.noise, self.emission.n_options
        typical = TYPICAL_ANSWERS * noise * typical_confusion(n_options)
        bound = np.logaddexp(logs, others).sum() - (counts * mean_log).sum()
        bound += (typical * np.log(np.maximum(crowd.mean, TINY))).sum()
        bound += noise / n_options * np.log(np.maximum(crowd.habit, TINY)).sum()
        bound += self.class_prior * log_classes.sum()
        bound += log_logistic(crowd.strength, TYPICAL_STRENGTH) + log_logistic(crowd.habit_strength, n_options)
        bound += ATTENTIVE_WORKERS * ATTENTIVE_SHARE * np.log(crowd.attentive)
        bound += ATTENTIVE_WORKERS * (1 - ATTENTIVE_SHARE) * np.log1p(-crowd.attentive)
        return {
            "counts": counts,
            "crowd": crowd.pack(),
            "log_classes": log_classes,
            "log_chance": mean_log,
            "attentive": weight,
            "bound": np.asarray(bound),
        }

    def _laws(self, counts: Array, crowd: Crowd) -> tuple[Dirichlets, Dirichlets]:
        """The laws of attentive workers, by truth, and of inattentive ones, whatever the truth."""
        starts = self.emission.offsets.astype(np.int64)
        sizes = np.diff(np.append(starts, self.emission.n_symbols))
        reports = np.repeat(self.reports_per_answer, sizes)
        rate = self._response_rate(counts)
        attentive = Dirichlets(counts, self._base(crowd.mean, rate), crowd.strength * reports, starts)
        either = counts.sum(axis=2, keepdims=True)
        return attentive, Dirichlets(
            either, self._base(crowd.habit[None], rate), crowd.habit_strength * reports, starts
        )

    def _base(self, rows: Array, rate: Array | None) -> Array:
        """P(symbol) when answers come from these rows: symbol × row, by worker where participation is protected."""
        table, n_options = self.emission.table, self.emission.n_options
        answered: Array = (rows @ table[:n_options]).T
        if rate is not None:
            answered = rate[:, None, None] * answered + (1 - rate)[:, None, None] * table[n_options][:, None]
        return np.maximum(answered, 1e-12)

    def _response_rate(self, counts: Array) -> Array | None:
        """The share of questions that each worker answers; None where participation is not protected."""
        if not self.emission.with_empty:
            return None
        score, variance, hidden = answered_scores(self.emission)
        reports = counts.sum(axis=2)
        return shares({"hidden": reports @ hidden, "answered": reports @ (score * hidden), "noise": reports @ variance})

    def _to_answers(self, draws: Array, law: Dirichlets, rows: Array, rate: Array | None) -> Array:
        """How many of the draws are expected to come from each answer, row × answer."""
        ratio = draws / law.base
        by_symbol = ratio.sum(axis=0) if rate is None else np.einsum("wst,w->st", ratio, rate)
        answers: Array = rows * (self.emission.table[: self.emission.n_options] @ by_symbol).T
        return answers

    def _by_cell(self, table: Array, layout: Layout) -> Array:
        flat: Array = table.reshape(-1, table.shape[2]).astype(self.precision, copy=False)
        return flat if layout.cells is None else flat[layout.cells]


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalDawidSkene(IterativeMethod):
    """Variational EM for the truths, each worker's confusion and the crowd's law of confusions.

    `class_smoothing` are pseudo-questions per class. `gold` maps questions to truths that are known.

    >>> from crowdveil import Answers, Choices, Reports
    >>> crowd = [("ada", "nynyny"), ("bob", "nynyny"), ("cy", "yyyyyy")]
    >>> rows = [(worker, f"q{n}", answer) for worker, answers in crowd for n, answer in enumerate(answers)]
    >>> estimate = HierarchicalDawidSkene().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("n", "y")))))
    >>> "".join(estimate.values()), bool(estimate.skills.skill[0] > estimate.skills.skill[2])
    ('nynyny', True)
    """

    name: ClassVar[str] = "hierarchical-dawid-skene"
    summary: ClassVar[str] = "confusions around a crowd's mean, fitted by variational EM through the channel"

    max_iter: AtLeastOne = 300
    tol: Number = 1e-6
    accelerate: bool = True  # type: ignore[misc]
    class_smoothing: NotNegative = CLASS_SMOOTHING
    precision: Precision = "auto"
    gold: Mapping[Hashable, object] = field(default_factory=dict)

    def model(self, context: Context) -> HierarchicalModel:
        channels = table_channels(context.channels)
        emission = build_emission(channels, context.domain.size)
        if context.n_workers * emission.n_symbols * emission.n_options > MAX_ENTRIES:
            raise InputError(
                f"a confusion for each of {context.n_workers} workers, {emission.n_symbols} reports and"
                f" {emission.n_options} options is too large",
                fix="use one-coin or majority",
            )
        reports = np.array([1 / channel_worth(channel) for channel in channels]) if channels else np.ones(1)
        return HierarchicalModel(
            context=context,
            emission=emission,
            precision=working_precision(self.precision, context.n_reports),
            reports_per_answer=reports,
            noise=channel_noise(channels),
            # As in dawid-skene: free confusions can pass for lopsided classes.
            class_prior=self.class_smoothing * channel_noise(channels),
        )

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        model = self.model(table_context(reports, self._start(reports, start)))
        done, columns = fit_model(self, model, reports, gold_codes(self.gold, reports))
        parameters = dict(done.parameters) | {
            "confusion": model.confusions(done.parameters),
            "classes": np.exp(done.parameters["log_classes"]),
        }
        return build_estimate(self, model, reports, done, columns, start, parameters=parameters)

    def tally(self, rows: Rows, columns: Columns, context: Context) -> Statistics:
        return skill_tally(rows, columns, context)

    def closing(self, parameters: Parameters, tally: Statistics, context: Context) -> Closing:
        confusion = self.model(context).confusions(parameters)
        right = np.einsum("wtt,t->w", confusion, np.exp(parameters["log_classes"]))
        skills = choice_skills(np.clip(right, 0.0, 1.0), tally, "the probability of a right answer")
        return Closing(skills, choice_judgement(tally, context, posterior_power=posterior_power(parameters)))

    def _start(self, reports: Reports, start: Estimate | None) -> Parameters:
        """An earlier estimate's parameters; of a worker it did not know, nothing is known."""
        known = warm_start_parameters(self, start, reports, *HierarchicalModel.by_worker, *HierarchicalModel.shared)
        if not known:
            return {}
        counts = known["counts"]
        if counts.shape[1] != build_emission(table_channels(reports.channels), reports.domain.size).n_symbols:
            return {}
        carried = align_parameters(start, "counts", reports, np.zeros(counts.shape[1:]))
        return {"counts": carried} | {name: known[name] for name in HierarchicalModel.shared}
