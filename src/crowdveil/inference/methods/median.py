"""Median: the middle of the reports; under a channel with a table, of the answers' debiased distribution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from crowdveil.channel import Channel
from crowdveil.domain import Domain
from crowdveil.inference.methods.location import Centring
from crowdveil.inference.models.question_level import Bounds, Centres, Cut
from crowdveil.inference.observations.debiasing import answering, channel_worth, table_channels, unbiased_votes
from crowdveil.inference.observations.numeric import (
    Numbers,
    count_by_channel,
    domain_bounds,
    half_step,
    noise_at,
    read_numbers,
    sums,
)
from crowdveil.inference.protocols import Context, Rows
from crowdveil.inference.uncertainty.means import rounding
from crowdveil.inference.uncertainty.summaries import QUANTILE, on_simplex

Array = NDArray[Any]
_FINER = 8
"""Numbers looked at between two levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Median(Centring):
    """The middle answer, or the average of the two middle ones.

    >>> from crowdveil import Answers, Reports, Scale
    >>> rows = [("ada", "q1", 1), ("bob", "q1", 2), ("cy", "q1", 5)]
    >>> Median().fit(Reports.unprotected(Answers.from_rows(rows, Scale(1, 5)))).values()
    [2.0]
    """

    name: ClassVar[str] = "median"
    summary: ClassVar[str] = "the middle of the answers' distribution, the channel's noise taken out"

    def centres(self, rows: Rows, context: Context) -> Centres | Bounds:
        """The middles; under noise with a table the interval, too."""
        tables = [channel for channel in context.channels if isinstance(channel, Channel)]
        noisy = not all(channel.is_identity for channel in tables)
        if noisy and len(tables) == len(context.channels) and not self.as_answers:
            return _debias_bounds(rows, context)
        numbers = read_numbers(rows, context.channels, context.domain, as_answers=self.as_answers)
        return _middles(numbers, rows.n_questions, self._error(numbers, rows, context), context.domain)

    def _error(self, numbers: Numbers, rows: Rows, context: Context) -> Array | float:
        """The variance of the error of rounding in a middle answer; of numbers with noise, as that of their mean."""
        if rows.number is None:
            # A median of levels is a level, or between two: the truth may lie anywhere within half a step.
            return half_step(context.domain) ** 2 / 3
        n, low, high = rows.n_questions, *domain_bounds(context.domain)
        count = np.maximum(sums(numbers.question, None, n), 1)
        mean = sums(numbers.question, numbers.value, n) / count
        squares = sums(numbers.question, (numbers.value - mean[numbers.question]) ** 2, n)
        noise = noise_at(
            np.clip(mean, low, high), count_by_channel(rows, len(context.channels)), context.channels, context.domain
        )
        return rounding(context.domain, squares / np.maximum(count - 1, 1) - noise)


