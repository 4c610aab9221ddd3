"""Amplification by shuffling: what the reader of a shuffled table learns, beside what everybody could learn.

A second number with its own adversary and assumption. It is printed beside the local guarantee and never replaces it:
the ledger counts the local one only. Bounds are rigorous and rounded up (`privacy_blanket`, `shuffled_divergence`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, TypeAlias

from crowdveil.accounting.composition import RULES, Cost, Release, Rule
from crowdveil.accounting.conversion import DEFAULT_DELTA, check_delta
from crowdveil.accounting.events import PureLaw
from crowdveil.accounting.privacy_blanket import CLONE_SHARES, Blanket, blanket_of_epsilon, blankets_of
from crowdveil.accounting.shuffled_divergence import MAX_PEOPLE, reaches, shuffled_epsilon
from crowdveil.channel import Channel
from crowdveil.errors import InputError
from crowdveil.exact import fraction_up, json_number
from crowdveil.guarantee import positive_epsilon, round_up
from crowdveil.validation import Count, check_settings, checked
from crowdveil.validation import Rule as Setting

ADVERSARY = "whoever sees the shuffled table only"
# Two people among ten million draw clones of such a report with probability e^−30·10⁷: nobody is hidden.
_LARGEST_EPSILON = 30.0

# One report through each of these channels; or the local ε of all reports together, where only that is known.
Submission: TypeAlias = Sequence[Channel] | float

_DISHONEST = Setting("0 or more and below 1", lambda share: 0 <= share < 1, fix="0 means that everybody is honest")
DishonestShare: TypeAlias = Annotated[float, _DISHONEST]


@dataclass(frozen=True, slots=True)
class ShuffledGuarantee:
    """(ε, δ) of one submission in a shuffled table, the local ε beside it, and the assumption under which it holds.

    `n` is the number of people guaranteed beforehand, not the number that came. Where nothing is gained, `epsilon` is
    the local one and `delta` is 0.
    """

    epsilon: float
    delta: float
    local_epsilon: float
    n: Count
    dishonest_share: DishonestShare = 0.0

    def __post_init__(self) -> None:
        check_settings(self)

    @property
    def amplified(self) -> bool:
        return self.epsilon < self.local_epsilon

    @property
    def adversary(self) -> str:
        return ADVERSARY

    @property
    def assumption(self) -> str:
        honest = round(1 - self.dishonest_share, 9)
        return (
            f"if at least {self.n} people take part who share level, group, questions reported on and release, "
            f"a share of at least 1 − β = {honest:g} of them is honest (β = {self.dishonest_share:g}), "
            "and who shuffles is honest and shows nothing else"
        )

    def to_json(self) -> dict[str, object]:
        return {
            "epsilon": json_number(self.epsilon),
            "delta": self.delta,
            "local_epsilon": json_number(self.local_epsilon),
            "amplified": self.amplified,
            "n": self.n,
            "dishonest_share": self.dishonest_share,
            "adversary": self.adversary,
            "assumption": self.assumption,
        }

    def __str__(self) -> str:
        if not self.amplified:
            return f"ε ≤ {round_up(self.epsilon)} against {self.adversary}, as against everybody: {self.n} are too few"
        return f"ε ≤ {round_up(self.epsilon)}, δ = {self.delta:g} against {self.adversary}, {self.assumption}"


def amplify_by_shuffling(
    submission: Submission,
    n: int,
    *,
    delta: float = DEFAULT_DELTA,
    dishonest_share: float = 0.0,
    linkable: bool = False,
) -> ShuffledGuarantee:
    """The guarantee of a whole submission, one report through each of its channels, among n people.

    n is the fewest people who share level, group, sampled set of questions and release increment. Of linkable studies
    and pools, whose rows share a pseudonym, nothing can be said, and they are refused.

    >>> from crowdveil import Choices
    >>> from crowdveil.mechanisms import RandomizedResponse
    >>> channel = RandomizedResponse(epsilon=3).channel(Choices(("no", "yes")))
    >>> round(amplify_by_shuffling([channel], 1000).epsilon, 3)
    0.823
    """
    if linkable:
        raise InputError(
            "rows of a linkable study share a pseudonym, so shuffling hides nobody",
            fix="use the local guarantee, or a study with fresh pseudonyms",
        )
    check_delta(delta)
    local = _local_epsilon(submission)
    none = ShuffledGuarantee(local, 0.0, local, checked("n", n, Count), dishonest_share)
    honest = max(1, math.floor(n * _honest_part(none.dishonest_share)))
    epsilon = local
    for blankets in _blanket_sets(submission, local):
        epsilon = shuffled_epsilon(blankets, honest, delta, epsilon)
    # A gain that no printed digit shows is not worth a δ.
    gained = float(round_up(epsilon)) < float(round_up(local))
    return ShuffledGuarantee(epsilon, delta, local, n, none.dishonest_share) if gained else none


def amplify_levels(
    levels: Mapping[str, Submission],
    people: Mapping[str, int],
    *,
    delta: float = DEFAULT_DELTA,
    dishonest_share: float = 0.0,
    linkable: bool = False,
) -> dict[str, ShuffledGuarantee]:
    """Each level by itself: the level is visible in the table, so only people of the same level hide each other."""
    if set(levels) != set(people):
        raise InputError(f"each level needs its number of people; got {sorted(people)} for {sorted(levels)}")
    return {
        level: amplify_by_shuffling(
            submission, people[level], delta=delta, dishonest_share=dishonest_share, linkable=linkable
        )
        for level, submission in levels.items()
    }


def compose_shuffled(guarantees: Iterable[ShuffledGuarantee], *, delta: float = DEFAULT_DELTA) -> dict[Rule, Cost]:
    """Several studies together under every composition rule, if the assumption of each of them holds.

    An (ε, δ) guarantee is that of binary randomised response with ε, which besides reveals everything with probability
    δ (Kairouz, Oh & Viswanath 2015). So the ε are composed like pure ones, at `delta`, and the studies' δ are added.
    """
    listed = list(guarantees)
    parts = tuple(Release(PureLaw(guarantee.epsilon), 1) for guarantee in listed)
    failure = sum((Fraction(guarantee.delta) for guarantee in listed), Fraction(0))
    costs = {name: rule(parts, check_delta(delta)) for name, rule in RULES.items()}
    return {
        name: Cost(cost.epsilon, min(1.0, fraction_up(failure + Fraction(cost.delta)))) for name, cost in costs.items()
    }


def minimum_for_amplification(
    submission: Submission, epsilon: float, delta: float = DEFAULT_DELTA, *, dishonest_share: float = 0.0
) -> int | None:
    """How many people a study must guarantee so that shuffling gives (ε, δ); None above ten million.

    >>> from crowdveil import Choices
    >>> from crowdveil.mechanisms import RandomizedResponse
    >>> channel = RandomizedResponse(epsilon=2).channel(Choices(("no", "yes")))
    >>> minimum_for_amplification([channel], 1)
    206
    """
    local, wanted = _local_epsilon(submission), positive_epsilon(epsilon)
    check_delta(delta)
    if wanted >= local:
        return 1
    sets = _blanket_sets(submission, local)

    def enough(n: int) -> bool:
        return any(reaches(blankets, n, wanted, delta) for blankets in sets)

    low, high = 1, 2
    while not enough(high):
        if high == MAX_PEOPLE:
            return None
        low, high = high, min(2 * high, MAX_PEOPLE)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return math.ceil(high / _honest_part(dishonest_share))


def _honest_part(dishonest_share: float) -> Fraction:
    """1 − β as it was spelled: as doubles 1 − 0.1 is not nine tenths."""
    return 1 - Fraction(repr(checked("dishonest_share", dishonest_share, DishonestShare)))


def _local_epsilon(submission: Submission) -> float:
    if not isinstance(submission, Sequence):
        return positive_epsilon(submission)
    if not submission:
        raise InputError("a submission must have one channel or more; got none")
    if any(channel.guarantee.research_only for channel in submission):
        raise InputError("reports through a research channel are not independent; there is no bound after shuffling")
    epsilon = math.fsum(channel.epsilon for channel in submission)
    if math.isinf(epsilon):
        raise InputError("an unprotected answer stays visible in a shuffled table", fix="give protected channels only")
    return fraction_up(sum((Fraction(channel.epsilon) for channel in submission), Fraction(0)))


def _blanket_sets(submission: Submission, local: float) -> list[list[Blanket]]:
    """Blankets of all pairs, for some ways to split them; each set gives a bound, and the smallest holds."""
    if local >= _LARGEST_EPSILON:
        return []
    if not isinstance(submission, Sequence):
        return [[blanket_of_epsilon(local)]]
    sets: list[list[Blanket]] = []
    for share in CLONE_SHARES:
        blankets = blankets_of(submission, local, share)
        # Fewer clones are worth a try only where the common part grows by it.
        if not sets or {blanket.common for blanket in blankets} != {blanket.common for blanket in sets[0]}:
            sets.append(blankets)
    return sets
