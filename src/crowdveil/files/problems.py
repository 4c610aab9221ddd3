"""What can be wrong with a row, in one sentence each: the same words on this machine and on a cluster."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """What is wrong, in which column, and what to do."""

    sentence: str
    field: str
    fix: str


def empty_id(name: str) -> Problem:
    return Problem(f"every row must name its {name}; got an empty cell", name, "fill it in")


def answered_twice() -> Problem:
    return Problem("this worker has answered this question in an earlier row", "question", "keep one of the rows")


def unknown_channel(n_channels: int, got: object) -> Problem:
    sentence = f"channel must be from 0 to {n_channels - 1}; got {got!r}"
    return Problem(sentence, "channel", "name a channel that travels with the file")


def unknown_report(channel: int, got: object) -> Problem:
    return Problem(
        f"report must be an output of channel {channel}; got {got!r}", "report", "check the file and its channels"
    )


def not_a_number() -> Problem:
    return Problem("report must be a finite number", "report", "check the file")


def no_rows(source: object) -> Problem:
    return Problem(f"{source} has a header but no rows", "", "give at least one row")


def no_channel_column() -> Problem:
    return Problem("the column 'channel' is missing", "", "say which channel made each report")
