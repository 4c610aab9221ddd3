"""Write the byte-exact vectors that tie the Python sampler to the JavaScript one: `python tests/vectors/make.py`.

The committed files hold both languages to what they drew before; new mechanisms are compared from the registry, too.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from crowdveil import Channel, Choices, Scale
from crowdveil.canonical_json import canonical, sha256_hex
from crowdveil.channel.encoding import Clamp, Rotate, Subset, Table, integer_row
from crowdveil.domain import Domain
from crowdveil.entropy import FixedBytes
from crowdveil.errors import UnservableError
from crowdveil.exact import json_number
from crowdveil.mechanisms import MECHANISMS, mechanism
from crowdveil.sampler import draw

HERE = Path(__file__).parent
N_STREAM = 48
MOST_EDGES = 60

DOMAINS: dict[str, Domain] = {
    "yes-no": Choices(("no", "yes")),
    "five": Choices(("plain", "größer", "日本", "😀", '\ufb01n \u0000\t"\\/')),
    "stars": Scale(1, 5),
    "quarters": Scale(-1, 1, "0.5"),
    "seventy": Choices(tuple(f"option {i}" for i in range(70))),
    "percent": Scale(0, 100),
}


def everything() -> Iterator[tuple[str, str, Channel]]:
    """Every shipped mechanism where it serves, small and large, and every form by itself."""
    small = [name for name, domain in DOMAINS.items() if domain.size <= 64]
    yield from channels(small, [(0.5, False), (1.0, True), (4.0, False)])
    yield from channels([name for name in DOMAINS if name not in small], [(1.0, True)])
    yield from _forms()


def channels(names: list[str], settings: list[tuple[float, bool]]) -> Iterator[tuple[str, str, Channel]]:
    """The channels of the registry's shipped mechanisms: name, label, channel; what one cannot serve is left out."""
    shipped = [name for name, kind in MECHANISMS.items() if not kind.research_only]
    for name, domain_name, (epsilon, protect) in product(shipped, names, settings):
        try:
            built = mechanism(name, epsilon=epsilon, protect_participation=protect).channel(DOMAINS[domain_name])
        except UnservableError:
            continue
        yield name, f"{name} {domain_name} {epsilon}{' protected' if protect else ''}", built


def _forms() -> Iterator[tuple[str, str, Channel]]:
    wide = mechanism("randomized-response", epsilon=20).channel(Scale(1, 5))
    yield "", "rotate in 64 bits", wide
    many = tuple(f"o{i:02}" for i in range(70))
    pairs = tuple((many[i], many[j]) for i in range(70) for j in range(i + 1, 70))
    outside = 2**64 // (2415 * 2)
    inside = (2**64 - 2346 * outside) // 69
    yield "", "compact subset", Channel(many, pairs, 64, "prefix", Subset(2, inside, outside))
    noise = tuple(integer_row([math.exp(-abs(shift) / 9) for shift in range(-80, 81)], 64))
    levels = tuple(str(level) for level in range(66))
    for null_input in (False, True):
        inputs: tuple[Any, ...] = (*levels, None) if null_input else levels
        yield "", f"compact clamp {null_input}", Channel(inputs, levels, 64, "prefix", Clamp(noise, 0, null_input))
    ends_with_zero = np.array([[2**63, 2**63, 0], [2**62, 3 * 2**62, 0]], dtype=np.uint64)
    yield "", "an output that never happens", Channel(("a", "b"), ("x", "y", "z"), 64, "prefix", Table(ends_with_zero))
    starts_with_zero = np.array([[0, 2**31, 2**31], [0, 2**30, 3 * 2**30]], dtype=np.uint64)
    yield "", "zero first", Channel(("a", "b"), ("x", "y", "z"), 32, "prefix", Table(starts_with_zero))
    rare = np.array([[2**64 - 1 - 2**60, 2**60, 1], [2**64 - 2**60 - 2**40, 2**60, 2**40]], dtype=np.uint64)
    yield "", "rare but telling", Channel(("a", "b"), ("x", "y", "z"), 64, "prefix", Table(rare))
    same = np.array([[2**31, 2**31], [2**31, 2**31]], dtype=np.uint64)
    yield "", "says nothing", Channel(("a", "b"), ("x", "y"), 32, "prefix", Table(same))


