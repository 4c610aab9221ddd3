"""The exact law of the two-layer mechanism: what k reports that share one secret flip probability give away.

Li et al. (2018, §5.2) let each worker draw p ~ U(a, b) once and flip every answer with it. Their Theorem 6.3 counts
one answer. With k answers the reports depend on each other through p: the probability of a report vector that
differs from the answers in d places is

    M(k, d) = (s − 1)^−d / (b − a) · ∫_a^b (1 − p)^(k−d) p^d dp,

with s options. Everything here is computed with fractions; only the final logarithm is rounded, upwards.
"""

from __future__ import annotations

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
