"""Python and JavaScript agree byte for byte: canonical JSON, hashes, refusals, privacy losses and draws."""

from __future__ import annotations

import copy
import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device.node import DEVICE, node, vectors
from vectors.make import channels, vector

from crowdveil import Channel, ChannelError
from crowdveil.canonical_json import canonical, sha256_hex
from crowdveil.entropy import FixedBytes
from crowdveil.exact import json_number
from crowdveil.mechanisms import MECHANISMS
from crowdveil.sampler import draw

RUN = Path(__file__).parent / "run.mjs"
CONFORMANCE = DEVICE / "conformance.mjs"
CHANNELS = vectors("channels.json")
REFUSED = vectors("refused.json")


def test_canonical_json_and_its_hash_are_the_same_bytes() -> None:
    rows = vectors("canonical.json")
    expected = [{"text": row["text"], "sha256": row["sha256"]} for row in rows]
    assert [{"text": canonical(row["value"]).decode(), "sha256": sha256_hex(row["value"])} for row in rows] == expected
    assert node(RUN, {"check": "canonical", "given": [row["value"] for row in rows]}) == expected


def test_canonical_json_agrees_on_random_values() -> None:
    chance = random.Random(7)
    values = [_value(chance, 3) for _ in range(400)]
    expected = [{"text": canonical(value).decode(), "sha256": sha256_hex(value)} for value in values]
    assert node(RUN, {"check": "canonical", "given": values}) == expected


def test_what_has_no_canonical_spelling_is_refused() -> None:
    given = [1.5, [{"a": 0.1}], "\ud800", 2**60]
    answers = node(RUN, {"check": "canonical", "given": given})
    assert answers == [{"refused": "canonical.value"}] * len(given)


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case["why"])
def test_python_refuses_a_bad_channel(case: dict[str, Any]) -> None:
    with pytest.raises(ChannelError):
        Channel.from_json(case["channel"])


def test_javascript_refuses_every_bad_channel() -> None:
    answers = node(RUN, {"check": "refused", "given": [case["channel"] for case in REFUSED]})
    accepted = [case["why"] for case, answer in zip(REFUSED, answers, strict=True) if "refused" not in answer]
    assert accepted == []


def test_both_refuse_the_same_of_many_random_changes() -> None:
    chance = random.Random(11)
    small = [row["channel"] for row in CHANNELS if len(json.dumps(row["channel"])) < 4000]
    changed = [_changed(chance, chance.choice(small)) for _ in range(1500)]
    answers = node(RUN, {"check": "refused", "given": changed})
    ours = [_accepts(wire) for wire in changed]
    assert [("refused" not in answer) for answer in answers] == ours
    assert 0 < sum(ours) < len(ours)


@pytest.mark.parametrize("row", CHANNELS, ids=lambda row: row["name"])
def test_python_gives_the_committed_reports(row: dict[str, Any]) -> None:
    channel = Channel.from_json(row["channel"])
    for each in row["draws"]:
        stream = FixedBytes(bytes.fromhex(each["bytes"]))
        assert draw(channel, np.array(each["answers"]), stream).tolist() == each["reports"]
    assert json_number(channel.epsilon) == row["epsilon"]


def test_javascript_gives_the_committed_reports_and_losses() -> None:
    given = [_all_draws(row) | {"channel": row["channel"], "rho": _quick(row)} for row in CHANNELS]
    for row, got in zip(CHANNELS, node(CONFORMANCE, given), strict=True):
        assert got["reports"] == _all_draws(row)["reports"], row["name"]
        assert got["sha256"] == row["channel"]["sha256"]
        assert got["epsilon"] == row["epsilon"], row["name"]
        assert not _quick(row) or math.isclose(float(got["rho"]), float(row["rho"]), rel_tol=2e-4), row["name"]


