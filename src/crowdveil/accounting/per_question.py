"""What one worker has spent in all, and on the worst question where the questions are known."""

from __future__ import annotations

from collections import defaultdict
from typing import TypeAlias

from crowdveil.accounting.composition import Cost, Rule, totals
from crowdveil.accounting.events import JointLaw, Law, SharedSecret, TwoLayerLaw
from crowdveil.accounting.spend import Spend
from crowdveil.guarantee import Unit

Totals: TypeAlias = dict[Unit, dict[Rule, Cost]]
"""The cost of one worker's spends, by unit of privacy and composition rule."""
SpendsByQuestion: TypeAlias = dict[str | None, list[Spend]]
"""A worker's spends by question; None where it is not known which."""


def worker_totals(rows: SpendsByQuestion, delta: float) -> Totals:
    """The cost of one worker's spends in every unit and under every rule.

    The vector unit composes all releases; value and cell take the worst question. Spends without a question count for
    every question.
    """
    together = totals(_merge([spend for spends in rows.values() for spend in spends]), delta)
    named = [question for question in rows if question is not None]
    by_question = [totals(_merge(_about(rows, question)), delta) for question in named]
    units: tuple[Unit, ...] = ("value", "cell")
    for unit in units if named else ():
        for rule in together[unit]:
            together[unit][rule] = max(
                (question_totals[unit][rule] for question_totals in by_question), key=lambda cost: cost.epsilon
            )
    return together


def _about(rows: SpendsByQuestion, question: str) -> list[Spend]:
    """What tells about one question: its own rows, those without a name, and whatever answers to others give away.

    A release about all answers at once is about this one too. Where answers share a secret, each report tells about the
    secret, and so about every other answer.
    """
    everything = [spend for spends in rows.values() for spend in spends]
    named_spends, unnamed = rows[question], rows.get(None, [])
    shared: list[Spend] = []
    for law in dict.fromkeys(spend.law for spend in [*named_spends, *unnamed]):
        if isinstance(law, TwoLayerLaw):
            changed = sum(spend.count for spend in named_spends if spend.law == law) + any(
                spend.law == law for spend in unnamed
            )
            total = sum(spend.count for spend in everything if _share(spend.law, law))
            shared.append(Spend(law.of_some(changed, total), law.kind))
    joint = [spend for spend in everything if isinstance(spend.law, JointLaw)]
    alone = [spend for spend in [*named_spends, *unnamed] if not isinstance(spend.law, JointLaw | TwoLayerLaw)]
    return [*alone, *shared, *joint]


def _merge(spends: list[Spend]) -> list[Spend]:
    """Reports under one law counted together: faster, and a secret that answers share is shared across studies.

    A release about all answers at once stays by itself, because two of them are two.
    """
    laws = [spend.law for spend in spends]
    counts: dict[Law, int] = defaultdict(int)
    for spend in spends:
        if not isinstance(spend.law, JointLaw):
            counts[_whole(spend.law, laws)] += spend.count
    alone = [spend for spend in spends if isinstance(spend.law, JointLaw)]
    return [*(Spend(law, law.kind, count) for law, count in counts.items()), *alone]


def _share(law: Law, other: Law) -> bool:
    """A worker has one secret for an interval, whatever may be answered."""
    both = isinstance(law, TwoLayerLaw) and isinstance(other, TwoLayerLaw)
    return both and (law.low, law.high) == (other.low, other.high)  # type: ignore[attr-defined]


def _whole(law: Law, laws: list[Law]) -> Law:
    """The law of all reports that share a secret with this one."""
    sizes = [candidate.n_options for candidate in laws if isinstance(candidate, TwoLayerLaw) and _share(candidate, law)]
    if not isinstance(law, TwoLayerLaw) or len(set(sizes)) == 1:
        return law
    return SharedSecret(law.low, law.high, min(sizes), most_options=max(sizes))
