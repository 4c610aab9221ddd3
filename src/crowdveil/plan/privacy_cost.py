"""What the whole study costs one worker, in the unit that is protected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from crowdveil.accounting import cells_at_stake
from crowdveil.errors import InputError
from crowdveil.exact import times_up
from crowdveil.guarantee import Unit, round_up


@dataclass(frozen=True, slots=True)
class StudyCharge:
    """ε for all of a worker's reports together, and what it speaks about."""

    unit: Unit
    epsilon: float
    sentence: str

    def to_json(self) -> dict[str, object]:
        return {"unit": self.unit, "epsilon": self.epsilon, "sentence": self.sentence}


def study_charge(
    epsilon: float, n_questions: int, share: float, *, protect_participation: bool, max_answers: int | None = None
) -> StudyCharge:
    """Every question reports when participation is protected, so the charge is n·ε whatever was answered.

    With a public bound of t answers that the device enforces, two answer vectors differ in at most 2t cells: t that
    one answered and t that the other did. So the charge is min(n, 2t)·ε.

    Where participation is visible the charge is that of everybody who answers no more than planned on average, rounded
    up to whole answers: of all answers together, against any others to the same questions.

    >>> study_charge(0.125, 100, 0.1, protect_participation=True, max_answers=10).epsilon
    2.5
    """
    if max_answers is not None and (max_answers < 1 or not protect_participation):
        raise InputError("the bound on answers must be at least 1 and needs protected participation")
    if not protect_participation:
        return _of_visible_answers(epsilon, n_questions, share)
    cells = cells_at_stake(n_questions, at_most=max_answers)
    counted = (
        f"all {n_questions} questions report"
        if cells == n_questions
        else f"at most {max_answers} answers, 2t = {cells}"
    )
    words = f"{counted}: {cells} × ε {round_up(epsilon)}, whatever is answered; pay must not depend on it either"
    return StudyCharge("vector", times_up(cells, epsilon), words)


def expected_answers(n_questions: int, share: float) -> int:
    """How many questions a worker answers on average, rounded up to whole answers."""
    # The share as it was spelled: as doubles 0.07 · 100 is above 7.
    return max(1, math.ceil(Fraction(repr(float(share))) * n_questions))


def _of_visible_answers(epsilon: float, n_questions: int, share: float) -> StudyCharge:
    answers = expected_answers(n_questions, share)
    words = f"{answers} × ε {round_up(epsilon)} for all answers of who answers "
    if answers == n_questions:
        words += "every question" if n_questions > 1 else "the question"
    else:
        most = round_up(times_up(n_questions, epsilon))
        words += f"{answers}, the average rounded up (ε {most} of who answers all {n_questions})"
    return StudyCharge("vector", times_up(answers, epsilon), f"{words}; which questions were answered is visible")
