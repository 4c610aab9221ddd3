"""Conformance: the code that draws really is the table, byte for byte, at every threshold edge.

The reference below is written from the specification with Python's own integers and shares no line with the sampler.
JavaScript is asked through Node with the same bytes; without Node the answer is `unknown`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from itertools import accumulate

import numpy as np

from crowdveil.answers import Answers
from crowdveil.audit.finding import Verdict
from crowdveil.channel import Channel
from crowdveil.channel.encoding import Rotate
from crowdveil.domain import EMPTY, Domain
from crowdveil.entropy import Entropy, FixedBytes
from crowdveil.mechanisms import Mechanism
from crowdveil.sampler import GUIDE_FROM, draw

_MOST_ROWS = 64
_MOST_EDGES = 2048
_RANDOM_WORDS = 64
_NODE_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Vector:
    """Answers, the random bytes they are drawn with, and the reports the specification demands."""

    channel: Channel
    answers: tuple[int, ...]
    data: bytes
    reports: tuple[int, ...]


def vector_of(channel: Channel, entropy: Entropy) -> Vector:
    """A test vector of a channel: random words, and the report that the specification demands for each.

    The words are the first and last of every output in every row, or as many as fit, and some random ones.
    """
    rows = sorted(set(np.linspace(0, len(channel.inputs) - 1, _MOST_ROWS).astype(int).tolist()))
    per_row = max(4, _MOST_EDGES // len(rows))
    cases: list[tuple[int, int, int]] = []
    for row in rows:
        ends = _ends(channel, row)
        words = _edges(ends, channel.bits)[:per_row] + _random_words(entropy, channel.bits)
        cases += [(row, word, _specified_output(channel, row, ends, word)) for word in words]
    answers = tuple(EMPTY if row == channel.n_levels else row for row, _, _ in cases)
    data = b"".join(word.to_bytes(channel.bits // 8, "little") for _, word, _ in cases)
    return Vector(channel, answers, data, tuple(report for _, _, report in cases))


def python_conforms(vector: Vector) -> Verdict:
    """Whether the Python sampler reproduces a test vector, in small batches and in large ones (by lookup table)."""
    batches = (
        draw(sample.channel, np.array(sample.answers), FixedBytes(sample.data)) for sample in (vector, _many(vector))
    )
    return "holds" if all(_is(reports.tolist(), vector) for reports in batches) else "exceeds"


def mechanism_conforms(subject: Mechanism, domain: Domain, vector: Vector) -> Verdict:
    """The mechanism itself does, each answer being that of another worker; and again with all in reverse order, which
    whoever remembers an answer or a worker would not survive.
    """
    batches = (_run_mechanism(subject, domain, sample) for sample in (vector, _reverse(vector)))
    return "holds" if next(batches) == vector.reports and next(batches) == vector.reports[::-1] else "exceeds"


def _run_mechanism(subject: Mechanism, domain: Domain, vector: Vector) -> tuple[int, ...]:
    n, codes = len(vector.answers), np.array(vector.answers, dtype=np.int32)
    worker = np.flatnonzero(codes != EMPTY).astype(np.int32)
    answers = Answers(worker, np.zeros_like(worker), codes[worker], np.arange(n), np.zeros(1, dtype=np.int64), domain)
    reports = subject.randomize(answers, FixedBytes(vector.data))
    released = np.full(n, EMPTY)
    released[reports.worker] = reports.report
    same = [channel.sha256 for channel in reports.channels] == [vector.channel.sha256]
    return tuple(released.tolist()) if same and len(reports.worker) == n else ()


def _many(vector: Vector) -> Vector:
    times = GUIDE_FROM // len(vector.answers) + 1
    return replace(vector, answers=vector.answers * times, data=vector.data * times)


def _reverse(vector: Vector) -> Vector:
    size = vector.channel.bits // 8
    words = [vector.data[start : start + size] for start in range(0, len(vector.data), size)]
    return replace(vector, answers=vector.answers[::-1], data=b"".join(words[::-1]))


def _is(reports: list[int], vector: Vector) -> bool:
    """The demanded reports, once or again and again."""
    return tuple(reports) == vector.reports * (len(reports) // len(vector.reports))


def javascript_conforms(vectors: Sequence[Vector]) -> list[Verdict]:
    """Whether the device's JavaScript reproduces test vectors, all in one run of Node; "unknown" without Node."""
    node = shutil.which("node")
    runner = files("crowdveil") / "device" / "conformance.mjs"
    if node is None or not runner.is_file():
        return ["unknown"] * len(vectors)
    asked = [
        {"channel": vector.channel.to_json(), "answers": vector.answers, "bytes": vector.data.hex()}
        for vector in vectors
    ]
    with as_file(files("crowdveil") / "device") as folder:
        command = [node, str(folder / "conformance.mjs")]
        run = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, timeout=_NODE_SECONDS)
    if run.returncode != 0:
        return ["exceeds"] * len(vectors)
    replies = json.loads(run.stdout)
    return [_agrees(vector, answer) for vector, answer in zip(vectors, replies, strict=True)]


def _agrees(vector: Vector, reply: dict[str, object]) -> Verdict:
    return "holds" if reply.get("reports") == list(vector.reports) else "exceeds"


def _ends(channel: Channel, row: int) -> list[int]:
    """Where the interval of each output ends; randomised response counts outputs from the answer on, around the end."""
    if isinstance(channel.form, Rotate):
        weights = [channel.form.keep] + [channel.form.lie] * (len(channel.outputs) - 1)
    else:
        weights = [int(weight) for weight in channel.weights[row]]
    return list(accumulate(weights))


def _specified_output(channel: Channel, row: int, ends: list[int], word: int) -> int:
    """The output whose interval holds the word."""
    interval = bisect_right(ends, word)
    return (row + interval) % len(channel.outputs) if channel.sampler == "rotate" else interval


def _edges(ends: list[int], bits: int) -> list[int]:
    last = 2**bits - 1
    words = dict.fromkeys([0, last, *(word for end in ends for word in (end - 1, end))])
    return [word for word in words if 0 <= word <= last]


def _random_words(entropy: Entropy, bits: int) -> list[int]:
    size = bits // 8
    data = entropy.take(size * _RANDOM_WORDS)
    return [int.from_bytes(data[start : start + size], "little") for start in range(0, len(data), size)]
