"""The scale channel of least worst-case variance among unbiased ones, found by linear programming.

The construction is that of Kairouz, Oh & Viswanath (2014): for a convex goal the best private table solves a linear
program. Here the goal is the largest variance, over the levels, of a report whose mean is the level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import exp, tanh
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_matrix, hstack, identity, kron, vstack

from crowdveil.channel import Channel
from crowdveil.domain import Domain
from crowdveil.errors import UnservableError
from crowdveil.mechanisms._integer_rounding import (
    BELOW,
    at_most,
    decimal_outputs,
    require_scale,
    servable,
    table_channel,
    verify_epsilon,
    within_ratio,
)
from crowdveil.mechanisms.base import EpsilonMechanism

MAX_LEVELS = 32
# Within these the solver's tolerance still holds.
LEAST_EPSILON, MAX_EPSILON = 1e-8, 8.0

# The program's outputs: enough for 0.1 % of the optimum; finer grids only cost time.
_GRID = 81
_NEGLIGIBLE = 1e-8

_Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimalScale(EpsilonMechanism):
    """Each output is a number; its mean is the level, its worst-case variance the least that ε allows.

    On five levels at ε = 1 the worst variance on [−1, 1] is 3.98, where clamp-free Laplace noise has 8.

    >>> from crowdveil import Scale
    >>> channel = OptimalScale(epsilon=1).channel(Scale(-1, 1, 0.5))
    >>> scores, variance = channel.scores(Scale(-1, 1, 0.5).numbers)
    >>> bool(variance.max() < 4.05)
    True
    """

    name: ClassVar[str] = "optimal-scale"
    summary: ClassVar[str] = "an unbiased number with the least worst-case variance ε allows, up to 32 levels and ε 8"

    def channel(self, domain: Domain) -> Channel:
        scale, symbols = require_scale(domain, self.name), self.symbols(domain)
        instead = "piecewise up to 64 levels, discrete-laplace beyond"
        at_most(MAX_LEVELS, scale.size, name=self.name, what="levels", instead=instead)
        servable(self.epsilon, len(symbols), least=LEAST_EPSILON, most=MAX_EPSILON, name=self.name)
        values, table = _solve_table(scale.size, self.epsilon * BELOW)
        outputs, _ = decimal_outputs(scale, values)
        return verify_epsilon(table_channel(symbols, outputs, table), self.epsilon, name=self.name)


@lru_cache(maxsize=64)
def _solve_table(n_levels: int, epsilon: float) -> tuple[_Floats, _Floats]:
    """The values that are used, and the probabilities level × value."""
    levels = np.linspace(-1.0, 1.0, n_levels)
    values = _grid(levels, epsilon)
    table = _program(levels, values, epsilon)
    # By symmetry the mirrored table is as good, and so is the mean of both: it evens out the solver's rounding.
    table = np.maximum((table + table[::-1, ::-1]) / 2, 0.0)
    used = table.max(axis=0) > _NEGLIGIBLE
    table = table[:, used] / table[:, used].sum(axis=1, keepdims=True)
    return values[used], within_ratio(table, epsilon)


def _grid(levels: _Floats, epsilon: float) -> _Floats:
    """Candidate outputs: an even grid reaching beyond Duchi's ±C, C itself, and randomised response's scores.

    The last two make sure that the optimum is never worse than Duchi's mechanism or randomised response.
    """
    c = 1 / tanh(epsilon / 2)
    response = levels * (exp(epsilon) + len(levels) - 1) / (exp(epsilon) - 1)
    values = np.concatenate([np.linspace(-1.6 * c, 1.6 * c, _GRID), [-c, c], response])
    values = np.unique(np.round(values / c, 9))
    # Exactly symmetric, so that the mirrored table stands on the same outputs.
    symmetric: _Floats = (values - values[::-1]) / 2 * c
    return symmetric


def _program(levels: _Floats, values: _Floats, epsilon: float) -> _Floats:
    """Minimise t subject to: rows sum to 1; means are the levels; variances ≤ t; f_y ≤ P_xy ≤ e^ε f_y."""
    k, m = len(levels), len(values)
    size = np.abs(values).max()
    ones, cells = np.ones((1, m)), identity(k * m, format="coo")
    floor = kron(np.ones((k, 1)), identity(m))
    spread = coo_matrix(_block_rows(((values - levels[:, None]) / size) ** 2))
    upper = vstack(
        [
            hstack([-cells, floor, _empty(k * m, 1)]),
            hstack([cells, -exp(epsilon) * floor, _empty(k * m, 1)]),
            hstack([spread, _empty(k, m), -np.ones((k, 1))]),
        ]
    )
    equal = hstack([vstack([kron(identity(k), ones), kron(identity(k), values[None] / size)]), _empty(2 * k, m + 1)])
    solution = linprog(
        np.append(np.zeros(k * m + m), 1.0),
        A_ub=upper.tocsr(),
        b_ub=np.zeros(upper.shape[0]),
        A_eq=equal.tocsr(),
        b_eq=np.concatenate([np.ones(k), levels / size]),
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if solution.status != 0:
        raise UnservableError(
            f"no optimal table was found for {k} levels at ε {epsilon:g}", fix="use piecewise or randomized-response"
        )
    return np.asarray(solution.x[: k * m], dtype=np.float64).reshape(k, m)


def _block_rows(rows: _Floats) -> _Floats:
    """Row x stands in the columns of level x."""
    k, m = rows.shape
    spread = np.zeros((k, k, m))
    spread[np.arange(k), np.arange(k)] = rows
    return spread.reshape(k, k * m)


def _empty(n_rows: int, n_columns: int) -> Any:
    return coo_matrix((n_rows, n_columns))
