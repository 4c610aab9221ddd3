"""The draft of a study, complete and checked: what a requester writes and what the definition is frozen from."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, model_validator

from crowdveil.broker.pools.rules import PoolRules
from crowdveil.broker.studies.questions import DraftPart, Option, Question, Text

LEVELS = ("none", "low", "medium", "high")
LevelName = Literal["none", "low", "medium", "high"]
Cents = Annotated[int, Field(ge=0, le=10**12)]


class Level(DraftPart):
    """One privacy level: how reports are randomised, at which ε each, and what it pays."""

    name: LevelName
    mechanism: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z-]{0,39}$")]
    epsilon: Annotated[str, StringConstraints(pattern=r"^[0-9]{1,2}(\.[0-9]{1,6})?$")] | None = None
    pay_cents: Annotated[int, Field(ge=0, le=10**7)]
    parameters: dict[str, int | str | bool] = Field(default={}, max_length=8)

    @model_validator(mode="after")
    def _named_as_protected(self) -> Level:
        if (self.name == "none") != (self.mechanism == "none"):
            raise ValueError("level none has the mechanism none, and no other level has it")
        if (self.epsilon is None) != (self.name == "none"):
            raise ValueError("level none has no epsilon and every other level needs one, such as '1.0'")
        if self.epsilon is not None and not 0 < Decimal(self.epsilon) <= 20:
            raise ValueError(f"epsilon must be above 0 and at most 20; got {self.epsilon}")
        return self


class Selection(DraftPart):
    """Who may answer: whoever comes first, a random choice, or Loki's greedy choice with its fairness α."""

    policy: Literal["first-come", "random", "greedy"] = "first-come"
    fairness: Annotated[str, StringConstraints(pattern=r"^(0(\.[0-9]{1,3})?|1(\.0{1,3})?)$")] | None = None


class Draft(DraftPart):
    """Everything a study is.

    A pool of tasks has `kind` "tasks", its rules in `pool`, and one question: the form that is filled in for each task.
    Its quota counts batches, and a level's pay is that of a batch.
    """

    kind: Literal["survey", "tasks"] = "survey"
    title: Annotated[Option, Field(max_length=120)]
    purpose: Text
    goal: Literal["population", "truth"] = "population"
    consent_text: Text
    protects_participation: bool = False
    max_answers: Annotated[int, Field(ge=1, le=200)] | None = None
    linkable: bool = False
    partial_pay: bool = False
    selection: Selection = Selection()
    minimum_n: Annotated[int, Field(ge=2, le=10**6)] = 20
    quota: Annotated[int, Field(ge=1, le=10**7)]
    pilot_quota: Annotated[int, Field(ge=1, le=10**4)] = 10
    reservation_minutes: Annotated[int, Field(ge=1, le=7 * 24 * 60)] = 60
    budget_cents: Cents
    questions: list[Question] = Field(min_length=1, max_length=200)
    levels: list[Level] = Field(min_length=1, max_length=4)
    pool: PoolRules | None = None

    @model_validator(mode="after")
    def _parts_fit_together(self) -> Draft:
        for problem in _problems(self):
            raise ValueError(problem)
        return self

    @property
    def tells_by_asking(self) -> bool:
        """Whether a report on a question says that a protected answer to another was among those it depends on.

        No channel hides which questions are reported; only protected participation does.
        """
        depends = any(question.show_if for question in self.questions)
        return depends and not self.protects_participation and any(level.name != "none" for level in self.levels)

    def question_ids(self) -> list[str]:
        return [question.id for question in self.questions]


def _problems(draft: Draft) -> list[str]:
    ids, names = draft.question_ids(), [level.name for level in draft.levels]
    checks = {
        "question ids must differ": len(set(ids)) == len(ids),
        f"levels must differ and stand in the order {', '.join(LEVELS)}": names == [n for n in LEVELS if n in names],
        "level none protects nothing and cannot be offered where participation is protected": (
            not draft.protects_participation or "none" not in names
        ),
        "max_answers needs protects_participation": draft.max_answers is None or draft.protects_participation,
        "partial pay would tell how many questions were answered; it is refused where participation is protected": (
            not (draft.partial_pay and draft.protects_participation)
        ),
        "greedy selection reads workers' history; mark the study linkable, so that workers know": (
            draft.selection.policy != "greedy" or draft.linkable
        ),
        "fairness belongs to greedy selection": (draft.selection.policy == "greedy") or not draft.selection.fairness,
        "minimum_n must not be above the quota": draft.minimum_n <= draft.quota,
    }
    problems = [sentence for sentence, holds in checks.items() if not holds]
    return problems + _pool_problems(draft) + _skip_logic_problems(draft)


def _pool_problems(draft: Draft) -> list[str]:
    if draft.kind == "survey":
        return ["pool rules belong to a study of kind tasks"] if draft.pool is not None else []
    form = draft.questions[0]
    checks = {
        "a study of kind tasks needs pool rules": draft.pool is not None,
        "a pool has one question: the form that is filled in for each task": len(draft.questions) == 1,
        "the form of a pool has no known truth and no skip logic; known truths stand in the task list": (
            form.gold is None and form.show_if is None
        ),
        "a pool is labelled by whoever comes first, or by a listed assignment": draft.selection.policy == "first-come",
        "a pool asks for the truth of each task: its goal is truth": draft.goal == "truth",
        "max_answers and partial_pay are not for pools": draft.max_answers is None and not draft.partial_pay,
    }
    return [sentence for sentence, holds in checks.items() if not holds]


def _skip_logic_problems(draft: Draft) -> list[str]:
    seen: dict[str, Any] = {}
    for question in draft.questions:
        rule = question.show_if
        if rule is not None and rule.question not in seen:
            return [f"question {question.id} is shown depending on {rule.question!r}, which does not stand before it"]
        if rule is not None:
            unknown = [option for option in rule.any_of if option not in seen[rule.question].symbols]
            if unknown:
                return [f"question {question.id} depends on the answer {unknown[0]!r}, which {rule.question} has not"]
        seen[question.id] = question.domain.domain()
    return []
