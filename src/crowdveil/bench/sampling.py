"""How fast reports are drawn, beside the same drawing with NumPy's generator and with OpenDP, in the same run.

Speeds are reports per second; a ratio above 1 means that ours is faster, or smaller.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crowdveil.answers import Answers
from crowdveil.channel import Channel
from crowdveil.domain import Choices, Scale
from crowdveil.entropy import Keystream, SystemEntropy, below
from crowdveil.mechanisms import DiscreteGaussian, DiscreteLaplace, OptimalScale, RandomizedResponse
from crowdveil.mechanisms.base import randomize_through
from crowdveil.sampler import draw

_ROUNDS = 7
_SECONDS = 3.0
_OPTIONS = Choices(("a", "b", "c", "d", "e"))
_STARS = Scale(1, 5)


def cases(quick: bool = False) -> list[dict[str, Any]]:
    """One row per case: `case, n, ours, peer, peer_name, ratio`."""
    n = 200_000 if quick else 5_000_000
    response = RandomizedResponse(epsilon=1).channel(_OPTIONS)
    tables = {
        "optimal-scale, 5 levels": OptimalScale(epsilon=1).channel(_STARS),
        "discrete-laplace, 5 levels": DiscreteLaplace(epsilon=1).channel(_STARS),
        "discrete-gaussian, 100 levels": DiscreteGaussian(epsilon=4).channel(Scale(1, 100)),
    }
    rows = [_against_numpy("draw randomized-response, 5 options", response, n, _numpy_response(response))]
    rows += [_against_numpy(f"draw {name}", channel, n, _numpy_table(channel)) for name, channel in tables.items()]
    if find_spec("opendp"):
        rows += [_response_against_opendp(response, n), _laplace_against_opendp(n)]
    return [*rows, _memory(response, n)]


def _answers(channel: Channel, n: int) -> NDArray[np.int32]:
    return below(Keystream("bench"), n, channel.n_levels).astype(np.int32)


_Peer = Callable[[NDArray[np.int32], np.random.Generator], NDArray[Any]]


def _against_numpy(case: str, channel: Channel, n: int, peer: _Peer) -> dict[str, Any]:
    answers, generator = _answers(channel, n), np.random.default_rng()
    ours, theirs = _race(lambda: draw(channel, answers, SystemEntropy()), lambda: peer(answers, generator))
    return _row(case, n, n / ours, n / theirs, "numpy.random.Generator")


def _numpy_response(channel: Channel) -> _Peer:
    """What one would write without thinking of privacy: keep with probability p, else another option."""
    k, p_keep = len(channel.inputs), float(channel.table[0, 0])

    def respond(answers: NDArray[np.int32], generator: np.random.Generator) -> NDArray[Any]:
        keep = generator.random(len(answers)) < p_keep
        other = (answers + generator.integers(1, k, len(answers))) % k
        return np.where(keep, answers, other)

    return respond


def _numpy_table(channel: Channel) -> _Peer:
    """The usual way to draw from rows of a table: a uniform number looked up in each row's cumulative sums."""
    sums = channel.table.cumsum(axis=1)[:, :-1]

    def look_up(answers: NDArray[np.int32], generator: np.random.Generator) -> NDArray[Any]:
        uniform, reports = generator.random(len(answers)), np.empty(len(answers), dtype=np.int32)
        for row, row_sums in enumerate(sums):
            mine = np.flatnonzero(answers == row)
            reports[mine] = np.searchsorted(row_sums, uniform[mine], side="right")
        return reports

    return look_up


def _response_against_opendp(channel: Channel, n: int) -> dict[str, Any]:
    """OpenDP draws one answer at a time, so it is given fewer."""
    dp = _opendp()
    peer, few = dp.m.make_randomized_response(list(_OPTIONS.options), float(channel.table[0, 0])), 500
    answers = _answers(channel, n)
    theirs = [_OPTIONS.options[code] for code in answers[:few].tolist()]
    ours_time, peer_time = _race(lambda: draw(channel, answers, SystemEntropy()), lambda: [peer(x) for x in theirs])
    return _row("draw randomized-response, 5 options", n, n / ours_time, few / peer_time, "opendp")


def _laplace_against_opendp(n: int) -> dict[str, Any]:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)
    channel, peer, few = DiscreteLaplace(epsilon=1).channel(_STARS), dp.m.make_laplace(*space, scale=4.0), 20_000
    answers = _answers(channel, n)
    theirs = answers[:few].tolist()
    ours_time, peer_time = _race(lambda: draw(channel, answers, SystemEntropy()), lambda: peer(theirs))
    return _row("draw discrete-laplace, 5 levels", n, n / ours_time, few / peer_time, "opendp")


def _opendp() -> Any:
    dp = import_module("opendp.prelude")
    dp.enable_features("contrib")
    return dp


def _memory(channel: Channel, n: int) -> dict[str, Any]:
    """Bytes that one report takes in the columns of `Reports`, beside the 16 we promise."""
    answers = Answers(
        np.zeros(n, np.int32),
        np.arange(n, dtype=np.int32),
        _answers(channel, n),
        np.array(["w"]),
        np.arange(n),
        _OPTIONS,
    )
    reports = randomize_through(channel, answers, SystemEntropy())
    columns = (reports.worker, reports.question, reports.report, reports.channel)
    held = sum(column.nbytes for column in columns) / n
    return _row("bytes a report in memory", n, held, 16.0, "promised limit", ratio=16.0 / held)


def _race(ours: Callable[[], object], peer: Callable[[], object]) -> tuple[float, float]:
    """The best time of each; they take turns, so that a busy machine slows both."""
    times = [(_measure_seconds(ours), _measure_seconds(peer))]
    while len(times) < _ROUNDS and sum(map(sum, times)) < _SECONDS:
        times.append((_measure_seconds(ours), _measure_seconds(peer)))
    return min(mine for mine, _ in times), min(theirs for _, theirs in times)


def _measure_seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _row(case: str, n: int, ours: float, peer: float, peer_name: str, *, ratio: float | None = None) -> dict[str, Any]:
    return {
        "case": case,
        "n": n,
        "ours": ours,
        "peer": peer,
        "peer_name": peer_name,
        "ratio": ours / peer if ratio is None else ratio,
    }
