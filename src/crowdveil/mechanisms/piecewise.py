"""The piecewise mechanism as a finite table, with Duchi's and the hybrid as variants (Wang et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, expm1, tanh
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.channel import MAX_TABLE_INPUTS, Channel
from crowdveil.domain import Domain
from crowdveil.mechanisms._integer_rounding import (
    BELOW,
    at_most,
    decimal_outputs,
    level_units,
    require_scale,
    servable,
    table_channel,
    verify_epsilon,
)
from crowdveil.mechanisms.base import EpsilonMechanism

Variant: TypeAlias = Literal["piecewise", "duchi", "hybrid"]

# Beyond, the pieces around the levels, 2·e^(−ε/2) wide, are lost in rounding, and reports would tell nothing.
# Below, noise is so wide that its numbers have more digits than are spelled.
LEAST_EPSILON, MAX_EPSILON = 1e-12, 50.0
# Below this ε the hybrid is Duchi's mechanism alone (Wang et al. 2019, §III-C).
_HYBRID_FROM = 0.61


@dataclass(frozen=True, slots=True, kw_only=True)
class Piecewise(EpsilonMechanism):
    """Report a number near the level most of the time: an unbiased report whose mean is the level.

    The paper's report is a real number. Between the points where some level's density jumps, the densities of all
    levels are constant; each such piece becomes one output, spelled by its middle. Nothing is lost: within a piece
    no level can be distinguished from another, the mean stays exact and the variance falls.

    >>> from crowdveil import Scale
    >>> Piecewise(epsilon=1, variant="duchi").channel(Scale(0, 2)).outputs
    ('-1.163953597873', '3.163953597873')
    """

    name: ClassVar[str] = "piecewise"
    summary: ClassVar[str] = "report a number around the level, unbiased; variants duchi and hybrid"
    variant: Variant = "piecewise"

    def channel(self, domain: Domain) -> Channel:
        scale, symbols = require_scale(domain, self.name), self.symbols(domain)
        at_most(MAX_TABLE_INPUTS, len(symbols), name=self.name, what="inputs", instead="discrete-laplace")
        servable(self.epsilon, len(symbols), least=LEAST_EPSILON, most=MAX_EPSILON, name=self.name)
        values, table = _TABLES[self.variant](level_units(scale), self.epsilon * BELOW)
        outputs, _ = decimal_outputs(scale, values)
        return verify_epsilon(table_channel(symbols, outputs, table), self.epsilon, name=self.name)


_Table: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]


def _piecewise(levels: NDArray[np.float64], epsilon: float) -> _Table:
    """Values and probabilities, level × piece.

    With C = (e^(ε/2) + 1)/(e^(ε/2) − 1) the report of t is uniform on [l, l + C − 1], l = (C + 1)/2·t − (C − 1)/2,
    with probability e^(ε/2)/(e^(ε/2) + 1), and else uniform on the rest of [−C, C]: two densities with ratio e^ε.
    """
    c = 1 / tanh(epsilon / 4)
    lower = (c + 1) / 2 * levels - (c - 1) / 2
    upper = lower + c - 1
    edges = _distinct(np.concatenate([[-c, c], lower, upper]), c)
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    near = (middles > lower[:, None]) & (middles < upper[:, None])
    # The two densities up to a common factor; rows are normalised when they become integers.
    table = widths * np.where(near, 1.0, exp(-epsilon))
    return middles, table / table.sum(axis=1, keepdims=True)


def _distinct(edges: NDArray[np.float64], c: float) -> NDArray[np.float64]:
    """Edges in order, those that differ only by rounding taken as one."""
    ordered: NDArray[np.float64] = np.sort(np.clip(edges, -c, c))
    distinct: NDArray[np.float64] = ordered[np.append(True, np.diff(ordered) > 1e-13 * c)]
    return distinct


def _duchi(levels: NDArray[np.float64], epsilon: float) -> _Table:
    """Two outputs ±C, C = (e^ε + 1)/(e^ε − 1), with P(+C) = 1/2 + t/(2C)."""
    c = 1 / tanh(epsilon / 2)
    up = (1 + levels / c) / 2
    # At the ends 1 − t/C would cancel; 1/(e^ε + 1) is the same number without loss.
    down = np.where(levels == levels.max(), exp(-epsilon) / (1 + exp(-epsilon)), 1 - up)
    up = np.where(levels == levels.min(), exp(-epsilon) / (1 + exp(-epsilon)), up)
    return np.array([-c, c]), np.column_stack([down, up])


def _hybrid(levels: NDArray[np.float64], epsilon: float) -> _Table:
    """Piecewise with probability 1 − e^(−ε/2), else Duchi; the two never share an output, so ε is the larger's."""
    if epsilon <= _HYBRID_FROM:
        return _duchi(levels, epsilon)
    share = -expm1(-epsilon / 2)
    values, table = _piecewise(levels, epsilon)
    duchi_values, duchi_table = _duchi(levels, epsilon)
    return np.append(values, duchi_values), np.hstack([share * table, (1 - share) * duchi_table])


_TABLES = {"piecewise": _piecewise, "duchi": _duchi, "hybrid": _hybrid}
