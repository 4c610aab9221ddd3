"""The rules of the domain, service by service, in one process: budgets, holds, pay, gold, selection, warnings."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def place(django_here: Path) -> Path:
    return django_here


@dataclass
class Report:
    question: str
    channel: str
    report: int


class Scene:
    """An open study with everything needed to submit to it."""

    def __init__(self, draft: dict[str, Any], owner: Any = None, *, pilot: bool = False) -> None:
        from crowdveil.broker.identity.models import Account
        from crowdveil.broker.studies import lifecycle
        from crowdveil.broker.studies.draft import Draft
        from crowdveil.broker.studies.frozen import frozen

        self.owner = owner or Account.objects.create(role="requester", name=f"lab {secrets.token_hex(6)}")
        self.study = lifecycle.create(self.owner, Draft.model_validate(draft))
        (lifecycle.start_pilot if pilot else lifecycle.start)(self.study)
        self.frozen = frozen(self.study.id)
        self.opened = self.frozen.opened

    def worker(self, epsilon_cap: float = 100.0, level: str = "medium") -> Any:
        from crowdveil.broker.identity.accounts import sign_up_worker

        return sign_up_worker(level, int(epsilon_cap * 10**9))

    def reserve(self, account: Any, level: str = "medium") -> Any:
        from crowdveil.broker.ledger.reservations import reserve

        return reserve(account.id, self.opened, self.opened.levels[level])[0]

    def submit(self, account: Any, codes: dict[str, int], level: str = "medium") -> dict[str, Any]:
        from crowdveil.broker.intake.reports import check
        from crowdveil.broker.intake.submit import Parcel, Sender, submit

        chosen = self.opened.levels[level]
        reports = [Report(q, chosen.channels[self.opened.position[q]], code) for q, code in codes.items()]
        self.withdrawal_key = secrets.token_bytes(32)
        digest = hashlib.sha256(self.withdrawal_key).hexdigest()
        parcel = Parcel(self.frozen, chosen, check(self.opened, chosen, reports), digest, secrets.token_hex(16))
        return submit(Sender(account.id, account.payee), parcel)[0].spelled()

    def budget(self, account: Any) -> Any:
        from crowdveil.broker.ledger.models import Budget

        return Budget.objects.get(account=account.id)

    def purse(self) -> Any:
        from crowdveil.broker.payments.models import Purse

        return Purse.objects.get(study=self.study.id)


def refused(code: str) -> Any:
    from crowdveil.broker.refusal import Refusal

    class Expected:
        def __enter__(self) -> None:
            self._raises = pytest.raises(Refusal)
            self._found = self._raises.__enter__()

        def __exit__(self, *details: Any) -> bool:
            caught = bool(self._raises.__exit__(*details))
            assert self._found.value.code == code, self._found.value
            return caught

    return Expected()


def books_balance() -> None:
    from crowdveil.broker.ledger.check import problems

    assert problems() == []


def test_a_hold_that_expires_is_released_and_a_late_report_is_checked_again(place: Path, make_draft: Any) -> None:
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


def test_a_late_report_is_taken_when_there_is_room(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.ledger.reservations import cancel

    scene = Scene(make_draft())
    worker = scene.worker()
    scene.reserve(worker)
    assert cancel(scene.study.id, worker.id)
    assert not cancel(scene.study.id, worker.id)
    assert scene.submit(worker, {"ill": 0, "days": 0})["pay_cents"] == 20
    books_balance()


def test_accepting_at_another_level_replaces_the_hold(place: Path, make_draft: Any) -> None:
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


def test_the_either_or_rule_goes_on_by_rho_when_epsilon_is_used_up(place: Path, make_draft: Any) -> None:
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


def test_unprotected_answers_are_listed_and_never_summed_nor_blocked(place: Path, make_draft: Any) -> None:
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


def test_partial_pay_and_charge_follow_what_was_sent(place: Path, make_draft: Any) -> None:
    scene = Scene(make_draft(partial_pay=True))
    half, full = scene.worker(), scene.worker()
    scene.reserve(half)
    assert scene.submit(half, {"ill": 0})["pay_cents"] == 10
    assert scene.submit(full, {"ill": 0, "days": 0})["pay_cents"] == 20
    assert scene.budget(half).epsilon_spent < scene.budget(full).epsilon_spent
    assert (scene.purse().held, scene.purse().paid, scene.purse().commission) == (0, 30, 3)
    books_balance()


def test_where_participation_is_protected_pay_and_charge_do_not_depend_on_it(place: Path, make_draft: Any) -> None:
    scene = Scene(make_draft(protects_participation=True))
    silent, talker = scene.worker(), scene.worker()
    nothing = {"ill": 2, "days": 5}
    receipts = [scene.submit(silent, nothing), scene.submit(talker, {"ill": 0, "days": 0})]
    assert receipts[0]["charge"] == receipts[1]["charge"]
    assert receipts[0]["pay_cents"] == receipts[1]["pay_cents"]
    with refused("missing-report"):
        scene.submit(scene.worker(), {"ill": 0})


def test_a_public_bound_of_t_answers_charges_two_t_reports(place: Path, make_draft: Any) -> None:
    domain = {"type": "choices", "options": ["n", "y"]}
    questions = [{"id": f"q{n}", "text": "x", "domain": domain} for n in range(10)]
    whole = Scene(make_draft(questions=questions, protects_participation=True)).opened.levels["medium"].charge
    bound = (
        Scene(make_draft(questions=questions, protects_participation=True, max_answers=2))
        .opened.levels["medium"]
        .charge
    )
    assert whole is not None
    assert bound is not None
    assert (whole["reports"], bound["reports"]) == (10, 4)
    assert bound["epsilon_nano"] * 10 == whole["epsilon_nano"] * 4


def test_a_pilot_has_few_places_and_opening_lifts_them(place: Path, make_draft: Any) -> None:
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
        lifecycle.revise(scene.study, lifecycle.draft_of(scene.study))


def test_nothing_is_shown_below_the_minimum_and_then_only_in_batches(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.results.batches import latest, refresh

    scene = Scene(make_draft(minimum_n=5))
    sizes = []
    for n in range(1, 13):
        scene.submit(scene.worker(), {"ill": n % 2, "days": n % 5})
        refresh(scene.study)
        if n < 5:
            with refused("below-minimum"):
                latest(scene.study)
        else:
            sizes.append(latest(scene.study)["n"])
    assert sizes == [5] * 5 + [10] * 3


def test_gold_is_committed_to_scored_from_reports_and_revealed_when_published(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.results.batches import latest
    from crowdveil.broker.results.quality import quality
    from crowdveil.broker.studies import lifecycle
    from crowdveil.wire import sha256_of

    draft = make_draft(minimum_n=2, linkable=True)
    draft["questions"][0]["gold"] = "yes"
    scene = Scene(draft)
    assert "gold" not in scene.opened.document["questions"][0]
    for code in (1, 1, 0):
        scene.submit(scene.worker(), {"ill": code, "days": 0}, "low")
    scores = sorted(each["score"] for each in quality(scene.study)["workers"])
    assert scores[0] < 0 < 1 < scores[1] == scores[2]
    lifecycle.close(scene.study)
    assert latest(scene.study)["gold"] is None
    shown = latest(lifecycle.publish(scene.study))
    assert shown["gold"] == {"ill": "yes"}
    assert sha256_of({"salt": shown["gold_salt"], "truths": shown["gold"]}) == scene.opened.document["gold_commitment"]


def test_quality_is_refused_where_workers_were_promised_not_to_be_told_apart(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.results.quality import quality

    with refused("forbidden"):
        quality(Scene(make_draft()).study)


def test_linkable_studies_of_one_requester_share_a_pseudonym_and_others_do_not(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.intake.pseudonyms import pseudonym_in

    linked = Scene(make_draft(linkable=True))
    again, apart = Scene(make_draft(linkable=True), linked.owner), Scene(make_draft(), linked.owner)
    stranger = Scene(make_draft(linkable=True))
    worker = linked.worker()
    names = [pseudonym_in(scene.frozen, worker.id) for scene in (linked, again, apart, stranger)]
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_greedy_selection_reads_history_and_is_refined_by_who_answered(place: Path, make_draft: Any) -> None:
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


def test_random_selection_needs_no_history_and_never_picks_who_cannot_pay(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.studies.models import Invitation
    from crowdveil.broker.studies.selection import choose

    scene = Scene(make_draft(selection={"policy": "random"}, quota=10_000, budget_cents=10**9))
    rich, poor = scene.worker(), scene.worker(epsilon_cap=0.1)
    choose(scene.study)
    invited = set(Invitation.objects.filter(study=scene.study).values_list("account_id", flat=True))
    assert rich.id in invited
    assert poor.id not in invited


def test_one_requesters_studies_together_raise_the_warning(place: Path, make_draft: Any) -> None:
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


def test_boxes_are_counted_from_whole_tick_vectors(place: Path, make_draft: Any) -> None:
    import numpy as np

    from crowdveil.broker.results.estimates import estimate
    from crowdveil.domain import Choices
    from crowdveil.entropy import Keystream
    from crowdveil.mechanisms import mechanism
    from crowdveil.sampler import draw

    boxes = {"type": "tick-all", "boxes": ["a", "b"]}
    levels = [{"name": "medium", "mechanism": "randomized-response", "epsilon": "2", "pay_cents": 0}]
    questions = [{"id": "q", "text": "x", "domain": boxes}]
    scene = Scene(make_draft(questions=questions, levels=levels, protects_participation=True))
    options = Choices(("[]", '["a"]', '["b"]', '["a","b"]'))
    channel = mechanism("randomized-response", epsilon=2.0, protect_participation=True).channel(options)
    # Of 100 who answer, 60 tick a and 20 tick b; 20 more skip.
    answers = np.array([0] * 30 + [1] * 50 + [2] * 10 + [3] * 10 + [-1] * 20)
    for code in draw(channel, answers, Keystream(7)):
        scene.submit(scene.worker(), {"q": int(code)})
    found = estimate(scene.study.id, scene.opened)["parts"][0]["questions"][0]["boxes"]
    for each, truth in zip(found, (0.6, 0.2), strict=True):
        assert each["low"] <= truth <= each["high"]
        assert each["high"] - each["low"] < 0.5


def test_truths_are_inferred_by_auto_and_say_why(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.results.estimates import estimate

    scene = Scene(make_draft(goal="truth"))
    for number in range(40):
        scene.submit(scene.worker(), {"ill": int(number % 8 != 0), "days": 3 if number % 4 else number % 5}, "low")
    ill, days = estimate(scene.study.id, scene.opened)["parts"]
    assert (ill["method"], days["method"]) == ("channel-bp", "channel-em")
    assert "channels are known" in ill["why"]
    assert ill["questions"][0]["value"] == "yes"
    assert days["questions"][0]["low"] <= days["questions"][0]["value"] <= days["questions"][0]["high"]


def test_payouts_pay_each_cent_once(place: Path, make_draft: Any) -> None:
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


def test_withdrawal_erases_the_reports_and_leaves_pay_and_charge(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.intake.models import Submission
    from crowdveil.broker.intake.withdraw import withdraw

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


def test_the_audit_log_shows_where_it_was_changed(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.audit.chain import first_broken
    from crowdveil.broker.audit.models import Act

    Scene(make_draft())
    assert first_broken() is None
    last = Act.objects.order_by("-index").first()
    assert last is not None
    Act.objects.filter(index=last.index).update(verb="nothing")
    assert first_broken() == last.index
    Act.objects.filter(index=last.index).update(verb=last.verb)
    assert first_broken() is None


def test_the_public_log_is_a_chain(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.studies.log import GENESIS, spelled
    from crowdveil.broker.studies.models import LogEntry
    from crowdveil.wire import sha256_of

    Scene(make_draft())
    previous = GENESIS
    for entry in LogEntry.objects.order_by("index"):
        fields = spelled(entry)
        assert fields.pop("entry") == sha256_of(fields)
        assert fields["previous"] == previous
        previous = entry.entry


def test_codes_of_rfc_6238(place: Path) -> None:
    import base64

    from crowdveil.broker.identity.totp import code_at, matching_step

    secret = base64.b32encode(b"12345678901234567890").decode()
    vectors = {59: "287082", 1111111109: "081804", 1234567890: "005924", 2000000000: "279037"}
    for at, code in vectors.items():
        assert code_at(secret, at // 30) == code
        assert matching_step(secret, code, after=0, at=at) == at // 30
        assert matching_step(secret, code, after=at // 30, at=at) is None


def test_too_many_requests_are_told_when_to_come_back(place: Path) -> None:
    from crowdveil.broker.operations.limits import limit

    name = secrets.token_hex(8)
    for _ in range(5):
        limit(name, 5)
    with refused("rate-limited"):
        limit(name, 5)
    limit(name, 0)


def test_a_page_of_ten_studies_does_not_leave_one_out(place: Path, make_draft: Any) -> None:
    from crowdveil.broker.api.paging import page
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


def test_the_models_have_no_change_without_a_migration(place: Path) -> None:
    from django.core.management import call_command

    call_command("makemigrations", "--check", "--dry-run", verbosity=0)


def test_every_migration_applies_on_top_of_the_one_before(place: Path, tmp_path: Path) -> None:
    from django.db.migrations.executor import MigrationExecutor
    from django.db.utils import ConnectionHandler

    from crowdveil.broker.database import database_settings

    connection = ConnectionHandler({"default": database_settings("", tmp_path)})["default"]
    # Tables of Django's own send signals about the default connection; ours are what is tested.
    plan = [node for node in MigrationExecutor(connection).loader.graph.leaf_nodes() if node[0] != "contenttypes"]
    steps = [migration for migration, _ in MigrationExecutor(connection).migration_plan(plan)]
    for migration in steps:
        MigrationExecutor(connection).migrate([(migration.app_label, migration.name)])
    assert MigrationExecutor(connection).migration_plan(plan) == []
    assert {"intake", "ledger", "payments", "identity", "studies"} <= {migration.app_label for migration in steps}
    connection.close()


def test_guessing_many_codes_at_once_is_not_guessing_more_often(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each guess begins before the one before it has failed, as requests that arrive together do."""
    from crowdveil.broker.identity import sign_in as signing
    from crowdveil.broker.identity.accounts import invite
    from crowdveil.broker.refusal import Refusal

    account, password = invite(f"operator {secrets.token_hex(4)}", "operator", by="")
    compared = []

    def compare(given: str, stored: str) -> bool:
        if stored == account.password:
            compared.append(given)
        if len(guesses) < 30:
            guess()
        return False

    guesses: list[int] = []

    def guess() -> None:
        guesses.append(1)
        with pytest.raises(Refusal, match="locked"):
            signing.authenticate(str(account.name), "a guess", "123456")

    monkeypatch.setattr(signing, "check_password", compare)
    guess()
    assert len(guesses) == 30
    assert len(compared) == 10
    monkeypatch.undo()
    with pytest.raises(Refusal, match="locked"):
        signing.authenticate(str(account.name), password, None)
    later = signing.clock.now() + timedelta(minutes=16)
    monkeypatch.setattr(signing.clock, "now", lambda: later)
    assert signing.authenticate(str(account.name), password, None).id == account.id


