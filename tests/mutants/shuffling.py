"""Mistakes in the guarantee after shuffling: each would print an ε that is too small, or under a wrong assumption."""

from __future__ import annotations

from mutants.mutant import Mutant

TESTS = "tests/accounting/test_shuffling.py"
BLANKET, DIVERGENCE = "accounting/privacy_blanket.py", "accounting/shuffled_divergence.py"
PUBLIC = "accounting/shuffling.py"

MUTANTS = (
    Mutant(
        "the person hides among n others instead of n − 1",
        DIVERGENCE,
        "_bin_counts(n - 1, blanket_share, cut)",
        "_bin_counts(n, blanket_share, cut)",
        TESTS,
        "blanket_statistic",
    ),
    Mutant(
        "ranges of blanket reports counted at their best end",
        DIVERGENCE,
        "return [low + int(start) for start in starts],",
        "return [low + int(start) + math.ceil(len(masses) / _BINS) - 1 for start in starts],",
        TESTS,
        "worst_end",
    ),
    Mutant(
        "ranges of m counted at the smallest π",
        DIVERGENCE,
        "largest = np.minimum(lowest + (used + 1) * width - 1, m[-1])",
        "largest = np.minimum(lowest + used * width, m[-1])",
        TESTS,
        "worst_end",
    ),
    Mutant(
        "tails cut off for nothing",
        DIVERGENCE,
        "* (1 + _FLOAT_SLACK) + self._lost",
        "* (1 + _FLOAT_SLACK)",
        TESTS,
        "cut_off",
    ),
    Mutant(
        "κ without its factor of two",
        DIVERGENCE,
        "slopes.append(2 * np.minimum(",
        "slopes.append(np.minimum(",
        TESTS,
        "blanket_statistic",
    ),
    Mutant(
        "an own report that is never elsewhere",
        DIVERGENCE,
        "float(1 - blanket.own) * np.append(window, 0.0)",
        "0.0 * np.append(window, 0.0)",
        TESTS,
        "blanket_statistic",
    ),
    Mutant(
        "clones below the two rows instead of below all rows",
        BLANKET,
        "r = clone_share * min(Fraction(floor, abs(a - b)) for a, b, floor in apart)",
        "r = clone_share * min(Fraction(min(a, b), abs(a - b)) for a, b, floor in apart)",
        TESTS,
        "any_channel",
    ),
    Mutant(
        "a common part that only some rows have",
        BLANKET,
        "min(shares, default=Fraction(0))",
        "max(shares, default=Fraction(0))",
        TESTS,
        "any_channel",
    ),
    Mutant(
        "half of a total variation",
        BLANKET,
        "for (a, b, _), count in pair), 2)",
        "for (a, b, _), count in pair), 4)",
        TESTS,
        "blanket_statistic",
    ),
    Mutant(
        "clones of a bare ε that need not be there",
        BLANKET,
        "1 / (2 * ratio), Fraction(0))",
        "1 / (1 + ratio), Fraction(0))",
        TESTS,
        "bare_epsilon",
    ),
    Mutant(
        "the best of each number for all pairs",
        BLANKET,
        "min(blanket.clone for blanket in blankets)",
        "max(blanket.clone for blanket in blankets)",
        TESTS,
        "worst_of_each",
    ),
    Mutant(
        "liars who hide others",
        PUBLIC,
        "math.floor(n * _honest_part(none.dishonest_share))",
        "n",
        TESTS,
        "dishonest",
    ),
    Mutant(
        "linkable rows that hide each other",
        PUBLIC,
        "    if linkable:",
        "    if linkable and n < 1:",
        TESTS,
        "linkable",
    ),
    Mutant(
        "the δ of the studies forgotten",
        PUBLIC,
        "fraction_up(failure + Fraction(cost.delta))",
        "cost.delta",
        TESTS,
        "studies_compose",
    ),
    Mutant(
        "a minimum for honest people only",
        PUBLIC,
        "return math.ceil(high / _honest_part(dishonest_share))",
        "return high",
        TESTS,
        "fewest_people",
    ),
)
