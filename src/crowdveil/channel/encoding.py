"""The shapes an integer table can take: written out, or given by a few numbers when it is large.

Each form knows how to unfold itself into weights (inputs × outputs, every row summing to 2^bits) and how it is
spelled in the wire form. JavaScript unfolds the same three compact kinds in `device/channel_encoding.js`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.errors import ChannelError


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Every weight written out."""

    rows: NDArray[np.uint64]

    def weights(self, n_inputs: int, n_outputs: int, bits: int) -> NDArray[np.uint64]:
        return self.rows


@dataclass(frozen=True, slots=True)
class Rotate:
    """Randomised response: `keep` on the diagonal, `lie` everywhere else; `lie` = 0 is no privacy at all."""

    keep: int
    lie: int

    def weights(self, n_inputs: int, n_outputs: int, bits: int) -> NDArray[np.uint64]:
        rows = np.full((n_inputs, n_outputs), self.lie, dtype=np.uint64)
        np.fill_diagonal(rows, self.keep)
        return rows

    def to_json(self) -> dict[str, object]:
        return {"name": "rotate", "keep": str(self.keep), "lie": str(self.lie)}


@dataclass(frozen=True, slots=True)
class Subset:
    """Subset selection: outputs are all subsets of `size` inputs in lexicographic order.

    A subset that holds the input weighs `inside`, any other `outside`. What is then missing to 2^bits is handed
    out one by one to the first subsets that hold the input.
    """

    size: int
    inside: int
    outside: int

    def weights(self, n_inputs: int, n_outputs: int, bits: int) -> NDArray[np.uint64]:
        if not 0 < self.size < n_inputs or comb(n_inputs, self.size) != n_outputs:
            raise ChannelError(f"a subset channel has one output for each subset of {self.size} of its inputs")
        member = np.zeros((n_inputs, n_outputs), dtype=bool)
        for column, subset in enumerate(combinations(range(n_inputs), self.size)):
            member[list(subset), column] = True
        n_inside, n_outside = comb(n_inputs - 1, self.size - 1), comb(n_inputs - 1, self.size)
        missing = 2**bits - n_inside * self.inside - n_outside * self.outside
        if not 0 <= missing <= n_inside:
            raise ChannelError("the weights of a subset channel do not sum to 2^bits", fix="ask for the channel again")
        rows = np.where(member, np.uint64(self.inside), np.uint64(self.outside))
        rows += member & (member.cumsum(axis=1) <= missing)
        return rows

    def to_json(self) -> dict[str, object]:
        return {"name": "subset", "size": self.size, "inside": str(self.inside), "outside": str(self.outside)}


@dataclass(frozen=True, slots=True)
class Clamp:
    """Noise added to the level and clamped to the outputs: `noise` weighs the shifts −R … R.

    Input x stands at output `offset` + x. With `null_input` one more row follows, ∅: the mean of all others
    (rounded down, the remainder on its first largest weight), so ∅ is as private as a random answer.
    """

    noise: tuple[int, ...]
    offset: int
    null_input: bool = False

    def weights(self, n_inputs: int, n_outputs: int, bits: int) -> NDArray[np.uint64]:
        n_levels = n_inputs - self.null_input
        reach = len(self.noise) // 2
        # Checked here, because sums of 64-bit words would wrap round unseen.
        if len(self.noise) % 2 == 0 or sum(self.noise) != 2**bits:
            raise ChannelError(
                f"the noise of a channel must have an odd length and sum to 2^{bits}", fix="ask for the channel again"
            )
        noise = np.array(self.noise, dtype=np.uint64)
        rows = np.zeros((n_levels, n_outputs), dtype=np.uint64)
        for level, row in enumerate(rows):
            landing = np.clip(np.arange(-reach, reach + 1) + level + self.offset, 0, n_outputs - 1)
            np.add.at(row, landing, noise)
        return np.vstack([rows, mean_row(rows, bits)]) if self.null_input else rows

    def to_json(self) -> dict[str, object]:
        return {
            "name": "clamp",
            "noise": [str(weight) for weight in self.noise],
            "offset": self.offset,
            "null_input": self.null_input,
        }


Form: TypeAlias = Table | Rotate | Subset | Clamp


def mean_row(rows: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    """The mean of the rows in integers: it is as close to every row as the rows are to each other."""
    sums = [sum(int(weight) for weight in column) for column in rows.T]
    mean = [total // len(rows) for total in sums]
    mean[mean.index(max(mean))] += 2**bits - sum(mean)
    return np.array(mean, dtype=np.uint64)


def integer_row(probabilities: Sequence[Fraction | float], bits: int) -> list[int]:
    """Probabilities as integer weights of at least 1 that sum to 2^bits; the largest takes the remainder."""
    total = sum(Fraction(p) for p in probabilities)
    weights = [max(1, int(Fraction(p) * 2**bits / total)) for p in probabilities]
    weights[weights.index(max(weights))] += 2**bits - sum(weights)
    return weights


def compact_form(spelled: object) -> Form:
    """The compact form that a wire `kind` spells."""
    try:
        match spelled:
            case {"name": "rotate", "keep": str(keep), "lie": str(lie)}:
                return Rotate(count(keep), count(lie))
            case {"name": "subset", "size": int(size), "inside": str(inside), "outside": str(outside)} if (
                type(size) is int
            ):
                return Subset(size, count(inside), count(outside))
            case {"name": "clamp", "noise": list(noise), "offset": int(offset), "null_input": bool(null_input)} if (
                type(offset) is int  # true is an int to Python, and to no other reader
            ):
                return Clamp(tuple(count(weight) for weight in noise), offset, null_input)
    except ValueError as error:
        raise ChannelError(str(error), fix="ask for the channel again") from None
    raise ChannelError(f"channel kind not understood: {spelled!r}", fix="update crowdveil or ask for another channel")


def count(text: object) -> int:
    """A weight: a decimal string in its one canonical spelling."""
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or (text[0] == "0" and text != "0"):
        raise ValueError(f"a weight must be a decimal string without sign or leading zeros; got {text!r}")
    return int(text)
