"""What every setting promises: a number that makes no sense is refused at once, in a sentence that names the setting.

Settings are found by themselves: every frozen dataclass that a package offers, and every number among its fields. A
value that is not refused must work: a method fits, a mechanism randomises, a crowd is drawn.
"""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import MISSING, fields, is_dataclass
from fractions import Fraction
from functools import cache, partial
from importlib import import_module
from inspect import isabstract
from types import NoneType
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest

from crowdveil import Answers, Choices, DomainError, InputError, Reports, Scale, identity
from crowdveil.accounting import Law, Ledger, PureLaw, Spend, totals
from crowdveil.accounting.ledger import Budget
from crowdveil.entropy import entropy_from
from crowdveil.errors import UnservableError
from crowdveil.inference import METHODS, Method, method
from crowdveil.inference.engine.local import LocalEngine
from crowdveil.mechanisms import MECHANISMS, Mechanism, mechanism
from crowdveil.plan import CrowdSkill, Setting
from crowdveil.simulate import ChoiceCrowd, ScaleCrowd

PACKAGES = ("accounting", "inference", "mechanisms", "plan", "selection", "simulate")
# What the library makes itself, or columns of a file, which have laws of their own.
RESULTS = {"Charge", "Cost", "Loss", "Plan", "Prediction", "Receipt", "Release", "Selection", "StudyCharge"}
RESULTS |= {"Candidates", "Crowd", "CrowdSkill", "History", "OneByOne", "ShuffledGuarantee"}
NEVER: list[Any] = [math.nan, "3", "", True, False, {}, b"1", 1j, object()]
HOSTILE: list[Any] = [
    math.inf,
    -math.inf,
    -1,
    -0.5,
    0,
    0.0,
    1.5,
    1e300,
    10**30,
    10**400,
    10**5000,
    -(10**400),
    None,
    [],
]
MAY_BE_NEGATIVE = {"tol", "seed", "fill"}
OPTIONS, LEVELS = Choices(("no", "yes")), Scale(0, 3)
GIVEN: dict[str, Any] = {
    "channel": identity(OPTIONS),
    "crowd": CrowdSkill.from_name("mixed", OPTIONS),
    "domain": OPTIONS,
    "epsilon": 1.0,
    "high": Fraction(1, 2),
    "law": PureLaw(1.0),
    "low": Fraction(1, 4),
    "mu": 1.0,
    "n_options": 3,
    "n_questions": 4,
    "n_workers": 5,
    "name": "health",
    "share": 0.5,
    "unit": "value",
}
"""A value for each setting that has no default. A new one without a default is added here."""
INSTEAD = {"sigma": {}, "flip": {}, "low": {"high": 0.9}, "high": {"low": 0.1}}
"""Settings of mechanisms that stand for ε, and what else must be given with them."""


def kinds() -> list[type[Any]]:
    """Every configuration that a package offers, by its table of contents."""
    offered = [getattr(package, name) for package in _packages() for name in package.__all__]
    found = [kind for kind in offered if is_dataclass(kind) and isinstance(kind, type) and not isabstract(kind)]
    return [kind for kind in [*found, LocalEngine] if kind.__name__ not in RESULTS]


def _packages() -> list[Any]:
    return [import_module(f"crowdveil.{name}") for name in PACKAGES]


def numeric(hint: Any) -> bool:
    """A number, or several, wherever they stand in the annotation."""
    return hint in (int, float, Fraction) or any(numeric(part) for part in get_args(hint) if part is not NoneType)


def settings() -> list[Any]:
    return [
        pytest.param(kind, field.name, id=f"{kind.__name__}-{field.name}")
        for kind in kinds()
        for field in fields(kind)
        if field.init and numeric(get_type_hints(kind)[field.name])
    ]


