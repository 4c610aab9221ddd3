"""Crowds that choose among options: right with a worker's own probability, else any other option."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from crowdveil.domain import Choices
from crowdveil.errors import InputError
from crowdveil.simulate.crowd import (
    Codes,
    Crowd,
    are_shares,
    draw_answers,
    draw_participation,
    generator,
    numbered_answers,
)
from crowdveil.validation import COUNT, Count, Probability, Rule, Share, check_settings

_RISING = Rule("two probabilities in rising order", lambda ends: 0 <= ends[0] <= ends[1] <= 1)
_EXPERTS = Rule("from 0 to the number of workers", lambda experts: 0 <= experts <= 10**9)
_SHARES = Rule("numbers from 0 up, not all 0", lambda shares: not shares or are_shares(shares))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceCrowd:
    """Abilities are spread evenly from `ability[0]` to `ability[1]`; `experts` of the workers are never wrong.

    With `bias` above 0 each worker answers with a favourite option in that share of the cases, whatever the truth.

    >>> crowd = ChoiceCrowd(n_workers=30, n_questions=4, domain=Choices(("no", "yes")), share=1.0).draw(seed=1)
    >>> len(crowd.answers), bool(crowd.skill.min() >= 0.5)
    (120, True)
    """

    n_workers: Count
    n_questions: Count
    domain: Choices
    ability: Annotated[tuple[float, float], _RISING] = (0.5, 0.9)
    experts: Annotated[int, _EXPERTS] = 0
    bias: Probability = 0.0
    share: Share = 0.3
    answers_per_worker: Annotated[int | None, COUNT] = None
    class_shares: Annotated[tuple[float, ...], _SHARES] = ()

    def __post_init__(self) -> None:
        check_settings(self)
        if self.experts > self.n_workers:
            raise InputError(f"experts must be {_EXPERTS.words}; got {self.experts} of {self.n_workers}")
        if self.class_shares and len(self.class_shares) != self.domain.size:
            raise InputError(f"class_shares must have {self.domain.size} entries; got {len(self.class_shares)}")

    def draw(self, seed: int | None = None) -> Crowd:
        rng = generator(seed)
        shares = np.array(self.class_shares or (1.0,) * self.domain.size)
        truth = rng.choice(self.domain.size, self.n_questions, p=shares / shares.sum())
        skill = rng.uniform(*self.ability, self.n_workers)
        skill[rng.permutation(self.n_workers)[: self.experts]] = 1.0
        favourite = rng.integers(self.domain.size, size=self.n_workers) if self.bias else None
        worker, question = draw_participation(
            self.n_workers, self.n_questions, self.share, self.answers_per_worker, rng
        )

        def draw(worker: Codes, question: Codes) -> NDArray[np.int64]:
            """The truth with the worker's probability, else one of the others, all alike; or the favourite."""
            others = rng.integers(1, max(self.domain.size, 2), size=len(worker))
            right = rng.random(len(worker)) < skill[worker]
            answer = np.where(right, truth[question], (truth[question] + others) % self.domain.size)
            if favourite is None:
                return answer
            return np.where(rng.random(len(worker)) < self.bias, favourite[worker], answer)

        answer = draw_answers(worker, question, draw)
        answers = numbered_answers(worker, question, answer, self.n_workers, self.n_questions, self.domain)
        return Crowd(answers, truth, skill)
