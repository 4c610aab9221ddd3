"""Budgets, holds and pay: what a submission costs, and who may still pay for it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from broker.scene import Scene, books_balance, refused


def test_a_hold_that_expires_is_released_and_a_late_report_is_checked_again(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker import clock
    from crowdveil.broker.ledger.models import Reservation
    from crowdveil.broker.ledger.reservations import release_expired

    scene = Scene(make_draft(quota=1, minimum_n=1 + 1, pilot_quota=1) | {"quota": 2})
    late, quick = scene.worker(), scene.worker()
    scene.reserve(late)
    assert (scene.purse().places_held, scene.budget(late).epsilon_held > 0) == (1, True)
    Reservation.objects.filter(account=late.id).update(expires=clock.now() - timedelta(minutes=1))
    assert release_expired() == 1
    assert (scene.purse().places_held, scene.purse().held, scene.budget(late).epsilon_held) == (0, 0, 0)
    for worker in (quick, scene.worker()):
        scene.submit(worker, {"ill": 0, "days": 0})
    with refused("no-money"):
        scene.submit(late, {"ill": 0, "days": 0})
    assert scene.budget(late).epsilon_spent == 0
    books_balance()


def test_a_late_report_is_taken_when_there_is_room(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.ledger.reservations import cancel

    scene = Scene(make_draft())
    worker = scene.worker()
    scene.reserve(worker)
    assert cancel(scene.study.id, worker.id)
    assert not cancel(scene.study.id, worker.id)
    assert scene.submit(worker, {"ill": 0, "days": 0})["pay_cents"] == 20
    books_balance()


def test_accepting_at_another_level_replaces_the_hold(django_here: Path, make_draft: Any) -> None:
    scene = Scene(make_draft())
    worker = scene.worker()
    scene.reserve(worker, "medium")
    first = scene.budget(worker).epsilon_held
    scene.reserve(worker, "low")
    assert scene.budget(worker).epsilon_held > 1.9 * first
    assert scene.purse().places_held == 1
    # What is sent may be of yet another level; the charge is that of what was sent.
    scene.submit(worker, {"ill": 0, "days": 0}, "medium")
    assert (scene.budget(worker).epsilon_held, scene.budget(worker).epsilon_spent) == (0, first)
    books_balance()


def test_who_is_refused_another_level_keeps_the_place(django_here: Path, make_draft: Any) -> None:
    scene = Scene(make_draft())
    worker = scene.worker(epsilon_cap=3)
    held = scene.reserve(worker, "medium")
    with refused("over-budget"):
        scene.reserve(worker, "low")
    assert scene.reserve(worker, "medium").id == held.id
    assert scene.purse().places_held == 1
    books_balance()


def test_whoever_has_too_little_left_is_sent_to_a_level_that_costs_less(django_here: Path, make_draft: Any) -> None:
    """Levels are named by how much they hide: the higher one is the cheaper one."""
    from crowdveil.broker.problems import Refusal

    scene = Scene(make_draft())
    costs = {name: level.charge["epsilon_nano"] for name, level in scene.opened.levels.items() if level.charge}
    worker = scene.worker(epsilon_cap=costs["medium"] / 1e9)
    with pytest.raises(Refusal, match="choose a higher level of privacy, or raise your cap"):
        scene.reserve(worker, "low")
    scene.reserve(worker, "medium")


def test_the_either_or_rule_goes_on_by_rho_when_epsilon_is_used_up(django_here: Path, make_draft: Any) -> None:
    levels = [{"name": "medium", "mechanism": "randomized-response", "epsilon": "0.25", "pay_cents": 0}]
    questions = [{"id": "q", "text": "x", "domain": {"type": "choices", "options": list("abcde")}}]
    draft = make_draft(levels=levels, questions=questions)
    first = Scene(draft)
    worker = first.worker(epsilon_cap=4)
    granted = 0
    scene = first
    with refused("over-budget"):
        while granted < 200:
            scene.submit(worker, {"q": 0})
            granted += 1
            scene = Scene(draft, first.owner)
    budget = first.budget(worker)
    # Σε alone would have stopped after 16 answers at ε = 0.25; Σρ allows 23 under (4, 1e-6).
    assert granted == 23
    assert budget.epsilon_spent > budget.epsilon_cap
    assert budget.rho_spent <= budget.rho_cap
    books_balance()


def test_unprotected_answers_are_listed_and_never_summed_nor_blocked(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.ledger.models import Spend

    scene = Scene(make_draft(levels=[{"name": "none", "mechanism": "none", "pay_cents": 80}]))
    worker = scene.worker(epsilon_cap=0)
    scene.reserve(worker, "none")
    receipt = scene.submit(worker, {"ill": 1, "days": 4}, "none")
    assert receipt["charge"] is None
    budget = scene.budget(worker)
    assert (budget.epsilon_spent, budget.rho_spent, budget.unprotected) == (0, 0, 1)
    assert Spend.objects.get(account=worker.id).epsilon is None
    books_balance()


def test_partial_pay_and_charge_follow_what_was_sent(django_here: Path, make_draft: Any) -> None:
    scene = Scene(make_draft(partial_pay=True))
    half, full = scene.worker(), scene.worker()
    scene.reserve(half)
    assert scene.submit(half, {"ill": 0})["pay_cents"] == 10
    assert scene.submit(full, {"ill": 0, "days": 0})["pay_cents"] == 20
    assert scene.budget(half).epsilon_spent < scene.budget(full).epsilon_spent
    assert (scene.purse().held, scene.purse().paid, scene.purse().commission) == (0, 30, 3)
    books_balance()


def test_where_participation_is_protected_pay_and_charge_do_not_depend_on_it(
    django_here: Path, make_draft: Any
) -> None:
    scene = Scene(make_draft(protects_participation=True))
    silent, talker = scene.worker(), scene.worker()
    nothing = {"ill": 2, "days": 5}
    receipts = [scene.submit(silent, nothing), scene.submit(talker, {"ill": 0, "days": 0})]
    assert receipts[0]["charge"] == receipts[1]["charge"]
    assert receipts[0]["pay_cents"] == receipts[1]["pay_cents"]
    with refused("missing-report"):
        scene.submit(scene.worker(), {"ill": 0})


def test_a_public_bound_of_t_answers_charges_two_t_reports(django_here: Path, make_draft: Any) -> None:
    domain = {"type": "choices", "options": ["n", "y"]}
    questions = [{"id": f"q{n}", "text": "x", "domain": domain} for n in range(10)]
    whole = Scene(make_draft(questions=questions, protects_participation=True)).opened.levels["medium"].charge
    bounded = Scene(make_draft(questions=questions, protects_participation=True, max_answers=2))
    bound = bounded.opened.levels["medium"].charge
    assert whole is not None
    assert bound is not None
    assert (whole["reports"], bound["reports"]) == (10, 4)
    assert bound["epsilon_nano"] * 10 == whole["epsilon_nano"] * 4
    receipt = bounded.submit(bounded.worker(), {question["id"]: 0 for question in questions})
    assert (receipt["n_reports"], receipt["charge"]) == (10, bound)


def test_a_pilot_has_few_places_and_opening_lifts_them(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.studies import lifecycle

    scene = Scene(make_draft(pilot_quota=2), pilot=True)
    for _ in range(2):
        scene.submit(scene.worker(), {"ill": 0, "days": 0})
    with refused("no-money"):
        scene.submit(scene.worker(), {"ill": 0, "days": 0})
    before = scene.study.sha256
    lifecycle.start(scene.study)
    assert scene.study.sha256 == before
    scene.submit(scene.worker(), {"ill": 0, "days": 0})
    with refused("wrong-state"):
        lifecycle.revise(scene.study, lifecycle.read_draft(scene.study))


def test_payouts_pay_each_cent_once(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.payments.earnings import statement
    from crowdveil.broker.payments.payouts import pay_out

    pay_out("0" * 32)
    scene = Scene(make_draft())
    worker = scene.worker()
    scene.submit(worker, {"ill": 0, "days": 0})
    assert statement(worker.payee)["balance_cents"] == 20
    assert (pay_out("0" * 32).cents, pay_out("0" * 32).cents) == (20, 0)
    assert statement(worker.payee)["balance_cents"] == 0
    books_balance()
