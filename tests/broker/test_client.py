"""The SDK believes nothing that it can compute: a tampered study, channel, charge, log line or receipt is refused."""

from __future__ import annotations

import copy
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from crowdveil.accounting import Spend
from crowdveil.canonical_json import canonical, sha256_of
from crowdveil.client import Broker, MirrorError, ProblemError, Study, StudyError, Worker
from crowdveil.domain import Choices, Scale
from crowdveil.errors import BudgetError, InputError
from crowdveil.mechanisms import mechanism

DOMAINS = {"ill": Choices(("no", "yes")), "days": Scale("1", "5", "1")}


@pytest.fixture(scope="module")
def signed(sqlite_server: Any, make_draft: Any) -> dict[str, Any]:
    requester = sqlite_server.requester("client lab")
    study = requester.create(make_draft(protects_participation=True))
    requester.open(study)
    found: dict[str, Any] = sqlite_server.broker().call("GET", f"/studies/{study}")
    return found


def rehash(signed: dict[str, Any]) -> None:
    """What a broker that serves somebody a special study would do, short of forging its own signature."""
    signed["sha256"] = signed["log"]["sha256"] = sha256_of(signed["definition"])
    fields = {name: value for name, value in signed["log"].items() if name != "entry"}
    signed["log"]["entry"] = sha256_of(fields)


def weaken(signed: dict[str, Any]) -> None:
    """Level medium silently gets the channels of a weaker one."""
    domain = Choices(("no", "yes"))
    weak = mechanism("randomized-response", epsilon=9.0, protect_participation=True).channel(domain)
    signed["definition"]["channels"][weak.sha256] = weak.to_json()
    signed["definition"]["levels"][1]["channels"]["ill"] = weak.sha256


def unprotect(signed: dict[str, Any]) -> None:
    plain = mechanism("none").channel(Choices(("no", "yes")))
    signed["definition"]["channels"][plain.sha256] = plain.to_json()
    signed["definition"]["levels"][1]["channels"]["ill"] = plain.sha256


def swap_weights(signed: dict[str, Any]) -> None:
    channel = next(iter(signed["definition"]["channels"].values()))
    channel["weights"][0][0], channel["weights"][0][1] = channel["weights"][0][1], channel["weights"][0][0]


def tell_by_skipping(signed: dict[str, Any]) -> None:
    """Whether a question is asked depends on an answer, and everybody sees whether it was asked."""
    signed["definition"]["questions"][1]["show_if"] = {"question": "ill", "any_of": ["yes"]}
    signed["definition"]["protects_participation"] = False


def swap_names(signed: dict[str, Any]) -> None:
    levels = signed["definition"]["levels"]
    levels.reverse()
    levels[0]["name"], levels[1]["name"] = "medium", "high"


def name_twice(signed: dict[str, Any]) -> None:
    """Whoever picks "medium" by its price is drawn through the other one."""
    signed["definition"]["levels"][0]["name"] = "medium"


