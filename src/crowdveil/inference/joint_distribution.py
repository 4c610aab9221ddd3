"""The joint distribution of two answers of the same workers, by maximum likelihood through the product channel.

Two reports of one worker are independent given the two answers, so P(reports | answers) is the product of the entries
of the two channels: the Kronecker product of their tables. Shares of the cells are fitted by EM on the simplex
(Dempster, Laird & Rubin 1977; SQUAREM of Varadhan & Roland 2008). An interval holds every value that the likelihood
ratio does not refuse (profile likelihood; Wilks 1938), so it never leaves [0, 1].

Cells are pairs in which both questions were answered. Where a channel protects participation, a worker may have
answered neither or one of the two; the shares of those patterns are fitted beside the cells, separately for each
combination of protecting and open channels, because participation may differ between privacy levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from crowdveil.channel import Channel, JointChannel
from crowdveil.errors import ChannelError
from crowdveil.inference.observations.debiasing import table_channels
from crowdveil.inference.uncertainty.summaries import LEVEL
from crowdveil.reports import Reports

Array = NDArray[Any]
MAX_CYCLES = 2_000
"""SQUAREM cycles of three EM steps; at ε = .25 about a thousand are needed."""
TOLERANCE = 1e-5
"""Gain of log-likelihood in one cycle below which a fit has converged; the intervals' threshold is 1.92."""
ROOT_STEPS = 12
MAX_PROBABILITIES = 2_000_000
"""Doubles in one array of a fit: 16 MB."""
_TINY = 1e-12


class Constraint(Protocol):
    """A quantity of the joint distribution that is fixed while everything else is fitted, one row for each value."""

    def estimate(self, cells: Array) -> Array:
        """The quantity in each row of cell shares; NaN where it is undefined."""

    def maximize(self, counts: Array, value: Array) -> Array:
        """The cell shares that maximise Σ counts · ln(share) among those with this value (the M-step)."""

    def select(self, rows: Array) -> Constraint:
        """The same for some of the rows."""

    @property
    def bounds(self) -> tuple[float, float]: ...


@dataclass(frozen=True, slots=True, eq=False)
class Share:
    """Share of the cells `part` within the cells `whole`, one boolean row for each quantity; part ⊂ whole.

    A cell's share has all cells as its whole, a conditional share one row of the table.
    """

    part: Array
    whole: Array

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, 1.0

    def select(self, rows: Array) -> Share:
        return Share(self.part[rows], self.whole[rows])

    def estimate(self, cells: Array) -> Array:
        part, whole = (cells * self.part).sum(axis=1), (cells * self.whole).sum(axis=1)
        share: Array = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > _TINY)
        return share

    def maximize(self, counts: Array, value: Array) -> Array:
        """The whole keeps its share of the counts; inside it, part and rest get `value` and 1 − `value`."""
        whole = (counts * self.whole).sum(axis=1, keepdims=True)
        inside = value[:, None] * _normalize(counts, self.part)
        rest = self.whole & ~self.part
        outside = (1 - value[:, None]) * _normalize(counts, rest)
        cells = np.where(self.whole, whole * (inside + outside), counts)
        shares: Array = cells / cells.sum(axis=1, keepdims=True)
        return shares


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Difference of two shares whose wholes do not overlap: the first minus the second."""

    first: Share
    second: Share

    @property
    def bounds(self) -> tuple[float, float]:
        return -1.0, 1.0

    def select(self, rows: Array) -> Difference:
        return Difference(self.first.select(rows), self.second.select(rows))

    def estimate(self, cells: Array) -> Array:
        difference: Array = self.first.estimate(cells) - self.second.estimate(cells)
        return difference

    def maximize(self, counts: Array, value: Array) -> Array:
        """Σ counts · ln(share) is concave in the second share; its derivative is bisected."""
        yes = [(counts * share.part).sum(axis=1) + _TINY for share in (self.first, self.second)]
        no = [(counts * (share.whole & ~share.part)).sum(axis=1) + _TINY for share in (self.first, self.second)]
        low, high = np.maximum(0.0, -value), np.minimum(1.0, 1 - value)
        for _ in range(40):
            second = (low + high) / 2
            first = second + value
            with np.errstate(divide="ignore"):
                slope = yes[0] / first - no[0] / (1 - first) + yes[1] / second - no[1] / (1 - second)
            low, high = np.where(slope > 0, second, low), np.where(slope > 0, high, second)
        second = (low + high) / 2
        return self.second.maximize(self.first.maximize(counts, np.clip(second + value, 0.0, 1.0)), second)


def _normalize(counts: Array, mask: Array) -> Array:
    """Counts inside the mask over their sum; equal weights where there are none."""
    inside = counts * mask
    total = inside.sum(axis=1, keepdims=True)
    equal = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return np.where(total > 0, inside / np.where(total > 0, total, 1.0), equal)


@dataclass(frozen=True, slots=True, eq=False)
class Patterns:
    """Different pairs of reports, how often each occurred, and their likelihood.

    `cells` is pattern × cell, `silent` pattern × pairs with ∅ on either side (none where both channels are open).
    """

    counts: Array
    cells: Array
    silent: Array
    votes: Array
    """Unbiased votes for the cells, pattern × cell."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Cell shares (one row for each value of a constraint) and their log-likelihood."""

    cells: Array
    log_likelihood: Array
    converged: bool


