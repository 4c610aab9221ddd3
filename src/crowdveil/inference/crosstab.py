"""Cross-tabulation of two questions that the same workers answered, each through a channel of their own.

The table's cells are shares of the workers who answered both questions: by maximum likelihood with profile-likelihood
intervals, and by plain inversion of the product channel beside it (`joint_distribution`).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Domain
from crowdveil.errors import InputError
from crowdveil.inference.joint_distribution import (
    Difference,
    Fit,
    JointDistribution,
    Share,
    independent_channels,
    joint_patterns,
)
from crowdveil.inference.uncertainty.summaries import LEVEL, QUANTILE
from crowdveil.reports import Reports

Array = NDArray[Any]
SPARSE_COUNT = 5
"""Expected answers below which a cell is called sparse: the usual rule for χ² approximations (Cochran 1954)."""


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Estimates with the bounds of their intervals, in arrays of one shape."""

    estimate: Array
    low: Array
    high: Array


@dataclass(frozen=True, slots=True, eq=False)
class Crosstab:
    """Shares of the pairs of answers; `cells` and `inversion` are row option × column option.

    `conditional` holds the shares of the column options among the workers of each row option. `sparse` marks cells that
    fewer than five workers are expected to be in. `n_workers` have a report about both questions.
    """

    rows: Hashable
    columns: Hashable
    row_options: tuple[str, ...]
    column_options: tuple[str, ...]
    n_workers: int
    cells: Interval
    inversion: Interval
    row_shares: Interval
    column_shares: Interval
    conditional: Interval
    sparse: Array
    warnings: tuple[str, ...]
    distribution: JointDistribution
    fit: Fit
    level: float = LEVEL

    def difference(self, first: str, second: str) -> Interval:
        """Conditional shares of two row options, the first minus the second, with profile-likelihood intervals."""
        codes = [_option(option, self.row_options, self.rows) for option in (first, second)]
        if codes[0] == codes[1]:
            raise InputError(f"two different groups must be compared; got {first!r} twice", fix="name another one")
        shares = [conditional_shares(self.distribution.shape, code) for code in codes]
        return _profile(self.distribution, Difference(shares[0], shares[1]), self.fit, (len(self.column_options),))


def crosstab(reports: Reports, rows: Hashable, columns: Hashable, *, column_reports: Reports | None = None) -> Crosstab:
    """Joint distribution of the answers to two questions, over the workers who have a report about both.

    `column_reports` is where the second question stands if it has other options than the first: a table of reports
    has one domain.

    >>> from crowdveil import Answers, Choices
    >>> answers = [("ada", "member", "yes"), ("ada", "vote", "yes"), ("bob", "member", "no"), ("bob", "vote", "no"),
    ...            ("cy", "member", "yes"), ("cy", "vote", "no"), ("dan", "member", "yes"), ("dan", "vote", "yes")]
    >>> table = crosstab(Reports.unprotected(Answers.from_rows(answers, Choices(("no", "yes")))), "member", "vote")
    >>> table.cells.estimate.round(3).tolist()
    [[0.25, 0.0], [0.25, 0.5]]
    """
    other = reports if column_reports is None else column_reports
    if other is reports and rows == columns:
        raise InputError(f"rows and columns must be two questions; got {rows!r} twice", fix="name another one")
    distribution = joint_distribution(reports, rows, other, columns)
    shape = distribution.shape
    best = distribution.maximum_likelihood()
    cells = _profile(distribution, cell_shares(shape), best, shape)
    row_shares = _profile(distribution, margin_shares(shape, axis=0), best, shape[:1])
    column_shares = _profile(distribution, margin_shares(shape, axis=1), best, shape[1:])
    conditional = _profile(distribution, conditional_shares(shape), best, shape)
    raw, covariance = distribution.inversion()
    reach = QUANTILE * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    # An unbiased share may be negative; its interval is that of the share it estimates, inside [0, 1].
    inversion = Interval(
        raw.reshape(shape),
        np.clip(raw - reach, 0.0, 1.0).reshape(shape),
        np.clip(raw + reach, 0.0, 1.0).reshape(shape),
    )
    sparse = cells.estimate * distribution.n_workers < SPARSE_COUNT
    return Crosstab(
        rows,
        columns,
        reports.domain.symbols,
        other.domain.symbols,
        distribution.n_workers,
        cells,
        inversion,
        row_shares,
        column_shares,
        conditional,
        sparse,
        _warnings(reports.domain, rows, row_shares, sparse, best),
        distribution,
        best,
    )


