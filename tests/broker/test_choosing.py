"""Who is asked: pseudonyms that link only what was said to be linked, selection, warnings about questions that name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from broker.scene import Scene, refused


def test_linkable_studies_of_one_requester_share_a_pseudonym_and_others_do_not(
    django_here: Path, make_draft: Any
) -> None:
    from crowdveil.broker.intake.pseudonyms import pseudonym_in

    linked = Scene(make_draft(linkable=True))
    again, apart = Scene(make_draft(linkable=True), linked.owner), Scene(make_draft(), linked.owner)
    stranger = Scene(make_draft(linkable=True))
    worker = linked.worker()
    names = [pseudonym_in(scene.frozen, worker.id) for scene in (linked, again, apart, stranger)]
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_greedy_selection_reads_history_and_is_refined_by_who_answered(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker import clock
    from crowdveil.broker.studies.eligibility import check_invited
    from crowdveil.broker.studies.models import Invitation
    from crowdveil.broker.studies.selection import choose

    scale = [{"id": f"s{n}", "text": "x", "domain": {"type": "scale", "low": "1", "high": "5"}} for n in range(6)]
    past = Scene(make_draft(linkable=True, questions=scale))
    workers = [past.worker() for _ in range(12)]
    for number, worker in enumerate(workers):
        past.submit(worker, {f"s{n}": (n + (2 if number >= 6 else 0)) % 5 for n in range(6)})
    chosen = Scene(
        make_draft(
            linkable=True, questions=scale, quota=8, minimum_n=2, selection={"policy": "greedy", "fairness": "0.5"}
        ),
        past.owner,
    )
    with refused("not-invited"):
        check_invited(chosen.frozen, workers[0].id)
    first = choose(chosen.study, n=4)
    assert 1 <= first["new"] <= 4
    invited = set(Invitation.objects.filter(study=chosen.study).values_list("account_id", flat=True))
    answered = invited.pop()
    chosen.submit(next(worker for worker in workers if worker.id == answered), {f"s{n}": 0 for n in range(6)})
    Invitation.objects.filter(study=chosen.study).update(expires=clock.now() - timedelta(minutes=1))
    choose(chosen.study, n=4)
    now = set(Invitation.objects.filter(study=chosen.study).values_list("account_id", flat=True))
    assert answered in now
    check_invited(chosen.frozen, answered)


def test_random_selection_needs_no_history_and_never_picks_who_cannot_pay(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.studies.models import Invitation
    from crowdveil.broker.studies.selection import choose

    scene = Scene(make_draft(selection={"policy": "random"}, quota=10_000, budget_cents=10**9))
    rich, poor = scene.worker(), scene.worker(epsilon_cap=0.1)
    choose(scene.study)
    invited = set(Invitation.objects.filter(study=scene.study).values_list("account_id", flat=True))
    assert rich.id in invited
    assert poor.id not in invited


def test_one_requesters_studies_together_raise_the_warning(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.studies.cards import card

    domain = {"type": "choices", "options": ["a", "b"]}
    first = Scene(make_draft(questions=[{"id": "q", "text": "What is your gender?", "domain": domain}]))
    assert card(first.study)["warnings"] == []
    Scene(make_draft(questions=[{"id": "q", "text": "Which zip code?", "domain": domain}]), first.owner)
    tagged = {"id": "q", "text": "Your star?", "domain": domain, "identifying": ["birth-date"]}
    Scene(make_draft(questions=[tagged]), first.owner)
    (warning,) = card(first.study)["warnings"]
    assert "birth date, gender, postcode" in warning
    assert card(Scene(make_draft()).study)["warnings"] == []
