"""The device's ledger, outbox and study checks under Node, beside the library's own where both exist."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from device import studies
from device.node import node

from crowdveil.accounting.conversion import rho_max
from crowdveil.accounting.ledger import Budget
from crowdveil.accounting.nano import nano_down, nano_up
from crowdveil.accounting.storage import NOTHING, Charge
from crowdveil.client.study import StudyError, check_signature

RUN = Path(__file__).parent / "run.mjs"
CAP = {"epsilon": 4_000_000_000, "rho": 311_064_900}


def run(check: str, given: object) -> Any:
    return node(RUN, {"check": check, "given": given})


def test_the_second_ceiling_is_the_librarys() -> None:
    budgets = [(epsilon, delta) for epsilon in (0.01, 0.5, 1, 4, 20) for delta in (0, 1e-9, 1e-6, 0.01)]
    for (epsilon, delta), ours in zip(budgets, run("rhoMax", budgets), strict=True):
        assert ours == pytest.approx(rho_max(epsilon, delta), rel=1e-9)
    [cap] = run("cap", [4_000_000_000])
    assert cap["epsilon"] == Budget(4).cap.epsilon
    assert abs(cap["rho"] - Budget(4).cap.rho) <= 1


def test_nano_units_round_charges_up_and_caps_down_exactly() -> None:
    chance = random.Random(3)
    amounts = [0, 0.25, 1 / 3, 1e-12, 5e-324, 4, 1e7, 0.1 + 0.2] + [chance.expovariate(1) for _ in range(300)]
    assert run("nano", amounts) == [[nano_up(amount), nano_down(amount)] for amount in amounts]


def test_the_either_or_rule_decides_as_the_library_does() -> None:
    chance = random.Random(5)
    charges = [
        {"epsilon": chance.randrange(1, 600_000_000), "rho": chance.randrange(1, 60_000_000)} for _ in range(200)
    ]
    cap, spent, expected = Charge(CAP["epsilon"], CAP["rho"]), NOTHING, []
    for wanted in charges:
        total = spent + Charge(**wanted)
        expected.append(total.within(cap))
        spent = total if total.within(cap) else spent
    answers = run("ledger", {"cap": CAP, "charges": charges})
    assert ["spent" in answer for answer in answers] == expected
    assert True in expected
    assert False in expected
    last = [answer["spent"] for answer in answers if "spent" in answer][-1]
    assert last == {"epsilon": spent.epsilon, "rho": spent.rho}


def test_a_clock_that_was_set_back_dates_nothing_into_a_year_that_is_over() -> None:
    charges = [{"epsilon": 1, "rho": 1, "day": day} for day in ("2026-11-15", "1970-01-01", "2027-01-01")]
    days = [answer["day"] for answer in run("ledger", {"cap": CAP, "charges": charges})]
    assert days == ["2026-11-15", "2026-11-15", "2027-01-01"]


def test_domains_are_spelled_as_the_library_spells_them() -> None:
    spelled = [
        {"type": "choices", "options": ["b", "a"]},
        {"type": "scale", "low": "-1", "high": "1", "step": "0.25"},
        {"type": "scale", "low": "0", "high": "100", "step": "10"},
        {"type": "scale", "low": "0.5", "high": "2.0", "step": "0.5"},
        {"type": "tick-all", "boxes": ["a", 'b"', "é"]},
    ]
    expected = [list(studies.domain_of(each).symbols) for each in spelled]
    expected[-1] = ["[]", '["a"]', '["b\\""]', '["a","b\\""]', '["é"]', '["a","é"]', '["b\\"","é"]', '["a","b\\"","é"]']
    assert run("symbols", spelled) == expected


def test_an_honest_study_is_read() -> None:
    for study in (
        studies.definition(),
        studies.definition(protects=False, levels=("none", "low", "high")),
        studies.definition(max_answers=1),
    ):
        assert run("studies", [studies.served(study)]) == [studies.sha256_hex(study)]


def test_a_tampered_study_is_refused_for_the_right_reason() -> None:
    cases = studies.tampered()
    answers = run("studies", [answer for _, answer in cases])
    assert [answer.get("refused") for answer in answers] == [why for why, _ in cases]


def test_a_field_of_another_kind_is_refused_by_its_name() -> None:
    cases = studies.mistyped()
    answers = run("whyRefused", [answer for _, answer in cases])
    refused = [(answer["refused"], answer["got"]) if isinstance(answer, dict) else answer for answer in answers]
    assert refused == [("study.field", field) for field, _ in cases]


def test_skip_logic_runs_on_the_device() -> None:
    given = {"study": studies.served(studies.definition()), "answers": [{}, {"smoked": "no"}, {"smoked": "yes"}]}
    assert run("visible", given) == [["smoked", "often"], ["smoked", "often"], ["smoked", "often", "where"]]


def test_a_draw_is_charged_once_and_never_drawn_again() -> None:
    study = studies.served(studies.definition())
    answers = {"smoked": "yes", "where": '["at work"]'}
    done = run("commit", {"study": study, "tries": [{"level": "medium", "answers": answers, "cap": CAP}] * 3})
    first, second, third = done["results"]
    assert first == second == third
    assert [report["question"] for report in first["body"]["reports"]] == ["smoked", "often", "where"]
    [line] = done["ledger"]
    medium = study["definition"]["levels"][1]["charge"]
    assert line["epsilon"] == medium["epsilon_nano"]
    assert line["rho"] == pytest.approx(medium["rho_nano"], rel=1e-3)


def test_what_another_device_drew_is_not_drawn_again_for_free() -> None:
    study = studies.served(studies.definition())
    tries = [{"level": "medium", "answers": {"smoked": "no"}, "cap": CAP}]
    done = run("commit", {"study": study, "tries": tries, "elsewhere": True})
    assert done["results"][0]["refused"] == "study.drawn"


def test_what_the_cap_does_not_allow_is_neither_charged_nor_drawn() -> None:
    study = studies.served(studies.definition())
    cap = {"epsilon": 2_999_000_000, "rho": 1}
    done = run("commit", {"study": study, "tries": [{"level": "medium", "answers": {"smoked": "no"}, "cap": cap}]})
    [refusal] = done["results"]
    assert (refusal["refused"], refusal["left"]) == ("ledger.refused", 2_999_000_000)
    assert refusal["needed"] == study["definition"]["levels"][1]["charge"]["epsilon_nano"]
    assert done["ledger"] == []


def test_skipped_questions_report_only_where_participation_is_protected() -> None:
    answers = {"smoked": "no"}
    open_study = studies.served(studies.definition(protects=False, levels=("none", "medium")))
    done = run("commit", {"study": open_study, "tries": [{"level": "medium", "answers": answers, "cap": CAP}]})
    assert [report["question"] for report in done["results"][0]["body"]["reports"]] == ["smoked"]
    assert done["ledger"][0]["epsilon"] == pytest.approx(1e9, rel=1e-3)
    bare = run("commit", {"study": open_study, "tries": [{"level": "none", "answers": answers, "cap": CAP}]})
    assert bare["results"][0]["body"]["reports"][0]["report"] == 0
    assert (bare["ledger"][0]["kind"], bare["ledger"][0]["epsilon"]) == ("unprotected", 0)


def test_more_answers_than_the_study_bounds_are_refused() -> None:
    study = studies.served(studies.definition(max_answers=1))
    tries = [{"level": "low", "answers": answers, "cap": CAP} for answers in ({"smoked": "no", "often": "3"}, {})]
    done = run("commit", {"study": study, "tries": tries})
    assert done["results"][0]["refused"] == "study.tooMany"
    # Two reports of ε = 2 are at stake, not three.
    assert done["ledger"][0]["epsilon"] == pytest.approx(4e9, rel=1e-3)


def test_an_answer_outside_the_domain_is_refused_and_nothing_is_stored() -> None:
    study = studies.served(studies.definition())
    done = run("commit", {"study": study, "tries": [{"level": "low", "answers": {"often": "6"}, "cap": CAP}]})
    assert (done["results"][0]["refused"], done["ledger"]) == ("answer.option", [])


def test_offline_keeps_the_draw_and_sends_the_same_later() -> None:
    done = run("flush", {"study": studies.served(studies.definition()), "cap": {"epsilon": 10**10, "rho": 0}})
    assert done["unreleased"] == []
    assert done["sent"][0] == done["sent"][1]
    assert done["offline"]["refused"] == "offline"
    assert (done["online"][0]["state"], done["online"][0]["receipt"], done["after"]) == ("sent", {"receipt": "r1"}, [])


def test_a_ledger_moves_whole_and_merging_twice_adds_nothing() -> None:
    lines = [
        {"key": key, "kind": "study", "name": "é", "level": "low", "reports": 2, "epsilon": 5, "rho": 2, "day": "d"}
        for key in ("s1", "s2")
    ]
    moved = run("move", lines)
    assert moved["same"] == lines
    assert moved["added"] == [{**lines[0], "key": "s1 elsewhere 4 0", "epsilon": 4, "rho": 0}, lines[1]]
    assert moved["again"] == []
    assert all(answer["refused"].startswith("ledger.") for answer in moved["broken"])


def test_a_study_drawn_on_two_devices_is_counted_twice_and_imports_forget_nothing() -> None:
    study = studies.served(studies.definition())
    cost = study["definition"]["levels"][0]["charge"]["epsilon_nano"]

    def spent(*steps: list[str]) -> dict[str, float]:
        return {name: total / cost for name, total in run("devices", {"study": study, "steps": steps}).items()}

    both = (["draw", "a", "s"], ["draw", "b", "s"])
    assert spent(*both, ["import", "b", "a"], ["import", "b", "a"]) == {"a": 1, "b": 2}
    assert spent(*both, ["import", "b", "a"], ["import", "a", "b"]) == {"a": 2, "b": 2}
    # What came back from a device that only imported it is the same draw.
    assert spent(["draw", "a", "s"], ["import", "b", "a"], ["import", "a", "b"]) == {"a": 1, "b": 1}
    third = (*both, ["draw", "c", "s"], ["import", "b", "a"], ["import", "c", "b"], ["import", "b", "c"])
    assert spent(*third) == {"a": 1, "b": 3, "c": 3}


def test_a_moved_ledger_without_a_cap_is_refused() -> None:
    whole = {"level": "low", "cap": 9, "period": "life"}
    for other in ({"cap": "9"}, {"cap": None}, {"cap": -1}, {"level": "lowest"}, {"token": 7}):
        assert run("moveInRefused", {"other": whole | other}) == {"refused": "ledger.format"}


def test_a_moved_ledger_never_raises_the_cap_and_never_lowers_the_level() -> None:
    mine, other = {"level": "low", "cap": 2, "period": "life"}, {"level": "high", "cap": 9, "period": "year"}
    assert run("moveIn", {"mine": mine, "other": other}) == {"level": "high", "cap": 2, "period": "life"}
    assert run("moveIn", {"mine": other, "other": mine}) == {"level": "high", "cap": 2, "period": "year"}
    assert run("moveIn", {"mine": None, "other": other}) == other
    assert run("moveIn", {"mine": mine, "other": other | {"level": "none"}})["level"] == "low"


def test_foreign_draws_are_not_taken_over_and_none_is_sent_unasked() -> None:
    """Without the key to the account anybody could have drawn it; the charge is counted in any case."""
    me, study = {"level": "low", "cap": 10**11, "period": "life"}, studies.served(studies.definition())

    def taken(state: str, mine: str | None, other: str | None) -> dict[str, Any]:
        named = [me | ({"token": token} if token else {}) for token in (mine, other)]
        given = {"study": study, "mine": named[0], "other": named[1], "state": state}
        return dict(run("moveInDraw", given))

    for mine, other in (("a", "b"), ("a", None), (None, None)):
        assert taken("waiting", mine, other) == {"states": [], "lines": 1}
        assert taken("sent", mine, other) == {"states": ["sent"], "lines": 1}
    for mine in ("a", None):
        assert taken("drawn", mine, "a") == {"states": ["drawn"], "lines": 1}
        assert taken("waiting", mine, "a") == {"states": ["drawn"], "lines": 1}


def test_a_new_device_starts_no_lower_than_the_brokers_copy() -> None:
    lines = [{"key": "s", "kind": "study", "name": "", "level": "", "reports": 1, "epsilon": 5, "rho": 9, "day": ""}]
    carried = run("carryOver", {"lines": lines, "elsewhere": {"epsilon": 8, "rho": 7}})
    assert (carried["first"]["epsilon"], carried["first"]["rho"]) == (3, 0)
    assert carried["second"] is None
    # Keys of what is carried over never meet: neither each other's on two devices, nor a study's.
    again = run("carryOver", {"lines": lines, "elsewhere": {"epsilon": 8, "rho": 7}})
    assert carried["first"]["key"] != again["first"]["key"]
    assert carried["spent"] == {"epsilon": 8, "rho": 9}


def test_a_line_of_the_ledger_is_never_replaced() -> None:
    study = studies.definition(identifier="carried-over 1")
    assert run("studies", [studies.served(study) | {"asked": "carried-over 1"}]) == [{"refused": "study.format"}]


def test_signatures_are_judged_as_the_library_judges_them() -> None:
    value = {"title": "é", "n": [1, None]}
    signature = studies.sign(value)
    cases = [
        (value, signature, studies.PUBLIC_KEY, True),
        ({**value, "n": [1, 0]}, signature, studies.PUBLIC_KEY, False),
        (value, studies.sign("another"), studies.PUBLIC_KEY, False),
        (value, signature[:-2] + "00", studies.PUBLIC_KEY, False),
        (value, signature, "11" * 32, False),
        (value, "", studies.PUBLIC_KEY, False),
        (value, signature, "", False),
    ]
    ours = run("signed", [{"value": case[0], "signature": case[1], "key": case[2]} for case in cases])
    assert ours == [case[3] for case in cases]
    assert [_holds(*case[:3]) for case in cases] == ours


def _holds(value: object, signature: str, key: str) -> bool:
    try:
        check_signature(value, signature, key)
    except StudyError:
        return False
    return True
