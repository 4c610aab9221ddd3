"""What the whole study costs one worker, in the unit that is protected."""

from __future__ import annotations

from dataclasses import dataclass

from crowdveil.accounting import cells_at_stake
from crowdveil.errors import InputError
from crowdveil.guarantee import round_up


@dataclass(frozen=True, slots=True)
class StudyCharge:
    """ε for all of a worker's reports together, and what it speaks about."""

    unit: str
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

    >>> study_charge(0.1, 100, 0.1, protect_participation=True, max_answers=10).epsilon
    2.0
    """
    if max_answers is not None and (max_answers < 1 or not protect_participation):
        raise InputError("the bound on answers must be at least 1 and needs protected participation")
    if not protect_participation:
        answers = max(1, round(share * n_questions))
        words = f"about {answers} answers at ε {round_up(epsilon)} each; which questions were answered is visible"
        return StudyCharge("value", answers * epsilon, words)
    cells = cells_at_stake(n_questions, at_most=max_answers)
    counted = (
        f"all {n_questions} questions report"
        if cells == n_questions
        else f"at most {max_answers} answers, 2t = {cells}"
    )
    words = f"{counted}: {cells} × ε {round_up(epsilon)}, whatever is answered; pay must not depend on it either"
    return StudyCharge("vector", cells * epsilon, words)