def test_a_closed_study_keeps_no_day_on_which_somebody_came(place: Path, make_draft: Any) -> None:
    """The ledger keeps days, too; a day on which one worker came would name their reports."""
    from datetime import date

    from crowdveil.broker.clock import today
    from crowdveil.broker.intake.models import Submission
    from crowdveil.broker.studies import lifecycle

    scene = Scene(make_draft(minimum_n=2))
    for number in range(3):
        scene.submit(scene.worker(), {"ill": 0, "days": 1})
        mine = hashlib.sha256(scene.withdrawal_key).hexdigest()
        Submission.objects.filter(withdrawal_sha256=mine).update(day=date(2026, 1, 1 + number))
    lifecycle.close(scene.study)
    assert set(Submission.objects.filter(study=scene.study.id).values_list("day", flat=True)) == {today()}


@pytest.mark.parametrize("kind", ["discrete-laplace", "optimal-scale", "piecewise"])
def test_a_study_from_which_nothing_could_be_estimated_is_not_opened(place: Path, make_draft: Any, kind: str) -> None:
    """With ∅ as the mean of all rows nobody can tell how many answered; privacy must not be spent on that."""
    from crowdveil.broker.refusal import Refusal

    scale = {"type": "scale", "low": "-2", "high": "2", "step": "1"}
    questions = [{"id": "mood", "text": "How do you feel?", "domain": scale}]
    level = {"name": "medium", "mechanism": kind, "epsilon": "1.0", "pay_cents": 1}
    with pytest.raises(Refusal, match="nobody can tell how many answered"):
        Scene(make_draft(questions=questions, levels=[level], protects_participation=True))
    Scene(make_draft(questions=questions, levels=[level]))
    Scene(make_draft(questions=questions, levels=[level], protects_participation=True, goal="truth"))
    plain = level | {"mechanism": "randomized-response"}
    Scene(make_draft(questions=questions, levels=[plain], protects_participation=True))
