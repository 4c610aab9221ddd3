"""The channel: P(report | answer) as a public table of integers, from which privacy and likelihood are computed.

It is the joint of the whole system. A mechanism builds it, a device draws through it, inference reads it; none of
them knows the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from math import comb
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crowdveil.canonical_json import sha256_hex
from crowdveil.channel.divergence import epsilon_of, rho_of
from crowdveil.channel.encoding import Form, Rotate, Subset, Table, compact_form, count
from crowdveil.domain import Domain
from crowdveil.errors import ChannelError
from crowdveil.guarantee import Guarantee, round_up

FORMAT = "crowdveil-channel/1"
MAX_TABLE_INPUTS = 64
"""The most inputs, ∅ included, of a channel that is written out as a whole table."""
MAX_OUTPUTS = 4096
"""The most outputs of a channel that is a table (rotations of one row may have more)."""
_FINE = 2**40

Sampler: TypeAlias = Literal["rotate", "prefix"]
Symbol: TypeAlias = str | None
Output: TypeAlias = str | tuple[str | None, ...] | None
"""A report: a symbol, a subset of symbols, or None for ∅."""


@dataclass(frozen=True, eq=False, repr=False)
class Channel:
    """Integer weights, input × output; every row sums to 2^bits. `None` is ∅ and always stands last.

    >>> from crowdveil.channel.encoding import Rotate
    >>> channel = Channel(("no", "yes"), ("no", "yes"), 32, "rotate", Rotate(3 * 2**30, 2**30))
    >>> print(channel.guarantee)
    ε ≤ 1.0987 per value (the value of one answered question); whether a question was answered is visible
    """

    inputs: tuple[Symbol, ...]
    outputs: tuple[Output, ...]
    bits: int
    sampler: Sampler
    form: Form

    def __post_init__(self) -> None:
        _check_shape(self)
        _check_sums(self)

    @property
    def protects_participation(self) -> bool:
        """∅ is an input like any other: whether the question was answered is randomised too."""
        return self.inputs[-1] is None

    @property
    def n_levels(self) -> int:
        """Inputs without ∅."""
        return len(self.inputs) - self.protects_participation

    @cached_property
    def weights(self) -> NDArray[np.uint64]:
        """The integer table, unfolded."""
        weights = self.form.weights(len(self.inputs), len(self.outputs), self.bits)
        weights.flags.writeable = False
        return weights

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """P(report | answer) as floats, input × output: for inference, never for drawing."""
        table = self.weights.astype(np.float64) / 2.0**self.bits
        table.flags.writeable = False
        return table

    @cached_property
    def guarantee(self) -> Guarantee:
        """Computed from the integers; nothing is claimed."""
        unit: Literal["cell", "value"] = "cell" if self.protects_participation else "value"
        rho = math.inf if self.is_identity else rho_of(self.worst_rows())
        return Guarantee(unit, self.epsilon, rho, protects_participation=self.protects_participation)

    @cached_property
    def epsilon(self) -> float:
        """The exact ε of the integers, as the next double upwards."""
        if self.is_identity:
            return math.inf
        return epsilon_of(self.every_weight())

    def every_weight(self) -> NDArray[np.uint64]:
        """Rows that hold every weight there is: two for randomised response, where all pairs are alike."""
        return self.worst_rows() if isinstance(self.form, Rotate) else self.weights

    def worst_rows(self) -> NDArray[np.uint64]:
        """Rows among which the largest loss stands: all of them, or two where all pairs are alike.

        Some weights of a subset channel are larger by 1. Where weights are large and ε is not tiny (above 2⁻¹³), that
        is far below what ρ is rounded up by; elsewhere, and for ε, every weight is read.
        """
        form = self.form
        if isinstance(form, Rotate):
            return _pair(form.keep, form.lie, len(self.inputs), 1)
        if isinstance(form, Subset) and form.outside >= _FINE and form.inside - form.outside > form.outside >> 13:
            return _pair(form.inside, form.outside, len(self.inputs), form.size)
        return self.weights

    @property
    def is_identity(self) -> bool:
        """No privacy at all: the report is the answer."""
        return isinstance(self.form, Rotate) and self.form.lie == 0

    def likelihood(self, reports: NDArray[Any]) -> NDArray[np.float64]:
        """P(report | answer) for each report code: one row per report, one column per input."""
        likelihood: NDArray[np.float64] = self.table.T[reports]
        return likelihood

    @cached_property
    def votes(self) -> NDArray[np.float64]:
        """Unbiased votes, output × input: E[votes[report] | answer] is 1 at the answer and 0 elsewhere."""
        if isinstance(self.form, Rotate) and self.form.keep > self.form.lie:
            lie, gap = self._lie_and_gap(self.form)
            return (np.eye(len(self.inputs)) - lie) / gap
        votes, exact = _unbiased(self.table, np.eye(len(self.inputs)))
        if not exact:
            raise ChannelError(
                "this channel does not tell all answers apart, so votes cannot be unbiased",
                fix="use channel-em or population-mean, or another mechanism",
            )
        return votes

    def scores(self, numbers: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """An unbiased number for each output, given that of each level (∅ counts 0), and its variance per input."""
        wanted = np.append(numbers, 0.0) if self.protects_participation else np.asarray(numbers, dtype=np.float64)
        if isinstance(self.form, Rotate) and self.form.keep > self.form.lie:
            lie, gap = self._lie_and_gap(self.form)
            scores = (wanted - lie * wanted.sum()) / gap
            second = gap * scores**2 + lie * (scores**2).sum()
            return scores, np.maximum(second - wanted**2, 0.0)
        scores = self._own_scores(wanted)
        return scores, np.maximum(self.table @ scores**2 - wanted**2, 0.0)

    def _lie_and_gap(self, form: Rotate) -> tuple[float, float]:
        """The probability of each lie, and by how much the answer is likelier: subtracted as integers, or two weights
        that differ by little would be one and the same double.
        """
        return form.lie / 2**self.bits, (form.keep - form.lie) / 2**self.bits

    def _own_scores(self, wanted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Outputs that are numbers and already unbiased are their own scores; else the least noisy unbiased ones."""
        try:
            spelled = np.array([float(output) for output in self.outputs])  # type: ignore[arg-type]
            if np.allclose(self.table @ spelled, wanted, atol=1e-6 * (1 + np.abs(wanted).max()), rtol=0):
                return spelled
        except (TypeError, ValueError):
            pass
        scores, exact = _unbiased(self.table, wanted)
        if not exact:
            raise ChannelError(
                "reports of this channel cannot be turned into unbiased numbers",
                fix="use channel-em, which reads the channel itself",
            )
        return scores

    def _fields(self) -> dict[str, object]:
        fields: dict[str, object] = {
            "format": FORMAT,
            "sampler": self.sampler,
            "inputs": list(self.inputs),
            "outputs": [list(output) if isinstance(output, tuple) else output for output in self.outputs],
            "bits": self.bits,
        }
        if not isinstance(self.form, Table) and len(self.inputs) > MAX_TABLE_INPUTS:
            return fields | {"kind": self.form.to_json()}
        return fields | {"weights": [[str(weight) for weight in row] for row in self.weights.tolist()]}

    @cached_property
    def sha256(self) -> str:
        """The channel's name on the wire: the hash of its canonical JSON."""
        return sha256_hex(self._fields())

    def to_json(self) -> dict[str, object]:
        """The wire form `crowdveil-channel/1`."""
        return self._fields() | {"sha256": self.sha256}

    @classmethod
    def from_json(cls, data: object) -> Channel:
        """Read the wire form; anything tampered with, not normalised or not understood is refused."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ChannelError(f"a channel must have the format {FORMAT!r}", fix="update crowdveil or ask for it again")
        fields = {key: value for key, value in data.items() if key != "sha256"}
        if (found := _hash_or_none(fields)) is None or found != data.get("sha256"):
            raise ChannelError(
                "the channel does not match its sha256: it was changed on the way", fix="ask for it again"
            )
        expected = {"format", "sampler", "inputs", "outputs", "bits"}
        if set(fields) not in (expected | {"weights"}, expected | {"kind"}):
            raise ChannelError(f"a channel has the fields {sorted(expected)} and weights or kind; got {sorted(fields)}")
        inputs, outputs = _symbols(fields["inputs"]), _symbols(fields["outputs"])
        form = compact_form(fields["kind"]) if "kind" in fields else _table_form(fields)
        channel = cls(inputs, outputs, fields["bits"], fields["sampler"], form)
        if channel.sha256 != data["sha256"]:
            raise ChannelError("the channel is not in its canonical form", fix="ask for it again")
        return channel

    def __repr__(self) -> str:
        loss = round_up(self.guarantee.epsilon)
        return (
            f"{type(self).__name__}({len(self.inputs)} answers × {len(self.outputs)} reports, sampler {self.sampler}, "
            f"{self.bits} bits, ε ≤ {loss}, sha256 {self.sha256[:8]}…)"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Made anew from its fields: what was computed from them is large and computed again where it is needed."""
        return type(self), tuple(getattr(self, each.name) for each in fields(self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Channel) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)