def joint_distribution(
    row_reports: Reports, rows: Hashable, column_reports: Reports, columns: Hashable
) -> JointDistribution:
    """The likelihood of the pairs of reports of the workers who have both."""
    worker, report, channel, tables = [], [], [], []
    for reports, question in ((row_reports, rows), (column_reports, columns)):
        chosen = _rows_about(reports, question)
        worker.append(reports.workers[reports.worker[chosen]].astype(str))
        report.append(reports.report[chosen])
        channel.append(reports.channel[chosen])
        tables.append(independent_channels(reports))
    _, left, right = np.intersect1d(worker[0], worker[1], assume_unique=True, return_indices=True)
    if not len(left):
        raise InputError(
            f"no worker has a report about both {rows!r} and {columns!r}", fix="choose questions of one study"
        )
    patterns = joint_patterns(
        (report[0][left], report[1][right]), (channel[0][left], channel[1][right]), (tables[0], tables[1])
    )
    return JointDistribution((row_reports.domain.size, column_reports.domain.size), patterns)


def _rows_about(reports: Reports, question: Hashable) -> Array:
    codes = np.flatnonzero(reports.questions.astype(str) == str(question))
    chosen = np.flatnonzero(np.isin(reports.question, codes))
    if not len(chosen):
        raise InputError(f"there is no report about the question {question!r}", fix="check the question's id")
    # Ids are compared as text, because one of two tables may hold numbers.
    names, times = np.unique(reports.workers[reports.worker[chosen]].astype(str), return_counts=True)
    if (times > 1).any():
        repeated = str(names[times.argmax()])
        raise InputError(
            f"a worker must have one report about a question; {repeated!r} has several about {question!r}",
            fix="keep one of them",
        )
    return chosen


def cell_shares(shape: tuple[int, int]) -> Share:
    """The share of each cell, row by row."""
    n_cells = shape[0] * shape[1]
    return Share(np.eye(n_cells, dtype=np.bool_), np.ones((n_cells, n_cells), dtype=np.bool_))


def margin_shares(shape: tuple[int, int], *, axis: int) -> Share:
    """The share of each row option (axis 0) or column option (axis 1)."""
    part = np.indices(shape)[axis].ravel() == np.arange(shape[axis])[:, None]
    return Share(part, np.ones_like(part))


def conditional_shares(shape: tuple[int, int], row: int | None = None) -> Share:
    """The share of each column option within each row option, or within one of them."""
    in_row = np.repeat(margin_shares(shape, axis=0).part, shape[1], axis=0)
    part = np.eye(shape[0] * shape[1], dtype=np.bool_)
    chosen = slice(None) if row is None else slice(row * shape[1], (row + 1) * shape[1])
    return Share(part[chosen], in_row[chosen])


def _profile(
    distribution: JointDistribution, quantity: Share | Difference, best: Fit, shape: tuple[int, ...]
) -> Interval:
    low, high = distribution.interval(quantity, best)
    return Interval(quantity.estimate(best.cells).reshape(shape), low.reshape(shape), high.reshape(shape))


def _option(option: str, options: tuple[str, ...], question: Hashable) -> int:
    if option not in options:
        raise InputError(f"{option!r} is no option of {question!r}", fix=f"choose one of {', '.join(options)}")
    return options.index(option)


def _warnings(domain: Domain, rows: Hashable, shares: Interval, sparse: Array, best: Fit) -> tuple[str, ...]:
    empty = [name for name, low in zip(domain.symbols, shares.low, strict=True) if low <= 0]
    warnings = []
    if empty:
        warnings.append(
            f"these reports do not rule out that nobody answered {', '.join(map(repr, empty))} to {str(rows)!r}: "
            "shares within those groups say little"
        )
    if sparse.any():
        warnings.append(f"{int(sparse.sum())} of {sparse.size} cells are sparse: fewer than {SPARSE_COUNT} workers")
    if not best.converged:
        warnings.append("maximum likelihood has not converged; read the intervals, not the estimates")
    return tuple(warnings)
