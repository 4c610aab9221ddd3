"""Reports as numbers: an unbiased value for each row, and what is known about a question from several of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.channel.additive_noise import NoiseRecord
from crowdveil.channel.encoding import Rotate
from crowdveil.domain import Domain, Scale
from crowdveil.errors import InputError
from crowdveil.inference.protocols import Block, Rows, Statistics
from crowdveil.reports import AnyChannel, Reports

Array = NDArray[Any]
PRIOR_FREEDOM = 4.0
"""The crowd's spread counts as much as this many answers when the spread of one question or worker is estimated."""


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """For each row `value`, whose expectation is share × answer, and `share`, whose expectation is 1 if answered.

    Without protected participation every share is 1.
    """

    question: NDArray[np.int32]
    worker: NDArray[np.int32]
    value: NDArray[np.float64]
    share: NDArray[np.float64]


def kernel_columns(rows: Numbers) -> tuple[Array, Array, Array, Array]:
    """The columns in the order in which the loops take them."""
    return rows.question, rows.worker, rows.value, rows.share


def read_numbers(
    rows: Reports | Block, channels: tuple[AnyChannel, ...], domain: Domain, *, as_answers: bool
) -> Numbers:
    """Unbiased numbers; with `as_answers`, reports are read as if they were answers and empty ones left out."""
    value = np.zeros(len(rows)) if rows.number is None else rows.number.copy()
    share = np.ones(len(rows))
    for index, channel in enumerate(channels):
        if isinstance(channel, NoiseRecord):
            continue
        chosen = slice(None) if len(channels) == 1 else rows.channel == index
        values, shares = _output_values(channel) if as_answers else _unbiased_values(channel, domain)
        value[chosen], share[chosen] = values[rows.report[chosen]], shares[rows.report[chosen]]
    if as_answers and not share.all():
        answered = share > 0
        return Numbers(rows.question[answered], rows.worker[answered], value[answered], share[answered])
    return Numbers(rows.question, rows.worker, value, share)


def _unbiased_values(channel: Channel, domain: Domain) -> tuple[Array, Array]:
    values, _ = channel.scores(domain.numbers)
    if not channel.protects_participation:
        return values, np.ones(len(channel.outputs))
    return values, channel.scores(np.ones(domain.size))[0]


def _output_values(channel: Channel) -> tuple[Array, Array]:
    """Each output's own number; ∅ counts nothing."""
    try:
        values = [0.0 if output is None else float(output) for output in channel.outputs]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError("reports of this channel are not numbers, so they cannot be read as answers") from None
    return np.array(values), np.array([output is not None for output in channel.outputs], dtype=np.float64)


def count_by_channel(rows: Rows, n_channels: int) -> NDArray[np.float64]:
    """Reports through each channel to each question."""
    parts = [rows.question[rows.channel == index] for index in range(n_channels)]
    return np.array([sums(part, None, rows.n_questions) for part in parts]).reshape(n_channels, rows.n_questions)


def noise_at(
    value: Array, counts: Array, channels: tuple[AnyChannel, ...], domain: Domain, *, given: float = 1.0
) -> NDArray[np.float64]:
    """By question: how much one of these many reports varies because of its channel when the answer is `value`.

    Where participation is protected, that is around share × value, and `given` is the part that are answers.
    """
    total, order = np.zeros(len(value)), np.argsort(domain.numbers)
    for count, channel in zip(counts, channels, strict=True):
        if isinstance(channel, NoiseRecord):
            total += count * channel.variance
        elif not channel.is_identity:
            total += count * np.interp(value, domain.numbers[order], _noise(channel, domain, given)[order])
    noise: NDArray[np.float64] = total / np.maximum(counts.sum(axis=0), 1)
    return noise


def _noise(channel: Channel, domain: Domain, given: float) -> Array:
    if not channel.protects_participation:
        return channel.scores(domain.numbers)[1]
    values, shares = _unbiased_values(channel, domain)
    squares = (values - domain.numbers[:, None] * shares) ** 2
    noise: Array = given * (channel.table[:-1] * squares).sum(axis=1) + (1 - given) * squares @ channel.table[-1]
    return noise


def noise_of_channel(channel: AnyChannel, domain: Domain) -> float:
    """How much a report varies because of its channel, on average over the answers."""
    if isinstance(channel, NoiseRecord):
        return channel.variance
    return 0.0 if channel.is_identity else float(channel.scores(domain.numbers)[1][: channel.n_levels].mean())


def tails_at(value: Array, counts: Array, channels: tuple[AnyChannel, ...], domain: Domain) -> NDArray[np.float64]:
    """By question: the fourth cumulant of one of these many reports as far as it is due to its channel.

    Rare lies that move a number far have a large one: variances of a few reports then differ by chance, and more so
    than those of normal numbers do.
    """
    total, order = np.zeros(len(value)), np.argsort(domain.numbers)
    for count, channel in zip(counts, channels, strict=True):
        if isinstance(channel, Channel) and not channel.is_identity and not channel.protects_participation:
            total += count * np.interp(value, domain.numbers[order], _fourth(channel, domain)[order])
    tails: NDArray[np.float64] = total / np.maximum(counts.sum(axis=0), 1)
    return tails


