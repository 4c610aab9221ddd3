"""The audit proves what is true of tables, catches what is false, and never accuses without cause."""

from __future__ import annotations

import json
import math
import subprocess
import time
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from crowdveil import Answers, Channel, Choices, InputError, Scale
from crowdveil.audit import (
    audit_callable,
    audit_mechanism,
    audit_registry,
    black_box,
    exact_audit,
    exact_delta,
    javascript_conforms,
    named_share,
    named_share_of_table,
    numpy_laplace,
    python_conforms,
    vector_of,
)
from crowdveil.audit import conformance as conformance_module
from crowdveil.audit.floating_point import laplace_by_inversion, reachable
from crowdveil.audit.lower_bound import Choice, clopper_pearson_high, clopper_pearson_low, measure
from crowdveil.channel.encoding import Rotate, Subset, Table
from crowdveil.entropy import Keystream
from crowdveil.errors import DomainError
from crowdveil.mechanisms import MECHANISMS, Laplace, mechanism
from crowdveil.sampler import draw

FIVE = Scale(1, 5)


@pytest.mark.parametrize("participation", [False, True])
@pytest.mark.parametrize("domain", [FIVE, Choices(("no", "yes")), Choices(tuple("abcdefgh"))])
def test_every_shipped_mechanism_passes_exactly(domain: Choices | Scale, participation: bool) -> None:
    shipped = [name for name, kind in MECHANISMS.items() if not kind.research_only and name != "none"]
    rows = audit_registry(domain, epsilon=0.7, participation=participation, entropy=Keystream(1), names=shipped)
    served = [row for row in rows if "needs a scale" not in row.note]
    assert len(rows) == len(shipped)
    assert len(served) >= 3
    assert {row.verdict for row in served} == {"holds"}
    assert all(row.exact is not None and row.exact <= 0.7 for row in served)
    assert {row.checks["floating-point"] for row in served} == {"holds"}


def test_exact_audit_refutes_a_claim_that_is_a_hair_too_small() -> None:
    channel = mechanism("randomized-response", epsilon=1).channel(FIVE)
    assert exact_audit(channel, 1.0).verdict == "holds"
    assert exact_audit(channel, channel.epsilon - 1e-12).verdict == "exceeds"


def test_a_table_with_an_impossible_output_has_no_epsilon() -> None:
    rows = np.array([[2**31, 2**31, 0], [2**31, 2**30, 2**30]], dtype=np.uint64)
    channel = Channel(("a", "b"), ("x", "y", "z"), 32, "prefix", Table(rows))
    found = exact_audit(channel, 100)
    assert (found.ratio, found.verdict) == (None, "exceeds")
    assert named_share_of_table(rows) == pytest.approx(0.25)


def test_exact_delta_is_zero_from_epsilon_on() -> None:
    channel = Channel(("n", "y"), ("n", "y"), 32, "rotate", Rotate(3 * 2**30, 2**30))
    assert 0 <= exact_delta(channel, 0.0) - Fraction(1, 2) <= Fraction(1, 10**50)
    assert exact_delta(channel, channel.epsilon) == 0
    assert float(exact_delta(channel, math.log(2))) == pytest.approx(0.75 - 2 * 0.25)


@pytest.mark.parametrize("hits", [0, 1, 17, 100])
def test_clopper_pearson_covers_exactly(hits: int) -> None:
    """At the bound the tail probability is alpha, by enumeration of the binomial."""
    n, alpha = 100, 0.005

    def at_least(p: float, k: int) -> float:
        return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k, n + 1))

    low, high = clopper_pearson_low(hits, n, alpha), clopper_pearson_high(hits, n, alpha)
    assert low == 0 if hits == 0 else at_least(low, hits) == pytest.approx(alpha, rel=1e-6)
    assert high == 1 if hits == n else 1 - at_least(high, hits + 1) == pytest.approx(alpha, rel=1e-6)


def test_half_of_alpha_is_spent_on_each_side() -> None:
    counts = np.array([[700, 300], [200, 800]])
    choice = Choice(0, 1, np.array([0]), 0.0)
    low, high = clopper_pearson_low(700, 1000, 0.005), clopper_pearson_high(200, 1000, 0.005)
    assert measure(choice, counts, alpha=0.01).epsilon == pytest.approx(math.log(low / high))
    assert measure(choice, counts, alpha=0.01, delta=0.1).epsilon == pytest.approx(math.log((low - 0.1) / high))


