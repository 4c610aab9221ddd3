"""The channels of a study and what answering through them costs, in whole nano-units.

The broker builds channels; it never draws through one.
"""

from __future__ import annotations

import numpy as np

from crowdveil.accounting import cells_at_stake, nano_up
from crowdveil.broker.compute_pool import compute
from crowdveil.broker.studies.channel_cache import CellCache
from crowdveil.broker.studies.draft import Draft, Level
from crowdveil.channel import Channel
from crowdveil.domain import Choices, Domain
from crowdveil.errors import ChannelError, InputError
from crowdveil.mechanisms import MECHANISMS, ChannelMechanism, mechanism
from crowdveil.progress import counted
from crowdveil.registry import meant

MAX_OUTPUTS = 65535
MAX_TABLE_CELLS = 2_100_000
"""Answers × reports of all different channels of a level: two scales of 1,000 levels, or 200 scales from 0 to 100."""
MAX_CELLS_AT_ONCE = 20_000
"""What a request computes by itself: 20,000 cells take up to .1 s, a million cells up to 15 s."""
_SLOW_MECHANISMS = {"optimal-scale"}
"""A linear program takes half a second, however small its table."""
_SAID_ELSEWHERE = {"name", "epsilon", "protect_participation"}


def channel_of(level: Level, domain: Domain, *, protects_participation: bool) -> Channel:
    """The channel of one question at one level; research mechanisms are refused."""
    if twice := _SAID_ELSEWHERE & level.parameters.keys():
        raise InputError(f"{sorted(twice)[0]} is said elsewhere in a study and is no parameter", fix="leave it out")
    if level.mechanism not in MECHANISMS:
        # One that only the broker has installed could be neither checked nor drawn from by a device.
        fix = meant(level.mechanism, MECHANISMS)
        raise InputError(f"mechanism must be one of {', '.join(MECHANISMS)}; got {level.mechanism!r}", fix=fix)
    if level.mechanism == "none":
        built = mechanism("none")
    else:
        built = mechanism(
            level.mechanism,
            epsilon=float(level.epsilon or 0),
            protect_participation=protects_participation,
            **level.parameters,
        )
    if built.research_only or not isinstance(built, ChannelMechanism):
        raise InputError(f"mechanism {level.mechanism} is for research only", fix="use randomized-response")
    channel = built.channel(domain)
    if len(channel.outputs) > MAX_OUTPUTS:
        raise InputError(f"a report has at most {MAX_OUTPUTS} values", fix="use fewer levels")
    return channel


def table_cells(channel: Channel) -> int:
    return len(channel.inputs) * len(channel.outputs)


_channels: CellCache[Channel] = CellCache(table_cells)


def check_table_cells(draft: Draft) -> None:
    """Refuse a draft whose channels could not be computed in reasonable time, before any of them is."""
    domains = {question.domain.domain() for question in draft.questions}
    _check_cells(sum((domain.size + draft.protects_participation) ** 2 for domain in domains))


def _check_cells(n_cells: int) -> None:
    if n_cells > MAX_TABLE_CELLS:
        raise InputError(
            f"the channels of a level may have {MAX_TABLE_CELLS:,} table cells together; got {n_cells:,}",
            fix="ask several questions on the same scale, or use scales of fewer levels",
        )


def channels_of(draft: Draft, level: Level) -> dict[str, Channel]:
    """Question id → channel. Equal domains share one channel, so it is built once; equal channels are reused."""
    check_table_cells(draft)
    domains = {question.id: question.domain.domain() for question in draft.questions}
    keys = {domain: _key(draft, level, domain) for domain in domains.values()}
    missing = [domain for domain, key in keys.items() if _channels.get(key) is None]
    small = sum(domain.size**2 for domain in missing) <= MAX_CELLS_AT_ONCE and level.mechanism not in _SLOW_MECHANISMS

    def build() -> dict[Domain, Channel]:
        built: dict[Domain, Channel] = {}
        for domain in counted(list(keys), "channels built"):
            built[domain] = _reused_channel(draft, level, domain)
            _check_cells(sum(map(table_cells, built.values())))
        return built

    built = build() if small or not missing else compute(build)
    for question in draft.questions:
        if draft.linkable and question.gold is not None:
            _check_scorable(built[domains[question.id]], level, question.id)
    return {question: built[domain] for question, domain in domains.items()}


def _key(draft: Draft, level: Level, domain: Domain) -> tuple[object, ...]:
    """All that a channel, and whether it may be used, depend on."""
    parameters = tuple((name, repr(value)) for name, value in sorted(level.parameters.items()))
    return level.mechanism, level.epsilon, parameters, draft.protects_participation, draft.goal, domain


def _reused_channel(draft: Draft, level: Level, domain: Domain) -> Channel:
    key = _key(draft, level, domain)
    if (channel := _channels.get(key)) is None:
        channel = channel_of(level, domain, protects_participation=draft.protects_participation)
        if draft.goal == "population":
            _check_countable(channel, domain, level)
        # Read here, where the time is limited: ρ is what takes long.
        _ = channel.guarantee
        _channels.put(key, channel)
    return channel


def _check_countable(channel: Channel, domain: Domain, level: Level) -> None:
    """Refuse before anybody spends privacy on reports from which no population can be estimated.

    On most scales ∅ reports like an average answer, so nothing tells how many answered; and at a very small ε two
    options may not be told apart at all.
    """
    if isinstance(domain, Choices) and not _tells_apart(channel):
        raise InputError(
            f"with mechanism {level.mechanism} at this ε reports do not tell all options apart, so no population "
            "can be estimated",
            fix="use randomized-response, or a larger ε",
        )
    if not channel.protects_participation:
        return
    try:
        channel.scores(np.ones(channel.n_levels))
    except ChannelError:
        raise InputError(
            f"with mechanism {level.mechanism} and skipped questions hidden nobody can tell how many answered, so no "
            "population can be estimated",
            fix="use randomized-response",
        ) from None


def _check_scorable(channel: Channel, level: Level, question: str) -> None:
    """Refuse gold that no worker could be scored by: a score is an unbiased vote for the truth."""
    if not _tells_apart(channel):
        raise InputError(
            f"with mechanism {level.mechanism} reports about {question} do not tell all answers apart, so nobody "
            "can be scored by its known truth",
            fix="use randomized-response, or leave the known truth out",
        )


def _tells_apart(channel: Channel) -> bool:
    """Whether a report holds an unbiased vote for every answer."""
    try:
        return channel.votes is not None
    except ChannelError:
        return False


def cost_of(channel: Channel) -> tuple[int, int]:
    """(nano-ε, nano-ρ) of one report, rounded up."""
    return nano_up(channel.guarantee.epsilon), nano_up(channel.guarantee.rho)


def charge_of(channels: list[Channel], max_answers: int | None) -> dict[str, int] | None:
    """What all reports together cost, or None where nothing is protected.

    Two answer vectors of at most t answers each differ in at most 2t cells, so the 2t dearest reports bound the loss
    of a device that refuses more than t answers.
    """
    if any(not channel.guarantee.protected for channel in channels):
        return None
    n = cells_at_stake(len(channels), at_most=max_answers)
    costs = [cost_of(channel) for channel in channels]
    epsilon = sum(sorted((epsilon for epsilon, _ in costs), reverse=True)[:n])
    rho = sum(sorted((rho for _, rho in costs), reverse=True)[:n])
    return {"epsilon_nano": epsilon, "rho_nano": rho, "reports": n}
