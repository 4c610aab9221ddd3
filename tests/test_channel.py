"""The channel: privacy and likelihood from the integers, one spelling on the wire, and refusal of anything else."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from crowdveil import Channel, Choices, Scale, identity
from crowdveil.canonical_json import sha256_hex
from crowdveil.channel.encoding import Clamp, Rotate, Subset, Table, compact_form, integer_row, mean_row
from crowdveil.errors import ChannelError

KEEP, LIE = 3 * 2**30, 2**30


def binary() -> Channel:
    return Channel(("no", "yes"), ("no", "yes"), 32, "rotate", Rotate(KEEP, LIE))


def table(*rows: list[int], bits: int = 32, outputs: tuple[str, ...] | None = None) -> Channel:
    names = outputs or tuple(f"out {i}" for i in range(len(rows[0])))
    inputs = tuple(f"in {i}" for i in range(len(rows)))
    return Channel(inputs, names, bits, "prefix", Table(np.array(rows, dtype=np.uint64)))


def signed(fields: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in fields.items() if key != "sha256"}
    return rest | {"sha256": sha256_hex(rest)}


def test_epsilon_is_the_largest_ratio_within_a_column() -> None:
    assert binary().epsilon == pytest.approx(math.log(3))
    assert binary().epsilon >= math.log(3)
    assert table([2**31, 2**31], [2**30, 3 * 2**30]).epsilon == pytest.approx(math.log(2))


def test_an_output_only_some_answers_can_give_is_no_privacy() -> None:
    assert table([2**32 - 1, 1], [2**32, 0]).epsilon == math.inf
    assert not table([2**32 - 1, 1], [2**32, 0]).guarantee.protected


def test_an_output_that_never_happens_says_nothing() -> None:
    assert table([2**31, 2**31, 0], [2**31, 2**31, 0]).epsilon == 0


def test_the_identity_has_no_guarantee() -> None:
    channel = identity(Choices(("a", "b", "c")))
    assert channel.epsilon == channel.guarantee.rho == math.inf
    assert channel.is_identity
    assert str(channel.guarantee) == "not protected: the report is the answer (ε = ∞)"
    assert np.array_equal(channel.votes, np.eye(3))


def test_likelihood_reads_the_columns() -> None:
    assert np.allclose(binary().likelihood(np.array([0, 1, 1])), [[0.75, 0.25], [0.25, 0.75], [0.25, 0.75]])


def test_votes_and_scores_are_unbiased_and_their_variance_exact() -> None:
    channel = binary()
    assert np.allclose(channel.table @ channel.votes, np.eye(2))
    scores, variance = channel.scores(np.array([0.0, 1.0]))
    assert np.allclose(channel.table @ scores, [0, 1])
    assert np.allclose(variance, 0.75 * 0.25 / 0.25)
    written = table([KEEP, LIE], [LIE, KEEP], outputs=("0", "1"))
    assert np.allclose(written.votes, channel.votes)
    assert np.allclose(written.scores(np.array([0.0, 1.0]))[1], variance)


def test_weights_that_differ_by_one_still_tell_the_answer_apart() -> None:
    """As doubles they are the same number, and votes were infinite."""
    symbols, lie = ("no", "yes", "so"), 2**64 // 3
    channel = Channel(symbols, symbols, 64, "rotate", Rotate(2**64 - 2 * lie, lie))
    assert (channel.votes.diagonal() > 2**63).all()
    assert np.isfinite(channel.scores(np.arange(3.0))[0]).all()


def test_a_channel_that_says_nothing_has_no_votes() -> None:
    silent = Channel(("no", "yes"), ("no", "yes"), 32, "rotate", Rotate(2**31, 2**31))
    assert silent.epsilon == 0
    with pytest.raises(ChannelError, match="does not tell all answers apart"):
        _ = silent.votes
    with pytest.raises(ChannelError, match="cannot be turned into unbiased numbers"):
        silent.scores(np.array([0.0, 1.0]))


def test_the_empty_answer_counts_zero_in_scores() -> None:
    channel = Channel(("1", "2", None), ("1", "2", None), 32, "rotate", Rotate(2**31, 2**30))
    scores, _ = channel.scores(np.array([1.0, 2.0]))
    assert np.allclose(channel.table @ scores, [1, 2, 0])
    assert channel.guarantee.unit == "cell"


def test_numbers_are_read_only() -> None:
    for array in (binary().weights, binary().table):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 1


@pytest.mark.parametrize(
    "build",
    [
        lambda: Channel((), (), 32, "rotate", Rotate(1, 1)),
        lambda: Channel(("a", "a"), ("a", "a"), 32, "rotate", Rotate(KEEP, LIE)),
        lambda: Channel((None, "a"), (None, "a"), 32, "rotate", Rotate(KEEP, LIE)),
        lambda: Channel(("a", "b"), ("a", "c"), 32, "rotate", Rotate(KEEP, LIE)),
        lambda: Channel(("a", "b"), ("a", "b"), 31, "rotate", Rotate(KEEP, LIE)),
        lambda: Channel(("a", "b"), ("a", "b"), 32, "prefix", Rotate(KEEP, LIE)),
        lambda: Channel(("a", "b"), ("a", "b"), 32, "rotate", Rotate(KEEP, LIE + 1)),
        lambda: Channel(("a", "b"), ("a", "b"), 32, "rotate", Rotate(LIE, KEEP)),
        lambda: table([2**31, 2**31], [2**31, 2**31 - 1]),
        lambda: Channel(("a",), ("x", "y"), 32, "prefix", Table(np.array([[2**32]], dtype=np.uint64))),
        lambda: Channel(("a",), tuple(map(str, range(5000))), 32, "prefix", Table(np.ones((1, 5000), dtype=np.uint64))),
    ],
)
def test_what_is_not_a_channel_is_refused(build: Any) -> None:
    with pytest.raises(ChannelError):
        build()


@pytest.mark.parametrize(
    "change",
    [
        {"format": "crowdveil-channel/2"},
        {"bits": "32"},
        {"weights": [["1", "2"], ["3", "4"]]},
        {"weights": [["3221225472", "1073741824"], ["1073741824", "03221225472"]]},
        {"weights": [["3221225472", "1073741824"], ["1073741824"]]},
        {"weights": "none"},
        {"inputs": "no"},
        {"inputs": ["no", 1]},
        {"kind": {"name": "rotate", "keep": "3221225472", "lie": "1073741824"}},
        {"note": "unknown field"},
    ],
)
def test_a_wire_form_with_a_valid_hash_but_a_wrong_meaning_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ChannelError):
        Channel.from_json(signed(binary().to_json() | change))


def test_a_small_compact_kind_is_not_the_canonical_spelling() -> None:
    fields = {key: value for key, value in binary().to_json().items() if key not in ("sha256", "weights")}
    compact = fields | {"kind": Rotate(KEEP, LIE).to_json()}
    with pytest.raises(ChannelError, match="canonical"):
        Channel.from_json(signed(compact))


@pytest.mark.parametrize("data", [None, [], "text", {}, {"format": "crowdveil-channel/1"}, {"sha256": None}])
def test_what_is_not_a_wire_form_is_refused(data: object) -> None:
    with pytest.raises(ChannelError):
        Channel.from_json(data)


def test_the_wire_form_names_what_it_is() -> None:
    wire = binary().to_json()
    assert wire["sha256"] == binary().sha256 == sha256_hex({k: v for k, v in wire.items() if k != "sha256"})
    assert json.loads(json.dumps(wire)) == wire
    assert {binary(), binary()} == {binary()}


def test_compact_forms_unfold_to_rows_of_the_right_sum() -> None:
    inside = 2**64 // 9 * 2
    subset = Subset(2, inside, (2**64 - 3 * inside) // 3).weights(4, 6, 64)
    assert [sum(row) for row in subset.tolist()] == [2**64] * 4
    noise = tuple(integer_row([1, 2, 4, 2, 1], 32))
    clamp = Clamp(noise, 1, True).weights(4, 5, 32)
    assert [sum(row) for row in clamp.tolist()] == [2**32] * 4
    assert clamp[3].tolist() == mean_row(clamp[:3], 32).tolist()
    assert clamp[0].tolist() == [noise[0] + noise[1], noise[2], noise[3], noise[4], 0]


def test_integer_rows_have_no_zeros_and_the_right_sum() -> None:
    row = integer_row([0.0, 1e-30, 0.5, 0.5], 64)
    assert sum(row) == 2**64
    assert min(row) == 1


def test_unknown_compact_kinds_are_refused() -> None:
    rotate = {"name": "rotate", "keep": "3", "lie": "1"}
    for change in ({"name": "other"}, {"keep": 3}, {"keep": "-3"}, {"keep": "03"}, {"keep": ""}):
        with pytest.raises(ChannelError):
            compact_form(rotate | change)


def test_large_tables_travel_compactly() -> None:
    domain = Scale(0, 79)
    channel = Channel(domain.symbols, domain.symbols, 64, "rotate", Rotate(2**64 - 79 * 2**40, 2**40))
    assert channel.to_json()["kind"] == {"name": "rotate", "keep": str(2**64 - 79 * 2**40), "lie": str(2**40)}
    assert len(json.dumps(channel.to_json())) < 2000
