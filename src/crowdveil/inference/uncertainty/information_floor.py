"""The floor beside an estimate of a method that has no prior to return: it says when the reports hold no more.

Everything it needs is a tally, sums over rows that add from block to block, so that every engine says the same.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.bounds.information import fano_floor, scale_floor
from crowdveil.channel import Channel
from crowdveil.domain import Domain, Scale
from crowdveil.estimate import Floor, Skills
from crowdveil.inference.kernels.bincount import count_codes, sum_by_code
from crowdveil.inference.observations.debiasing import channel_worth, table_channels
from crowdveil.inference.observations.numeric import (
    domain_middle,
    noise_of_channel,
    pooled_variance,
    read_numbers,
    shrunk,
    sums,
)
from crowdveil.inference.protocols import Columns, Context, Judgement, Rows, Statistics
from crowdveil.inference.uncertainty.parameter_variance import as_known
from crowdveil.inference.uncertainty.summaries import on_simplex, wilson

_MAX_LEVELS = 256
_TOO_LITTLE = "the reports cannot say more than knowing the classes' shares or the crowd's spread would"


def choice_tally(rows: Rows, columns: Columns, context: Context) -> Statistics:
    """Votes by option (the posterior stands for them, where a question has reports) and reports by channel."""
    votes = columns.get("votes", columns["posterior"])
    return {
        "votes": votes.sum(axis=0, dtype=np.float64, where=(columns["value"] >= 0)[:, None]),
        "by_channel": count_codes(rows.channel, len(context.channels)).astype(np.float64),
    }


def skill_tally(rows: Rows, columns: Columns, context: Context) -> Statistics:
    """The same, and how many unprotected answers to questions with known truths each worker's reports are `worth`."""
    known = as_known(columns["posterior"])
    worth = np.array([channel_worth(channel) for channel in table_channels(context.channels)])
    by_worker = sum_by_code(
        rows.worker, lambda part: worth[rows.channel[part]] * known[rows.question[part]], context.n_workers
    )
    return choice_tally(rows, columns, context) | {"worth": by_worker}


def choice_skills(skill: NDArray[np.float64], tally: Statistics, meaning: str) -> Skills:
    """Skills that are shares, with the interval of as many answers as the reports are worth."""
    low, high = wilson(skill, tally["worth"])
    return Skills(np.arange(len(skill)), skill, low, high, meaning)


def choice_judgement(tally: Statistics, context: Context, **facts: object) -> Judgement:
    """The least error rate that any method could have; a warning where that is no gain."""
    by_channel = tally["by_channel"]
    if not by_channel.sum():
        return Judgement(facts=facts)
    channels = table_channels(context.channels)
    shares = on_simplex(tally["votes"][None])[0]
    # Noise alone makes debiased votes unanimous, and nobody could err about those: shares are no surer than the answers
    # that the reports are worth.
    worth = float(by_channel @ np.array([channel_worth(channel) for channel in channels]))
    classes = (worth * shares + 1) / (worth + len(shares))
    return replace(_diagnose(fano_floor(channels, by_channel / max(context.n_questions, 1), classes)), facts=facts)


def number_tally(rows: Rows, columns: Columns, context: Context, *, as_answers: bool) -> Statistics:
    """By worker: numbers and their squared distance from the values; the values' own mean and spread."""
    numbers = read_numbers(rows, context.channels, context.domain, as_answers=as_answers)
    residual = numbers.value - numbers.share * columns["value"][numbers.question]
    known = columns["value"][np.isfinite(columns["value"])] - domain_middle(context.domain)
    return {
        "count": sums(numbers.worker, None, context.n_workers),
        "squares": sums(numbers.worker, residual**2, context.n_workers),
        "by_channel": count_codes(rows.channel, len(context.channels)).astype(np.float64),
        "known": np.array([len(known), known.sum(), (known**2).sum()]),
    }


def number_judgement(tally: Statistics, context: Context) -> Judgement:
    """The least standard deviation that any method could have from workers who err as these do."""
    n_known, total, squares = tally["known"].tolist()
    if n_known < 2:
        return Judgement()
    domain, channels = context.domain, [channel for channel in context.channels if isinstance(channel, Channel)]
    counts = tally["by_channel"] / n_known
    noise = np.array([noise_of_channel(channel, domain) for channel in context.channels])
    # What the reports spread more than their channels explain is the workers' own.
    worker_variance = np.maximum(_variances(tally, domain) - np.average(noise, weights=counts), _rounding(domain))
    centre = total / n_known
    spread = math.sqrt(max(squares / n_known - centre**2, 0.0))
    if len(channels) == len(counts) and isinstance(domain, Scale) and domain.size <= _MAX_LEVELS:
        crowd: dict[str, Any] = {
            "sigmas": np.sqrt(worker_variance),
            "weights": np.full(len(worker_variance), 1 / len(worker_variance)),
        }
        # Even if everybody had answered, where that is hidden.
        truths: dict[str, Any] = {"share": 1.0, "centre": centre + domain_middle(domain), "spread": spread}
        return _diagnose(scale_floor(channels, counts, domain, **crowd, **truths))
    information = sum(
        float(count * np.mean(1 / (worker_variance + each))) for count, each in zip(counts, noise, strict=True)
    )
    smallest = 1 / math.sqrt(max(information, 1e-300))
    sentence = (
        f"the least standard deviation any method could have is {smallest:.3g}, without these reports {spread:.3g}"
    )
    return _diagnose(Floor(smallest, spread, smallest < spread, sentence))


def _variances(tally: Statistics, domain: Domain) -> NDArray[np.float64]:
    """The variances of the workers' reports around the values: nine that stand for all of them."""
    squares, count = tally["squares"], tally["count"]
    variance = shrunk(squares, count, pooled_variance(squares, count, domain))
    quantiles: NDArray[np.float64] = np.quantile(variance[count > 0], np.linspace(0.05, 0.95, 9))
    return quantiles


def _diagnose(floor: Floor) -> Judgement:
    if floor.informative:
        return Judgement(floor)
    sentence = f"{floor.sentence.split(':')[0]}: {_TOO_LITTLE}"
    return Judgement(replace(floor, sentence=sentence), (sentence,))


def _rounding(domain: Domain) -> float:
    """The variance that rounding to levels alone brings."""
    step = float(domain.step) if isinstance(domain, Scale) else 0.0
    return step**2 / 12 or 1e-12
