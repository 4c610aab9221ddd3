"""Drawn reports follow the table, and the tables follow the formulas and an independent library's samples.

Five-sigma bounds on streams with a fixed seed; OpenDP draws its own randomness, so its bounds are six-sigma on top of
few cells: less than one failure in ten million runs.
"""

from __future__ import annotations

import math

import numpy as np
import opendp.prelude as dp
import pytest
from laws.registry import SHIPPED, served

from crowdveil import Choices, Scale
from crowdveil.domain import Domain
from crowdveil.entropy import Keystream
from crowdveil.mechanisms import mechanism
from crowdveil.sampler import draw

N = 200_000
N_PEER = 20_000
STARS = Scale(1, 5)


@pytest.fixture(autouse=True, scope="module")
def _opendp() -> None:
    dp.enable_features("contrib")


def z_scores(counts: np.ndarray, probabilities: np.ndarray, n: int) -> np.ndarray:
    """Standardised counts; cells that are too rare for a normal bound are counted together."""
    rare = probabilities * n < 30
    counts = np.append(counts[~rare], counts[rare].sum())
    probabilities = np.append(probabilities[~rare], probabilities[rare].sum())
    spread = np.sqrt(np.maximum(n * probabilities * (1 - probabilities), 1.0))
    return (counts - n * probabilities) / spread


@pytest.mark.parametrize("protect", [False, True])
@pytest.mark.parametrize("name", SHIPPED)
def test_reports_follow_the_table(name: str, protect: bool) -> None:
    for domain, epsilon in ((STARS, 1.0), (Scale(0, 69), 3.0)):
        channel = served(name, epsilon, domain, protect)
        if channel is None:
            continue
        for row in {0, len(channel.inputs) // 2, len(channel.inputs) - 1}:
            answer = -1 if channel.inputs[row] is None else row
            reports = draw(channel, np.full(N, answer), Keystream(f"{name} {row}"))
            counts = np.bincount(reports, minlength=len(channel.outputs))
            z = z_scores(counts, channel.table[row], N)
            assert np.abs(z).max() < 5
            # The squares together, too: each is about 1 (chi-square, five sigma).
            assert (z**2).sum() < len(z) + 5 * math.sqrt(2 * len(z)) + 25


def table_of(name: str, domain: Domain, **parameters: float) -> np.ndarray:
    return np.asarray(mechanism(name, **parameters).channel(domain).table)


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_randomised_response_is_the_formula(k: int, epsilon: float) -> None:
    table = table_of("randomized-response", Choices(tuple(map(str, range(k)))), epsilon=epsilon)
    kept = math.exp(epsilon) / (math.exp(epsilon) + k - 1)
    assert np.allclose(np.diag(table), kept, rtol=1e-6)
    assert np.allclose(table[~np.eye(k, dtype=bool)], (1 - kept) / (k - 1), rtol=1e-6)


def clamped(mass: dict[int, float], level: int, lowest: int, highest: int) -> np.ndarray:
    row = np.zeros(highest - lowest + 1)
    for shift, p in mass.items():
        row[min(max(level + shift, lowest), highest) - lowest] += p
    return row


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_discrete_laplace_is_the_formula(epsilon: float) -> None:
    table, rate = table_of("discrete-laplace", STARS, epsilon=epsilon), epsilon / 4
    mass = {z: math.tanh(rate / 2) * math.exp(-rate * abs(z)) for z in range(-2000, 2001)}
    for level in range(5):
        assert np.allclose(table[level], clamped(mass, level, 0, 4), rtol=1e-6)


@pytest.mark.parametrize("sigma", [1.5, 6.0])
def test_discrete_gaussian_is_the_formula(sigma: float) -> None:
    table, outside = table_of("discrete-gaussian", STARS, sigma=sigma), math.ceil(3 * sigma)
    raw = {z: math.exp(-(z**2) / (2 * sigma**2)) for z in range(-300, 301)}
    mass = {z: weight / sum(raw.values()) for z, weight in raw.items()}
    for level in range(5):
        assert np.allclose(table[level], clamped(mass, level, -outside, 4 + outside), rtol=1e-9)


def test_randomised_response_agrees_with_opendp() -> None:
    options = ["a", "b", "c", "d"]
    table = table_of("randomized-response", Choices(tuple(options)), epsilon=1.0)
    peer = dp.m.make_randomized_response(options, float(table[1, 1]))
    assert peer.map(1) == pytest.approx(1.0, abs=1e-6)
    drawn = [options.index(peer("b")) for _ in range(4000)]
    assert np.abs(z_scores(np.bincount(drawn, minlength=4), table[1], 4000)).max() < 6


def test_discrete_laplace_agrees_with_opendp() -> None:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    peer = dp.m.make_laplace(*space, scale=4.0)  # range 4 at ε = 1
    drawn = np.clip(np.array(peer([1] * N_PEER)), 0, 4)
    table = table_of("discrete-laplace", STARS, epsilon=1.0)
    assert np.abs(z_scores(np.bincount(drawn, minlength=5), table[1], N_PEER)).max() < 6


def test_discrete_gaussian_agrees_with_opendp() -> None:
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l2_distance(T=float)
    peer = dp.m.make_gaussian(*space, scale=6.0)
    drawn = np.clip(np.array(peer([3] * N_PEER)), -18, 22) + 18
    table = table_of("discrete-gaussian", STARS, sigma=6.0)
    assert np.abs(z_scores(np.bincount(drawn, minlength=41), table[3], N_PEER)).max() < 6
    # Clamping only loses information: our ρ is not above that of the noise alone, 4²/(2·6²).
    ours = mechanism("discrete-gaussian", sigma=6.0).guarantee(STARS)
    assert ours.rho <= peer.map(4.0) * 1.0002
