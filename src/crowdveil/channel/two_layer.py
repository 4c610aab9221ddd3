"""The exact law of the two-layer mechanism: what k reports that share one secret flip probability give away.

Li et al. (2018, §5.2) let each worker draw p ~ U(a, b) once and flip every answer with it. Their Theorem 6.3 counts
one answer. With k answers the reports depend on each other through p: the probability of a report vector that
differs from the answers in d places is

    M(k, d) = (s − 1)^−d / (b − a) · ∫_a^b (1 − p)^(k−d) p^d dp,

with s options. Everything here is computed with fractions; only the final logarithm is rounded, upwards.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

from crowdveil.errors import InputError
from crowdveil.exact import log_up


def report_laws(n_answers: int, n_options: int, low: Fraction, high: Fraction) -> list[Fraction]:
    """M(k, d) for d = 0 … k.

    Integration by parts gives I(m, d) = [p^(d+1) (1−p)^m / (d+1)]_a^b + m/(d+1)·I(m−1, d+1), from I(0, k) downwards.
    """
    _check(n_answers, n_options, low, high)
    k = n_answers
    integral = (high ** (k + 1) - low ** (k + 1)) / (k + 1)
    laws = [integral]
    for d in range(k - 1, -1, -1):
        m = k - d
        ends = high ** (d + 1) * (1 - high) ** m - low ** (d + 1) * (1 - low) ** m
        integral = (ends + m * integral) / (d + 1)
        laws.append(integral)
    return [law / (n_options - 1) ** d / (high - low) for d, law in enumerate(reversed(laws))]


def claimed_epsilon(n_options: int, low: Fraction, high: Fraction) -> float:
    """Theorem 6.3, ln((2 − a − b)(s − 1)/(a + b)): right for one answer."""
    return value_epsilon(1, n_options, low, high)


def value_epsilon(n_answers: int, n_options: int, low: Fraction, high: Fraction) -> float:
    """ε against somebody who knows all answers but one: max over d of |ln M(k, d) − ln M(k, d + 1)|.

    >>> value_epsilon(20, 2, Fraction(0), Fraction(1)) == log_up(Fraction(20))
    True
    """
    laws = report_laws(n_answers, n_options, low, high)
    return log_up(max(max(a / b, b / a) for a, b in pairwise(laws)))


def value_epsilon_at_most(n_answers: int, n_options: int, low: Fraction, high: Fraction) -> float:
    """An upper bound of `value_epsilon` that does not grow with the number of answers to compute.

    M(k, d)/M(k, d + 1) is (s − 1)(1/m − 1) with m the mean of p under a density ∝ p^d (1−p)^(k−d−1) on [a, b]; it is
    largest at d = 0, and m is neither below a nor below the same mean on [0, b]. The other way round the same holds for
    1 − p on [0, 1 − a].

    >>> value_epsilon(30, 3, Fraction(0), Fraction(4, 5)) <= value_epsilon_at_most(30, 3, Fraction(0), Fraction(4, 5))
    True
    """
    _check(n_answers, n_options, low, high)
    kept = max(low, _mean_at_least(n_answers, high))
    lied = max(1 - high, _mean_at_least(n_answers, 1 - low))
    others = n_options - 1
    return log_up(max(Fraction(1), others * (1 / kept - 1), (1 / lied - 1) / others))


def value_epsilon_of_any(n_options: int, low: Fraction, high: Fraction) -> float:
    """What `value_epsilon` never exceeds, however many answers: the ε of one whose p is known (∞ if p may be 0 or 1).

    >>> value_epsilon_of_any(2, Fraction(1, 4), Fraction(1, 2)) == log_up(Fraction(3))
    True
    """
    _check(1, n_options, low, high)
    if low == 0 or high == 1:
        return math.inf
    others = n_options - 1
    return log_up(max(Fraction(1), others * (1 / low - 1), (1 / (1 - high) - 1) / others))


def _mean_at_least(k: int, end: Fraction) -> Fraction:
    """A lower bound of the mean of p under a density ∝ (1−p)^(k−1) on [0, end].

    With x = (1 − end)^k the mean is 1 − k/(k+1)·(1 − (1 − end)·x)/(1 − x), which falls as x rises: x is rounded up. It
    is never below end/(k + 1), because with p = end·t the density leans further to the right than (1−t)^(k−1).
    """
    x = Fraction(float(1 - end) ** k * (1 + 1e-6))
    mean = 1 - Fraction(k, k + 1) * (1 - (1 - end) * x) / (1 - x) if x < 1 else Fraction(0)
    return max(mean, end / (k + 1))


def vector_epsilon(n_answers: int, n_options: int, low: Fraction, high: Fraction) -> float:
    """ε against somebody who knows nothing: max ln M(k, d) − min ln M(k, d) over d."""
    laws = report_laws(n_answers, n_options, low, high)
    return log_up(max(laws) / min(laws))


def _check(n_answers: int, n_options: int, low: Fraction, high: Fraction) -> None:
    if n_answers < 1 or n_options < 2:
        raise InputError(f"the law needs answers and two options or more; got {n_answers} and {n_options}")
    if not 0 <= low < high <= 1:
        raise InputError(
            f"flip probabilities must be 0 ≤ low < high ≤ 1; got {float(low):g} and {float(high):g}",
            fix="use one-layer for one public flip probability",
        )