TAMPERED = {
    "text changed": (lambda s: s["definition"].update(title="Other"), "does not match its hash"),
    "text changed and hashed anew": (lambda s: (s["definition"].update(title="Other"), rehash(s)), "signature"),
    "another log line": (lambda s: s["log"].update(sha256="0" * 64), "public log"),
    "a format from the future": (lambda s: s["definition"].update(format="crowdveil-study/9"), "update crowdveil"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_a_tampered_study_is_refused(signed: dict[str, Any], name: str) -> None:
    change, sentence = TAMPERED[name]
    spoilt = copy.deepcopy(signed)
    change(spoilt)
    with pytest.raises(StudyError, match=sentence):
        Study.checked(spoilt, spoilt["log"], signed["public_key"])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (weaken, "says it costs"),
        (unprotect, "not as protected"),
        (swap_weights, "changed on the way"),
        (tell_by_skipping, "that tells the answer"),
        (swap_names, "level high costs more privacy than level medium"),
        (name_twice, "must differ"),
    ],
    ids=["weaker channel", "no protection", "weights swapped", "skips that tell", "high hides least", "name twice"],
)
def test_even_a_signed_study_is_refused_when_its_channels_lie(
    signed: dict[str, Any], change: Any, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dishonest broker can sign whatever it likes; the integers still have to add up."""
    spoilt = copy.deepcopy(signed)
    change(spoilt)
    rehash(spoilt)
    monkeypatch.setattr("crowdveil.client.study.check_signature", lambda *_: None)
    with pytest.raises(StudyError, match=sentence):
        Study.checked(spoilt, spoilt["log"], signed["public_key"])


def test_a_level_whose_name_promises_protection_must_have_it(
    signed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever set "medium" as a default must never send an answer in the clear because a study says so."""
    spoilt = copy.deepcopy(signed)
    definition, level = spoilt["definition"], spoilt["definition"]["levels"][1]
    plain = {name: mechanism("none").channel(domain) for name, domain in DOMAINS.items()}
    definition["channels"] = {channel.sha256: channel.to_json() for channel in plain.values()}
    level.update(protected=False, charge=None, channels={name: channel.sha256 for name, channel in plain.items()})
    definition.update(levels=[level], protects_participation=False)
    rehash(spoilt)
    monkeypatch.setattr("crowdveil.client.study.check_signature", lambda *_: None)
    with pytest.raises(StudyError, match="level none, and no other, is unprotected"):
        Study.checked(spoilt, spoilt["log"], signed["public_key"])
    level["name"] = "none"
    definition["protects_participation"] = True
    rehash(spoilt)
    with pytest.raises(StudyError, match="protects nothing"):
        Study.checked(spoilt, spoilt["log"], signed["public_key"])


def test_the_broker_opens_no_study_whose_higher_level_hides_less(sqlite_server: Any, make_draft: Any) -> None:
    levels = [
        {"name": name, "mechanism": "randomized-response", "epsilon": epsilon, "pay_cents": 1}
        for name, epsilon in (("low", "1"), ("high", "1.5"))
    ]
    requester = sqlite_server.requester("careless lab")
    study = requester.create(make_draft(levels=levels))
    with pytest.raises(ProblemError, match=r"level high must cost no more ε than level low \(2\); got 3"):
        requester.open(study)


class Rewriting(httpx.HTTPTransport):
    """A broker that shows this one worker something else."""

    def __init__(self, part: str, rewrite: Any) -> None:
        super().__init__()
        self._part, self._rewrite = part, rewrite

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        response = super().handle_request(request)
        if self._part not in request.url.path:
            return response
        response.read()
        content = response.json()
        self._rewrite(content)
        return httpx.Response(200, json=content)


def another_log(content: dict[str, Any]) -> None:
    """Every line well-formed and chained, and yet not the log that everybody else sees."""
    for line in content["items"]:
        line["day"] = "2020-01-01"
        line["entry"] = sha256_of({name: value for name, value in line.items() if name != "entry"})


def test_a_log_that_changes_between_two_looks_is_refused(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    study = signed["definition"]["id"]
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        assert worker.study(study).sha256 == signed["sha256"]
    with (
        Worker(Broker(sqlite_server.address, transport=Rewriting("/log", another_log)), tmp_path) as worker,
        pytest.raises(StudyError, match="rewritten"),
    ):
        worker.study(study)


def test_a_study_that_was_changed_after_it_was_shown_is_refused(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    """A dishonest broker signs and logs a second version of a study that somebody has agreed to."""
    key = Ed25519PrivateKey.from_private_bytes((sqlite_server.home / "signing.key").read_bytes())
    log = sqlite_server.broker().call("GET", "/log?limit=1000")
    second = copy.deepcopy(signed)
    second["definition"]["consent"]["text"] = "I agree to whatever comes."
    second["signature"] = key.sign(canonical(second["definition"])).hex()
    second["log"].update(index=len(log["items"]) + 1, previous=log["head"])
    rehash(second)

    def dishonest() -> Broker:
        more = [second["log"]]

        def change(content: dict[str, Any]) -> None:
            if "definition" in content:
                content.update(second)
            elif content.get("items") == [] and more:
                content["items"] = [more.pop()]

        return Broker(sqlite_server.address, transport=Rewriting("/api/v1/", change))

    study = signed["definition"]["id"]
    with Worker(Broker(sqlite_server.address), tmp_path / "seen") as worker:
        assert worker.study(study).definition["consent"] == signed["definition"]["consent"]
    with Worker(dishonest(), tmp_path / "new") as worker:
        assert worker.study(study).definition["consent"] == second["definition"]["consent"]
    with Worker(dishonest(), tmp_path / "seen") as worker, pytest.raises(StudyError, match="after it was shown"):
        worker.study(study)


def drop_first(content: dict[str, Any]) -> None:
    content["items"] = content["items"][1:]


def test_a_log_with_a_line_missing_is_refused(signed: dict[str, Any], sqlite_server: Any, tmp_path: Path) -> None:
    broker = Broker(sqlite_server.address, transport=Rewriting("/log", drop_first))
    with Worker(broker, tmp_path) as worker, pytest.raises(StudyError, match="public log"):
        worker.study(signed["definition"]["id"])


def unchain(content: dict[str, Any]) -> None:
    """Every line fits its own hash and its place, but none names the one before."""
    for line in content["items"]:
        line["previous"] = "1" * 64
        line["entry"] = sha256_of({name: value for name, value in line.items() if name != "entry"})


def test_a_log_that_is_not_a_chain_is_refused(signed: dict[str, Any], sqlite_server: Any, tmp_path: Path) -> None:
    broker = Broker(sqlite_server.address, transport=Rewriting("/log", unchain))
    with Worker(broker, tmp_path) as worker, pytest.raises(StudyError, match="not a chain"):
        worker.study(signed["definition"]["id"])


def test_a_log_line_made_for_one_worker_is_refused(signed: dict[str, Any], sqlite_server: Any, tmp_path: Path) -> None:
    """The line fits its own hash, but it is not in the log."""

    def another_line(content: dict[str, Any]) -> None:
        content["log"]["day"] = "2020-01-01"
        rehash(content)

    broker = Broker(sqlite_server.address, transport=Rewriting("/studies/", another_line))
    with Worker(broker, tmp_path) as worker, pytest.raises(StudyError, match="special one"):
        worker.study(signed["definition"]["id"])


def test_another_study_than_the_one_asked_for_is_refused(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    def another_study(content: dict[str, Any]) -> None:
        content.clear()
        content.update(signed)

    broker = Broker(sqlite_server.address, transport=Rewriting("/studies/", another_study))
    with Worker(broker, tmp_path) as worker, pytest.raises(StudyError, match="another study"):
        worker.study("0" * 32)


def test_an_untouched_study_is_accepted(signed: dict[str, Any]) -> None:
    study = Study.checked(signed, signed["log"], signed["public_key"])
    assert list(study.levels) == ["low", "medium"]
    assert study.protects_participation


def test_a_budget_that_is_too_small_is_noticed_before_anything_is_drawn_or_held(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    study = signed["definition"]["id"]
    with Worker(Broker(sqlite_server.address), tmp_path, epsilon_cap=1.5) as worker:
        worker.sign_up()
        with pytest.raises(BudgetError, match=r"left but .*; choose a higher level of privacy or raise") as refused:
            worker.answer(study, {"ill": "yes"})
        assert "fewer" not in str(refused.value), "the price is fixed, and the hold is for all questions"
        assert worker.ledger.loss("me").epsilon == 0
        assert worker._broker.call("GET", "/workers/me")["budget"]["epsilon_held_nano"] == 0
        worker.raise_cap(4.0)
        assert worker.answer(study, {"ill": "yes"}).receipt["n_reports"] == 2


def test_a_lost_reply_is_retried_with_the_very_same_reports(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    study = signed["definition"]["id"]

    class LosesTheReply(httpx.HTTPTransport):
        lost = 0

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if request.url.path.endswith("/submissions") and not LosesTheReply.lost:
                LosesTheReply.lost += 1
                response.read()
                raise httpx.ReadError("the line went dead")
            return response

    with Worker(Broker(sqlite_server.address, transport=LosesTheReply()), tmp_path) as worker:
        worker.sign_up()
        sent = worker.answer(study, {"ill": "no", "days": 3})
        assert LosesTheReply.lost == 1
        spent = worker.ledger.loss("me").epsilon
    with Worker(Broker(sqlite_server.address), tmp_path) as again:
        assert again.answer(study, {"ill": "yes"}) == sent
        assert again.ledger.loss("me").epsilon == spent
        assert again.receipts() == [sent.receipt]


@pytest.mark.parametrize("attempts", [1, 2], ids=["asked again later", "asked again at once"])
def test_a_study_that_closed_after_a_lost_reply_leaves_open_whether_it_was_taken(
    sqlite_server: Any, make_draft: Any, tmp_path: Path, attempts: int
) -> None:
    requester = sqlite_server.requester(f"closing lab {attempts}")
    study = requester.create(make_draft(minimum_n=2))
    requester.open(study)

    class ClosesMeanwhile(httpx.HTTPTransport):
        lost = False

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if request.url.path.endswith("/submissions") and not self.lost:
                self.lost = True
                response.read()
                requester.close(study)
                raise httpx.ReadError("the line went dead")
            return response

    def stored() -> int:
        with sqlite3.connect(sqlite_server.home / "crowdveil.sqlite3") as database:
            found = database.execute("SELECT count(*) FROM intake_submission WHERE study = ?", (study,)).fetchone()
        return int(found[0])

    broker = Broker(sqlite_server.address, transport=ClosesMeanwhile(), attempts=attempts)
    with Worker(broker, tmp_path) as worker:
        worker.sign_up()
        if attempts == 1:
            with pytest.raises(ProblemError, match="does not answer"):
                worker.answer(study, {"ill": "yes"})
        with pytest.raises(ProblemError, match="unknown whether the broker took these reports") as told:
            worker.answer(study, {"ill": "yes"})
        assert told.value.code == "not-open"
        assert stored() == 1
        worker.withdraw(study)
        assert stored() == 0


def test_erasing_withdraws_what_arrived_although_its_receipt_was_lost(
    signed: dict[str, Any], sqlite_server: Any, make_draft: Any, tmp_path: Path
) -> None:
    requester = sqlite_server.requester("third client lab")
    arrived, lost = (requester.create(make_draft(minimum_n=2)) for _ in range(2))

    class Breaks(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if not request.url.path.endswith("/submissions"):
                return super().handle_request(request)
            if arrived in request.url.path:
                super().handle_request(request).read()
            raise httpx.ReadError("the line went dead")

    with Worker(Broker(sqlite_server.address, transport=Breaks(), attempts=1), tmp_path) as worker:
        worker.sign_up()
        for study in (arrived, lost):
            requester.open(study)
            with pytest.raises(ProblemError, match="does not answer"):
                worker.answer(study, {"ill": "yes"})
        assert worker.receipts() == []
        worker.erase()
    with sqlite3.connect(sqlite_server.home / "crowdveil.sqlite3") as database:
        found = [
            database.execute(f"SELECT count(*) FROM intake_{table} WHERE study = ?", (arrived,)).fetchone()[0]
            for table in ("submission", "withdrawal")
        ]
    assert found == [0, 1]


def test_a_draw_that_waited_stays_where_another_device_has_answered(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    """Two draws of one answer tell twice what was charged, even if the broker stores only one of them."""
    study, sent = signed["definition"]["id"], []

    class Offline(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/submissions"):
                raise httpx.ConnectError("no network")
            return super().handle_request(request)

    class Counted(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            sent.append(request.url.path.rpartition("/")[2])
            return super().handle_request(request)

    with Worker(Broker(sqlite_server.address, transport=Offline(), attempts=1), tmp_path / "first") as first:
        first.sign_up()
        with pytest.raises(ProblemError, match="does not answer"):
            first.answer(study, {"ill": "yes"})
        token = first._broker.token
    with Worker(Broker(sqlite_server.address, token=token), tmp_path / "second") as second:
        second.answer(study, {"ill": "yes"})
    with (
        Worker(Broker(sqlite_server.address, transport=Counted()), tmp_path / "first") as first,
        pytest.raises(StudyError, match="another device of yours"),
    ):
        first.answer(study, {"ill": "yes"})
    assert "submissions" not in sent


def test_a_fresh_device_starts_from_what_the_broker_has_seen(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    with Worker(Broker(sqlite_server.address), tmp_path / "old") as old:
        old.sign_up()
        old.answer(signed["definition"]["id"], {})
        token, spent = old._broker.token, old.ledger.loss("me").epsilon
    with Worker(Broker(sqlite_server.address, token=token), tmp_path / "new") as new:
        new.catch_up()
        new.catch_up()
        assert new.ledger.loss("me").epsilon == pytest.approx(spent, abs=1e-8)
        channel = mechanism("randomized-response", epsilon=3.0).channel(Choices(("a", "b")))
        assert not new.ledger.affords("me", Spend.through(channel, name="more"))


def test_a_device_that_was_set_back_does_not_spend_twice(
    signed: dict[str, Any], sqlite_server: Any, make_draft: Any, tmp_path: Path
) -> None:
    """An old copy of the ledger forgot a study; the broker's mirror has not, and is asked before anything is drawn."""
    requester = sqlite_server.requester("second client lab")
    other = requester.create(make_draft(protects_participation=True))
    requester.open(other)
    with Worker(Broker(sqlite_server.address), tmp_path / "home", epsilon_cap=3.0) as worker:
        worker.sign_up()
        shutil.copytree(tmp_path / "home", tmp_path / "old")
        worker.answer(signed["definition"]["id"], {})
        spent = worker.ledger.loss("me").epsilon
    with Worker(Broker(sqlite_server.address), tmp_path / "old", epsilon_cap=3.0) as worker:
        assert worker.ledger.loss("me").epsilon == 0
        worker.raise_cap(2 * spent)
        with pytest.raises(MirrorError):
            worker.answer(other, {})
        worker.catch_up()
        worker.answer(other, {})
        assert worker.ledger.loss("me").epsilon == pytest.approx(2 * spent, abs=1e-8)


def test_one_false_reply_of_the_broker_does_not_use_up_the_budget(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    class Lies(httpx.HTTPTransport):
        claimed: int | None = None

        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            if request.method != "GET" or not request.url.path.endswith("/workers/me") or self.claimed is None:
                return response
            response.read()
            told = response.json()
            told["budget"] |= {"epsilon_spent_nano": self.claimed, "rho_spent_nano": self.claimed}
            return httpx.Response(200, json=told)

    lying = Lies()
    with Worker(Broker(sqlite_server.address, transport=lying), tmp_path) as worker:
        worker.sign_up()
        lying.claimed = 99_000_000_000
        with pytest.raises(MirrorError, match=r"spent ε 99; this device knows of ε 0; .* --dismiss") as asked:
            worker.answer(signed["definition"]["id"], {"ill": "yes"})
        assert (asked.value.claimed, asked.value.known, worker.ledger.loss("me").epsilon) == (99, 0, 0)
        worker.dismiss_mirror()
        assert worker.answer(signed["definition"]["id"], {"ill": "yes"}).protected
        assert worker.ledger.left("me").epsilon == pytest.approx(2, abs=1e-3)


def test_a_key_is_renewed_halfway_through_its_year(sqlite_server: Any, tmp_path: Path) -> None:
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        worker.sign_up()
        first, payee = worker._broker.token, worker.payments()["payee"]
        assert worker._broker.token == first, "not before"
        worker._memory.remember("renew-after", "2020-01-01T00:00:00+00:00")
        assert worker.payments()["payee"] == payee
        second = worker._broker.token
        worker._memory.forget("renew-after")  # a home of an earlier version
        worker.studies()
        third = worker._broker.token
        assert len({first, second, third}) == 3
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        assert worker.payments()["payee"] == payee
        assert worker._broker.token == third


def test_an_account_that_is_gone_is_told_and_never_replaced_unasked(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    study = signed["definition"]["id"]
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        first = worker.sign_up()
        worker.answer(study, {})
        spent = worker.ledger.loss("me").epsilon
        with pytest.raises(InputError, match="would lose what it earned"):
            worker.begin_anew()
        sqlite_server.broker(worker._broker.token).call("DELETE", "/workers/me")
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        for call in (worker.sign_up, worker.payments, worker.studies, worker.catch_up):
            with pytest.raises(ProblemError, match=r"no longer knows this device's key.*sign-up --anew"):
                call()
        assert worker.begin_anew() != first
        assert worker.payments()["balance_cents"] == 0
        assert worker.ledger.loss("me").epsilon == spent
        worker.withdraw(study)


def test_an_account_is_not_given_up_while_the_broker_does_not_answer(sqlite_server: Any, tmp_path: Path) -> None:
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        first = worker.sign_up()
    # Nobody listens at the discard port.
    with Worker(Broker("http://127.0.0.1:9", attempts=1), tmp_path) as worker:
        assert worker.sign_up() == first
        with pytest.raises(ProblemError):
            worker.begin_anew()
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        assert worker.sign_up() == first
        assert worker.payments()["balance_cents"] == 0


def test_the_cap_of_the_sign_up_is_remembered(sqlite_server: Any, tmp_path: Path) -> None:
    def mirrored(worker: Worker) -> int:
        return int(worker._broker.call("GET", "/workers/me")["budget"]["epsilon_cap_nano"])

    with Worker(Broker(sqlite_server.address), tmp_path, epsilon_cap=2.0) as worker:
        worker.sign_up()
    for given, cap in ((None, 2.0), (9.0, 2.0), (1.5, 1.5)):
        with Worker(Broker(sqlite_server.address), tmp_path, epsilon_cap=given) as worker:
            assert worker.ledger.budget.epsilon == cap, "whatever the broker says"
            worker.catch_up()
            assert (worker.ledger.budget.epsilon, mirrored(worker)) == (cap, cap * 1e9)
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        worker.catch_up()
        worker._memory.forget("first-cap")
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:  # a home of an earlier version
        worker.catch_up()
        assert (worker.ledger.budget.epsilon, mirrored(worker)) == (2.0, 2e9)
        worker.raise_cap(6.0)
    with Worker(Broker(sqlite_server.address), tmp_path, epsilon_cap=4.0) as worker:
        worker.catch_up()
        assert (worker.ledger.budget.epsilon, mirrored(worker)) == (6.0, 6e9)


def test_a_cap_raised_without_a_broker_reaches_it_before_the_next_draw(sqlite_server: Any, tmp_path: Path) -> None:
    class Offline(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError("no network")

    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        worker.sign_up()
    with Worker(Broker(sqlite_server.address, transport=Offline(), attempts=1), tmp_path) as worker:
        worker.raise_cap(6.0)
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        worker.catch_up()
        assert worker.ledger.budget.epsilon == 6.0
        assert worker._broker.call("GET", "/workers/me")["budget"]["epsilon_cap_nano"] == 6_000_000_000


def test_a_cap_that_the_broker_refuses_is_not_kept(sqlite_server: Any, tmp_path: Path) -> None:
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        worker.sign_up()
        with pytest.raises(ProblemError, match="epsilon_cap_nano"):
            worker.raise_cap(101.0)
        assert worker.ledger.budget.epsilon == 4.0
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        assert worker.ledger.budget.epsilon == 4.0


def test_nobody_else_can_read_what_a_device_keeps(sqlite_server: Any, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with Worker(Broker(sqlite_server.address), tmp_path):
        (tmp_path / "ledger.sqlite3").chmod(0o644)  # as earlier versions made it
    with Worker(Broker(sqlite_server.address), tmp_path):
        assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
            "device.sqlite3": 0o600,
            "ledger.sqlite3": 0o600,
        }


def test_what_is_not_an_option_or_not_a_question_is_refused(
    signed: dict[str, Any], sqlite_server: Any, tmp_path: Path
) -> None:
    study = signed["definition"]["id"]
    with Worker(Broker(sqlite_server.address), tmp_path) as worker:
        worker.sign_up()
        with pytest.raises(InputError, match="no question 'age'"):
            worker.answer(study, {"age": 7})
        with pytest.raises(InputError, match="must be a level of 1:5:1"):
            worker.answer(study, {"days": 9})
        with pytest.raises(InputError, match="has the levels low, medium"):
            worker.answer(study, {}, level="high")
        with pytest.raises(ProblemError, match="no such study"):
            worker.answer("0" * 32, {})
        worker.erase()
        with pytest.raises(ProblemError):
            worker.studies()


def test_tick_all_and_skip_logic_run_on_the_device(sqlite_server: Any, make_draft: Any, tmp_path: Path) -> None:
    boxes = {"type": "tick-all", "boxes": ["money", "deadline", "boss"]}
    questions = [
        {"id": "ill", "text": "Ill?", "domain": {"type": "choices", "options": ["no", "yes"]}},
        {"id": "why", "text": "Why?", "domain": boxes, "show_if": {"question": "ill", "any_of": ["yes"]}},
    ]
    levels = [{"name": "none", "mechanism": "none", "pay_cents": 1}]
    requester = sqlite_server.requester("tick all")
    study = requester.create(make_draft(questions=questions, levels=levels))
    requester.open(study)
    sent = []
    for number, answers in enumerate(
        [{"ill": "yes", "why": ["boss", "money"]}, {"ill": "no", "why": ["money"]}, {"ill": "yes", "why": []}]
    ):
        with Worker(Broker(sqlite_server.address), tmp_path / str(number)) as worker:
            worker.sign_up(default_level="none")
            sent.append({r["question"]: r["report"] for r in worker.answer(study, answers).reports})
    # Box 0 is bit 0: money and boss are 1 + 4; hidden questions have no report here.
    assert sent == [{"ill": 1, "why": 5}, {"ill": 0}, {"ill": 1, "why": 0}]