def parameters(kind: type[Any], **given: Any) -> dict[str, Any]:
    """These settings, and as little else as it takes to make one."""
    needed = [each for each in fields(kind) if each.init and each.default is each.default_factory is MISSING]
    names, base = [each.name for each in fields(kind)], {each.name: GIVEN[each.name] for each in needed}
    if kind is ScaleCrowd:
        base["domain"] = LEVELS
    if "max_iter" in names:
        # Whether a fit works shows in a few iterations.
        base["max_iter"] = 3
    if "factors" in names:
        base |= {"factors": 2, "ridge": 0.5}
    if issubclass(kind, Mechanism) and "epsilon" not in base and kind.name != "none":
        base |= next((INSTEAD[name] for name in given if name in INSTEAD), {"epsilon": 1.0})
    return base | given


@cache
def tables() -> list[Reports]:
    rows = [(f"w{n % 5}", f"q{n % 4}", n * n % 3 % 2) for n in range(20)]
    spelled = [(worker, question, OPTIONS.options[code]) for worker, question, code in rows]
    return [Reports.unprotected(Answers.from_rows(*each)) for each in ((rows, LEVELS), (spelled, OPTIONS))]


def works(thing: Any) -> None:
    """It does what it is for, with nothing in it that is no number."""
    if isinstance(thing, Method | LocalEngine):
        _fits(thing if isinstance(thing, Method) else METHODS["one-coin"](engine=thing))
    elif isinstance(thing, Mechanism):
        _randomises(thing)
    elif isinstance(thing, ChoiceCrowd | ScaleCrowd):
        assert np.isfinite(thing.draw(seed=1).skill).all()
    elif isinstance(thing, Budget):
        assert Ledger(thing).left("ada").epsilon >= 0
    elif isinstance(thing, Law | Spend):
        spend = thing if isinstance(thing, Spend) else Spend(thing, "health")
        assert min(spend.epsilon, spend.rho) >= 0
        assert totals([spend]) is not None
    elif isinstance(thing, Setting):
        assert thing.reports_per_question > 0


def _fits(method: Method) -> None:
    for reports in tables():
        try:
            estimate = method.fit(reports)
        except InputError:
            # The other of the two tables is what the method is for.
            continue
        for column in (estimate.value, estimate.confidence, estimate.low, estimate.high):
            assert np.isfinite(column).all()


def _randomises(mechanism: Mechanism) -> None:
    rows = [(f"w{n % 5}", f"q{n % 4}", n % 4) for n in range(20)]
    for answers in (Answers.from_rows(rows, LEVELS), Answers.from_rows(rows, Choices(("0", "1", "2", "3")))):
        try:
            reports = mechanism.randomize(answers, entropy_from(1))
        except (UnservableError, DomainError):
            # Neither levels nor options, or too few of them: what is wrong is not the setting alone.
            continue
        assert mechanism.guarantee(answers.domain).epsilon >= 0
        assert reports.number is None or np.isfinite(reports.number).all()


@pytest.mark.parametrize(("kind", "name"), settings())
def test_what_is_no_number_is_refused_and_so_is_less_than_nothing(kind: type[Any], name: str) -> None:
    for value in [*NEVER, *(() if name in MAY_BE_NEGATIVE else (-1, -0.5, -math.inf))]:
        with pytest.raises(InputError, match=rf"\b{name}\b.*; got "):
            kind(**parameters(kind, **{name: value}))


@pytest.mark.parametrize(("kind", "name"), settings())
def test_a_number_works_or_is_refused_by_its_name(kind: type[Any], name: str) -> None:
    for value in [*HOSTILE, *([each, each] for each in (*HOSTILE, *NEVER))]:
        given = tuple(value) if isinstance(value, list) else value
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            try:
                thing = kind(**parameters(kind, **{name: given}))
            except InputError as refusal:
                said = str(refusal)
                assert name in said, said
                assert " must " in said or " needs " in said, said
                assert len(said) < 400, said
                assert value is None or "got " in said, said
                continue
            works(thing)