def vector(name: str, label: str, channel: Channel) -> dict[str, Any]:
    """The channel, what it guarantees, and the reports of a byte stream and of every threshold's two sides."""
    answers = np.arange(N_STREAM) % len(channel.inputs)
    stream = hashlib.shake_256(label.encode()).digest(N_STREAM * channel.bits // 8)
    rows, edges = _edges(channel)
    edge_bytes = b"".join(edge.to_bytes(channel.bits // 8, "little") for edge in edges)
    return {
        "name": label,
        "mechanism": name,
        "channel": channel.to_json(),
        "epsilon": json_number(channel.epsilon),
        "rho": json_number(channel.guarantee.rho),
        "draws": [_draw(channel, answers, stream), _draw(channel, rows, edge_bytes)],
    }


def _edges(channel: Channel) -> tuple[np.ndarray[Any, Any], list[int]]:
    """The words 0, every threshold and the word before it, and the largest word, for each input (or a sample)."""
    pairs = []
    for row, weights in enumerate(channel.weights.tolist()):
        sums = np.cumsum(np.array(weights, dtype=object))[:-1].tolist()
        if isinstance(channel.form, Rotate):
            sums = [channel.form.keep + i * channel.form.lie for i in range(len(weights) - 1)]
        words = {0, 2**channel.bits - 1} | {word for edge in sums for word in (edge - 1, edge)}
        pairs += [(row, word) for word in sorted(words) if 0 <= word < 2**channel.bits]
    step = max(1, len(pairs) // MOST_EDGES)
    # An odd step visits both sides of the thresholds.
    chosen = pairs[:: step + (step % 2 == 0 and step > 1)]
    return np.array([row for row, _ in chosen]), [word for _, word in chosen]


def _draw(channel: Channel, inputs: np.ndarray[Any, Any], stream: bytes) -> dict[str, Any]:
    answers = np.where(inputs >= channel.n_levels, -1, inputs)
    reports = draw(channel, answers, FixedBytes(stream))
    return {"answers": answers.tolist(), "bytes": stream.hex(), "reports": reports.tolist()}


def canonical_values() -> list[dict[str, Any]]:
    """Values whose canonical spelling or order could differ between the languages."""
    values: list[Any] = [
        {"z": 1, "a": [True, False, None], "é": "ü", "A": {"b": -5, "a": 0}},
        {"\U0001f600": 1, "\ufb01": 2, "\ue000": 3, "a\U00010000": 4, "a\uffff": 5, "a": 6},
        '\u0000\u0001\u001f\u007f\u0080\u2028\u2029"\\/\b\f\n\r\t',
        [9007199254740991, -9007199254740991, 0],
        {"": {"": []}},
        "a" * 55,
        "a" * 56,
        "a" * 63,
        "a" * 64,
        "ä" * 1000,
    ]
    return [{"value": value, "text": canonical(value).decode(), "sha256": sha256_hex(value)} for value in values]


def refused() -> list[dict[str, Any]]:
    """Channels that must be refused in both languages, each with the reason."""
    table = Channel(("a", "b"), ("x", "y"), 32, "prefix", Table(np.array([[3, 1], [1, 3]], dtype=np.uint64) * 2**30))
    response = Channel(("no", "yes"), ("no", "yes"), 32, "rotate", Rotate(3 * 2**30, 2**30))
    wires = {name: built.to_json() for _, name, built in _forms()}
    clamp, subset = wires["compact clamp True"], wires["compact subset"]
    many = mechanism("randomized-response", epsilon=1).channel(Choices(tuple(f"o{i:02}" for i in range(70))))
    cases: list[tuple[str, Any]] = [
        ("not an object", [1]),
        ("nothing", None),
        ("another format", _with(table, format="crowdveil-channel/2")),
        ("one digit changed, hash kept", table.to_json() | {"weights": [["3221225473", "1073741823"]] * 2}),
        ("no hash", {key: value for key, value in table.to_json().items() if key != "sha256"}),
        ("null hash with a float", table.to_json() | {"bits": 32.5, "sha256": None}),
        ("no weights", _without(table, "weights")),
        ("both weights and kind", _with(table, kind={"name": "rotate", "keep": "1", "lie": "1"})),
        ("an unknown field", _with(table, delta="0")),
        ("a row too heavy", _with(table, weights=[["3221225472", "1073741825"], ["1073741824", "3221225472"]])),
        ("a row too light", _with(table, weights=[["3221225472", "1073741823"], ["1073741824", "3221225472"]])),
        ("a row that sums to 2^64 in 32 bits", _with(table, weights=[[str(2**63)] * 2] * 2)),
        ("a negative weight", _with(table, weights=[["-1", "4294967297"], ["1073741824", "3221225472"]])),
        ("a leading zero", _with(table, weights=[["03221225472", "1073741824"], ["1073741824", "3221225472"]])),
        ("a plus sign", _with(table, weights=[["+3221225472", "1073741824"], ["1073741824", "3221225472"]])),
        ("a space", _with(table, weights=[[" 3221225472", "1073741824"], ["1073741824", "3221225472"]])),
        ("other digits", _with(table, weights=[["٣", "4294967293"], ["1073741824", "3221225472"]])),
        ("an empty weight", _with(table, weights=[["", "4294967296"], ["1073741824", "3221225472"]])),
        ("weights as numbers", _with(table, weights=[[3221225472, 1073741824], [1073741824, 3221225472]])),
        ("weights as text", _with(table, weights="31")),
        ("weights missing a row", _with(table, weights=[["3221225472", "1073741824"]])),
        ("no rows", _with(table, weights=[])),
        ("no rows, rotate", _with(response, weights=[])),
        ("ragged rows", _with(table, weights=[["3221225472", "1073741824"], ["4294967296"]])),
        ("ragged rotate", _with(response, weights=[["3221225472", "1073741824"], ["4294967296"]])),
        ("no inputs", _with(table, inputs=[], weights=[])),
        ("inputs as text", _with(table, inputs="ab")),
        ("a number among the inputs", _with(table, inputs=["a", 1])),
        ("a nested list among the outputs", _with(table, outputs=["x", ["y", ["z"]]])),
        ("an input twice", _with(table, inputs=["a", "a"])),
        ("an output twice", _with(table, outputs=[["x"], ["x"]])),
        ("null first", _with(table, inputs=[None, "b"])),
        ("null first among the outputs", _with(table, outputs=[None, "y"])),
        ("bits", _with(table, bits=16)),
        ("bits as text", _with(table, bits="32")),
        ("sampler", _with(table, sampler="alias")),
        ("randomised response with another table", _with(response, weights=[["4", "1"], ["1", "4"]])),
        (
            "randomised response with two kinds of lies",
            _with(response, weights=[["3221225472", "1073741824"], ["1073741825", "3221225471"]]),
        ),
        (
            "randomised response that lies more than it keeps",
            _with(response, weights=[["1073741824", "3221225472"], ["3221225472", "1073741824"]]),
        ),
        ("randomised response onto other outputs", _with(response, outputs=["yes", "no"])),
        (
            "a small channel in compact form",
            _without(response, "weights", kind={"name": "rotate", "keep": "3221225472", "lie": "1073741824"}),
        ),
        (
            "a large rotation written out",
            _without(many, "kind", weights=[[str(w) for w in r] for r in many.weights.tolist()]),
        ),
        ("an unknown kind", _with(many, kind={"name": "mystery"})),
        ("a kind with more fields", _with(many, kind=many.form.to_json() | {"more": 1})),
        ("a kind that is text", _with(many, kind="rotate")),
        ("a rotation drawn by prefix", _with(many, sampler="prefix")),
        ("a subset of the wrong size", _with(subset, kind=subset["kind"] | {"size": 35})),
        ("a subset of nothing", _with(subset, kind=subset["kind"] | {"size": 0})),
        ("a subset of minus one", _with(subset, kind=subset["kind"] | {"size": -1})),
        ("a subset too heavy", _with(subset, kind=subset["kind"] | {"inside": str(2**63)})),
        ("a subset far too heavy", _with(subset, kind=subset["kind"] | {"inside": str(2**70)})),
        ("a subset size that is true", _with(subset, kind=subset["kind"] | {"size": True})),
        ("noise of even length", _with(clamp, kind=clamp["kind"] | {"noise": clamp["kind"]["noise"][:-1]})),
        ("noise too light", _with(clamp, kind=clamp["kind"] | {"noise": ["1", "2", "1"]})),
        ("noise that wraps round", _with(clamp, kind=clamp["kind"] | {"noise": [str(2**63)] * 4 + ["0"]})),
        ("noise beyond 64 bits", _with(clamp, kind=clamp["kind"] | {"noise": ["0", str(2**65), "0"]})),
        ("no noise", _with(clamp, kind=clamp["kind"] | {"noise": []})),
        ("an offset that is text", _with(clamp, kind=clamp["kind"] | {"offset": "0"})),
        ("null_input as a number", _with(clamp, kind=clamp["kind"] | {"null_input": 1})),
        # Weights are numbers of 64 bits; only a report that is certain would weigh 2^64.
        ("a weight of 2^64", _with(table, bits=64, weights=[[str(2**64), "0"], ["0", str(2**64)]])),
        ("a weight of 2^64 on the only output", _with(table, bits=64, outputs=["x"], weights=[[str(2**64)]] * 2)),
        (
            "a subset that weighs 2^64",
            _with(
                subset,
                outputs=subset["inputs"],
                kind={"name": "subset", "size": 1, "inside": str(2**64), "outside": "0"},
            ),
        ),
        ("noise of 2^64", _with(clamp, kind=clamp["kind"] | {"noise": ["0", str(2**64), "0"]})),
        *(
            (
                f"noise onto one output{', and its mean' if null_input else ''}",
                _with(wires[f"compact clamp {null_input}"], outputs=["0"]),
            )
            for null_input in (False, True)
        ),
    ]
    return [{"why": why, "channel": channel} for why, channel in cases]


def _with(channel: Channel | dict[str, Any], **changed: Any) -> dict[str, Any]:
    """The wire form with some fields changed and a hash that fits: only the rules can refuse it."""
    return _without(channel, **changed)


def _without(channel: Channel | dict[str, Any], *dropped: str, **changed: Any) -> dict[str, Any]:
    wire = channel.to_json() if isinstance(channel, Channel) else channel
    fields = {key: value for key, value in wire.items() if key not in ("sha256", *dropped)} | changed
    return fields | {"sha256": sha256_hex(fields)}


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """One vector a line, so that a change shows as one line."""
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    (HERE / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    write("canonical.json", canonical_values())
    write("refused.json", refused())
    write("channels.json", [vector(*each) for each in everything()])
