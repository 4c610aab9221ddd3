"""Entropy: the operating system's unless a seed is asked for; little-endian words; nobody else's generator."""

from __future__ import annotations

import math
import os

import numpy as np
import pytest

from crowdveil import Answers, Scale, entropy_from
from crowdveil.entropy import FixedBytes, Keystream, SystemEntropy, below, uniforms, words
from crowdveil.errors import InputError
from crowdveil.mechanisms import MECHANISMS, mechanism


def test_without_a_seed_the_operating_system_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = os.urandom
    monkeypatch.setattr(os, "urandom", lambda n: asked.append(n) or real(n))
    assert isinstance(entropy_from(None), SystemEntropy)
    entropy_from(None).take(12)
    assert asked == [12]


def test_no_report_is_drawn_from_numpys_generators(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise AssertionError("a report was drawn from NumPy's generator")

    for name in ("default_rng", "random", "rand", "randint", "uniform", "normal", "laplace", "choice", "seed"):
        monkeypatch.setattr(np.random, name, forbidden)
    answers = Answers.from_rows([(i, j, 1 + (i + j) % 5) for i in range(3) for j in range(4)], Scale(1, 5))
    for name in MECHANISMS:
        small = {"factors": 2} if "factorization" in name else {}
        assert len(mechanism(name, epsilon=1.0, **small).randomize(answers, entropy_from(None))) == 12


def test_a_seed_reproduces_and_another_does_not() -> None:
    assert entropy_from(1).take(64) == entropy_from(1).take(64) != entropy_from(2).take(64)
    stream, whole = Keystream("seed"), Keystream("seed").take(100)
    assert stream.take(33) + stream.take(67) == whole


def test_the_keystream_is_chacha20_and_stays_so() -> None:
    assert Keystream(0).take(8).hex() == "bf13e6c9181ed0d6"


def test_words_are_little_endian() -> None:
    stream = FixedBytes(bytes(range(1, 17)))
    assert words(stream, 2, bits=32).tolist() == [0x04030201, 0x08070605]
    assert words(stream, 1, bits=64).tolist() == [0x100F0E0D0C0B0A09]


def test_a_byte_vector_never_runs_dry_silently() -> None:
    with pytest.raises(InputError, match="has 3 bytes but 4 are needed"):
        words(FixedBytes(b"abc"), 1, bits=32)


@pytest.mark.parametrize("given", [8, 7, 0, 2**20])
def test_a_source_that_gives_too_little_or_too_much_is_refused(given: int) -> None:
    """With one word for all, some twenty thousand workers would share their noise."""

    class Short:
        def take(self, n_bytes: int) -> bytes:
            return bytes(given)

    answers = Answers.from_rows([(i, 0, 1) for i in range(2**14)], Scale(1, 5))
    for name in ("randomized-response", "discrete-laplace"):
        with pytest.raises(InputError, match=f"must give [0-9]+ bytes; got {given}"):
            mechanism(name, epsilon=1.0).randomize(answers, Short())


def test_uniforms_never_touch_their_ends() -> None:
    ends = FixedBytes(bytes(8) + b"\xff" * 8)
    low, high = uniforms(ends, 2)
    assert 0 < low < high < 1
    drawn = uniforms(Keystream(3), 100_000)
    assert abs(drawn.mean() - 0.5) < 5 * math.sqrt(1 / 12 / 100_000)


def test_below_reaches_every_number_and_no_other() -> None:
    drawn = below(Keystream(4), 70_000, 7)
    assert np.abs(np.bincount(drawn, minlength=7) - 10_000).max() < 5 * math.sqrt(10_000 * 6 / 7)
    assert below(FixedBytes(b"\xff" * 8), 1, 7).tolist() == [6]
