"""Laws of every channel that a shipped mechanism builds; a new mechanism is under them without being named."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from laws.registry import SHIPPED, channel_of, channels, epsilons, exact_ratio, exceeds, served, unfolded

from crowdveil import Channel, Choices, Scale
from crowdveil.channel.encoding import Rotate
from crowdveil.entropy import FixedBytes, Keystream, words
from crowdveil.errors import ChannelError, InputError
from crowdveil.mechanisms import MECHANISMS, mechanism
from crowdveil.sampler import Guided, Thresholds, draw

every_shipped_mechanism = pytest.mark.parametrize("name", SHIPPED)
few = settings(max_examples=8)


@every_shipped_mechanism
@few
@given(data=st.data())
def test_channel_rows_sum_to_two_to_the_bits(name: str, data: st.DataObject) -> None:
    channel = data.draw(channels(name))
    for row in unfolded(json.loads(json.dumps(channel.to_json()))):
        assert sum(row) == 2**channel.bits
        assert min(row) >= 1


@every_shipped_mechanism
@few
@given(data=st.data())
def test_epsilon_is_never_understated(name: str, data: st.DataObject) -> None:
    channel = data.draw(channels(name))
    ratio = exact_ratio(unfolded(json.loads(json.dumps(channel.to_json()))))
    assert not exceeds(ratio, channel.epsilon)
    assert exceeds(ratio, np.nextafter(channel.epsilon, 0)) or channel.epsilon == 0  # nor overstated
    assert channel.guarantee.rho <= channel.epsilon**2 / 2 * (1 + 1e-6)
    assert channel.guarantee.delta == 0


GRID = [0.01, 0.1, 1.0, 3.0, 8.0, 20.0]
SIZES = [2, 3, 5, 10, 32, 33, 64, 65, 91, 100]


@every_shipped_mechanism
@pytest.mark.parametrize("epsilon", GRID)
def test_the_request_is_kept_or_refused_with_an_alternative(name: str, epsilon: float) -> None:
    n_served = 0
    for k in SIZES:
        for protect in (False, True):
            channel = served(name, epsilon, Scale(1, k), protect)
            if channel is None:
                continue
            wire = json.loads(json.dumps(channel.to_json()))
            assert wire["inputs"] == [*Scale(1, k).symbols, *([None] if protect else [])]
            assert not exceeds(exact_ratio(unfolded(wire)), epsilon), (k, protect)
            n_served += 1
    assert n_served or (name, epsilon > 8) == ("optimal-scale", True)


def test_randomised_response_keeps_nearly_all_of_its_epsilon() -> None:
    for k in range(2, 101):
        channel = channel_of("randomized-response", 1.0, Choices(tuple(map(str, range(k)))), False)
        assert 1 - 1e-6 <= channel.epsilon <= 1


@every_shipped_mechanism
@few
@given(data=st.data())
def test_wire_form_round_trips(name: str, data: st.DataObject) -> None:
    channel = data.draw(channels(name))
    again = Channel.from_json(json.loads(json.dumps(channel.to_json())))
    assert again == channel
    assert again.to_json() == channel.to_json()
    assert np.array_equal(again.weights, channel.weights)
    assert again.guarantee.epsilon == channel.guarantee.epsilon


@pytest.mark.parametrize("name", ["randomized-response", "subset-selection", "discrete-laplace", "discrete-gaussian"])
@pytest.mark.parametrize("protect", [False, True])
def test_a_compact_channel_unfolds_as_documented(name: str, protect: bool) -> None:
    channel = channel_of(name, 1.5, Scale(0, 79), protect)
    wire = channel.to_json()
    assert "kind" in wire
    assert unfolded(json.loads(json.dumps(wire))) == channel.weights.tolist()
    assert Channel.from_json(json.loads(json.dumps(wire))) == channel


def _tamper(wire: dict[str, Any], where: int) -> dict[str, Any]:
    bad = json.loads(json.dumps(wire))
    kinds = [
        lambda: bad["weights"][0].__setitem__(0, str(int(bad["weights"][0][0]) + 1)),
        lambda: bad["weights"][-1].reverse(),
        lambda: bad["inputs"].reverse(),
        lambda: bad.__setitem__("bits", 96 - bad["bits"]),
        lambda: bad.__setitem__("sampler", "prefix" if bad["sampler"] == "rotate" else "rotate"),
        lambda: bad.__setitem__("sha256", "0" * 64),
        lambda: bad.pop("sha256"),
        lambda: bad.__setitem__("extra", "field"),
    ]
    kinds[where % len(kinds)]()
    return bad


@every_shipped_mechanism
@few
@given(data=st.data(), where=st.integers(0, 7))
def test_a_tampered_channel_is_refused(name: str, data: st.DataObject, where: int) -> None:
    wire = data.draw(channels(name)).to_json()
    bad = _tamper(wire, where)
    if bad != wire:
        with pytest.raises(ChannelError):
            Channel.from_json(bad)


@every_shipped_mechanism
@few
@given(data=st.data())
def test_votes_are_unbiased_where_the_channel_tells_all_answers_apart(name: str, data: st.DataObject) -> None:
    channel = data.draw(channels(name, largest=8))
    try:
        votes = channel.votes
    except ChannelError:
        return
    size = np.abs(votes).max()
    assert np.allclose(channel.table @ votes, np.eye(len(channel.inputs)), atol=1e-6 + 1e-12 * size)


@every_shipped_mechanism
@few
@given(data=st.data(), epsilon=epsilons(), k=st.integers(2, 12))
def test_scores_are_unbiased(name: str, data: st.DataObject, epsilon: float, k: int) -> None:
    scale = Scale(1, k)
    channel = served(name, epsilon, scale, False)
    assume(channel is not None)
    assert channel is not None
    try:
        scores, variance = channel.scores(scale.numbers)
    except ChannelError:
        assert name == "discrete-gaussian"  # at a very small ε its levels are alike to within rounding
        return
    size = np.abs(scores).max()
    assert np.allclose(channel.table @ scores, scale.numbers, atol=1e-5 * k + 1e-12 * size)
    assert np.allclose(channel.table @ scores**2 - scale.numbers**2, variance, rtol=1e-6, atol=1e-6 * (1 + size))


def _oracle(channel: Channel, inputs: list[int], stream: list[int]) -> list[int]:
    """One report after another, as the wire form's page says, with Python's own integers."""
    rows = unfolded(json.loads(json.dumps(channel.to_json())))
    reports = []
    for x, u in zip(inputs, stream, strict=True):
        if channel.sampler == "rotate":
            keep, lie = rows[x][x], rows[x][(x + 1) % len(rows)]
            reports.append(x if u < keep else (x + 1 + (u - keep) // lie) % len(rows))
        else:
            sums = np.cumsum(np.array(rows[x][:-1], dtype=object)).tolist()
            reports.append(sum(threshold <= u for threshold in sums))
    return reports


@every_shipped_mechanism
@few
@given(data=st.data())
def test_the_sampler_follows_the_page_byte_for_byte_at_every_edge(name: str, data: st.DataObject) -> None:
    channel = data.draw(channels(name, largest=6))
    top = 2**channel.bits - 1
    rows = unfolded(json.loads(json.dumps(channel.to_json())))
    edges, inputs = [], []
    for x, row in enumerate(rows):
        sums = np.cumsum(np.array(row, dtype=object)).tolist()
        if isinstance(channel.form, Rotate):
            sums = [channel.form.keep + i * channel.form.lie for i in range(len(rows))]
        near = {0, top, *(min(max(edge + shift, 0), top) for edge in sums for shift in (-1, 0, 1))}
        edges += sorted(near)
        inputs += [x] * len(near)
    stream = b"".join(u.to_bytes(channel.bits // 8, "little") for u in edges)
    codes = np.array(inputs)
    answers = np.where(codes == channel.n_levels, -1, codes)
    assert draw(channel, answers, FixedBytes(stream)).tolist() == _oracle(channel, inputs, edges)


TABLES = [name for name in SHIPPED if name not in ("randomized-response", "one-layer")]
LARGE = ["subset-selection", "discrete-laplace", "discrete-gaussian"]


@pytest.mark.parametrize(("name", "k"), [*((name, 7) for name in TABLES), *((name, 90) for name in LARGE)])
def test_the_guided_sampler_equals_the_plain_one(name: str, k: int) -> None:
    channel = channel_of(name, 0.9, Scale(1, k), True)
    assert channel.sampler == "prefix"
    stream = Keystream(f"guide {name} {k}")
    inputs = words(stream, 40_000, bits=32).astype(np.int64) % len(channel.inputs)
    word = words(stream, 40_000, bits=channel.bits)
    rows = inputs.astype(np.int32)
    assert np.array_equal(Guided(channel)(rows, word), Thresholds(channel)(rows, word))


def test_every_mechanism_refuses_bad_epsilons() -> None:
    for name in MECHANISMS:
        if name == "none":
            continue
        for bad in (-1.0, float("inf"), float("nan")):
            with pytest.raises(InputError, match="epsilon must be"):
                mechanism(name, epsilon=bad)
