"""The life of a study: draft → pilot → open → closed → published; the definition is frozen when the draft ends.

A pilot is the study itself with few places. Whoever wants to change a piloted study closes it and copies it, since
nobody may be asked under a definition other than the one in the public_log.
"""

from __future__ import annotations

import logging

from crowdveil.broker import key_escrow, keys
from crowdveil.broker.audit_log.chain import record
from crowdveil.broker.db.transactions import write
from crowdveil.broker.identity.models import Account
from crowdveil.broker.payments.models import Purse
from crowdveil.broker.pools.closing import seal_pool
from crowdveil.broker.pools.task_list import (
    check_same_kind,
    create_pool,
    discard_pool,
    is_pool,
    known_truths,
    list_document,
)
from crowdveil.broker.pools.updates import update_labels
from crowdveil.broker.problems import Refusal
from crowdveil.broker.results.batches import make_batch
from crowdveil.broker.studies import gold, public_log, quasi_identifiers
from crowdveil.broker.studies.channels import check_table_cells
from crowdveil.broker.studies.definition import build_definition
from crowdveil.broker.studies.draft import Draft
from crowdveil.broker.studies.models import Study
from crowdveil.broker.submissions.acknowledged import start_count
from crowdveil.broker.submissions.anonymize import seal
from crowdveil.broker.webhooks.notices import announce
from crowdveil.canonical_json import canonical, sha256_of
from crowdveil.errors import InputError

_log = logging.getLogger("crowdveil.studies")


def create(owner: Account, draft: Draft) -> Study:
    _check_draft(draft)
    with write():
        study = Study.objects.create(owner=owner, draft=draft.model_dump_json())
        if draft.kind == "tasks":
            create_pool(study.id)
        record(owner.id, "study.create", study.id)
    return study


def revise(study: Study, draft: Draft) -> Study:
    _must_be(study, "draft")
    check_same_kind(draft_of(study), draft)
    _check_draft(draft)
    with write():
        changed = Study.objects.filter(id=study.id, state="draft").update(draft=draft.model_dump_json())
        if not changed:
            raise Refusal("wrong-state", "this study is frozen; close it and copy it to change it")
        record(study.owner_id, "study.revise", study.id)
    study.refresh_from_db()
    return study


def discard(study: Study) -> None:
    _must_be(study, "draft")
    with write():
        record(study.owner_id, "study.discard", study.id)
        if Study.objects.filter(id=study.id, state="draft").delete()[0]:
            discard_pool(study.id)


def copy(study: Study) -> Study:
    return create(study.owner, draft_of(study))


def draft_of(study: Study) -> Draft:
    return Draft.model_validate_json(study.draft)


def start_pilot(study: Study) -> Study:
    """Freeze the definition and let the first few answer."""
    _must_be(study, "draft")
    draft = draft_of(study)
    return _freeze(study, draft, state="pilot", quota=min(draft.pilot_quota, draft.quota))


def start(study: Study) -> Study:
    """Open the study: freeze it if the pilot has not, and lift the quota."""
    _must_be(study, "draft", "pilot")
    draft = draft_of(study)
    if study.state == "draft":
        return _freeze(study, draft, state="open", quota=draft.quota)
    with write():
        # The purse first, as closing does, so that the two never wait for each other.
        Purse.objects.filter(study=study.id).update(quota=draft.quota)
        _advance(study, "pilot", "open")
    study.refresh_from_db()
    return study


