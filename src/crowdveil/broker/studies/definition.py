"""The study definition: frozen, hashed, signed, public, and the same for everybody.

A device compares its hash with the public log before it answers, so nobody can be served a special channel.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from crowdveil.accounting.nano import nano_up
from crowdveil.broker import clock
from crowdveil.broker.compute_pool import compute
from crowdveil.broker.studies.channel_cache import CellCache
from crowdveil.broker.studies.channels import MAX_CELLS_AT_ONCE, build_channels, table_cells, total_charge
from crowdveil.broker.studies.draft import Draft, Level
from crowdveil.channel import Channel
from crowdveil.errors import InputError

FORMAT = "crowdveil-study/1"
POOL_FORMAT = "crowdveil-pool/1"


def build_definition(
    study: str, requester: str, draft: Draft, gold_commitment: str | None, task_list: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The public document of a study; of a pool with the size and the Merkle root of its task list."""
    channels: dict[str, Channel] = {}
    levels = [_level(draft, level, channels) for level in draft.levels]
    _check_order(levels)
    pool = {} if draft.pool is None else {"kind": "tasks", "pool": draft.pool.model_dump() | (task_list or {})}
    return {
        "format": FORMAT if draft.pool is None else POOL_FORMAT,
        "id": study,
        "title": draft.title,
        "purpose": draft.purpose,
        "requester": requester,
        "goal": draft.goal,
        "consent": {"version": 1, "text": draft.consent_text},
        "protects_participation": draft.protects_participation,
        "max_answers": draft.max_answers,
        "linkable": draft.linkable,
        "partial_pay": draft.partial_pay,
        "selection": draft.selection.model_dump(exclude_none=True),
        "minimum_n": draft.minimum_n,
        "quota": draft.quota,
        "reservation_minutes": draft.reservation_minutes,
        "opened": clock.today().isoformat(),
        "gold_commitment": gold_commitment,
        "questions": [question.model_dump(exclude={"gold"}) for question in draft.questions],
        "levels": levels,
        "channels": {sha256: channel.to_json() for sha256, channel in channels.items()},
        **pool,
    }


def _level(draft: Draft, level: Level, seen: dict[str, Channel]) -> dict[str, Any]:
    channels = build_channels(draft, level)
    seen.update({channel.sha256: channel for channel in channels.values()})
    # A pool is charged batch by batch: its form is filled in that many times.
    n_repeats = draft.pool.batch_size if draft.pool is not None else 1
    return {
        "name": level.name,
        "mechanism": level.mechanism,
        "protected": level.mechanism != "none",
        "pay_cents": level.pay_cents,
        "charge": total_charge(list(channels.values()) * n_repeats, draft.max_answers),
        "channels": {question: channel.sha256 for question, channel in channels.items()},
    }


def _check_order(levels: list[dict[str, Any]]) -> None:
    """People choose a level by its name before they see a study, so a higher one may not cost them more privacy."""
    for lower, higher in pairwise(level for level in levels if level["protected"]):
        least, most = (level["charge"]["epsilon_nano"] for level in (lower, higher))
        if most > least:
            raise InputError(
                f"level {higher['name']} must cost no more ε than level {lower['name']} ({least / 1e9:g}); "
                f"got {most / 1e9:g}",
                fix="give it a smaller epsilon",
            )


@dataclass(frozen=True, slots=True)
class DefinitionLevel:
    """One level, ready for the intake: per question the channel's hash, its number of outputs and its cost."""

    number: int
    name: str
    protected: bool
    pay_cents: int
    charge: dict[str, int] | None
    channels: tuple[str, ...]
    n_outputs: tuple[int, ...]
    epsilon: tuple[int, ...]
    rho: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition read once and kept, since it never changes: what every submission is checked against."""

    document: dict[str, Any]
    sha256: str
    questions: tuple[str, ...]
    position: dict[str, int]
    levels: dict[str, DefinitionLevel]
    channels: dict[str, Channel]

    @property
    def protects_participation(self) -> bool:
        return bool(self.document["protects_participation"])


def _opened_cells(opened: Definition) -> int:
    return sum(map(table_cells, opened.channels.values()))


_channels: CellCache[Channel] = CellCache(table_cells)
_opened: CellCache[Definition] = CellCache(_opened_cells)


def read_definition(text: str, sha256: str) -> Definition:
    """The definition of this hash; a large one is computed where it keeps nobody else waiting."""
    if (opened := _opened.get(sha256)) is None:
        document = json.loads(text)
        n_cells = sum(len(wire["inputs"]) * len(wire["outputs"]) for wire in document["channels"].values())
        work = partial(_read, document, sha256)
        opened = work() if n_cells <= MAX_CELLS_AT_ONCE else compute(work)
        _opened.put(sha256, opened)
    return opened


def _read(document: dict[str, Any], sha256: str) -> Definition:
    channels = {name: _reused_channel(name, wire) for name, wire in document["channels"].items()}
    questions = tuple(question["id"] for question in document["questions"])
    levels = {
        level["name"]: _opened_level(number, level, questions, channels)
        for number, level in enumerate(document["levels"])
    }
    position = {question: index for index, question in enumerate(questions)}
    return Definition(document, sha256, questions, position, levels, channels)


def _reused_channel(sha256: str, wire: Any) -> Channel:
    """A channel of the wire whose guarantee is known; equal ones of several studies are one."""
    if (channel := _channels.get(sha256)) is None:
        channel = Channel.from_json(wire)
        _ = channel.guarantee
        _channels.put(sha256, channel)
    return channel


def _opened_level(
    number: int, level: dict[str, Any], questions: tuple[str, ...], channels: dict[str, Channel]
) -> DefinitionLevel:
    through = [channels[level["channels"][question]] for question in questions]
    protected = bool(level["protected"])
    return DefinitionLevel(
        number,
        level["name"],
        protected,
        level["pay_cents"],
        level["charge"],
        tuple(channel.sha256 for channel in through),
        tuple(len(channel.outputs) for channel in through),
        tuple(nano_up(channel.guarantee.epsilon) if protected else 0 for channel in through),
        tuple(nano_up(channel.guarantee.rho) if protected else 0 for channel in through),
    )