@pytest.mark.parametrize(("make", "kinds"), [(method, METHODS), (mechanism, MECHANISMS)], ids=["methods", "mechanisms"])
def test_the_name_of_a_kind_refuses_in_the_words_of_the_kind(make: Any, kinds: dict[str, type[Any]]) -> None:
    for kind, name in (each.values for each in settings() if each.values[0] in kinds.values()):
        wrong = parameters(kind, **{name: math.nan})
        with pytest.raises(InputError) as refusal:
            kind(**wrong)
        with pytest.raises(InputError, match=f"^{re.escape(str(refusal.value))}$"):
            make(kind.name, **wrong)


@pytest.mark.parametrize("kind", MECHANISMS.values(), ids=list(MECHANISMS))
@pytest.mark.parametrize("only", ["yes", "3"])
def test_a_question_with_one_option_is_served_or_refused(kind: type[Mechanism], only: str) -> None:
    domain, chosen = Choices((only,)), kind(**parameters(kind))
    rows = [(worker, question, only) for worker in "abc" for question in "pqrs"]
    answers = Answers.from_rows(rows, domain)
    asked = [lambda: chosen.randomize(answers, entropy_from(1)), lambda: chosen.guarantee(domain)]
    asked += [partial(getattr(chosen, name), domain) for name in ("channel", "claimed") if hasattr(chosen, name)]
    for ask in asked:
        try:
            ask()
        except InputError as refusal:
            said = str(refusal)
            assert "; got " in said, said


def taking(name: str) -> list[type[Method]]:
    """The methods with this setting."""
    found = [kind for kind in METHODS.values() if name in {field.name for field in fields(kind)}]
    assert found
    return found


@pytest.mark.parametrize("kind", taking("gold"))
def test_gold_is_used_left_aside_or_refused_by_its_question(kind: type[Any]) -> None:
    reports = tables()[1]
    assert kind(gold={"q0": "no", "elsewhere": "yes"}).fit(reports).values()[0] == "no"
    stranger = kind(gold={0: "no"}).fit(reports)
    assert "gold names none of the questions; check that the ids agree" in stranger.warnings
    assert stranger.values() == kind().fit(reports).values()
    for missing in (None, math.nan):
        assert kind(gold={"q0": missing}).fit(reports).values() == kind().fit(reports).values()
    for truth in ("maybe", 1, [], -1):
        with pytest.raises(DomainError, match="the truth of question 'q0' cannot be used: answer must be one of"):
            kind(gold={"q0": truth}).fit(reports)
    for given in ([("q0", "no")], "q0", None, 3):
        with pytest.raises(InputError, match="gold must be of type Mapping; got"):
            kind(gold=given)


@pytest.mark.parametrize("kind", taking("history"))
def test_a_history_is_used_left_aside_or_refused_by_its_worker(kind: type[Any]) -> None:
    reports, table = tables()[1], np.array([[30, 1], [1, 30]])
    with_skill = kind(history={"w0": table}).fit(reports).skills.skill[0]
    assert with_skill > kind(history={"w0": table[::-1]}).fit(reports).skills.skill[0]
    stranger = kind(history={"nobody": table}).fit(reports)
    assert "history names none of the workers; check that the ids agree" in stranger.warnings
    no_counts = [[[1, each], [0, 1]] for each in (-1, math.nan, math.inf, 10**400, "a", None)]
    no_table = [3, None, "counts", {}, [1, 2], [[1, 2], [3]], [[1, 2, 3], [4, 5, 6]], np.zeros((2, 2, 2))]
    for counts in (*no_counts, *no_table):
        with pytest.raises(InputError, match="the history of worker 'w0' must be a table of counts from 0 up, truth"):
            kind(history={"w0": counts})
    with pytest.raises(InputError, match="the history of worker 'w0' must be a table of 2 × 2 of counts from 0 up"):
        kind(history={"w0": np.ones((3, 3))}).fit(reports)
    with pytest.raises(InputError, match="history must be of type Mapping; got"):
        kind(history=[table])
