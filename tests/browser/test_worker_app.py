"""The worker's journey in the app, on a phone: what is shown is what is sent, and nothing else leaves."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from browser import journey
from device import studies
from device.node import DEVICE
from device.server import FixtureBroker
from playwright.sync_api import BrowserContext, Page, expect

from crowdveil.client.release import integrity

pytestmark = pytest.mark.slow
FORGET_LOG = """async () => {
  const { openStore } = await import("./store.js");
  await (await openStore()).update(() => ({ result: null, writes: [{ table: "settings", key: "log" }] }));
}"""
# What becomes of the service worker that the server offers now.
UPDATE = """async () => {
  const registration = await navigator.serviceWorker.ready;
  const found = new Promise((resolve) => registration.addEventListener("updatefound", resolve, { once: true }));
  await registration.update();
  await found;
  const offered = registration.installing ?? registration.waiting;
  while (offered?.state === "installing") {
    await new Promise((resolve) => offered.addEventListener("statechange", resolve, { once: true }));
  }
  return offered?.state ?? "redundant";
}"""
SEND_TWICE = """async (study) => {
  const { openStore } = await import("./store.js"), { Device } = await import("./worker.js");
  const device = new Device(await openStore());
  await Promise.all([device.release(study), device.sendAll(), device.release(study)]);
}"""
SEND_AGAIN = """async (study) => {
  const { openStore } = await import("./store.js"), { Device } = await import("./worker.js");
  await new Device(await openStore()).release(study);
}"""
NO_ED25519 = """if (crypto.subtle) {
  crypto.subtle.importKey = () => Promise.reject(new DOMException("Ed25519", "NotSupportedError"));
}"""

STATE = """async () => {
  const { openStore } = await import("./store.js"), { Device } = await import("./worker.js");
  const { me, drafts } = await new Device(await openStore()).load();
  return { me, drafts: [...drafts.keys()] };
}"""
MOVED_OUT = """async () => {
  const { openStore } = await import("./store.js"), { Device } = await import("./worker.js");
  return new Device(await openStore()).moveOut();
}"""
CHANGE_ME = """async (changed) => {
  const { openStore } = await import("./store.js");
  await (await openStore()).update(({ settings }) => (
    { writes: [{ table: "settings", key: "me", value: { ...settings.get("me"), ...changed } }] }));
}"""
SPENT_LAST_YEAR = """async () => {
  const { openStore } = await import("./store.js");
  const line = { key: "b".repeat(32), kind: "study", name: "Old", level: "low", reports: 1, rho: 3e8 };
  await (await openStore()).update(() => (
    { writes: [{ table: "ledger", key: line.key, value: { ...line, epsilon: 3e9, day: "2020-03-01" } }] }));
}"""

NOTHING_KEPT = """IDBFactory.prototype.open = () => {
  throw new DOMException("access to the Indexed Database API is denied in this context.", "SecurityError");
};"""


def submissions(broker: FixtureBroker) -> list[dict[str, Any]]:
    return [request for request in broker.requests if request["path"].endswith("/submissions")]


def test_a_browser_that_keeps_nothing_is_told_what_to_do(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    for locale, sentence in {"en-US": "in a window that is not private", "de-DE": "das nicht privat ist"}.items():
        context = device(may_fail=True, locale=locale)
        context.add_init_script(NOTHING_KEPT)
        page = context.new_page()
        page.goto(f"{broker.address}/app/")
        expect(page.get_by_role("alert")).to_contain_text(sentence)
        expect(page.get_by_role("alert")).to_contain_text("SecurityError")


def test_what_is_drawn_once_is_shown_sent_and_kept(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    expect(page.get_by_text("0% of your cap is used", exact=True)).to_be_visible()
    journey.accept(page)
    journey.answer(page)
    journey.protect(page)
    assert submissions(broker) == []
    shown = journey.panels(page, "leaves")
    for _ in range(2):
        page.goto(f"{broker.address}/app/#/")
        page.get_by_role("link", name="See what you sent").click()
        page.get_by_role("button", name="Send exactly this").wait_for()
        assert journey.panels(page, "leaves") == shown
    page.get_by_text("Every byte that is sent").click()
    preview = json.loads(page.locator("pre").inner_text())
    journey.send(page)
    [sent] = submissions(broker)
    assert json.loads(sent["body"]) == preview
    study = broker.studies[journey.STUDY]
    for report in preview["reports"]:
        output = study["channels"][report["channel"]]["outputs"][report["report"]]
        assert shown[report["question"]] == _in_words(output)
    assert journey.panels(page, "stays") == journey.ANSWERS
    assert all("74%" in sentence for sentence in journey.panels(page, "tells").values())
    expect(page.get_by_text("Receipt")).to_contain_text("signed by the broker")
    broker.served.clear()
    page.reload()
    assert journey.panels(page, "leaves") == shown, "also when the study is gone"
    page.get_by_role("link", name="My privacy").click()
    expect(page.locator("tbody tr")).to_have_count(1)


def _in_words(output: str | None) -> str:
    if output is None:
        return "no answer"
    if output.startswith("["):
        return ", ".join(json.loads(output)) or "none of these"
    return output


def test_skipped_and_hidden_questions_report_too(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page, {"smoked": "no"})
    expect(page.get_by_text("Where do you smoke?")).to_be_hidden()
    expect(page.get_by_text("A skipped question sends a report too")).to_be_visible()
    journey.protect(page)
    assert journey.panels(page, "stays") == {"smoked": "no", "often": "no answer", "where": "no answer"}
    journey.send(page)
    assert len(json.loads(submissions(broker)[0]["body"])["reports"]) == 3


def test_offline_the_draw_is_kept_and_sent_later_unchanged(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.controlled(page)
    journey.answer(page)
    page.context.set_offline(True)
    page.reload()
    expect(page.locator("input[name=smoked][value=yes]")).to_be_checked()
    journey.protect(page)
    drawn = journey.panels(page, "leaves")
    page.reload()
    assert journey.panels(page, "leaves") == drawn
    page.get_by_role("button", name="Send exactly this").click()
    expect(page.get_by_text("Waiting to be sent")).to_be_visible()
    assert submissions(broker) == []
    page.reload()
    preview = json.loads(page.locator("pre").text_content() or "")
    page.context.set_offline(False)
    page.get_by_text("Thank you.").wait_for()
    [sent] = submissions(broker)
    assert json.loads(sent["body"]) == preview
    assert journey.panels(page, "leaves") == drawn


def test_a_second_device_takes_over_the_ledger_and_the_draws(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    first, second = device().new_page(), device().new_page()
    journey.start(first, broker.address)
    journey.accept(first)
    journey.answer(first)
    journey.protect(first)
    drawn = journey.panels(first, "leaves")
    first.get_by_role("link", name="Me", exact=True).click()
    first.get_by_role("button", name="Show the text").click()
    expect(first.get_by_label("My ledger as text")).not_to_be_empty()
    text = first.get_by_label("My ledger as text").input_value()
    assert "at work" not in text
    journey.start(second, broker.address)
    second.get_by_role("link", name="Me", exact=True).click()
    second.get_by_label("Text from another device").fill(text.replace("medium", "low", 1))
    second.get_by_role("button", name="Take it over").click()
    expect(second.get_by_role("status")).to_contain_text("was changed or is not complete")
    journey.take_over(second, text)
    expect(second.get_by_role("status")).to_contain_text("1 entry was new here")
    second.goto(f"{broker.address}/app/#/studies/{journey.STUDY}")
    second.get_by_role("button", name="Send exactly this").wait_for()
    assert journey.panels(second, "leaves") == drawn


def test_a_new_device_starts_no_lower_than_the_brokers_copy(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    page = device().new_page()
    journey.start(page, broker.address)
    journey.accept(page)
    text = page.evaluate(
        """async () => { const { openStore } = await import("./store.js"), { Device } = await import("./worker.js");
           return new Device(await openStore()).moveOut(); }"""
    )
    broker.spent = {"epsilon_spent_nano": 2_500_000_000, "rho_spent_nano": 200_000_000}
    other = device().new_page()
    journey.start(other, broker.address)
    journey.take_over(other, text)
    expect(other.get_by_role("status")).to_contain_text("Taken over")
    other.get_by_role("link", name="My privacy").click()
    expect(other.get_by_text("ε 0 of 4 spent")).to_be_visible()
    other.get_by_role("button", name="Count it: ε 2.5 spent").click()
    expect(other.get_by_text("Spent on another device")).to_be_visible()
    expect(other.get_by_text("ε 2.5 of 4 spent")).to_be_visible()


def test_a_device_that_was_set_back_learns_what_it_forgot_before_it_draws(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page)
    broker.spent = {"epsilon_spent_nano": 2_500_000_000, "rho_spent_nano": 200_000_000}
    page.get_by_role("button", name="Protect my answers").click()
    page.get_by_role("button", name="Count it: ε 2.5 spent").click()
    journey.settled(page)
    page.get_by_role("button", name="Protect my answers").click()
    expect(page.get_by_role("alert")).to_contain_text("This costs ε 3, and you have ε 1.5 left")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was drawn and nothing was charged.")
    page.get_by_role("link", name="My privacy").click()
    expect(page.get_by_text("Spent on another device")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(1)


def joined(page: Page, broker: FixtureBroker) -> None:
    """A device with an account: it accepted a study."""
    journey.start(page, broker.address)
    journey.accept(page)


def test_taking_over_a_device_that_never_joined_keeps_the_account(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    page, other = device().new_page(), device().new_page()
    joined(page, broker)
    before = page.evaluate(STATE)["me"]["token"]
    journey.start(other, broker.address)
    journey.take_over(page, other.evaluate(MOVED_OUT))
    expect(page.get_by_role("status")).to_contain_text("Taken over")
    assert page.evaluate(STATE)["me"]["token"] == before
    # And the other way round: the account comes along, and goes out again.
    journey.take_over(other, page.evaluate(MOVED_OUT))
    expect(other.get_by_role("status")).to_contain_text("Taken over")
    assert other.evaluate(STATE)["me"]["token"] == before
    assert before in other.evaluate(MOVED_OUT)


def test_of_two_accounts_each_device_keeps_its_own_and_says_so(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    page, other = device().new_page(), device().new_page()
    joined(page, broker)
    joined(other, broker)
    mine, theirs = (each.evaluate(STATE)["me"] for each in (page, other))
    assert mine["token"] != theirs["token"]
    journey.take_over(page, other.evaluate(MOVED_OUT))
    expect(page.get_by_role("status")).to_contain_text("Taken over")
    expect(page.get_by_role("status")).to_contain_text("its balance stays with the other device")
    assert page.evaluate(STATE)["me"] == mine
    # The text of one's own account says nothing of another.
    journey.take_over(page, page.evaluate(MOVED_OUT))
    expect(page.get_by_role("status")).to_contain_text("Taken over")
    expect(page.get_by_role("status")).not_to_contain_text("balance")


def test_a_device_whose_account_is_gone_takes_the_other_devices(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    page, other = device().new_page(), device().new_page()
    joined(page, broker)
    joined(other, broker)
    mine, theirs = (each.evaluate(STATE)["me"]["token"] for each in (page, other))
    text = other.evaluate(MOVED_OUT)
    del broker.payees[mine]
    journey.take_over(page, text)
    expect(page.get_by_role("status")).to_contain_text("Taken over")
    expect(page.get_by_role("status")).not_to_contain_text("balance")
    assert page.evaluate(STATE)["me"]["token"] == theirs


def test_a_key_to_the_account_is_renewed_halfway_through_its_life(page: Page, broker: FixtureBroker) -> None:
    joined(page, broker)
    first = page.evaluate(STATE)["me"]
    assert "2060" < first["renewAfter"] < "2064"
    page.reload()
    page.get_by_role("button", name="Protect my answers").wait_for()
    assert page.evaluate(STATE)["me"] == first, "not before"
    for old in ({"renewAfter": "2020-01-01T00:00:00Z"}, {"renewAfter": None}):
        before = page.evaluate(STATE)["me"]["token"]
        page.evaluate(CHANGE_ME, old)
        page.reload()
        journey.until(page, f"async () => (await ({STATE})()).me.token !== '{before}'")
        assert broker.payees[page.evaluate(STATE)["me"]["token"]] == broker.payees[first["token"]]


def test_a_key_that_the_broker_takes_for_expired_is_renewed_once(page: Page, broker: FixtureBroker) -> None:
    """By the device's clock it is good for decades: a broker whose clock was wrong must not end an account."""
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page)
    first = page.evaluate(STATE)["me"]
    broker.expired = {first["token"]}
    page.get_by_role("button", name="Protect my answers").click()
    page.get_by_role("button", name="Send exactly this").click()
    expect(page.get_by_text("Receipt")).to_contain_text("signed by the broker")
    now = page.evaluate(STATE)["me"]
    assert now["token"] != first["token"]
    assert broker.payees[now["token"]] == broker.payees[first["token"]], "the same account"
    renewals = [each for each in broker.requests if each["path"].endswith("/workers/me/tokens")]
    assert len(renewals) == 1
    # One that fetches keys which are refused again is not asked for ever.
    broker.expired = set(broker.payees) | {f"cv_worker_{n:043}" for n in range(99)}
    page.get_by_role("link", name="Me", exact=True).click()
    expect(page.get_by_text("no longer knows this device's key")).to_be_visible()


