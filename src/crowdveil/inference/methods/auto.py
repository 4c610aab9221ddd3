"""Auto: the method that suits the domain and the channels, and the reason in words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from crowdveil.channel import Channel
from crowdveil.domain import Scale
from crowdveil.estimate import Estimate
from crowdveil.inference.base import Method
from crowdveil.inference.engine.blocks import table_context
from crowdveil.inference.methods.channel_bp import ChannelBP
from crowdveil.inference.methods.channel_em import ChannelEM
from crowdveil.inference.methods.dawid_skene import DawidSkene
from crowdveil.inference.methods.majority import Majority
from crowdveil.inference.methods.mean import Mean
from crowdveil.inference.methods.weighted_mean import WeightedMean
from crowdveil.inference.observations.likelihood import MAX_OPTIONS
from crowdveil.inference.protocols import Context
from crowdveil.reports import Reports

_PER_OPTION = 8
"""Answers a worker needs for each option before a whole confusion matrix can be learned from them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto(Method):
    """Fits the method that suits the reports; the estimate bears that method's name, its first warning says why.

    >>> from crowdveil import Answers, Choices, Reports
    >>> rows = [("ada", "q1", "yes"), ("bob", "q1", "yes"), ("cy", "q1", "no")]
    >>> Auto().fit(Reports.unprotected(Answers.from_rows(rows, Choices(("no", "yes"))))).warnings[0]
    'auto chose channel-bp: options, and few answers per worker'
    """

    name: ClassVar[str] = "auto"
    summary: ClassVar[str] = "the method that suits the domain and the channels; says which and why"

    def fit(self, reports: Reports, start: Estimate | None = None) -> Estimate:
        method, why = choose(table_context(reports), lambda: _per_worker(reports))
        estimate = method.fit(reports, start)
        return add_reason(estimate, why)


def add_reason(estimate: Estimate, why: str) -> Estimate:
    """The estimate of the method that was chosen, and the reason."""
    warnings = (f"auto chose {estimate.method}: {why}", *estimate.warnings)
    reason = {"chosen_by": Auto.name, "why": why}
    return replace(estimate, warnings=warnings, provenance=dict(estimate.provenance) | reason)


def choose(context: Context, per_worker: Callable[[], float]) -> tuple[Method, str]:
    """The method and the reason; `per_worker`, the median number of answers, is only asked for where it matters."""
    if not all(isinstance(channel, Channel) for channel in context.channels):
        return WeightedMean(), "reports are numbers with noise, which have no table"
    size = context.domain.size
    if isinstance(context.domain, Scale):
        if size > MAX_OPTIONS:
            return Mean(), f"a scale of more than {MAX_OPTIONS} levels"
        if not any(channel.guarantee.protected for channel in context.channels):
            return WeightedMean(), "a scale without privacy, where a weighted mean assumes the least of the answers"
        return ChannelEM(), "a scale, whose channels are known"
    if size > MAX_OPTIONS:
        return Majority(), f"more than {MAX_OPTIONS} options"
    if any(channel.guarantee.protected for channel in context.channels):
        return ChannelBP(), "options, whose channels are known and add noise"
    if context.n_reports and per_worker() >= _PER_OPTION * size:
        return DawidSkene(), "options without privacy, and enough answers per worker for whole confusion matrices"
    return ChannelBP(), "options, and few answers per worker"


def _per_worker(reports: Reports) -> float:
    answers = np.bincount(reports.worker, minlength=1)
    return float(np.median(answers[answers > 0]))
