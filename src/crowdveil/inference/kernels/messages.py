"""The hot loops of message passing, compiled; `channel_plain.py` holds the plain twin of each.

Reports come sorted by question. A sweep turns what is known of the workers into posteriors of the questions and back,
each report's own message taken out of both (the cavity), so that nobody is judged by their own word.

What a sweep calls in its inner loops is inlined: otherwise the last digits would depend on whether it was compiled just
now or comes from the cache. Divisions are not watched for zeros, which cannot come up: chances are positive.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[Any]
TINY = np.float32(1e-30)
ONE = np.float32(1)
LEAST, AT_ONCE = 1e-30, 8
"""So many chances of at least this can be multiplied in double precision."""


@njit(nogil=True, cache=True, fastmath=True, error_model="numpy")
def choice_sweep(
    starts: Array,
    worker: Array,
    symbol: Array,
    message: Array,
    belief: Array,
    share: Array,
    ability: Array,
    guess: Array,
    hit: Array,
    empty: Array,
    classes: Array,
    gold: Array,
    damping: float,
    posterior: Array,
    total: Array,
    foretold: Array,
    at_once: int,
) -> float:
    """One flood of messages for choices; fills `posterior`, advances `message`, adds log-messages to `total`.

    `foretold` becomes, question by question, the logarithm of how likely each report was given all the others.

    P(symbol | truth, type) = share·(ability·hit[symbol, truth] + guess[symbol, type]) + (1 − share)·empty[symbol],
    with guess = (1 − ability)·P(symbol | leaning). It is linear in hit, so that one number per report, the average
    of `hit` over the cavity posterior, is the whole message to the worker. Returns the sum of total variations.

    Logarithms are dear: so many factors `at_once` are multiplied before one is taken.
    """
    chance = np.empty((_most(starts), hit.shape[1]))
    logs, joint = np.empty(hit.shape[1]), np.ones(hit.shape[1])
    product = np.ones_like(belief)
    waiting = np.zeros(len(belief), np.uint8)
    moved = 0.0
    for question in range(len(starts) - 1):
        first, last = starts[question], starts[question + 1]
        foretold[question] = 0.0
        if first == last:
            continue
        _copy(classes, logs)
        for row in range(first, last):
            who, what = worker[row], symbol[row]
            answered, silent = share[who], (ONE - share[who]) * empty[what]
            here = chance[row - first]
            _speak(belief[who], message[row], answered, silent, ability, guess[what], hit[what], here)
            _times(joint, here)
            if (row - first) % at_once == at_once - 1:
                _flush(joint, logs)
        _flush(joint, logs)
        moved += _settle(logs, gold[question] if len(gold) else -1, posterior[question])
        unlikely = 1.0
        for row in range(first, last):
            who, what = worker[row], symbol[row]
            answered, silent = share[who], (ONE - share[who]) * empty[what]
            mass, fresh = _listen(posterior[question], chance[row - first], hit[what])
            # Without the report the truths have the weights posterior / chance; it is 1 / mass likely, given them.
            unlikely *= mass
            if (row - first) % at_once == at_once - 1:
                foretold[question] -= np.log(unlikely)
                unlikely = 1.0
            message[row] = fresh if message[row] < 0 else damping * message[row] + (1 - damping) * fresh
            heard = message[row]
            for kind in range(len(ability)):
                product[who, kind] *= answered * (ability[kind] * heard + guess[what, kind]) + silent
            waiting[who] += 1
            if waiting[who] == at_once:
                waiting[who] = 0
                _flush(product[who], total[who])
        foretold[question] -= np.log(unlikely)
    for who in range(len(belief)):
        _flush(product[who], total[who])
    return moved


@njit(nogil=True, cache=True)
def _copy(source: Array, target: Array) -> None:
    """Number by number: assigning a slice would compile for two more seconds, for errors that cannot happen here."""
    for index in range(len(target)):
        target[index] = source[index]


@njit(nogil=True, cache=True)
def _times(product: Array, factor: Array) -> None:
    for index in range(len(product)):
        product[index] *= factor[index]


@njit(nogil=True, cache=True)
def _most(starts: Array) -> int:
    """The most reports that one question has."""
    most = 1
    for question in range(len(starts) - 1):
        most = max(most, starts[question + 1] - starts[question])
    return most


@njit(nogil=True, cache=True, fastmath=True, error_model="numpy", inline="always")
def _speak(
    belief: Array, heard: float, given: float, silent: float, ability: Array, guess: Array, hit: Array, chance: Array
) -> None:
    """P(symbol | truth) of one report, averaged over what the worker's other reports say about the type."""
    mass, able, guessed = np.float32(0), np.float32(0), np.float32(0)
    for kind in range(len(ability)):
        weight = belief[kind]
        if heard >= 0:
            weight /= given * (ability[kind] * heard + guess[kind]) + silent
        mass += weight
        able += weight * ability[kind]
        guessed += weight * guess[kind]
    for option in range(len(hit)):
        chance[option] = given * (able * hit[option] + guessed) / mass + silent


@njit(nogil=True, cache=True)
def _settle(logs: Array, gold: int, posterior: Array) -> float:
    """Posterior from logs (or the known truth), and how far it moved in total variation."""
    best, mass = logs[0], 0.0
    for option in range(len(logs)):
        best = max(best, logs[option])
    for option in range(len(logs)):
        mass += np.exp(logs[option] - best)
    moved = 0.0
    for option in range(len(logs)):
        value = np.exp(logs[option] - best) / mass
        if gold >= 0:
            value = 1.0 if option == gold else 0.0
        moved += abs(value - posterior[option]) / 2
        posterior[option] = value
    return moved


