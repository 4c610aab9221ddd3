"""Message passing in plain NumPy: the oracle of `channel_kernels.py`, and its substitute where Numba is missing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
TINY = 1e-30


def choice_chances(
    worker: Array,
    symbol: Array,
    message: Array,
    belief: Array,
    share: Array,
    ability: Array,
    guess: Array,
    hit: Array,
    empty: Array,
) -> Array:
    """Report × option: how likely each report is if the option is the truth, by what else its worker reported."""
    answered, silent = share[worker][:, None], ((1 - share[worker]) * empty[symbol])[:, None]
    old = answered * (ability * np.maximum(message, 0)[:, None] + guess[symbol]) + silent
    weight = belief[worker] / np.where(message[:, None] >= 0, old, 1.0)
    weight /= weight.sum(axis=1, keepdims=True)
    able, guessed = weight @ ability, (weight * guess[symbol]).sum(axis=1)
    chance: Array = answered * (able[:, None] * hit[symbol] + guessed[:, None]) + silent
    return chance


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
    """As the compiled sweep of the same name, all reports at once."""
    question = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    given, silent = share[worker][:, None], ((1 - share[worker]) * empty[symbol])[:, None]
    chance = choice_chances(worker, symbol, message, belief, share, ability, guess, hit, empty)
    logs = np.tile(np.asarray(classes, dtype=np.float64), (len(starts) - 1, 1))
    np.add.at(logs, question, np.log(chance))
    fresh = np.exp(logs - logs.max(axis=1, keepdims=True))
    fresh /= fresh.sum(axis=1, keepdims=True)
    known = np.flatnonzero(gold >= 0)
    fresh[known] = np.eye(hit.shape[1])[gold[known]]
    answered = np.diff(starts) > 0
    moved = float(np.abs(fresh - posterior)[answered].sum() / 2)
    posterior[answered] = fresh[answered]
    cavity = posterior[question] / chance
    foretold[:] = -np.bincount(question, np.log(cavity.sum(axis=1)), minlength=len(foretold))
    heard = (cavity * hit[symbol]).sum(axis=1) / cavity.sum(axis=1)
    message[:] = np.where(message < 0, heard, damping * message + (1 - damping) * heard)
    new = given * (ability * message[:, None] + guess[symbol]) + silent
    np.add.at(total, worker, np.log(np.maximum(new, TINY)))
    return moved


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
    """As the compiled sweep of the same name, question by question."""
    moved = 0.0
    for question in range(len(starts) - 1):
        rows = slice(starts[question], starts[question + 1])
        who, what = worker[rows], symbol[rows]
        if not len(who):
            continue
        chance = _chance(who, what, message[rows], belief, share, table, empty)
        logs = np.log(prior.astype(np.float64)) + np.log(chance).sum(axis=0)
        fresh = np.maximum(np.exp(logs - logs.max()), TINY)
        fresh /= fresh.sum()
        moved += float(np.abs(fresh - posterior[question]).sum() / 2)
        posterior[question] = fresh
        weight = fresh / chance
        heard = np.einsum("rp,rsp->rs", weight, table[what]) / weight.sum(axis=1, keepdims=True)
        silent = ((1 - share[who]) * empty[what])[:, None]
        message[rows] = np.maximum(share[who][:, None] * heard + silent, TINY)
        np.add.at(total, who, np.log(message[rows]))
    return moved


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
    """As the compiled loop of the same name, question by question."""
    for question in range(len(starts) - 1):
        rows = slice(starts[question], starts[question + 1])
        chance = _chance(worker[rows], symbol[rows], message[rows], belief, share, table, empty)
        logs[question] += np.log(np.maximum(chance, TINY)).sum(axis=0)


def _chance(
    who: Array, what: Array, message: Array, belief: Array, share: Array, table: Array, empty: Array
) -> NDArray[np.float64]:
    """P(symbol | truth), report × point, averaged over the cavity of each worker's spread."""
    cavity = belief[who].astype(np.float64) / message
    cavity *= (share[who] / cavity.sum(axis=1))[:, None]
    mixed: NDArray[np.float64] = np.einsum("rs,rsp->rp", cavity, table[what].astype(np.float64))
    mixed += ((1 - share[who]) * empty[what])[:, None]
    return mixed