def _middles(numbers: Numbers, n_questions: int, error: Array | float, domain: Domain) -> Centres:
    """The middle answers; how they vary shows in the distance of two answers around them."""
    count = np.bincount(numbers.question, minlength=n_questions)
    rank, worth, freedom = _two_around(count)
    ranked = numbers.value[np.lexsort((numbers.value, numbers.question))] if len(numbers.value) else np.zeros(1)
    first = np.cumsum(count) - count
    lower, upper, left, right = (
        ranked[np.clip(first + rank_index, 0, len(ranked) - 1)]
        for rank_index in ((count - 1) // 2, count // 2, rank - 1, count - rank)
    )
    value = np.where(count > 0, (lower + upper) / 2, 0.0)
    squares = freedom * count * worth * (right - left) ** 2
    # Where the middle is between two answers, there are two errors of rounding, and they halve in the average.
    levels = np.ndim(error) == 0
    rounded = error * np.where((lower == upper) | (not levels), 1.0, 0.5)
    scale, cut = 1 / np.maximum(count, 1), _censored_spacing(numbers, count, left, right, domain) if levels else None
    return Centres(value, squares, freedom, scale, count > 0, rounded=rounded, levels=worth if levels else 0.0, cut=cut)


def _censored_spacing(numbers: Numbers, count: Array, left: Array, right: Array, domain: Domain) -> Cut:
    """Where one of the two answers is at an end of the scale, all answers say how far apart they would have been."""
    n, (low, high) = len(count), domain_bounds(domain)
    mean = sums(numbers.question, numbers.value, n) / np.maximum(count, 1)
    squares = sums(numbers.question, (numbers.value - mean[numbers.question]) ** 2, n)
    here = (count > 1) & ((left <= low) | (right >= high))
    return Cut(here, mean, squares, np.maximum(count - 1.0, 0.0), count * np.pi / (2 * count + np.pi - 2))


def _two_around(count: Array) -> tuple[Array, Array, Array]:
    """By number of answers: the rank of one of two answers around the median, and what their distance tells.

    They stand √n ranks from the middle (McKean & Schrader 1984; Price & Bonett 2001). `worth` turns their squared
    distance into the median's variance: both are known for normal answers, and close to the middle one law is much like
    another. The distance of two order statistics has a Beta law where answers are evenly dense, which says how many
    degrees of freedom its square has.
    """
    n = np.maximum(count, 2)
    rank = np.maximum(np.rint((n + 1) / 2 - np.sqrt(n)), 1).astype(np.int64)
    between = n + 1 - 2 * rank
    chance = (n + 1 - between) / (between * (n + 2))
    distance = 2 * ndtri((n - rank + 0.625) / (n + 0.25))
    worth = np.pi / (2 * n + np.pi - 2) / distance**2 / (1 + chance)
    return np.where(count > 1, rank, 1), worth, np.where(count > 1, 0.5 / chance, 0.0)


def _debias_bounds(rows: Rows, context: Context) -> Bounds:
    channels = table_channels(context.channels)
    votes = unbiased_votes(rows, channels, rows.n_questions, context.domain.size)
    shares = on_simplex(votes)
    numbers = context.domain.numbers
    order = np.argsort(numbers)
    below = np.cumsum(shares[:, order], axis=1)
    # Shares that reach one half exactly leave the middle open: the average of both sides, as for plain answers.
    median = np.argmax(below >= 0.5 - 1e-9, axis=1)
    lower = numbers[order][median]
    upper = numbers[order][np.argmax(below > 0.5 + 1e-9, axis=1)]
    answered = np.bincount(rows.question, minlength=rows.n_questions) > 0
    places, scores = _places(context.domain)
    distance = votes @ scores / np.sqrt(np.maximum(_variance(rows, context, votes, scores), 1e-12))
    value = _possible(places, distance, (lower + upper) / 2)
    low, high = _to_the_ends(*_woodruff(places, distance), context.domain)
    return Bounds(value, low, high, *_around(votes[:, order], median), answered)


def _to_the_ends(low: Array, high: Array, domain: Domain) -> tuple[Array, Array]:
    """Bounds next to an end of the scale, moved there.

    Who answers with the last level may have meant anything beyond it, so those answers do not spread evenly around it:
    that a median lies within half a step of the end is all they tell.
    """
    first, last = domain_bounds(domain)
    half = half_step(domain)
    return np.where(low < first + half, first, low), np.where(high > last - half, last, high)


def _possible(places: Array, distance: Array, value: Array) -> Array:
    """The number next to each value between the first and the last that may be the median."""
    away = np.abs(distance)
    held = away <= np.maximum(QUANTILE, away.min(axis=1, keepdims=True))
    first, last = held.argmax(axis=1), len(places) - 1 - held[:, ::-1].argmax(axis=1)
    possible: Array = np.clip(value, places[first], places[last])
    return possible


def _woodruff(places: Array, distance: Array) -> tuple[Array, Array]:
    """The numbers below which half of the answers may lie, by what the channels' noise allows (Woodruff 1952).

    Answers spread evenly around their level, so that the share below any number is a sum of votes, unbiased as they
    are; at the median it is one half up to a noise whose variance the channels tell. `distance` is how many standard
    deviations it lies from one half at each place. The true share only rises with the number: where noise lets the sum
    fall, the middle between the highest so far and the lowest to come stands for it. Where it falls by more than noise
    would be allowed for, nothing tells the numbers' order, and all from the first to the last possible one are held.
    """
    so_far = np.maximum.accumulate(distance, axis=1)
    to_come = np.minimum.accumulate(distance[:, ::-1], axis=1)[:, ::-1]
    torn = (so_far - to_come).max(axis=1, keepdims=True) > 2 * QUANTILE
    low, high = (np.where(torn, side, (so_far + to_come) / 2) for side in (so_far, to_come))
    return _crossing(places, low, -QUANTILE), _crossing(places, high, QUANTILE)


def _crossing(places: Array, rising: Array, height: float) -> Array:
    """Where each row reaches the height, between two places; an end of the scale where it does not."""
    after = (rising < height).sum(axis=1)
    first, last = np.maximum(after - 1, 0), np.minimum(after, len(places) - 1)
    each = np.arange(len(rising))
    start, climb = rising[each, first], rising[each, last] - rising[each, first]
    part = np.clip(np.divide(height - start, climb, out=np.zeros_like(climb), where=climb > 0), 0.0, 1.0)
    crossing: Array = places[first] + part * (places[last] - places[first])
    return crossing


def _places(domain: Domain) -> tuple[Array, Array]:
    """Numbers on the scale, and for each (option × number) how much of an answer lies below it, less one half."""
    numbers, half = domain.numbers, half_step(domain)
    low, high = domain_bounds(domain)
    places = np.linspace(low, high, _FINER * max(len(numbers) - 1, 1) + 1)
    below = np.clip((places - numbers[:, None] + half) / max(2 * half, 1e-12), 0.0, 1.0)
    return places, below - 0.5


def _around(votes: Array, median: Array) -> tuple[Array, Array]:
    """Votes at each question's median level, and at the two levels beside it (the one, twice, at an end)."""
    each, last = np.arange(len(votes)), votes.shape[1] - 1
    left, right = np.where(median > 0, median - 1, median + 1), np.where(median < last, median + 1, median - 1)
    beside = votes[each, np.clip(left, 0, last)] + votes[each, np.clip(right, 0, last)]
    return votes[each, median], beside


def _variance(rows: Rows, context: Context, votes: Array, scores: Array) -> Array:
    """The variance of votes @ scores where their expectation is 0, question × number."""
    channels = table_channels(context.channels)
    worth = np.array([channel_worth(channel) for channel in channels])
    weights, counts = worth / worth.max(), count_by_channel(rows, len(channels))
    response_rate = answering(votes.sum(axis=1), counts, channels, weights)[:, None]
    total: Array = np.zeros((len(votes), scores.shape[1]))
    shares = on_simplex(votes)
    for channel, weight, count in zip(channels, weights, counts, strict=True):
        squares = channel.table @ (channel.votes[:, : len(scores)] @ scores) ** 2
        within = shares @ squares[: len(scores)]
        if channel.protects_participation:
            within = response_rate * within + (1 - response_rate) * squares[-1]
        total += (count * weight**2)[:, None] * within
    return total