def test_two_million_samples_per_input_are_audited_in_under_two_seconds() -> None:
    channel = mechanism("randomized-response", epsilon=1).channel(FIVE)
    entropy = Keystream(5)

    def source(index: int, n: int) -> NDArray[np.int32]:
        return draw(channel, np.full(n, index, dtype=np.int32), entropy)

    times = []
    for _ in range(3):
        start = time.perf_counter()
        bound = black_box(source, 5, samples=2_000_000)
        times.append(time.perf_counter() - start)
    assert 0.98 <= bound.epsilon <= channel.epsilon
    assert min(times) < 2


def test_an_honest_mechanism_is_not_accused() -> None:
    generator = np.random.default_rng(7)
    bounds = [black_box(lambda i, n: i + generator.laplace(0, 1, n), 2, samples=20_000).epsilon for _ in range(40)]
    assert max(bounds) <= 1
    assert np.median(bounds) > 0.85


def test_a_gaussian_is_bounded_at_its_delta() -> None:
    row = audit_mechanism(mechanism("gaussian", epsilon=1), FIVE, claimed=1, participation=False, entropy=Keystream(3))
    assert row.verdict == "unknown"
    assert row.lower_bound is not None
    assert 0.7 < row.lower_bound <= 1


@pytest.mark.parametrize(("factors", "samples"), [(1, 40_000), (20, 10_000)])
def test_matrix_factorisation_does_not_hide_participation(factors: int, samples: int) -> None:
    subject = mechanism("matrix-factorization", epsilon=1, factors=factors)
    row = audit_mechanism(subject, Scale(0, 9), claimed=1, participation=True, entropy=Keystream(11), samples=samples)
    assert row.verdict == "exceeds"
    assert row.lower_bound is not None
    assert row.lower_bound >= 3


def test_matrix_factorisation_hides_values() -> None:
    subject = mechanism("matrix-factorization", epsilon=1, factors=1)
    row = audit_mechanism(subject, Scale(0, 9), claimed=1, participation=False, entropy=Keystream(12), samples=10_000)
    assert (row.verdict, row.unit) == ("unknown", "value")


def test_dense_factorisation_survives_what_the_published_one_does_not() -> None:
    subject = mechanism("dense-factorization", epsilon=1, factors=1)
    row = audit_mechanism(subject, Scale(0, 9), claimed=1, participation=True, entropy=Keystream(13))
    assert (row.verdict, row.unit) == ("unknown", "cell")


@pytest.mark.parametrize("paper_scale", [True, False])
def test_laplace_with_the_papers_scale_is_caught_by_its_law(paper_scale: bool) -> None:
    subject = mechanism("laplace", epsilon=1, paper_scale=paper_scale)
    row = audit_mechanism(subject, Scale(0, 100, 50), claimed=1, participation=False, entropy=Keystream(14))
    # The last digits of its reports refute either.
    assert row.verdict == "exceeds"
    assert row.lower_bound is not None
    assert (row.lower_bound > 1) == paper_scale


def test_a_mechanism_that_stays_silent_reveals_participation() -> None:
    subject = mechanism("laplace", epsilon=1)
    row = audit_mechanism(subject, FIVE, claimed=1, participation=True, entropy=Keystream(15))
    assert row.verdict == "exceeds"


def test_two_layer_does_not_hide_who_answered() -> None:
    subject = mechanism("two-layer", epsilon=1)
    row = audit_mechanism(subject, FIVE, claimed=1, participation=True, entropy=Keystream(16))
    assert (row.unit, row.exact, row.verdict) == ("cell", math.inf, "exceeds")


def test_two_layer_is_audited_by_its_joint_law() -> None:
    row = audit_mechanism(
        mechanism("two-layer", epsilon=1), FIVE, claimed=1, participation=False, entropy=Keystream(16)
    )
    assert row.verdict == "exceeds"
    assert row.exact == pytest.approx(2.5985, abs=1e-3)


CALLABLES = """
from random import Random
import numpy as np

random, generator = Random(1), np.random.default_rng(2)

def honest(answer):
    return answer if random.random() < 0.25 else random.choice(["no", "yes"])

def leaky(answer):
    return answer if random.random() < 0.75 else random.choice(["no", "yes"])

def silent(answer):
    return "?" if answer is None else honest(answer)

def many(answer, n):
    return [leaky(answer) for _ in range(n)]

def noisy(answer, n):
    return answer + generator.laplace(0, 4, n)

def rounded(answer, n):
    return np.rint(noisy(answer, n))

def broken(answer):
    raise KeyError(answer)

number = 3
"""


