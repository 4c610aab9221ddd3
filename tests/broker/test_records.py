"""What the broker writes down and forgets: withdrawal, closing, its two logs, pages of lists, migrations."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Any

import pytest
from broker.scene import Scene, books_balance, refused


def test_every_field_of_a_definition_and_every_refusal_is_on_the_page_of_the_api(
    django_here: Path, make_draft: Any
) -> None:
    from crowdveil.broker.problems import STATUS

    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "api.md").read_text()
    document = Scene(make_draft()).opened.document
    fields = {*document, *document["questions"][0], *document["levels"][0], *document["levels"][0]["charge"], *STATUS}
    assert [field for field in sorted(fields) if f"`{field}`" not in page] == []


def test_withdrawal_erases_the_reports_and_leaves_pay_and_charge(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.submissions.models import Submission
    from crowdveil.broker.submissions.withdraw import withdraw

    scene = Scene(make_draft())
    worker = scene.worker()
    scene.submit(worker, {"ill": 0, "days": 0})
    spent = scene.budget(worker).epsilon_spent
    with refused("not-found"):
        withdraw(scene.study.id, secrets.token_hex(32))
    withdraw(scene.study.id, scene.withdrawal_key.hex())
    withdraw(scene.study.id, scene.withdrawal_key.hex())
    assert not Submission.objects.filter(study=scene.study.id).exists()
    assert (scene.budget(worker).epsilon_spent, scene.purse().paid) == (spent, 20)
    with refused("withdrawn"):
        scene.submit(worker, {"ill": 0, "days": 0})
    books_balance()


@pytest.mark.parametrize("meanwhile", [False, True], ids=["after a batch", "while a batch is made"])
def test_withdrawal_erases_the_scores_that_spell_the_reports(
    django_here: Path, make_draft: Any, monkeypatch: pytest.MonkeyPatch, meanwhile: bool
) -> None:
    """A score on one gold question is the report on it in other words, beside the panel name."""
    from crowdveil.broker.results import batches
    from crowdveil.broker.results.models import Batch
    from crowdveil.broker.results.quality import quality
    from crowdveil.broker.submissions.pseudonyms import pseudonym_in
    from crowdveil.broker.submissions.withdraw import withdraw

    draft = make_draft(minimum_n=2, linkable=True)
    draft["questions"][0]["gold"] = "yes"
    scene = Scene(draft)
    workers = [scene.worker() for _ in range(3)]
    for worker in workers:
        scene.submit(worker, {"ill": 1, "days": 0})
    names = [pseudonym_in(scene.frozen, worker.id) for worker in workers]

    def leave(*arguments: Any, **settings: Any) -> Any:
        withdraw(scene.study.id, scene.withdrawal_key.hex())
        return real(*arguments, **settings)

    real = batches.estimate
    if meanwhile:
        monkeypatch.setattr(batches, "estimate", leave)
    batches.refresh(scene.study)
    if not meanwhile:
        assert len(quality(scene.study)["workers"]) == 3
        withdraw(scene.study.id, scene.withdrawal_key.hex())
    assert {each["worker"] for each in quality(scene.study)["workers"]} == set(names[:2])
    kept = Batch.objects.get(study=scene.study.id)
    assert names[2] not in kept.estimates
    assert kept.n == 3


def test_the_audit_log_shows_where_it_was_changed(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.audit_log.chain import first_broken
    from crowdveil.broker.audit_log.models import Act

    Scene(make_draft())
    assert first_broken() is None
    last = Act.objects.order_by("-index").first()
    assert last is not None
    Act.objects.filter(index=last.index).update(verb="nothing")
    assert first_broken() == last.index
    Act.objects.filter(index=last.index).update(verb=last.verb)
    assert first_broken() is None


def test_the_public_log_is_a_chain(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.studies.models import LogEntry
    from crowdveil.broker.studies.public_log import GENESIS, spelled
    from crowdveil.canonical_json import sha256_of

    Scene(make_draft())
    previous = GENESIS
    for entry in LogEntry.objects.order_by("index"):
        fields = spelled(entry)
        assert fields.pop("entry") == sha256_of(fields)
        assert fields["previous"] == previous
        previous = entry.entry


def test_a_page_of_ten_studies_does_not_leave_one_out(django_here: Path, make_draft: Any) -> None:
    from crowdveil.broker.api.pagination import page
    from crowdveil.broker.studies.models import Study

    owner = Scene(make_draft()).owner
    for _ in range(9):
        Scene(make_draft(), owner)
    found, after = [], ""
    while True:
        listed = page(Study.objects.filter(owner=owner), after, 3, lambda study: {"id": study.id})
        found += [each["id"] for each in listed["items"]]
        if listed["next"] is None:
            break
        after = listed["next"]
    assert len(found) == len(set(found)) == 10


def test_the_models_have_no_change_without_a_migration(django_here: Path) -> None:
    from django.core.management import call_command

    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_a_closed_study_keeps_no_day_on_which_somebody_came(django_here: Path, make_draft: Any) -> None:
    """The ledger keeps days, too; a day on which one worker came would name their reports."""
    from datetime import date

    from crowdveil.broker.clock import today
    from crowdveil.broker.studies import lifecycle
    from crowdveil.broker.submissions.models import Submission

    scene = Scene(make_draft(minimum_n=2))
    for number in range(3):
        scene.submit(scene.worker(), {"ill": 0, "days": 1})
        mine = hashlib.sha256(scene.withdrawal_key).hexdigest()
        Submission.objects.filter(withdrawal_sha256=mine).update(day=date(2026, 1, 1 + number))
    lifecycle.close(scene.study)
    assert set(Submission.objects.filter(study=scene.study.id).values_list("day", flat=True)) == {today()}
