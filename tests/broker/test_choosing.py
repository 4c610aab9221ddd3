"""Who is asked: pseudonyms that link only what was said to be linked, selection, warnings about questions that name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from broker.scene import Scene, refused


def test_linkable_studies_of_one_requester_share_a_pseudonym_and_others_do_not(
    django_here: Path, make_draft: Any
) -> None:
    from crowdveil.broker.submissions.pseudonyms import pseudonym_in

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
    close(past.study)
    chosen = Scene(
        make_draft(
            linkable=True, questions=scale, quota=8, minimum_n=2, selection={"policy": "greedy", "fairness": "0.5"}
        ),
        past.owner,
    )
    # Workers of other tests are strangers here, and may be as good as those who are known.
    disable_all_but(workers)
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


SCALE = [{"id": f"s{n}", "text": "x", "domain": {"type": "scale", "low": "1", "high": "5"}} for n in range(6)]


# Precise enough for the history to tell workers apart. Of equals, the first in the order of their random ids is chosen.
LEVELS = [
    {"name": "low", "mechanism": "randomized-response", "epsilon": "8", "pay_cents": 40},
    {"name": "medium", "mechanism": "randomized-response", "epsilon": "6", "pay_cents": 20},
]


class Panel:
    """A requester's past study with fixed reports, and a greedy study whose first workers were chosen by them.

    No two workers lean alike: the sums of their reports are 4, 5, …, 19, from the first to the last.
    """

    def __init__(self, make_draft: Any, *, n: int | None = 4, level: str = "medium", **changes: Any) -> None:
        from crowdveil.broker.studies.selection import choose

        asked = {"linkable": True, "questions": SCALE, "levels": LEVELS}
        past = Scene(make_draft(**asked))
        self.workers = [past.worker(level=level) for _ in range(16)]
        for number, worker in enumerate(self.workers):
            past.submit(worker, {f"s{place}": (4 + number + place) // 6 for place in range(6)})
        close(past.study)
        greedy = {"quota": 12, "minimum_n": 2, "selection": {"policy": "greedy"}}
        self.scene = Scene(make_draft(**asked | greedy | changes), past.owner)
        # Workers of other tests are strangers to this panel; who is chosen must not depend on them.
        disable_all_but(self.workers)
        self.first = choose(self.scene.study, n=n)

    def invited(self) -> set[int]:
        """The invited, by their place among the workers of the past study."""
        from crowdveil.broker.studies.models import Invitation

        accounts = set(Invitation.objects.filter(study=self.scene.study).values_list("account_id", flat=True))
        return {place for place, worker in enumerate(self.workers) if worker.id in accounts}

    def answer(self, place: int, code: int, level: str = "medium") -> None:
        self.scene.submit(self.workers[place], {f"s{n}": code for n in range(6)}, level)

    def count(self) -> None:
        """Count what has come in, as the background jobs does."""
        from crowdveil.broker.results.batches import is_due, make_batch

        if is_due(self.scene.study):
            make_batch(self.scene.study)

    def lapse(self) -> None:
        from crowdveil.broker import clock
        from crowdveil.broker.studies.models import Invitation

        late = clock.now() - timedelta(minutes=1)
        Invitation.objects.filter(study=self.scene.study, accepted=False).update(expires=late)

    def refine(self) -> None:
        from crowdveil.broker.studies.models import Study
        from crowdveil.broker.studies.selection import is_to_refine, refine

        study = Study.objects.get(id=self.scene.study.id)
        if is_to_refine(study):
            refine(study)


def close(study: Any) -> None:
    from crowdveil.broker.studies.lifecycle import close as close_study

    close_study(study)


def disable_all_but(workers: list[Any]) -> None:
    from crowdveil.broker.identity.models import Account

    Account.objects.filter(role="worker").exclude(id__in=[each.id for each in workers]).update(disabled=True)


@pytest.mark.parametrize(("silent", "next_asked"), [(9, {10}), (6, {5})], ids=["the highest", "the lowest"])
def test_who_is_asked_next_depends_on_what_really_came_in(
    django_here: Path, make_draft: Any, silent: int, next_asked: set[int]
) -> None:
    """Four from the middle are asked and three answer: the next one leans to the side of the one who did not."""
    panel = Panel(make_draft)
    assert panel.invited() == {6, 7, 8, 9}
    answered = panel.invited() - {silent}
    for place in sorted(answered):
        panel.answer(place, 2)
    panel.count()
    panel.lapse()
    panel.refine()
    assert panel.invited() == answered | next_asked


def test_counted_answers_alone_let_a_greedy_choice_go_on(django_here: Path, make_draft: Any) -> None:
    """Chosen for 44 cents each, two answered for 22: what is left asks one more, though no invitation has lapsed."""
    panel = Panel(make_draft, n=None, level="low", budget_cents=190)
    first = panel.invited()
    assert len(first) == 4
    assert panel.first["stopped_because"] == "nobody else who can pay fits in the budget"
    for place, code in zip(sorted(first), (0, 4), strict=False):
        panel.answer(place, code, "medium")
    panel.refine()
    assert panel.invited() == first
    panel.count()
    panel.refine()
    assert panel.invited() > first
    assert len(panel.invited()) == 5
    panel.refine()
    assert len(panel.invited()) == 5


def test_an_answer_that_is_not_counted_yet_changes_nobodys_invitation(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.results.history import history_of

    panel = Panel(make_draft)
    before, first = history_of(panel.scene.study), panel.invited()
    panel.answer(min(first), 4)
    panel.count()
    panel.refine()
    after = history_of(panel.scene.study)
    assert before is not None
    assert after is not None
    assert panel.invited() == first
    assert (before.norm == after.norm).all()
    panel.answer(max(first), 0)
    panel.count()
    counted = history_of(panel.scene.study)
    assert counted is not None
    assert len(counted.norm) == len(before.norm)
    assert (counted.norm != before.norm).any()


def test_whoever_gives_the_study_back_is_replaced(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.ledger.reservations import cancel
    from crowdveil.broker.studies.candidate_pool import decline

    panel = Panel(make_draft)
    first = panel.invited()
    worker = panel.workers[min(first)]
    panel.scene.reserve(worker)
    assert cancel(panel.scene.study.id, worker.id)
    decline(panel.scene.study.id, worker.id)
    panel.refine()
    assert panel.invited() & first == first - {min(first)}
    assert len(panel.invited()) == len(first)


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
    from crowdveil.broker.studies.serializers import card

    domain = {"type": "choices", "options": ["a", "b"]}
    first = Scene(make_draft(questions=[{"id": "q", "text": "What is your gender?", "domain": domain}]))
    assert card(first.study)["warnings"] == []
    Scene(make_draft(questions=[{"id": "q", "text": "Which zip code?", "domain": domain}]), first.owner)
    tagged = {"id": "q", "text": "Your star?", "domain": domain, "identifying": ["birth-date"]}
    Scene(make_draft(questions=[tagged]), first.owner)
    (warning,) = card(first.study)["warnings"]
    assert "birth date, gender, postcode" in warning
    assert card(Scene(make_draft()).study)["warnings"] == []