def _fourth(channel: Channel, domain: Domain) -> Array:
    scores, variance = channel.scores(domain.numbers)
    middle = scores.mean()
    first, second, third, fourth = (_expected_value(channel, (scores - middle) ** power) for power in range(1, 5))
    cumulant: Array = fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4 - 3 * variance**2
    return cumulant


def _expected_value(channel: Channel, values: Array) -> Array:
    """By answer: what the report's value is on average."""
    if isinstance(channel.form, Rotate):
        keep, lie = (weight / 2**channel.bits for weight in (channel.form.keep, channel.form.lie))
        expected: Array = (keep - lie) * values + lie * values.sum()
    else:
        expected = channel.table @ values
    return expected


def hides(channels: tuple[AnyChannel, ...]) -> bool:
    """Whether some reports stand for no answer at all."""
    return any(isinstance(channel, Channel) and channel.protects_participation for channel in channels)


def domain_bounds(domain: Domain) -> tuple[float, float]:
    """The lowest and the highest number that can be true."""
    if isinstance(domain, Scale):
        return float(domain.low), float(domain.high)
    return float(domain.numbers.min()), float(domain.numbers.max())


def domain_middle(domain: Domain) -> float:
    """What numbers are counted from where sums of squares would lose digits far from zero."""
    low, high = domain_bounds(domain)
    return (low + high) / 2


def half_step(domain: Domain) -> float:
    """Half the distance between levels; half the smallest gap between options that are numbers."""
    if isinstance(domain, Scale):
        return float(domain.step) / 2
    gaps = np.diff(np.sort(domain.numbers))
    return float(gaps.min()) / 2 if len(gaps) else 0.0


def sums(index: Array, weights: Array | None, size: int) -> NDArray[np.float64]:
    """Σ weights by index, as floats."""
    return np.bincount(index, weights, minlength=size).astype(np.float64)


def centre(total: Array, mass: Array, domain: Domain) -> NDArray[np.float64]:
    """Total / mass within the domain; its middle where there is no mass to divide by."""
    return np.clip(ratio(total, mass, domain), *domain_bounds(domain))


def ratio(total: Array, mass: Array, domain: Domain) -> NDArray[np.float64]:
    """Total / mass as it comes, which noise may carry beyond the domain."""
    middle = np.full_like(total, domain_middle(domain))
    quotient: NDArray[np.float64] = np.divide(total, mass, out=middle, where=mass > 1e-12)
    return quotient


def pooled_variance(squares: Array, freedom: Array, domain: Domain) -> float:
    """The crowd's variance; that of knowing nothing where no question was answered twice."""
    low, high = domain_bounds(domain)
    total = float(np.sum(freedom))
    return float(np.sum(squares)) / total if total >= 1.0 else max((high - low) ** 2 / 12.0, 1e-12)


def shrunk(squares: Array, freedom: Array, crowd: float | Array, prior: float = PRIOR_FREEDOM) -> NDArray[np.float64]:
    """Variances of single questions or workers, drawn towards the crowd's, which counts as `prior` answers."""
    variance: NDArray[np.float64] = (squares + prior * crowd) / (freedom + prior)
    return variance


def variance_statistics(squares: Array, freedom: Array, tails: Array | float = 0.0) -> Statistics:
    """What `pooled` and `common_freedom` need; sums over questions that add up over blocks."""
    known = freedom >= 1.0
    by_chance = tails * freedom / (freedom + 1)
    return {
        "squares": squares.sum(),
        "freedom": freedom.sum(),
        "known": known.sum(dtype=np.float64),
        "spread": (squares[known] ** 2 / freedom[known]).sum() - by_chance.sum(),
    }


def common_freedom(statistics: Statistics, crowd: float) -> float:
    """As how many answers the crowd's variance should count: the more, the less the single variances differ.

    A variance estimated with d degrees of freedom varies by 2 / d of its square by chance, and by a (d + 1)th of the
    channels' fourth cumulant; what it varies more is how much variances really differ, 2 / (d₀ − 4) under a scaled
    inverse χ² law (moments, weighted by d).
    """
    known, freedom = float(statistics["known"]), float(statistics["freedom"])
    if known < 3 or crowd <= 0:
        return PRIOR_FREEDOM
    apart = float(statistics["spread"]) / crowd**2 - 2 * float(statistics["squares"]) / crowd + freedom - 2 * known
    return 4 + 2 / float(np.clip(apart / (freedom + 2 * known), 2e-3, 1.0))
