"""What laws need: every member of the registry, its channels, and an unfolding that is not crowdveil's own."""

from __future__ import annotations

from decimal import Context, Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from crowdveil import Answers, Channel, Choices, Scale
from crowdveil.domain import Domain
from crowdveil.errors import UnservableError
from crowdveil.mechanisms import MECHANISMS, mechanism

SHIPPED = [name for name, kind in MECHANISMS.items() if not kind.research_only and name != "none"]
RESEARCH = [name for name, kind in MECHANISMS.items() if kind.research_only]
# A research mechanism needs enough questions, or few factors, to serve any crowd.
SMALL = {"matrix-factorization": {"factors": 2, "ridge": 0.5}, "dense-factorization": {"factors": 2, "ridge": 0.5}}
_PRECISE = Context(prec=80)


def epsilons() -> st.SearchStrategy[float]:
    """From 0.01 to 20, small ones as often as large ones."""
    return st.floats(-2, 1.3).map(lambda exponent: min(20.0, max(0.01, 10**exponent)))


def domains(largest: int = 40) -> st.SearchStrategy[Domain]:
    sizes = st.integers(2, largest)
    options = sizes.map(lambda k: Choices(tuple(f"option {i}" for i in range(k))))
    steps = st.sampled_from(["1", "0.5", "2.5", "0.01", "1000"])
    lows = st.integers(-1000, 1000)
    scales = st.builds(lambda low, step, k: Scale(low, low + (k - 1) * Decimal(step), step), lows, steps, sizes)
    return st.one_of(options, scales)


def served(name: str, epsilon: float, domain: Domain, protect: bool) -> Channel | None:
    """The channel, or None where the mechanism refuses in a sentence that names another one."""
    try:
        built: Channel = mechanism(name, epsilon=epsilon, protect_participation=protect).channel(domain)
    except UnservableError as refusal:
        if not any(other in str(refusal) for other in SHIPPED if other != name):
            raise AssertionError(f"the refusal names no alternative: {refusal}") from refusal
        return None
    return built


def channel_of(name: str, epsilon: float, domain: Domain, protect: bool) -> Channel:
    """The channel of a mechanism that serves these parameters."""
    channel = served(name, epsilon, domain, protect)
    assert channel is not None
    return channel


@st.composite
def channels(draw: st.DrawFn, name: str, *, largest: int = 12) -> Channel:
    """A channel of this mechanism; where it does not serve, another example is drawn."""
    channel = served(name, draw(epsilons()), draw(domains(largest)), draw(st.booleans()))
    assume(channel is not None)
    assert channel is not None
    return channel


@st.composite
def crowds(draw: st.DrawFn) -> Answers:
    """Answers to some of the questions on a five-point scale, which every mechanism takes."""
    n_workers, n_questions = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    cells = draw(st.lists(st.integers(0, 5), min_size=n_workers * n_questions, max_size=n_workers * n_questions))
    rows = [(f"w{i // n_questions}", f"q{i % n_questions}", level or None) for i, level in enumerate(cells)]
    return Answers.from_rows(rows, Scale(1, 5))


def unfolded(wire: dict[str, Any]) -> list[list[int]]:
    """The integer table that the wire form describes, from its documentation alone."""
    if "weights" in wire:
        return [[int(weight) for weight in row] for row in wire["weights"]]
    kind, k, n = wire["kind"], len(wire["inputs"]), len(wire["outputs"])
    if kind["name"] == "rotate":
        return [[int(kind["keep"] if x == y else kind["lie"]) for y in range(k)] for x in range(k)]
    if kind["name"] == "subset":
        return [_subset_row(x, k, kind, wire["bits"]) for x in range(k)]
    rows = [_clamped_row(x, n, kind) for x in range(k - kind["null_input"])]
    return [*rows, _mean(rows, wire["bits"])] if kind["null_input"] else rows


def _subset_row(x: int, k: int, kind: dict[str, Any], bits: int) -> list[int]:
    member = [x in subset for subset in combinations(range(k), kind["size"])]
    row = [int(kind["inside"] if inside else kind["outside"]) for inside in member]
    missing = 2**bits - sum(row)
    for column, inside in enumerate(member):
        if inside and missing > 0:
            row[column], missing = row[column] + 1, missing - 1
    return row


def _clamped_row(x: int, n: int, kind: dict[str, Any]) -> list[int]:
    row = [0] * n
    reach = len(kind["noise"]) // 2
    for shift, weight in enumerate(kind["noise"], start=-reach):
        row[min(max(kind["offset"] + x + shift, 0), n - 1)] += int(weight)
    return row


def _mean(rows: list[list[int]], bits: int) -> list[int]:
    mean = [sum(column) // len(rows) for column in zip(*rows, strict=True)]
    mean[mean.index(max(mean))] += 2**bits - sum(mean)
    return mean


def exact_ratio(rows: list[list[int]]) -> Fraction:
    """The largest ratio within a column."""
    return max(Fraction(max(column), min(column)) for column in zip(*rows, strict=True))


def exceeds(ratio: Fraction, epsilon: float) -> bool:
    """ln(ratio) > ε, decided with 80 digits."""
    quotient = _PRECISE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))
    return _PRECISE.ln(quotient) > Decimal(epsilon)