@pytest.fixture
def own_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"own_code_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(CALLABLES)
    monkeypatch.syspath_prepend(tmp_path)
    return name


@pytest.mark.parametrize(
    ("function", "participation", "verdict"),
    [
        ("honest", False, "unknown"),
        ("leaky", False, "exceeds"),
        ("many", False, "exceeds"),
        ("silent", True, "exceeds"),
    ],
)
def test_anybodys_callable_is_audited(own_code: str, function: str, participation: bool, verdict: str) -> None:
    domain = Choices(("no", "yes"))
    row = audit_callable(f"{own_code}:{function}", domain, claimed=1, participation=participation, samples=20_000)
    assert row.verdict == verdict


@pytest.mark.parametrize(
    ("name", "said"),
    [("broken", "failed on the answer"), ("number", "must be callable"), ("nobody", "cannot be imported")],
)
def test_a_callable_that_cannot_be_audited_is_told_why(own_code: str, name: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        audit_callable(f"{own_code}:{name}", Choices(("no", "yes")), claimed=1, participation=False, samples=1000)


def _mostly_noise(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return np.where(rng.random(len(values)) < 0.02, values, rng.uniform(0, 5, len(values)))


def _with_gaps(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    return np.where(rng.random(len(values)) < 0.01, np.nan, values + rng.normal(0, 0.5, len(values)))


def _gap_tells(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    rows = rng.normal(size=(len(values), 3))
    rows[values == 1, 2] = np.nan
    return rows


def _huge_codes(values: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.uint64]:
    return np.uint64(2**63) + (values + (rng.random(len(values)) < 0.1)).astype(np.uint64)


@pytest.mark.parametrize("leak", [_mostly_noise, _with_gaps, _gap_tells, _huge_codes])
def test_a_leak_does_not_hide_behind_noise_gaps_or_huge_codes(leak: Callable[..., NDArray[np.float64]]) -> None:
    rng = np.random.default_rng(4)
    bound = black_box(lambda answer, n: leak(np.full(n, 1.0 + 3 * answer), rng), 2, samples=20_000)
    assert bound.epsilon > 3


def test_noise_without_a_leak_is_not_accused_of_its_values() -> None:
    rng = np.random.default_rng(4)
    for kind in (lambda n: rng.normal(size=n).round(1), lambda n: np.where(rng.random(n) < 0.3, np.nan, 1.0)):
        assert black_box(lambda _, n, kind=kind: kind(n), 3, samples=20_000).epsilon < 0.2


@pytest.mark.parametrize("delta", [math.nan, -0.1, 1.0])
def test_a_claim_that_nothing_can_exceed_is_refused(delta: float) -> None:
    with pytest.raises(InputError, match="δ of a claim must be from 0"):
        black_box(lambda answer, n: np.full(n, answer), 2, samples=1000, delta=delta)
    with pytest.raises(InputError, match="ε that is claimed must be 0 or more; got nan"):
        audit_callable("math:cos", Scale(1, 5), claimed=math.nan, participation=False)


def test_the_exact_audit_reads_every_weight_of_a_subset_channel() -> None:
    """Weights that are larger by 1 count: here all the others are alike, so they are the whole loss."""
    options = tuple(f"o{number:02}" for number in range(20))
    each = 2**32 // 190
    outputs = tuple(combinations(options, 2))
    channel = Channel(options, outputs, 32, "prefix", Subset(2, each, each))
    assert 0 < channel.epsilon < 1e-6
    assert exact_audit(channel, 0.0).verdict == "exceeds"
    assert channel.guarantee.rho >= channel.epsilon**2 / 2
    assert exact_delta(channel, 0.0) > 0


@pytest.mark.parametrize(
    ("function", "checks", "verdict"), [("noisy", {"floating-point": "exceeds"}, "exceeds"), ("rounded", {}, "unknown")]
)
def test_floating_point_noise_in_anybodys_code_refutes_it(
    own_code: str, function: str, checks: dict[str, str], verdict: str
) -> None:
    row = audit_callable(f"{own_code}:{function}", FIVE, claimed=1, participation=False, samples=5000)
    assert row.checks == checks
    assert row.verdict == verdict


def test_only_a_delta_that_forgives_all_of_them_forgives_reports_that_prove_something(own_code: str) -> None:
    """Some three quarters of them do."""
    for delta, verdict in ((0.5, "exceeds"), (0.99, "unknown")):
        row = audit_callable(f"{own_code}:noisy", FIVE, claimed=1, participation=False, samples=5000, delta=delta)
        assert row.verdict == verdict


def test_the_model_of_numpys_laplace_is_bit_exact() -> None:
    """Only then does unreachable mean unreachable."""
    raw, drawn = np.random.PCG64(3), np.random.Generator(np.random.PCG64(3)).laplace(0.0, 2.5, 2000)
    mantissas = (raw.random_raw(2000) >> np.uint64(11)).astype(np.int64)
    assert np.array_equal(numpy_laplace(2.5).of(mantissas), drawn)


@pytest.mark.parametrize(("answer", "other", "scale"), [(0.0, 1.0, 1.0), (1.0, 5.0, 4.0), (9.0, 0.0, 9.0)])
def test_floating_point_noise_names_most_answers(answer: float, other: float, scale: float) -> None:
    reports = answer + np.random.default_rng(21).laplace(0.0, scale, 5000)
    noise = numpy_laplace(scale)
    assert named_share(reports, other, noise) >= 0.7
    assert reachable(reports, answer, noise).all()


def test_our_research_laplace_leaks_in_floating_point_and_our_tables_do_not() -> None:
    subject = mechanism("laplace", epsilon=1)
    row = audit_mechanism(subject, FIVE, claimed=1, participation=False, entropy=Keystream(17), samples=1000)
    assert row.checks == {"floating-point": "exceeds"}
    assert row.verdict == "exceeds"
    for name in ("discrete-laplace", "piecewise", "optimal-scale"):
        assert named_share_of_table(mechanism(name, epsilon=1).channel(FIVE).weights) == 0


@pytest.mark.parametrize("level", range(5))
def test_the_research_laplace_can_reach_its_own_reports(level: int) -> None:
    subject, n = Laplace(epsilon=1), 500
    codes, questions = np.full(n, level, dtype=np.int32), np.zeros(n, dtype=np.int32)
    answers = Answers(np.arange(n), questions, codes, np.arange(n), np.arange(1), FIVE)
    reports = subject.randomize(answers, Keystream(2)).number
    assert reachable(reports, FIVE.numbers[level], laplace_by_inversion(subject.noise_scale(FIVE))).all()


@pytest.mark.parametrize("name", ["randomized-response", "subset-selection", "discrete-laplace", "optimal-scale"])
def test_conformance_holds_and_its_edges_touch_every_output(name: str) -> None:
    channel = mechanism(name, epsilon=1, protect_participation=True).channel(FIVE)
    vector = vector_of(channel, Keystream(31))
    assert python_conforms(vector) == "holds"
    assert set(vector.reports) == set(range(len(channel.outputs)))


def test_conformance_catches_an_off_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = mechanism("randomized-response", epsilon=1).channel(FIVE)
    vector = vector_of(channel, Keystream(32))

    def shifted(channel: Channel, answers: NDArray[np.int32], entropy: object) -> NDArray[np.int32]:
        return (draw(channel, answers, entropy) + 1) % 5

    monkeypatch.setattr(conformance_module, "draw", shifted)
    assert python_conforms(vector) == "exceeds"


def test_without_node_javascript_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    channel = mechanism("randomized-response", epsilon=1).channel(FIVE)
    vector = vector_of(channel, Keystream(33))
    monkeypatch.setenv("PATH", "")
    assert javascript_conforms([vector]) == ["unknown"]


def test_javascript_that_differs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runner that answers, but with other reports."""
    channel = mechanism("randomized-response", epsilon=1).channel(FIVE)
    vector = vector_of(channel, Keystream(34))
    wrong = json.dumps([{"reports": [0] * len(vector.reports)}])
    told = subprocess.CompletedProcess([], 0, stdout=wrong)
    monkeypatch.setattr(conformance_module.shutil, "which", lambda _: "node")
    monkeypatch.setattr(conformance_module.subprocess, "run", lambda *_, **__: told)
    assert javascript_conforms([vector]) == ["exceeds"]


@pytest.mark.parametrize("codes", [[2**32], [0, 2**40 + 1], [-(2**33)], [2]])
def test_no_code_is_cut_to_one_that_fits(codes: list[int]) -> None:
    channel = mechanism("randomized-response", epsilon=1).channel(Choices(("no", "yes")))
    with pytest.raises(DomainError, match="answer codes must be from -1 to 1"):
        draw(channel, np.array(codes), Keystream(1))
