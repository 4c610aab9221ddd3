"""Where random bytes come from: the operating system, unless a seed is asked for by name.

Every draw in crowdveil consumes whole little-endian words from one of these streams, so the same bytes give
the same reports in Python and in JavaScript.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms
from numpy.typing import NDArray

from crowdveil.errors import InputError

# Not 53: the half added to the largest of 53 bits would be rounded up, and the uniform number would be 1.
UNIFORM_BITS = 52


class Entropy(Protocol):
    """A stream of random bytes."""

    def take(self, n_bytes: int) -> bytes:
        """The next `n_bytes` of the stream."""
        ...


@dataclass(frozen=True, slots=True)
class SystemEntropy:
    """The operating system's generator: the only source for reports that are really released."""

    def take(self, n_bytes: int) -> bytes:
        return os.urandom(n_bytes)


class Keystream:
    """A ChaCha20 keystream: fast enough for bulk simulation; reproducible because a seed was asked for."""

    __slots__ = ("_encryptor",)

    def __init__(self, seed: int | str) -> None:
        key = hashlib.sha256(f"crowdveil-keystream/1:{seed}".encode()).digest()
        self._encryptor: CipherContext = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()

    def take(self, n_bytes: int) -> bytes:
        return self._encryptor.update(bytes(n_bytes))


@dataclass(slots=True)
class FixedBytes:
    """Bytes given beforehand: test vectors and conformance audits."""

    data: bytes
    position: int = field(default=0)

    def take(self, n_bytes: int) -> bytes:
        end = self.position + n_bytes
        if end > len(self.data):
            raise InputError(f"the byte vector has {len(self.data)} bytes but {end} are needed")
        chunk, self.position = self.data[self.position : end], end
        return chunk


def entropy_from(seed: int | str | None) -> Entropy:
    """The operating system's entropy; with a `seed`, a reproducible keystream for tests and simulations only.

    Whoever knows the seed can recompute the noise, so reports drawn with one are not private.
    """
    return SystemEntropy() if seed is None else Keystream(seed)


def words(entropy: Entropy, n: int, *, bits: int) -> NDArray[Any]:
    """`n` little-endian unsigned words of 32 or 64 bits."""
    check_entropy(entropy)
    drawn, size = np.frombuffer(entropy.take(n * bits // 8), dtype=np.uint8), n * bits // 8
    if len(drawn) != size:
        # One word where many are due would be taken for all of them.
        raise InputError(f"the source of randomness must give {size} bytes; got {len(drawn)}", fix="use another source")
    return drawn.view(np.dtype(f"<u{bits // 8}"))


def check_entropy(entropy: object) -> None:
    """Refuse a seed or a generator of NumPy: neither says whether reports of real people are to be drawn.

    >>> check_entropy(42)
    Traceback (most recent call last):
    crowdveil.errors.InputError: entropy must be a source of random bytes; got the seed 42; pass SystemEntropy() \
for answers of people, or entropy_from(42) for a simulation that can be repeated
    """
    if hasattr(entropy, "take") and not isinstance(entropy, np.ndarray | np.generic):
        return
    seeded = isinstance(entropy, int | str)
    got = f"the seed {entropy!r}" if seeded else type(entropy).__name__
    again = f"entropy_from({entropy!r})" if seeded else "entropy_from(seed)"
    raise InputError(
        f"entropy must be a source of random bytes; got {got}",
        fix=f"pass SystemEntropy() for answers of people, or {again} for a simulation that can be repeated",
    )


def uniforms(entropy: Entropy, n: int) -> NDArray[np.float64]:
    """`n` floats strictly inside (0, 1): for research mechanisms and simulated crowds, never for shipped channels."""
    return mantissas_to_uniform(np.right_shift(words(entropy, n, bits=64), np.uint64(64 - UNIFORM_BITS)))


def mantissas_to_uniform(mantissas: NDArray[Any]) -> NDArray[np.float64]:
    """The float that stands for each integer in [0, 2^UNIFORM_BITS), rising with it."""
    return (mantissas.astype(np.float64) + 0.5) * 2.0**-UNIFORM_BITS


def below(entropy: Entropy, n: int, limit: int) -> NDArray[np.int64]:
    """`n` integers in [0, limit): for simulations (bias below limit / 2^64)."""
    return (uniforms(entropy, n) * limit).astype(np.int64)