def identity(domain: Domain) -> Channel:
    """The identity channel of a domain: the report is the answer, ε = ∞, and it is shown as unprotected everywhere."""
    return Channel(domain.symbols, domain.symbols, 32, "rotate", Rotate(2**32, 0))


def _check_shape(channel: Channel) -> None:
    inputs, outputs = channel.inputs, channel.outputs
    if not inputs or not outputs or len(set(inputs)) != len(inputs) or len(set(outputs)) != len(outputs):
        raise ChannelError("inputs and outputs of a channel must be lists of different symbols")
    if None in inputs[:-1] or None in outputs[:-1]:
        raise ChannelError("null (no answer) must be the last symbol of a channel")
    if channel.bits not in (32, 64) or channel.sampler not in ("rotate", "prefix"):
        raise ChannelError(
            f"a channel has 32 or 64 bits and the sampler rotate or prefix; got {channel.bits!r}, {channel.sampler!r}"
        )
    if isinstance(channel.form, Rotate) != (channel.sampler == "rotate"):
        raise ChannelError("the sampler rotate belongs to randomised response, and only to it")
    if channel.sampler == "rotate" and inputs != outputs:
        raise ChannelError("randomised response reports the symbols it takes in; inputs and outputs differ")
    if not isinstance(channel.form, Rotate) and len(outputs) > MAX_OUTPUTS:
        raise ChannelError(f"a table channel has at most {MAX_OUTPUTS} outputs; got {len(outputs)}")