def test_an_account_that_is_gone_is_never_replaced_unasked(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page)
    token = page.evaluate(STATE)["me"]["token"]
    broker.payees = {"another": "p0"}
    page.get_by_role("button", name="Protect my answers").click()
    expect(page.get_by_role("alert")).to_contain_text("no longer knows this device's key")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was drawn and nothing was charged.")
    assert page.evaluate(STATE)["me"]["token"] == token
    assert list(broker.payees) == ["another"], "nobody joined"
    page.get_by_role("link", name="Me", exact=True).click()
    expect(page.get_by_text("no longer knows this device's key")).to_be_visible()
    page.get_by_role("button", name="Begin a new account").click()
    page.get_by_role("button", name="Yes, a new account").click()
    expect(page.get_by_text("no longer knows this device's key")).to_have_count(0)
    page.goto(f"{broker.address}/app/#/studies/{journey.STUDY}")
    journey.protect(page)
    assert len(broker.payees) == 2


def test_the_brokers_copy_learns_the_cap_that_it_does_not_know(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    assert broker.told["epsilon_cap_nano"] == 4_000_000_000
    # A cap for each year, in the year after: the broker's copy never forgets.
    page.evaluate(SPENT_LAST_YEAR)
    page.evaluate(CHANGE_ME, {"period": "year"})
    journey.protect(page)
    assert broker.told["epsilon_cap_nano"] == 7_000_000_000
    # Raised while the broker could not be reached.
    page.get_by_role("link", name="Me", exact=True).click()
    page.route("**/workers/me", lambda route: route.abort())
    page.get_by_role("slider").fill("6")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("Saved.")
    page.unroute("**/workers/me")
    broker.open(studies.definition("c" * 32, title="Lunch"))
    page.get_by_role("link", name="Studies").click()
    journey.accept(page, "Lunch", level="high")
    assert broker.told["epsilon_cap_nano"] == 9_000_000_000


def test_an_accepted_study_is_given_back(page: Page, broker: FixtureBroker) -> None:
    def given_back() -> int:
        asked = [request for request in broker.requests if request["path"].endswith("/reservation")]
        return [request["method"] for request in asked].count("DELETE")

    journey.start(page, broker.address)
    journey.accept(page)
    page.get_by_role("button", name="Choose another level").click()
    page.get_by_role("button", name="Accept and answer").wait_for()
    assert given_back() == 1
    page.get_by_label("I agree").check()
    page.get_by_role("button", name="Accept and answer").click()
    page.get_by_role("button", name="Give this study back").click()
    expect(page.get_by_role("status")).to_contain_text("Given back")
    page.get_by_role("button", name="Accept and answer").wait_for()
    assert given_back() == 2
    assert page.evaluate(STATE)["drafts"] == []


def test_an_invitation_is_not_lost_by_choosing_another_level(page: Page, broker: FixtureBroker) -> None:
    chosen = studies.definition("d" * 32, title="By invitation") | {"selection": {"policy": "random"}}
    broker.open(chosen)
    journey.start(page, broker.address)
    journey.accept(page, "By invitation")
    page.get_by_role("button", name="Choose another level").click()
    page.get_by_role("button", name="Accept and answer").wait_for()
    assert all(request["method"] != "DELETE" for request in broker.requests)


def test_a_tampered_study_is_refused(page: Page, broker: FixtureBroker) -> None:
    words = json.loads((DEVICE / "strings.en.json").read_text(encoding="utf-8"))
    journey.start(page, broker.address)
    for why, served in studies.tampered():
        broker.served[journey.STUDY] = served
        broker.log = [served["log"]]
        page.evaluate(FORGET_LOG)
        page.goto(f"{broker.address}/app/#/studies/{journey.STUDY}")
        expect(page.get_by_role("heading", level=1)).to_have_text("This device refuses to answer this study")
        beginning = words[f"refusal.{why}"].partition("{")[0]
        expect(page.get_by_role("alert")).to_contain_text(beginning)
        assert page.get_by_role("button", name="Accept and answer").count() == 0
        page.goto(f"{broker.address}/app/#/me")
        page.get_by_role("heading", level=1, name="Me").wait_for()


def test_a_wrong_signature_is_refused_and_a_missing_check_is_admitted(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    page, honest = device().new_page(), broker.served[journey.STUDY]
    journey.start(page, broker.address)
    page.get_by_role("link", name="Look at it").click()
    expect(page.get_by_text("The broker this device knows has signed it.")).to_be_visible()
    # The key seen first counts: neither another signature nor another key is believed.
    for forged in ({"signature": studies.sign("another study")}, {"signature": "00" * 64, "public_key": "11" * 32}):
        broker.served[journey.STUDY], broker.public_key = honest | forged, forged.get("public_key", broker.public_key)
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("not signed by the broker that this device knows")
        assert page.get_by_role("button", name="Accept and answer").count() == 0
    broker.served[journey.STUDY], broker.public_key = honest, studies.PUBLIC_KEY
    for cannot in (NO_ED25519, "Object.defineProperty(crypto, 'subtle', { value: undefined });"):
        old = device()
        old.add_init_script(cannot)
        page = old.new_page()
        journey.start(page, broker.address)
        page.get_by_role("link", name="Look at it").click()
        expect(page.get_by_text("Unknown: whether the broker signed this study.")).to_be_visible()
        expect(page.get_by_text("has signed it")).to_have_count(0)


def test_a_receipt_that_the_broker_did_not_sign_is_pointed_out(page: Page, broker: FixtureBroker) -> None:
    broker.forge_receipts = True
    journey.start(page, broker.address)
    journey.accept(page)
    journey.protect(page)
    page.evaluate(SEND_TWICE, journey.STUDY)
    assert len(submissions(broker)) == 1
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("The signature of this receipt is not the broker's")


def test_after_a_lost_reply_reports_can_be_taken_back(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page)
    journey.protect(page)
    assert page.get_by_role("button", name="Take my reports back").count() == 0, "nothing has left"
    journey.lose_the_reply(page)
    journey.take_back(page)
    page.get_by_text("Taken back").wait_for()
    page.reload()
    page.get_by_text("Taken back").wait_for()
    assert len(submissions(broker)) == 1, "what was taken back is not sent again"


def test_a_study_that_closed_after_a_lost_reply_leaves_open_whether_it_was_taken(
    page: Page, broker: FixtureBroker
) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page)
    journey.protect(page)
    journey.lose_the_reply(page)
    broker.closed = True
    page.reload()
    expect(page.get_by_text("Unknown whether the broker took it")).to_contain_text(
        "takes no answers now. If it took it"
    )
    expect(page.get_by_text("The broker did not take it")).to_have_count(0)
    # Opened again, it tells: the same bytes get their receipt.
    broker.closed = False
    journey.send(page)
    first, *others = [request["body"] for request in submissions(broker)]
    assert set(others) == {first}


def test_a_submission_that_never_arrived_is_not_sent_once_it_was_taken_back(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.protect(page)
    page.route("**/submissions", lambda route: route.abort())
    page.get_by_role("button", name="Send exactly this").click()
    page.get_by_text("no reply came").wait_for()
    page.route("**/withdrawals", lambda route: route.abort())
    journey.take_back(page)
    expect(page.get_by_role("status")).to_contain_text("You are offline")
    for pattern in ("**/submissions", "**/withdrawals"):
        page.unroute(pattern)
    page.reload()
    page.get_by_text("Unknown whether the broker took it").wait_for()
    journey.take_back(page)
    expect(page.get_by_text("The broker has no such reports")).to_be_visible()
    assert submissions(broker) == []


def test_what_was_sent_can_be_taken_back_even_if_its_study_is_now_refused(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.protect(page)
    journey.send(page)
    broker.served[journey.STUDY]["signature"] = studies.sign("another study")
    page.reload()
    page.get_by_text("This device refuses to answer this study").wait_for()
    journey.take_back(page)
    page.get_by_text("Taken back").wait_for()
    expect(page.get_by_role("button", name="Take my reports back")).to_have_count(0)
    assert any(request["path"].endswith("/withdrawals") for request in broker.requests)


def test_a_draw_stays_here_once_another_device_has_answered(page: Page, broker: FixtureBroker) -> None:
    """The broker would keep one of the two, but it would have seen both, and each device charged for one."""
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page)
    journey.protect(page)
    broker.answered_elsewhere = True
    page.get_by_role("button", name="Send exactly this").click()
    expect(page.get_by_text("You have answered this study; the first submission stands")).to_be_visible()
    assert submissions(broker) == []


def test_a_study_changed_after_consent_and_a_rewritten_log_are_noticed(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    other = studies.definition(title="Smoking at work")
    # Signed, and in the log after the first: only this device knows what its worker agreed to.
    broker.open(other)
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("not the one that this device read before")
    assert page.get_by_role("button", name="Protect my answers").count() == 0
    broker.log, broker.studies = [], {}
    broker.open(other)
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("the public log was rewritten")
    page.get_by_role("button", name="Give this study back").click()
    expect(page.get_by_role("status")).to_contain_text("Given back")
    expect(page.get_by_role("button", name="Give this study back")).to_have_count(0)


def test_a_budget_that_is_too_small_is_said_before_answering(page: Page, broker: FixtureBroker) -> None:
    page.goto(f"{broker.address}/app/")
    page.get_by_role("slider").fill("2")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("link", name="Look at it").click()
    expect(page.get_by_role("alert")).to_contain_text("This costs ε 3, and you have ε 2 left")
    expect(page.get_by_role("button", name="Accept and answer")).to_be_disabled()
    page.locator("input[name=level][value=high]").check()
    expect(page.get_by_role("button", name="Accept and answer")).to_be_enabled()


def test_another_level_can_be_chosen_before_the_draw(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    page.get_by_role("button", name="Choose another level").click()
    page.get_by_role("button", name="Accept and answer").wait_for()
    page.locator("input[name=level][value=high]").check()
    page.get_by_label("I agree").check()
    page.get_by_role("button", name="Accept and answer").click()
    page.get_by_role("button", name="Protect my answers").wait_for()
    journey.answer(page)
    broker.closed = True
    page.get_by_role("button", name="Protect my answers").click()
    expect(page.get_by_role("alert")).to_contain_text("This study takes no answers now. Nothing was drawn")
    broker.closed = False
    journey.protect(page)
    assert all("63%" in sentence for sentence in journey.panels(page, "tells").values())


def test_take_back_forget_export_and_delete(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page)
    journey.protect(page)
    journey.send(page)
    page.get_by_role("button", name="Forget my answers").click()
    expect(page.locator(".stays p").first).to_have_text("forgotten")
    page.get_by_role("button", name="Take my reports back").click()
    page.get_by_role("button", name="Yes, take them back").click()
    page.get_by_text("Taken back").wait_for()
    page.evaluate(SEND_AGAIN, journey.STUDY)
    assert len(submissions(broker)) == 1, "what was taken back is not sent again by another tab"
    withdrawal = next(request for request in broker.requests if request["path"].endswith("/withdrawals"))
    assert "authorization" not in withdrawal["headers"]
    page.get_by_role("link", name="Me", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Export everything about me").click()
    exported = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert exported["device"]["ledger"][0]["name"] == "Smoking and work"
    assert "token" not in exported["device"]["me"]
    assert exported["broker"] == {"account": "w" * 32}
    page.get_by_role("button", name="Delete my account").click()
    page.get_by_role("button", name="Yes, delete everything").click()
    page.get_by_role("button", name="Start").wait_for()
    expect(page.get_by_role("status")).to_contain_text("Deleted: your account, and everything")
    expect(page.get_by_text("has thrown away")).to_have_count(0)
    assert any(request["method"] == "DELETE" for request in broker.requests)


def test_new_code_is_noticed_and_waits_for_the_worker(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.controlled(page)
    release = broker.manifest["release"].encode()
    changed = {
        "style.css": (DEVICE / "style.css").read_bytes() + b"\n:root { --changed: 1; }\n",
        "sw.js": (DEVICE / "sw.js").read_bytes().replace(release, b"another"),
    }
    # Files that do not fit their manifest are not taken at all.
    broker.changed_files = changed
    assert page.evaluate(UPDATE) == "redundant"
    expect(page.get_by_role("status")).to_be_empty()
    files = broker.manifest["files"] | {name: integrity(content) for name, content in changed.items()}
    broker.changed_files = changed | {"manifest.json": json.dumps(broker.manifest | {"files": files}).encode()}
    page.reload()
    assert page.evaluate(UPDATE) == "installed"
    expect(page.get_by_role("status")).to_contain_text("There is new code for this app")
    page.reload()
    style = "getComputedStyle(document.documentElement).getPropertyValue('--changed')"
    assert page.evaluate(style) == ""
    with page.expect_event("load"):
        page.get_by_role("button", name="Use the new code").click()
    journey.until(page, "() => caches.keys().then((names) => names.join() === 'another')")


def test_the_app_can_be_installed(page: Page, broker: FixtureBroker) -> None:
    page.goto(f"{broker.address}/app/")
    journey.controlled(page)
    browser = page.context.new_cdp_session(page)
    assert browser.send("Page.getAppManifest")["errors"] == []
    problems = {each["errorId"] for each in browser.send("Page.getInstallabilityErrors")["installabilityErrors"]}
    # Playwright's windows are private ones, in which no app is installed.
    assert problems <= {"in-incognito"}


def test_a_link_to_a_study_leads_there_after_the_start(page: Page, broker: FixtureBroker) -> None:
    page.goto(f"{broker.address}/app/#/studies/{journey.STUDY}")
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Smoking and work")


def test_what_is_not_plainly_true_is_never_shown_as_protected(page: Page, broker: FixtureBroker) -> None:
    broker.studies[journey.STUDY] |= {"protects_participation": 1, "linkable": 0}
    for level in broker.studies[journey.STUDY]["levels"]:
        level["protected"] = 1
    broker.served[journey.STUDY] = hidden = studies.seemingly_hidden()
    broker.log = [hidden["log"]]
    journey.start(page, broker.address)
    expect(page.locator(".tags li:not(.open)")).to_have_count(0)
    expect(page.locator(".tags li.open")).to_have_count(3)
    page.get_by_role("link", name="Look at it").click()
    expect(page.get_by_role("alert")).to_contain_text("its field “protects_participation” is not of the kind")


def test_a_study_without_protection_says_so(page: Page, broker: FixtureBroker) -> None:
    broker.open(studies.definition("b" * 32, protects=False, levels=("none", "medium"), title="Lunch"))
    broker.open(studies.definition("c" * 32, protects=False, levels=("none",), title="Dinner"))
    journey.start(page, broker.address)
    promises = {
        "Smoking and work": "Answers protected",
        "Lunch": "Answers protected at every level but “none”",
        "Dinner": "Not protected: your answers are sent as they are",
    }
    for title, promise in promises.items():
        tag = page.get_by_role("article").filter(has_text=title).locator(".tags li").first
        expect(tag).to_have_text(promise)
        page.get_by_role("link", name=title).click()
        page.get_by_role("button", name="Accept and answer").wait_for()
        expect(page.locator(".tags li").first).to_have_text(promise)
        page.get_by_role("link", name="Studies").click()
        page.get_by_role("heading", level=1, name="Studies").wait_for()
    page.get_by_role("link", name="Dinner").click()
    expect(page.get_by_role("button", name="Accept and answer")).to_be_disabled()
    page.locator("input[name=level]").check()
    expect(page.get_by_role("button", name="Accept and answer")).to_be_enabled()
    page.get_by_role("link", name="Studies").click()
    journey.accept(page, "Lunch", level="none")
    journey.answer(page)
    journey.protect(page)
    assert journey.panels(page, "leaves") == journey.panels(page, "bare")
    assert all("does not protect" in sentence for sentence in journey.panels(page, "tells").values())
    page.get_by_role("link", name="My privacy").click()
    expect(page.get_by_text("Not protected, and in none of these numbers")).to_be_visible()