@dataclass(frozen=True, slots=True, eq=False)
class JointDistribution:
    """The likelihood of cell shares, given pairs of reports."""

    shape: tuple[int, int]
    groups: tuple[Patterns, ...]

    @property
    def n_workers(self) -> int:
        return int(sum(group.counts.sum() for group in self.groups))

    @property
    def n_cells(self) -> int:
        return self.shape[0] * self.shape[1]

    def maximum_likelihood(self) -> Fit:
        return self._fit(np.full((1, self.n_cells), 1 / self.n_cells), None, np.zeros(1))

    def profile(self, constraint: Constraint, value: Array, start: Fit) -> Fit:
        """The best fit with the quantity at each value, which has one entry for each row of the constraint."""
        # EM never leaves a share of exactly 0, so the start lies inside the simplex.
        inside = 0.9 * start.cells + 0.1 / self.n_cells
        inside = np.broadcast_to(inside, (len(value), self.n_cells))
        return self._fit(constraint.maximize(inside, value), constraint, value)

    def likelihood_ratio(self, constraint: Constraint, value: Array, best: Fit) -> Array:
        """Twice the log-likelihood that is lost where the quantity is fixed at each value."""
        fixed = self.profile(constraint, value, best)
        ratio: Array = np.maximum(2 * (best.log_likelihood - fixed.log_likelihood), 0.0)
        return ratio

    def interval(self, constraint: Constraint, best: Fit, level: float = LEVEL) -> tuple[Array, Array]:
        """For each quantity the values whose likelihood ratio is below the χ² quantile with one degree of freedom."""
        estimate, bounds = constraint.estimate(best.cells), constraint.bounds
        # So many quantities at once that their probabilities of all patterns stay small in memory.
        n_at_once = max(1, MAX_PROBABILITIES // max(len(group.counts) for group in self.groups))
        low, high = np.empty_like(estimate), np.empty_like(estimate)
        for start in range(0, len(estimate), n_at_once):
            rows = np.arange(start, min(start + n_at_once, len(estimate)))
            some = constraint.select(rows)
            low[rows], high[rows] = (self._furthest(some, best, estimate[rows], end, level) for end in bounds)
        undefined = np.isnan(estimate)
        return np.where(undefined, bounds[0], low), np.where(undefined, bounds[1], high)

    def _furthest(self, constraint: Constraint, best: Fit, estimate: Array, end: float, level: float) -> Array:
        """From the estimate towards `end` as far as the ratio allows (regula falsi on its root, the Illinois way)."""
        quantile = float(ndtri(0.5 + level / 2))
        inside = np.where(np.isnan(estimate), 0.5 * sum(constraint.bounds), estimate)
        # At the very end of the range a likelihood may be 0.
        outside = np.full_like(inside, end) + (1e-9 if end == constraint.bounds[0] else -1e-9)
        excess_inside = np.full_like(inside, -quantile)
        excess_outside = np.sqrt(self.likelihood_ratio(constraint, outside, best)) - quantile
        reaches_end, last = excess_outside <= 0, np.zeros(len(inside))
        for _ in range(ROOT_STEPS):
            weight = np.clip(excess_inside / np.minimum(excess_inside - excess_outside, -_TINY), 0.02, 0.98)
            middle = inside + (outside - inside) * weight
            excess = np.sqrt(self.likelihood_ratio(constraint, middle, best)) - quantile
            refused = excess > 0
            excess_inside = np.where(refused, np.where(last > 0, excess_inside / 2, excess_inside), excess)
            excess_outside = np.where(refused, excess, np.where(last < 0, excess_outside / 2, excess_outside))
            inside, outside = np.where(refused, inside, middle), np.where(refused, middle, outside)
            last = np.where(refused, 1.0, -1.0)
        return np.where(reaches_end, end, (inside + outside) / 2)

    def inversion(self) -> tuple[Array, Array]:
        """Unbiased votes over all answered pairs, and their covariance (linearised ratio); may leave the simplex."""
        votes = np.concatenate([group.votes for group in self.groups])
        counts = np.concatenate([group.counts for group in self.groups])
        total, mass = counts @ votes, float(counts @ votes.sum(axis=1))
        mass = max(mass, 1.0)
        shares = total / mass
        influence = (votes - shares * votes.sum(axis=1, keepdims=True)) / mass
        return shares, (influence * counts[:, None]).T @ influence

    def _fit(self, cells: Array, constraint: Constraint | None, value: Array) -> Fit:
        """Rows are fitted together until each has converged."""
        fitted, log_likelihood = self._start(cells), np.full(len(cells), -np.inf)
        active = np.arange(len(cells))
        for _ in range(MAX_CYCLES):
            some = None if constraint is None else constraint.select(active)
            fitted[active], reached = self._squarem_cycle(fitted[active], some, value[active])
            gain = reached - log_likelihood[active]
            log_likelihood[active] = reached
            active = active[gain >= TOLERANCE]
            if not len(active):
                break
        return Fit(fitted[:, : self.n_cells], log_likelihood, not len(active))

    def _squarem_cycle(self, point: Array, constraint: Constraint | None, value: Array) -> tuple[Array, Array]:
        """Two EM steps, an extrapolation where it does not lower the likelihood, and one step from there."""
        first, before = self._em_step(point, constraint, value)
        second, _ = self._em_step(first, constraint, value)
        r, v = first - point, second - 2 * first + point
        curvature = np.sqrt((v**2).sum(axis=1, keepdims=True))
        length = np.maximum(np.sqrt((r**2).sum(axis=1, keepdims=True)) / np.maximum(curvature, 1e-300), 1.0)
        length = np.where(curvature > 1e-15, np.minimum(length, 1e4), 1.0)
        leap = self._feasible(point + 2 * length * r + length**2 * v, constraint, value)
        after, gained = self._em_step(leap, constraint, value)
        return np.where((gained >= before)[:, None], after, second), before

    def _start(self, cells: Array) -> Array:
        """Cells and, for each group of patterns with ∅, equal chances of all of its pairs."""
        parts = [cells]
        for group in self.groups:
            n_silent = group.silent.shape[1]
            if n_silent:
                answered = self.n_cells / (self.n_cells + n_silent)
                parts += [np.tile([answered, *np.full(n_silent, (1 - answered) / n_silent)], (len(cells), 1))]
        return np.concatenate(parts, axis=1)

    def _feasible(self, point: Array, constraint: Constraint | None, value: Array) -> Array:
        point = np.maximum(point, _TINY)
        parts, cells = [self._m_step(point[:, : self.n_cells], constraint, value)], self.n_cells
        for group in self.groups:
            if n_silent := group.silent.shape[1]:
                shares = point[:, cells : cells + 1 + n_silent]
                parts.append(shares / shares.sum(axis=1, keepdims=True))
                cells += 1 + n_silent
        return np.concatenate(parts, axis=1)

    @staticmethod
    def _m_step(counts: Array, constraint: Constraint | None, value: Array) -> Array:
        if constraint is None:
            shares: Array = counts / counts.sum(axis=1, keepdims=True)
            return shares
        return constraint.maximize(counts, value)

    def _em_step(self, point: Array, constraint: Constraint | None, value: Array) -> tuple[Array, Array]:
        """Expected counts of the cells given the reports, then their shares; the log-likelihood is the old point's."""
        cells = point[:, : self.n_cells]
        expected, log_likelihood = np.zeros_like(cells), np.zeros(len(cells))
        parts, column = [cells], self.n_cells
        for group in self.groups:
            n_silent = group.silent.shape[1]
            answered, silent = point[:, column : column + 1], point[:, column + 1 : column + 1 + n_silent]
            if not n_silent:
                answered = np.ones((len(cells), 1))
            probability = np.maximum(answered * (cells @ group.cells.T) + silent @ group.silent.T, 1e-300)
            log_likelihood += np.log(probability) @ group.counts
            ratio = group.counts / probability
            both = answered * cells * (ratio @ group.cells)
            expected += both
            if n_silent:
                counts = np.concatenate([both.sum(axis=1, keepdims=True), silent * (ratio @ group.silent)], axis=1)
                parts.append(counts / counts.sum(axis=1, keepdims=True))
                column += 1 + n_silent
        parts[0] = self._m_step(expected, constraint, value)
        return np.concatenate(parts, axis=1), log_likelihood


def independent_channels(reports: Reports) -> tuple[Channel, ...]:
    """The channels; two reports that share a secret of the worker are not independent given the answers."""
    channels = table_channels(reports.channels)
    for channel in channels:
        if isinstance(channel, JointChannel):
            raise ChannelError(
                f"reports of {channel.mechanism} share a secret of their worker, so their channels do not multiply",
                fix="use another mechanism",
            )
    return channels


def joint_patterns(
    reports: tuple[Array, Array], channels: tuple[Array, Array], tables: tuple[tuple[Channel, ...], tuple[Channel, ...]]
) -> tuple[Patterns, ...]:
    """Counted pairs of reports of the same workers, grouped by which of the two channels protect participation."""
    pairs = np.stack([channels[0], reports[0], channels[1], reports[1]], axis=1).astype(np.int64)
    distinct, counts = np.unique(pairs, axis=0, return_counts=True)
    hidden = [np.array([channel.protects_participation for channel in side]) for side in tables]
    kind = 2 * hidden[0][distinct[:, 0]].astype(np.int64) + hidden[1][distinct[:, 2]]
    groups = []
    for code in np.unique(kind):
        rows = distinct[kind == code]
        likelihood = [_gather(rows[:, 2 * side], rows[:, 2 * side + 1], tables[side], "table") for side in (0, 1)]
        votes = [_gather(rows[:, 2 * side], rows[:, 2 * side + 1], tables[side], "votes") for side in (0, 1)]
        n_levels = [tables[side][rows[0, 2 * side]].n_levels for side in (0, 1)]
        joint = likelihood[0][:, :, None] * likelihood[1][:, None, :]
        answered = np.zeros(joint.shape[1:], dtype=np.bool_)
        answered[: n_levels[0], : n_levels[1]] = True
        joint_votes = votes[0][:, : n_levels[0], None] * votes[1][:, None, : n_levels[1]]
        groups.append(
            Patterns(
                counts[kind == code].astype(np.float64),
                joint[:, answered],
                joint[:, ~answered],
                joint_votes.reshape(len(rows), -1),
            )
        )
    return tuple(groups)


def _gather(channel: Array, report: Array, tables: tuple[Channel, ...], name: str) -> Array:
    """Rows of P(report | answer), or of votes, for reports through several channels with the same inputs."""
    width = len(tables[channel[0]].inputs)
    gathered = np.zeros((len(channel), width))
    for index in np.unique(channel):
        rows = channel == index
        gathered[rows] = (
            tables[index].likelihood(report[rows]) if name == "table" else tables[index].votes[report[rows]]
        )
    return gathered