def test_a_mechanism_in_the_registry_runs_on_the_device_without_further_work() -> None:
    rows = [vector(*each) for each in channels(["yes-no", "stars"], [(1.0, False), (1.0, True)])]
    assert {row["mechanism"] for row in rows} == {name for name, kind in MECHANISMS.items() if not kind.research_only}
    given = [_all_draws(row) | {"channel": row["channel"]} for row in rows]
    for row, got in zip(rows, node(CONFORMANCE, given), strict=True):
        assert got["reports"] == _all_draws(row)["reports"], row["name"]
        assert got["epsilon"] == row["epsilon"], row["name"]


def test_one_vector_alone_and_short_bytes() -> None:
    row = CHANNELS[0]
    assert node(CONFORMANCE, {"channel": row["channel"], **row["draws"][0]})["reports"] == row["draws"][0]["reports"]
    assert node(CONFORMANCE, {"channel": row["channel"], "answers": [0], "bytes": "00"}) == {"refused": "bytes.short"}


def test_answers_outside_the_domain_are_refused() -> None:
    row = next(row for row in CHANNELS if row["channel"]["inputs"] == ["no", "yes"])
    given = [{"channel": row["channel"], "answers": [answer], "bytes": "00" * 8} for answer in (2, -1, -2, 0.5, None)]
    assert node(CONFORMANCE, given) == [{"refused": "answer.code"}] * 5


def test_entropy_is_taken_in_pieces_the_browser_allows() -> None:
    short, long = node(RUN, {"check": "entropy", "given": [10, 200_000]})
    assert (short["length"], long["length"]) == (10, 200_000)
    # 1000 random bytes take about 251 of 256 values; zeros left at the end would take one.
    assert long["distinct"] == 256
    assert long["tail"] > 200


def _quick(row: dict[str, Any]) -> bool:
    """The search for ρ looks at every pair of rows; on the largest tables it takes seconds."""
    return len(row["channel"]["inputs"]) ** 2 * len(row["channel"]["outputs"]) < 2_000_000


def _all_draws(row: dict[str, Any]) -> dict[str, Any]:
    """The draws of a vector one after the other, as if they were one."""
    first, *others = row["draws"]
    for other in others:
        first = {key: first[key] + other[key] for key in first}
    return first


def _value(chance: random.Random, depth: int) -> Any:
    texts = ["", "a", "\u00e9", "\ufb01", "\U0001f600", "\x00", "\u2028", '"', "\\", "\ue000\U00010000", "b"]
    text = "".join(chance.choices(texts, k=chance.randrange(4)))
    kind = chance.randrange(7 if depth else 5)
    if kind == 5:
        return [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 6:
        return {
            "".join(chance.choices(texts, k=chance.randrange(4))): _value(chance, depth - 1)
            for _ in range(chance.randrange(5))
        }
    return [text, chance.randrange(-(2**53) + 1, 2**53), None, True, False][kind]


def _changed(chance: random.Random, wire: dict[str, Any]) -> dict[str, Any]:
    """One random change somewhere in the wire form, mostly with a hash that fits."""
    fields = copy.deepcopy({key: value for key, value in wire.items() if key != "sha256"})
    place: Any = fields
    while True:
        key = chance.choice(sorted(place)) if isinstance(place, dict) else chance.randrange(len(place))
        if not isinstance(place[key], dict | list) or not place[key] or chance.random() < 0.1:
            break
        place = place[key]
    others = [None, "", "0", "1", "yes", "no", "prefix", "rotate", 32, 64, 0, True, [], ["no"], {}, str(2**31), place]
    other = chance.choice(others)
    place[key] = copy.deepcopy(place[key] if other is place else other)
    if chance.random() < 0.2:
        return fields | {"sha256": wire["sha256"]}
    return fields | {"sha256": sha256_hex(fields)}


def _accepts(wire: dict[str, Any]) -> bool:
    try:
        Channel.from_json(wire)
    except ChannelError:
        return False
    return True