def _check_sums(channel: Channel) -> None:
    if isinstance(channel.form, Rotate):
        form = channel.form
        total = form.keep + (len(channel.inputs) - 1) * form.lie
        if total != 2**channel.bits or form.keep < form.lie or form.lie < 0 or form.keep >= 2**64:
            raise ChannelError(f"each row of a channel must sum to 2^{channel.bits}; got {total}")
        return
    try:
        shape = channel.weights.shape
    except OverflowError:
        raise ChannelError("every weight of a channel must be below 2^64", fix="ask for it again") from None
    if shape != (len(channel.inputs), len(channel.outputs)):
        raise ChannelError(f"the weights must be {len(channel.inputs)} × {len(channel.outputs)}")
    for number, row in enumerate(channel.weights.tolist(), start=1):
        if sum(row) != 2**channel.bits:
            raise ChannelError(f"row {number} of the channel must sum to 2^{channel.bits}; got {sum(row)}")


def _pair(inside: int, outside: int, n_inputs: int, size: int) -> NDArray[np.uint64]:
    """Two rows of a table over subsets: those that hold only the one input, only the other, and the rest.

    Outputs that are equally likely under both rows may be counted as one.
    """
    if n_inputs == 1:
        return np.array([[inside]], dtype=np.uint64)
    only = comb(n_inputs - 2, size - 1)
    both, neither = comb(n_inputs - 2, size - 2) if size > 1 else 0, comb(n_inputs - 2, size)
    rest = both * inside + neither * outside
    return np.array([[only * inside, only * outside, rest], [only * outside, only * inside, rest]], dtype=np.uint64)


def _table_form(fields: dict[str, object]) -> Form:
    try:
        rows = [[count(weight) for weight in row] for row in fields["weights"]]  # type: ignore[attr-defined]
        if fields["sampler"] != "rotate":
            return Table(np.array(rows, dtype=np.uint64))
    except (TypeError, ValueError, OverflowError) as error:
        raise ChannelError(f"the weights of the channel cannot be read: {error}", fix="ask for it again") from None
    if not rows or any(len(row) != len(rows) for row in rows):
        raise ChannelError("the weights of randomised response must be a square table", fix="ask for it again")
    keep, lie = rows[0][0], (rows[0][1] if len(rows[0]) > 1 else 0)
    if any(weight != (keep if x == y else lie) for x, row in enumerate(rows) for y, weight in enumerate(row)):
        raise ChannelError("randomised response has one weight on the diagonal and one elsewhere")
    return Rotate(keep, lie)


def _symbols(spelled: object) -> tuple[Any, ...]:
    if not isinstance(spelled, list):
        raise ChannelError("inputs and outputs of a channel must be lists")
    symbols = tuple(tuple(symbol) if isinstance(symbol, list) else symbol for symbol in spelled)
    flat = [part for symbol in symbols for part in (symbol if isinstance(symbol, tuple) else (symbol,))]
    if not all(part is None or isinstance(part, str) for part in flat):
        raise ChannelError("a symbol of a channel must be text, a list of texts or null")
    return symbols


def _hash_or_none(fields: dict[str, object]) -> str | None:
    try:
        return sha256_hex(fields)
    except (TypeError, ValueError):
        return None


def _unbiased(table: NDArray[np.float64], wanted: NDArray[np.float64]) -> tuple[NDArray[np.float64], bool]:
    """The least noisy solution of table @ solution = wanted under uniform answers, and whether it is exact."""
    mean = table.mean(axis=0)
    spread = np.divide(table, mean, out=np.zeros_like(table), where=mean > 0)
    solved = np.linalg.lstsq(spread @ table.T, wanted, rcond=1e-12)[0]
    solution = spread.T @ solved
    residual = np.abs(table @ solution - wanted).max()
    return solution, bool(residual <= 1e-7 * (1 + np.abs(wanted).max()))
