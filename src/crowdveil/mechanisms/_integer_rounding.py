"""From probabilities to an integer table whose exact ε is checked: what the mechanisms on scales share."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import Channel
from crowdveil.channel.encoding import Table, integer_row, mean_row
from crowdveil.domain import Domain, Scale
from crowdveil.errors import UnservableError
from crowdveil.exact import decimal_text

BITS = 64

# Tables are built for this share of the requested ε, so that rounding to integers cannot lift them above it.
BELOW = 1 - 1e-7


def require_scale(domain: Domain, name: str) -> Scale:
    """The scale of a mechanism that needs one; options have no order for it to use."""
    if not isinstance(domain, Scale):
        raise UnservableError(
            f"mechanism {name} needs a scale of levels; got options", fix="use randomized-response for options"
        )
    return domain


def at_most(limit: int, size: int, *, name: str, what: str, instead: str) -> None:
    """Refuse what would not fit, and name what would."""
    if size > limit:
        raise UnservableError(f"mechanism {name} serves at most {limit} {what}; got {size}", fix=f"use {instead}")


def servable(epsilon: float, n_inputs: int, *, least: float, most: float, name: str) -> None:
    """Refuse an ε at which a table's numbers could not be told apart, or would be too large to be spelled."""
    if epsilon > most:
        raise UnservableError(
            f"mechanism {name} serves ε up to {most:g}; got {epsilon:g}", fix="use randomized-response"
        )
    if epsilon < least:
        raise UnservableError(
            f"mechanism {name} cannot keep ε {epsilon:g} with {n_inputs} inputs", fix="use randomized-response"
        )


def verify_epsilon(channel: Channel, epsilon: float, *, name: str) -> Channel:
    """The channel, once its exact ε is known not to exceed the request."""
    if channel.epsilon > epsilon:
        raise UnservableError(
            f"mechanism {name} cannot keep ε {epsilon:g} with {len(channel.inputs)} inputs; its table needs "
            f"ε {channel.epsilon:g}",
            fix="use randomized-response",
        )
    return channel


def table_channel(
    symbols: tuple[str | None, ...], outputs: Sequence[str], probabilities: NDArray[np.float64]
) -> Channel:
    """Round each level's probabilities to weights of at least 1; ∅, the last symbol if there, gets their mean."""
    rows = np.array([integer_row(row.tolist(), BITS) for row in probabilities], dtype=np.uint64)
    if symbols[-1] is None:
        rows = np.vstack([rows, mean_row(rows, BITS)])
    return Channel(symbols, tuple(outputs), BITS, "prefix", Table(rows))


def within_ratio(probabilities: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """The nearest table whose columns keep the ratio e^ε: what stands too low is raised, then rows are normalised.

    A solver keeps a constraint only to its own tolerance; each round shrinks the violation, so a few suffice.
    """
    table = probabilities
    for _ in range(50):
        floor = table.max(axis=0) * np.exp(-epsilon)
        if (table >= floor).all():
            break
        table = np.maximum(table, floor * (1 + 1e-12))
        table = table / table.sum(axis=1, keepdims=True)
    return table


def decimal_outputs(scale: Scale, units: NDArray[np.float64]) -> tuple[list[str], NDArray[np.float64]]:
    """Numbers on [-1, 1] (and beyond) as decimal texts on the scale, and the numbers these texts really stand for.

    Twelve digits after the leading one of half the range: far finer than any noise, and exact in both languages.
    """
    half, middle = (scale.high - scale.low) / 2, (scale.high + scale.low) / 2
    resolution = Decimal(1).scaleb(half.adjusted() - 12)
    values = [(middle + half * Decimal(unit)).quantize(resolution) for unit in units.tolist()]
    back = np.array([float((value - middle) / half) for value in values])
    return [decimal_text(value) for value in values], back


def level_units(scale: Scale) -> NDArray[np.float64]:
    """The levels mapped to [-1, 1]."""
    return np.linspace(-1.0, 1.0, scale.size)
