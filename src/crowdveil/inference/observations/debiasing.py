"""Debiased votes: how many answered each option, by exact inversion of the channels."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.errors import InputError
from crowdveil.inference.protocols import Block
from crowdveil.reports import AnyChannel, Reports

CLASS_SMOOTHING = 3.0
"""Pseudo-questions per class without privacy: chosen on simulated crowds only (docs/explain/calibration.md)."""


def table_channels(channels: tuple[AnyChannel, ...]) -> tuple[Channel, ...]:
    """The channels, all of which must have a table."""
    tables = tuple(channel for channel in channels if isinstance(channel, Channel))
    if len(tables) < len(channels):
        raise InputError(
            "this method is about options, but some reports are numbers with noise",
            fix="use mean, median, weighted-mean or population-mean",
        )
    return tables


def unbiased_votes(
    rows: Reports | Block, channels: tuple[Channel, ...], n_questions: int, n_options: int
) -> NDArray[np.float64]:
    """Unbiased votes for each question and option; ∅ has no column.

    Where channels mix, each counts by what its reports are worth: one report at a small ε must not outvote ten clear
    answers. The least noisy channel's votes count in full.
    """
    worth = np.array([channel_worth(channel) for channel in channels]) if len(channels) > 1 else np.ones(1)
    return _add_votes(rows, channels, worth / worth.max(), n_questions, n_options)


def plain_votes(
    rows: Reports | Block, channels: tuple[Channel, ...], n_questions: int, n_options: int
) -> NDArray[np.float64]:
    """Unbiased votes in which every report counts once, so that they add up to the number of answers.

    That is what a share of the people needs: weighing by worth would let those who chose little privacy speak for all.
    """
    return _add_votes(rows, channels, np.ones(len(channels)), n_questions, n_options)


def _add_votes(
    rows: Reports | Block,
    channels: tuple[Channel, ...],
    weights: NDArray[np.float64],
    n_questions: int,
    n_options: int,
) -> NDArray[np.float64]:
    if len(channels) == 1:
        return _channel_votes(rows.question, rows.report, channels[0], n_questions, n_options)
    votes = np.zeros((n_questions, n_options))
    for index, channel in enumerate(channels):
        chosen = np.flatnonzero(rows.channel == index)
        counted = _channel_votes(rows.question[chosen], rows.report[chosen], channel, n_questions, n_options)
        votes += counted * weights[index]
    return votes


def answering(
    total: NDArray[np.float64],
    counts: NDArray[np.float64],
    channels: tuple[Channel, ...],
    weights: NDArray[np.float64],
) -> NDArray[np.float64]:
    """By question: the part of the reports through channels that hide participation which are answers.

    `total` are all votes for any option, `counts` the reports by channel and question, `weights` what a report of each
    channel counts. Reports through the other channels are answers, every one of them.
    """
    hidden = np.array([channel.protects_participation for channel in channels], dtype=np.bool_)
    open_ones, others = (weights[side] @ counts[side] for side in (~hidden, hidden))
    part = np.divide(total - open_ones, others, out=np.ones_like(total), where=others > 0)
    return np.clip(part, 0.0, 1.0)


def effective_counts(rows: Reports | Block, channels: tuple[Channel, ...], n_questions: int) -> NDArray[np.float64]:
    """How many unprotected answers the reports to each question are worth, for telling two options apart.

    A share near one half has the variance 1/4 for each answer; the channel adds its own on top.
    """
    worth = np.array([channel_worth(channel) for channel in channels])
    weights = None if (worth == 1).all() else worth[rows.channel]
    return np.bincount(rows.question, weights, minlength=n_questions).astype(np.float64)


def channel_worth(channel: Channel) -> float:
    """The share of an unprotected answer that one report of the channel is worth, for telling two options apart."""
    return 0.25 / (0.25 + _noise(channel))


def channel_noise(channels: tuple[Channel, ...]) -> float:
    """How many reports make up for one unprotected answer, on average over the channels: 1 without privacy."""
    return 1.0 / float(np.mean([channel_worth(channel) for channel in channels])) if channels else 1.0


def class_pull(channels: tuple[Channel, ...], smoothing: float) -> float:
    """Pseudo-questions per class that hold the classes' shares near even ones, the more the noisier the reports are.

    EM with free shares collapses to one class when ε is small; what holds them grows as the noise's deviation does.
    """
    return smoothing * math.sqrt(channel_noise(channels))


def _noise(channel: Channel) -> float:
    """The largest variance a vote has because of the channel alone."""
    if channel.is_identity:
        return 0.0
    votes, table = channel.votes, channel.table
    return float((table @ votes**2 - (table @ votes) ** 2).max())


def _channel_votes(
    question: NDArray[np.int32], report: NDArray[np.int32], channel: Channel, n_questions: int, n_options: int
) -> NDArray[np.float64]:
    n_outputs = len(channel.outputs)
    if n_questions * n_outputs <= 4 * len(report) + 100_000:
        cells = question.astype(np.int64) * n_outputs + report
        counts = np.bincount(cells, minlength=n_questions * n_outputs).reshape(n_questions, n_outputs)
        if channel.is_identity:
            return counts[:, :n_options].astype(np.float64)
        return counts @ channel.votes[:, :n_options]
    votes = channel.votes
    columns = [np.bincount(question, votes[report, code], minlength=n_questions) for code in range(n_options)]
    return np.stack(columns, axis=1)