@njit(nogil=True, cache=True, fastmath=True, error_model="numpy", inline="always")
def _listen(posterior: Array, chance: Array, hit: Array) -> tuple[float, float]:
    """The mass of what the others say, and the message: how likely the symbol is if right, averaged over that."""
    mass, heard = 0.0, 0.0
    for option in range(len(hit)):
        weight = posterior[option] / chance[option]
        mass += weight
        heard += weight * hit[option]
    return mass, heard / mass


@njit(nogil=True, cache=True)
def _flush(product: Array, total: Array) -> None:
    for kind in range(len(product)):
        total[kind] += np.log(max(product[kind], TINY))
        product[kind] = 1


@njit(nogil=True, cache=True, fastmath=True)
def scale_sweep(
    starts: Array,
    worker: Array,
    symbol: Array,
    message: Array,
    belief: Array,
    share: Array,
    table: Array,
    empty: Array,
    prior: Array,
    posterior: Array,
    total: Array,
) -> float:
    """One flood of messages for scales; `message` is report × spread, `posterior` question × point of the truth.

    P(symbol | truth, spread) = share·table[symbol, spread, point] + (1 − share)·empty[symbol].
    """
    n_spreads, n_points = table.shape[1], table.shape[2]
    chance = np.empty((_most(starts), n_points), belief.dtype)
    cavity, weight = np.empty(n_spreads, belief.dtype), np.empty(n_points, belief.dtype)
    now = np.empty(n_points, belief.dtype)
    moved = 0.0
    for question in range(len(starts) - 1):
        first, last = starts[question], starts[question + 1]
        if first == last:
            continue
        _copy(prior, now)
        for row in range(first, last):
            who, what = worker[row], symbol[row]
            answered, silent = share[who], (ONE - share[who]) * empty[what]
            _mix(belief[who], message[row], answered, silent, table[what], cavity, chance[row - first])
            _multiply(now, chance[row - first])
        moved += _replace(now, posterior[question])
        for row in range(first, last):
            who, what = worker[row], symbol[row]
            answered, silent = share[who], (ONE - share[who]) * empty[what]
            _average(posterior[question], chance[row - first], answered, silent, table[what], weight, message[row])
            for spread in range(n_spreads):
                total[who, spread] += np.log(message[row, spread])
    return moved


@njit(nogil=True, cache=True, fastmath=True, inline="always")
def _mix(
    belief: Array, message: Array, given: float, silent: float, table: Array, cavity: Array, chance: Array
) -> None:
    """P(symbol | truth) of one report, averaged over what the worker's other reports say about the spread."""
    mass = np.float32(0)
    for spread in range(len(cavity)):
        cavity[spread] = belief[spread] / message[spread]
        mass += cavity[spread]
    for point in range(len(chance)):
        chance[point] = silent
    for spread in range(len(cavity)):
        part, entries = cavity[spread] * given / mass, table[spread]
        for point in range(len(chance)):
            chance[point] += part * entries[point]


@njit(nogil=True, cache=True, fastmath=True, inline="always")
def _multiply(now: Array, chance: Array) -> None:
    """Now *= chance, scaled so that the largest is 1 and none vanishes."""
    best = np.float32(0)
    for point in range(len(now)):
        value = now[point] * chance[point]
        now[point] = value
        best = max(best, value)
    scale = ONE / best
    for point in range(len(now)):
        now[point] = max(now[point] * scale, TINY)


@njit(nogil=True, cache=True, fastmath=True, inline="always")
def _replace(now: Array, posterior: Array) -> Any:
    """The posterior becomes `now`, normalised; how far it moved in total variation."""
    mass, change = np.float32(0), np.float32(0)
    for point in range(len(now)):
        mass += now[point]
    for point in range(len(now)):
        value = now[point] / mass
        change += abs(value - posterior[point])
        posterior[point] = value
    return change / 2


@njit(nogil=True, cache=True, fastmath=True, inline="always")
def _average(
    posterior: Array, chance: Array, given: float, silent: float, table: Array, weight: Array, message: Array
) -> None:
    """The message to the worker: P(symbol | spread), averaged over what the others say about the truth."""
    mass = np.float32(0)
    for point in range(len(weight)):
        value = posterior[point] / chance[point]
        weight[point] = value
        mass += value
    for spread in range(len(message)):
        heard, entries = np.float32(0), table[spread]
        for point in range(len(weight)):
            heard += weight[point] * entries[point]
        message[spread] = max(given * heard / mass + silent, TINY)


@njit(nogil=True, cache=True)
def scale_logs(
    starts: Array,
    worker: Array,
    symbol: Array,
    message: Array,
    belief: Array,
    share: Array,
    table: Array,
    empty: Array,
    logs: Array,
) -> None:
    """Log-likelihoods in double precision, question × point, once the messages have settled.

    Logarithms are dear: some factors are multiplied before one is taken.
    """
    cavity, here, joint = np.empty(table.shape[1]), np.empty(table.shape[2]), np.ones(table.shape[2])
    for question in range(len(starts) - 1):
        first, last = starts[question], starts[question + 1]
        for row in range(first, last):
            who, what = worker[row], symbol[row]
            silent = (1.0 - share[who]) * empty[what]
            _mix(belief[who], message[row], share[who], silent, table[what], cavity, here)
            for point in range(len(here)):
                joint[point] *= max(here[point], LEAST)
            if (row - first) % AT_ONCE == AT_ONCE - 1 or row == last - 1:
                for point in range(len(here)):
                    logs[question, point] += np.log(joint[point])
                    joint[point] = 1.0
