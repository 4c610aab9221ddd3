"""The bound on what colluders can do: optimal attacks reach it, no attack passes it."""

from __future__ import annotations

import itertools
import math
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowdveil import Answers, Choices, Reports
from crowdveil.entropy import entropy_from
from crowdveil.errors import InputError
from crowdveil.inference.methods.frequency import unbiased_shares
from crowdveil.inference.observations.debiasing import plain_votes, table_channels
from crowdveil.inference.observations.numeric import count_by_channel
from crowdveil.inference.poisoning import poisoning_bounds
from crowdveil.mechanisms import mechanism

Kind: TypeAlias = tuple[str, int, float, float | None]
HONEST, COLLUDERS = 1900, 100
# Mechanism, options, ε, and which part answered where participation is protected: with nearly all or nearly none,
# colluders push the number of answers beyond what it can be.
KINDS: list[Kind] = [
    ("randomized-response", 2, 0.5, None),
    ("randomized-response", 5, 1.0, None),
    ("subset-selection", 6, 1.0, None),
    ("randomized-response", 3, 1.0, 0.5),
    ("randomized-response", 2, 3.0, 0.5),
    ("randomized-response", 3, 0.5, 1.0),
    ("randomized-response", 2, 1.0, 0.05),
    ("randomized-response", 2, 0.3, 0.05),
    ("randomized-response", 3, 0.3, 0.5),
    ("none", 3, 0.0, None),
]


def honest_reports(name: str, k: int, epsilon: float, answered: float | None, seed: int = 1) -> Reports:
    rng = np.random.default_rng(seed)
    domain = Choices(tuple(f"o{code}" for code in range(k)))
    answers = rng.choice(k, HONEST, p=rng.dirichlet(np.ones(k) * 3))
    skipped = rng.random(HONEST) >= (1.0 if answered is None else answered)
    rows = [(n, "q", None if skip else f"o{code}") for n, (code, skip) in enumerate(zip(answers, skipped, strict=True))]
    if name == "none":
        return Reports.unprotected(Answers.from_rows(rows, domain))
    chosen = mechanism(name, epsilon=epsilon, protect_participation=answered is not None)
    return chosen.randomize(Answers.from_rows(rows, domain), entropy_from(seed))


def share_after(reports: Reports, forged: list[int]) -> np.ndarray:
    """The shares that frequency estimates, before projection, when these reports have joined."""
    n, m = len(reports), len(forged)
    joined = Reports(
        np.arange(n + m, dtype=np.int32),
        np.zeros(n + m, dtype=np.int32),
        np.concatenate([reports.report, np.array(forged, dtype=np.int32)]),
        np.zeros(n + m, dtype=np.int16),
        np.arange(n + m),
        reports.questions,
        reports.channels,
        reports.domain,
    )
    channels = table_channels(joined.channels)
    votes = plain_votes(joined, channels, 1, joined.domain.size)
    return unbiased_shares(votes, count_by_channel(joined, len(channels)), channels)[0][0]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}-{kind[2]}-{kind[3]}")
def test_an_optimal_attack_reaches_the_bound_and_none_passes_it(kind: Kind) -> None:
    reports = honest_reports(*kind)
    bounds = poisoning_bounds(reports, COLLUDERS / (HONEST + COLLUDERS))
    n_outputs = len(table_channels(reports.channels)[0].outputs)
    rng = np.random.default_rng(3)
    # All forge the same report; every split between two reports; and 200 random mixtures.
    attacks = [[output] * COLLUDERS for output in range(n_outputs)]
    for first, second in itertools.combinations(range(min(n_outputs, 6)), 2):
        attacks += [[first] * part + [second] * (COLLUDERS - part) for part in range(1, COLLUDERS)]
    attacks += [rng.choice(n_outputs, COLLUDERS, p=rng.dirichlet(np.full(n_outputs, 0.3))).tolist() for _ in range(200)]
    shares = np.array([share_after(reports, attack) for attack in attacks])
    assert (shares <= bounds.high + 1e-9).all()
    assert (shares >= bounds.low - 1e-9).all()
    assert (shares.max(axis=0) - bounds.share[0] >= 0.95 * (bounds.high - bounds.share)[0]).all()
    assert (bounds.share[0] - shares.min(axis=0) >= 0.95 * (bounds.share - bounds.low)[0]).all()


def test_five_per_cent_move_one_half_by_a_tenth_at_epsilon_one_half() -> None:
    """With p = e^.5/(e^.5 + 1) a forged report weighs p/(2p − 1) = 2.54 votes, so .05 · (2.54 − .5) = .102."""
    domain = Choices(("no", "yes"))
    rows = [(n, "q", "yes") for n in range(50)]
    reports = mechanism("randomized-response", epsilon=0.5).randomize(Answers.from_rows(rows, domain), entropy_from(1))
    half = Reports(
        reports.worker, reports.question, np.arange(50, dtype=np.int32) % 2, reports.channel, reports.workers,
        reports.questions, reports.channels, domain,
    )  # fmt: skip
    bounds = poisoning_bounds(half, 0.05)
    p = math.exp(0.5) / (math.exp(0.5) + 1)
    assert bounds.largest_shift[0].tolist() == pytest.approx([0.05 * (p / (2 * p - 1) - 0.5)] * 2, abs=1e-6)
    assert bounds.largest_shift[0, 0] == pytest.approx(0.102, abs=5e-4)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.floats(0.001, 0.4), st.sampled_from(KINDS), st.integers(0, 50))
def test_laws(colluders: float, kind: Kind, seed: int) -> None:
    reports = honest_reports(*kind, seed=seed)
    bounds, more = poisoning_bounds(reports, colluders), poisoning_bounds(reports, colluders + 0.1)
    assert (bounds.low <= bounds.share + 1e-9).all()
    assert (bounds.share <= bounds.high + 1e-9).all()
    assert (more.largest_shift >= bounds.largest_shift - 1e-9).all()
    if kind[3] is None:
        votes = table_channels(reports.channels)[0].votes
        expected = colluders * np.abs(votes[:, None, :] - bounds.share).max(axis=(0, 1))
        assert bounds.largest_shift[0] == pytest.approx(expected)


@pytest.mark.parametrize("colluders", [0, 1, -0.1, math.nan])
def test_a_share_is_needed(colluders: float) -> None:
    with pytest.raises(InputError, match="above 0 and below 1"):
        poisoning_bounds(honest_reports(*KINDS[0]), colluders)