def _freeze(study: Study, draft: Draft, *, state: str, quota: int) -> Study:
    _check_draft(draft)
    pool = draft.kind == "tasks"
    kept, commitment = gold.commit(known_truths(study.id)) if pool else gold.committed(draft)
    task_list = list_document(study.id) if pool else None
    try:
        definition = build_definition(study.id, study.owner.name or "", draft, commitment, task_list)
    except InputError as error:
        raise Refusal("invalid", str(error)) from None
    sha256 = sha256_of(definition)
    keys.create_study_key(study.id)
    start_count(study.id)
    with write():
        _advance(study, "draft", state)
        Study.objects.filter(id=study.id).update(
            definition=canonical(definition).decode(),
            sha256=sha256,
            signature=keys.sign(definition),
            gold=kept,
            identifying=" ".join(sorted(quasi_identifiers.tags_of(draft))),
        )
        public_log.append(study.id, sha256)
        Purse.objects.create(study=study.id, accepting=True, budget=draft.budget_cents, quota=quota)
    if not draft.linkable:
        key_escrow.put(study.id)
    study.refresh_from_db()
    return study


def _check_draft(draft: Draft) -> None:
    """What is refused of a draft that makes sense by itself."""
    if draft.tells_by_asking:
        raise Refusal(
            "invalid",
            "a question that depends on an earlier answer tells it by being reported; "
            "hide which questions are answered",
        )
    try:
        check_table_cells(draft)
    except InputError as error:
        raise Refusal("invalid", str(error)) from None


def _advance(study: Study, before: str, after: str) -> None:
    """Inside a transaction; of two requests at once exactly one advances the study."""
    if not Study.objects.filter(id=study.id, state=before).update(state=after):
        raise Refusal("wrong-state", f"this study is no longer {before}")
    record(study.owner_id, f"study.{after}", study.id)
    announce(study, f"study.{'opened' if after == 'open' else after}")


def add_money(study: Study, cents: int) -> Study:
    _must_be(study, "pilot", "open")
    with write():
        purse = Purse.objects.select_for_update().get(study=study.id)
        Purse.objects.filter(study=study.id).update(budget=purse.budget + cents)
        record(study.owner_id, "study.add-money", study.id)
    return study


def close(study: Study) -> Study:
    """End the intake, break every link from reports to workers, and make the last estimates."""
    _must_be(study, "pilot", "open")
    with write():
        # Whoever is in the middle of a submission holds this row; everybody after that finds it closed.
        Purse.objects.filter(study=study.id).update(accepting=False)
        _advance(study, study.state, "closed")
    study.refresh_from_db()
    seal_study(study)
    estimate_finally(study)
    return study


def seal_study(study: Study) -> None:
    """Break every link from reports to workers."""
    if is_pool(study.id):
        seal_pool(study.id)
    seal(study.id)


def estimate_finally(study: Study) -> None:
    """The last estimates of a study that is closed."""
    if is_pool(study.id):
        update_labels(study, final=True)
    else:
        make_batch(study, final=True)


def finish_closing() -> None:
    """At start-up: finish what a crash interrupted between closing a study and its last estimates."""
    closed = list(Study.objects.filter(state__in=("closed", "published")))
    # All keys first: an estimate that fails must not leave anybody's reports linked to them.
    for study in closed:
        if keys.has_study_key(study.id):
            seal_study(study)
    for study in closed:
        try:
            estimate_finally(study)
        except Exception as error:  # noqa: BLE001  # of one study; the others have theirs to get
            _log.warning("last estimates failed", extra={"study": study.id, "error": type(error).__name__})


def synchronize_escrow() -> None:
    """At start-up: the escrow holds the keys of the open studies that are not linkable, and no other."""
    running = Study.objects.filter(state__in=("pilot", "open"))
    key_escrow.synchronize(
        {study.id for study in running if not draft_of(study).linkable and keys.has_study_key(study.id)}
    )


def publish(study: Study) -> Study:
    """Show the estimates, and the truths of the gold questions, to everybody."""
    _must_be(study, "closed")
    with write():
        _advance(study, "closed", "published")
    study.refresh_from_db()
    return study


def _must_be(study: Study, *states: str) -> None:
    if study.state not in states:
        raise Refusal("wrong-state", f"the study must be {' or '.join(states)} for this; it is {study.state}")
