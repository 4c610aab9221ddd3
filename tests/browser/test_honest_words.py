"""What the worker's app says is true: no word of protection where there is none, nothing spent or believed unasked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import journey
from device import studies
from device.node import DEVICE
from device.server import FixtureBroker
from playwright.sync_api import BrowserContext, Page, expect

NONE_ONLY, MIXED, PROTECTED = "n" * 32, "m" * 32, journey.STUDY
TITLES = {NONE_ONLY: "Dinner", MIXED: "Lunch", PROTECTED: "Smoking and work"}
LINES = "First line.\r\nSecond line."

LEDGER = """async () => {
  const { openStore } = await import("./store.js"), { Device } = await import("./worker.js");
  const { me, lines, outbox, left } = await new Device(await openStore()).load();
  return { me, left, lines: [...lines.values()], outbox: [...outbox.values()] };
}"""
DRAFT = """async () => {
  const { openStore } = await import("./store.js"), { Device } = await import("./worker.js");
  const [draft] = (await new Device(await openStore()).load()).drafts.values();
  return draft.answers;
}"""
MOVED_OUT = """async () => {
  const { openStore } = await import("./store.js"), { Device } = await import("./worker.js");
  return new Device(await openStore()).moveOut();
}"""
# A text that anybody could write: sealed by its own hash, as the app seals its own.
FORGED = """async ([me, lines, outbox]) => {
  const { exportLedger } = await import("./ledger.js");
  return exportLedger(lines, { me, outbox });
}"""
DISCARD_DATABASE = """async () => {
  await new Promise((resolve) => {
    const request = indexedDB.deleteDatabase("crowdveil");
    request.onsuccess = request.onblocked = resolve;
  });
}"""
IMPATIENT = b"""
self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
"""
UPDATE = "async () => { await (await navigator.serviceWorker.ready).update(); }"


def words(language: str) -> dict[str, str]:
    catalogue: dict[str, str] = json.loads((DEVICE / f"strings.{language}.json").read_text(encoding="utf-8"))
    return catalogue


def promises(language: str, *tags: str) -> dict[str, str]:
    """The longest piece of every sentence that promises protection, by its key in the catalogue."""
    catalogue = words(language)
    keys = [key for key in catalogue if key.startswith("protected.")] + [f"tag.{tag}" for tag in tags]
    return {key: max(re.split(r"\{\w+\}", catalogue[key]), key=len).strip() for key in keys}


def visible_text(page: Page) -> str:
    """What can be read, also in what is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    return page.locator("main").inner_text()


def walk(page: Page, address: str, study: str, level: str) -> Iterator[tuple[str, str]]:
    """The pages of one study at one level, from the offer to the receipt, with what they say."""
    page.goto(f"{address}/app/#/studies/{study}")
    page.locator("form").wait_for()
    page.locator(f"input[name=level][value={level}]").check()
    yield "offer", visible_text(page)
    page.locator("input[name=agree]").check()
    page.locator("form button.main").click()
    page.locator(".question").first.wait_for()
    journey.answer(page)
    yield "answers", visible_text(page)
    page.locator("button.main").click()
    page.locator(".cell").first.wait_for()
    yield "review", visible_text(page)
    page.locator("button.main").click()
    page.locator(".notice.good").wait_for()
    yield "receipt", visible_text(page)


@pytest.mark.parametrize("language", ["en", "de"])
def test_no_word_of_protection_where_there_is_none(
    device: Callable[..., BrowserContext], broker: FixtureBroker, language: str, pictures: Path
) -> None:
    broker.open(studies.definition(NONE_ONLY, protects=False, levels=("none",), title=TITLES[NONE_ONLY]))
    broker.open(studies.definition(MIXED, protects=False, levels=("none", "medium"), title=TITLES[MIXED]))
    page = device(locale=f"{language}-XX" if language == "en" else "de-DE").new_page()
    page.goto(f"{broker.address}/app/")
    page.locator("input[name=level][value=none]").check()
    forbidden, catalogue = promises(language, "answers", "participation"), words(language)
    bare = catalogue["unprotected.answering"].partition(":")[2].strip(" .")
    assert [key for key, piece in forbidden.items() if piece in visible_text(page)] == [], "welcome, level none"
    page.locator("input[name=level][value=medium]").check()
    seen = {key for key, piece in forbidden.items() if piece in visible_text(page)}
    assert seen == {key for key in forbidden if key.startswith("protected.welcome.")} | {"protected.review.answer"}
    page.locator("button.main").click()
    page.locator(".card").first.wait_for()
    card = page.get_by_role("article").filter(has_text=TITLES[NONE_ONLY]).inner_text()
    assert [key for key, piece in promises(language, "answers", "someAnswers").items() if piece in card] == []
    offered = {
        (NONE_ONLY, "none"): promises(language, "answers", "someAnswers", "participation"),
        # What the other level of a mixed study protects is said beside its name, and nowhere else.
        (MIXED, "none"): {
            key: piece
            for key, piece in promises(language, "participation").items()
            if key not in ("protected.levelLine", "protected.check.charge", "protected.check.channels.other")
        },
    }
    for (study, level), pieces in offered.items():
        for name, said in walk(page, broker.address, study, level):
            assert [key for key, piece in pieces.items() if piece in said] == [], f"{study[0]} {name}"
            if name == "answers":
                assert bare in said
            page.screenshot(path=pictures / f"worker-{study[0]}-{name}-{language}.png", full_page=True)
    page.goto(f"{broker.address}/app/#/privacy")
    page.locator("table").first.wait_for()
    assert forbidden["protected.promise"] not in visible_text(page)
    for name, said in walk(page, broker.address, PROTECTED, "high"):
        seen |= {key for key, piece in forbidden.items() if piece in said}
        assert bare not in said, name
    # Every promise was looked for in a place where it can stand.
    never = {"protected.check.channels.one", "protected.promise", "protected.review.spent"}
    assert set(forbidden) - seen == never


def test_nothing_is_preselected_and_an_empty_submission_asks_with_the_price(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    expect(page.locator(".question input:checked")).to_have_count(0)
    page.get_by_role("button", name="Protect my answers").click()
    expect(page.get_by_text("You have answered 0 of 2. Protecting this costs ε 3")).to_be_visible()
    assert page.evaluate(LEDGER)["lines"] == []
    page.get_by_role("button", name="Go on answering").click()
    expect(page.get_by_text("You have answered 0 of 2")).to_have_count(0)
    page.locator("input[name=smoked][value='']").check()
    journey.until(page, f"async () => 'smoked' in await ({DRAFT})()")
    page.reload()
    expect(page.locator("input[name=smoked][value='']")).to_be_checked()
    page.get_by_role("button", name="Protect my answers").click()
    page.get_by_role("button", name="Yes, spend ε 3 on this").click()
    page.get_by_role("button", name="Send exactly this").wait_for()
    assert len(page.evaluate(LEDGER)["lines"]) == 1
    assert journey.panels(page, "stays")["smoked"] == "no answer"


def test_a_long_list_has_nothing_preselected(page: Page, broker: FixtureBroker) -> None:
    scale = {"id": "often", "text": "How many?", "domain": {"type": "scale", "low": "0", "high": "40", "step": "1"}}
    before = studies.QUESTIONS[1]
    studies.QUESTIONS[1] = scale
    try:
        broker.open(studies.definition(MIXED, title="Long"))
    finally:
        studies.QUESTIONS[1] = before
    journey.start(page, broker.address)
    journey.accept(page, "Long")
    chosen = "(select) => select.selectedOptions[0].textContent"
    assert page.locator("select[name=often]").evaluate(chosen) == "Please choose"
    page.locator("select[name=often]").select_option("I would rather not say")
    journey.until(page, f"async () => 'often' in await ({DRAFT})()")
    page.reload()
    page.locator("select[name=often]").wait_for()
    assert page.locator("select[name=often]").evaluate(chosen) == "I would rather not say"


def test_fewer_answers_are_advised_only_where_they_help(page: Page, broker: FixtureBroker) -> None:
    broker.open(studies.definition(MIXED, protects=False, levels=("none", "medium"), title="Lunch"))
    page.goto(f"{broker.address}/app/")
    page.get_by_role("slider").fill("2")
    page.get_by_role("button", name="Start").click()
    for title in ("Smoking and work", "Lunch"):
        page.get_by_role("link", name=title).click()
        expect(page.get_by_role("alert")).to_contain_text("This costs ε 3, and you have ε 2 left")
        expect(page.get_by_role("alert")).to_contain_text("raise your cap")
        expect(page.get_by_role("alert")).not_to_contain_text(re.compile("fewer", re.IGNORECASE))
        assert ("hides more" in page.get_by_role("alert").inner_text()) == (title == "Smoking and work")
        page.get_by_role("link", name="Studies").click()
    # A place is held, and then the budget shrinks: now each answer counts.
    page.get_by_role("link", name="Me", exact=True).click()
    page.get_by_role("slider").fill("4")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Studies").click()
    journey.accept(page, "Lunch", level="medium")
    journey.answer(page)
    broker.spent = {"epsilon_spent_nano": 2_500_000_000, "rho_spent_nano": 300_000_000}
    page.get_by_role("button", name="Protect my answers").click()
    page.get_by_role("button", name="Count it: ε 2.5 spent").click()
    journey.settled(page)
    page.get_by_role("button", name="Protect my answers").click()
    expect(page.get_by_role("alert")).to_contain_text("Fewer answers fit.")


def test_what_the_broker_claims_is_counted_only_after_asking(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page)
    broker.spent = {"epsilon_spent_nano": 99_000_000_000, "rho_spent_nano": 9_000_000_000}
    page.get_by_role("button", name="Protect my answers").click()
    expect(page.get_by_text("The broker says that you have spent ε 99; this device knows of ε 0.")).to_be_visible()
    assert page.evaluate(LEDGER)["lines"] == []
    page.get_by_role("button", name="It is wrong: keep ε 0").click()
    journey.settled(page)
    expect(page.get_by_text("The broker says")).to_have_count(0)
    journey.protect(page)
    [line] = page.evaluate(LEDGER)["lines"]
    assert (line["kind"], line["epsilon"]) == ("study", pytest.approx(3e9, rel=1e-3))


def test_line_breaks_in_texts_are_kept(page: Page, broker: FixtureBroker) -> None:
    study = studies.definition(MIXED, title="Pairs") | {"purpose": LINES, "consent": {"version": 1, "text": LINES}}
    study["questions"][0]["text"] = LINES
    broker.open(study)
    journey.start(page, broker.address)
    card = page.get_by_role("article").filter(has_text="Pairs")
    assert card.locator("p.written").inner_text().splitlines() == ["First line.", "Second line."]
    page.goto(f"{broker.address}/app/#/studies/{MIXED}")
    page.locator("form").wait_for()
    page.locator("summary").click()
    for text in (page.locator("p.written").first, page.locator("form p.written"), page.locator("ol.written li").first):
        assert text.inner_text().splitlines() == ["First line.", "Second line."]
    page.goto(f"{broker.address}/app/#/")
    journey.accept(page, "Pairs")
    assert page.locator("legend").first.inner_text().splitlines() == ["First line.", "Second line."]


def test_no_word_of_the_spends_is_split_on_a_phone(page: Page, broker: FixtureBroker) -> None:
    broker.open(studies.definition(MIXED, title="Administration and Departments"))
    journey.start(page, broker.address)
    journey.accept(page, "Administration")
    journey.answer(page)
    journey.protect(page)
    page.get_by_role("link", name="My privacy").click()
    page.locator("tbody th a").wait_for()
    page.set_viewport_size({"width": 320, "height": 640})
    pieces = """(link) => [...link.firstChild.data.matchAll(/\\S+/g)].map(({ 0: word, index }) => {
      const range = document.createRange();
      range.setStart(link.firstChild, index);
      range.setEnd(link.firstChild, index + word.length);
      return range.getClientRects().length;
    })"""
    assert set(page.locator("tbody th a").evaluate(pieces)) == {1}
    assert page.evaluate("document.documentElement.scrollWidth") <= 320
    scroll = page.locator(".scroll")
    assert scroll.evaluate("(region) => region.scrollWidth <= region.clientWidth"), "no column is out of sight"


def forged_draw(broker: FixtureBroker, state: str = "waiting") -> dict[str, Any]:
    study = broker.studies[journey.STUDY]
    channels = study["levels"][1]["channels"]
    reports = [{"question": name, "channel": channel, "report": 0} for name, channel in channels.items()]
    body = {"study_sha256": studies.sha256_hex(study), "level": "medium", "consent_version": 1}
    body |= {"withdrawal_sha256": "0" * 64, "reports": reports}
    named = {
        "study": journey.STUDY,
        "title": "Smoking and work",
        "level": "medium",
        "state": state,
        "day": "2026-11-15",
    }
    return named | {"idempotencyKey": "0" * 32, "withdrawalKey": "0" * 64, "answers": {}, "receipt": None, "body": body}


def test_a_forged_text_lowers_nothing_and_sends_nothing(page: Page, broker: FixtureBroker) -> None:
    broker.open(studies.definition(MIXED, title="Lunch"))
    journey.start(page, broker.address)
    page.get_by_role("link", name="Me", exact=True).click()
    page.locator("input[name=level][value=high]").check()
    page.get_by_role("button", name="Save").click()
    page.get_by_role("link", name="Studies").click()
    journey.accept(page, "Lunch")
    before = page.evaluate(LEDGER)["me"]
    zero = {"key": journey.STUDY, "kind": "study", "name": "", "level": "medium", "reports": 3}
    zero |= {"epsilon": 0, "rho": 0, "day": "2026-11-15"}
    for token in (None, "cv_worker_of_somebody_else"):
        me = {"level": "none", "cap": 100_000_000_000, "period": "year"} | ({"token": token} if token else {})
        text = page.evaluate(FORGED, [me, [], [forged_draw(broker)]])
        journey.take_over(page, text)
        expect(page.get_by_role("status")).to_contain_text("Taken over: 0 entries")
        after = page.evaluate(LEDGER)
        assert (after["me"], after["outbox"]) == (before, [])
    # Even the key to the account does not have a draw sent that was not charged for, and nothing is sent by itself.
    me = {"level": "none", "cap": 100_000_000_000, "period": "life", "token": before["token"]}
    journey.take_over(page, page.evaluate(FORGED, [me, [zero], [forged_draw(broker)]]))
    expect(page.get_by_role("status")).to_contain_text("Taken over: 1 entry")
    page.reload()
    page.goto(f"{broker.address}/app/#/studies/{journey.STUDY}")
    page.get_by_role("button", name="Send exactly this").click()
    expect(page.get_by_role("status")).to_contain_text("the ledger here has not been charged for it")
    assert page.evaluate(LEDGER)["me"]["level"] == "high"
    assert [request for request in broker.requests if request["path"].endswith("/submissions")] == []


def test_what_a_text_changes_is_shown_before_it_is_taken_over(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    first, second = device().new_page(), device().new_page()
    journey.start(first, broker.address)
    journey.accept(first, level="high")
    journey.answer(first)
    journey.protect(first)
    text = first.evaluate(MOVED_OUT).replace('"cap":4000000000', '"cap":3000000000')
    me = json.loads(text)["me"] | {"level": "high"}
    journey.start(second, broker.address)
    lines, outbox = json.loads(text)["lines"], json.loads(text)["outbox"]
    second.get_by_role("link", name="Me", exact=True).click()
    second.get_by_label("Text from another device").fill(second.evaluate(FORGED, [me, lines, outbox]))
    second.get_by_role("button", name="Take it over").click()
    expect(second.locator(".notice li")).to_have_text(
        [
            "1 new entry in the ledger, ε 1.5",
            "1 draw; unsent, it waits here for your “Send”",
            "your usual level: high instead of medium",
            "your cap: ε 3 instead of ε 4",
            "the account: this device answers as the account in the text, and its pay goes there",
            "the broker's key: the one in the text is believed",
        ]
    )
    assert second.evaluate(LEDGER)["lines"] == [], "nothing before the worker agrees"
    second.get_by_role("button", name="Yes, take it over").click()
    expect(second.get_by_role("status")).to_contain_text("Taken over: 1 entry")
    second.goto(f"{broker.address}/app/#/studies/{journey.STUDY}")
    assert set(journey.panels(second, "stays").values()) == {"on the other device"}
    journey.send(second)


def test_whoever_distrusts_a_broker_leaves_and_keeps_the_ledger(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.accept(page)
    journey.answer(page)
    journey.protect(page)
    journey.send(page)
    before = page.evaluate(LEDGER)
    broker.open(studies.definition(MIXED, title="Lunch"))
    broker.served[MIXED]["signature"] = studies.sign("another study")
    page.goto(f"{broker.address}/app/#/studies/{MIXED}")
    expect(page.get_by_role("alert")).to_contain_text("not signed by the broker that this device knows")
    expect(page.get_by_role("alert")).not_to_contain_text("delete")
    page.get_by_role("button", name="Leave this site, keep the ledger").click()
    page.get_by_role("button", name="Yes, leave and keep the ledger").click()
    expect(page.get_by_role("status")).to_contain_text("The ledger is kept on this device.")
    expect(page.get_by_text("ε 3 spent. Starting again counts on from there")).to_be_visible()
    # Another broker at the same address, with another key and another log.
    broker.public_key, broker.log, broker.studies = "11" * 32, [], {}
    page.goto(f"{broker.address}/app/#/")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", name="Studies").wait_for()
    state = page.evaluate(LEDGER)
    assert (state["left"], "brokerKey" in state["me"]) == (None, False)
    assert (state["lines"], state["outbox"]) == (before["lines"], before["outbox"])
    expect(page.get_by_text("ε 1 of 4 left")).to_be_visible()
    # What was drawn is not drawn again, and can still be taken back.
    page.goto(f"{broker.address}/app/#/studies/{journey.STUDY}")
    page.get_by_role("button", name="Take my reports back").wait_for()
    assert page.get_by_role("button", name="Accept and answer").count() == 0


def test_evicted_storage_is_noticed_at_the_next_start(page: Page, broker: FixtureBroker) -> None:
    page.goto(f"{broker.address}/app/")
    expect(page.get_by_text("Used this before in this browser?")).to_be_visible()
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", name="Studies").wait_for()
    page.goto(f"{broker.address}/app/how-it-protects.html")
    page.evaluate(DISCARD_DATABASE)
    page.goto(f"{broker.address}/app/")
    expect(page.get_by_text("This browser has thrown away what this app had stored here")).to_be_visible()
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", name="Studies").wait_for()


def test_a_service_worker_that_does_not_wait_is_pointed_out(page: Page, broker: FixtureBroker) -> None:
    journey.start(page, broker.address)
    journey.controlled(page)
    page.reload()
    page.get_by_role("heading", name="Studies").wait_for()
    broker.changed_files["sw.js"] = IMPATIENT
    page.evaluate("globalThis.stillHere = true")
    page.evaluate(UPDATE)
    expect(page.get_by_role("alert")).to_contain_text("replaced while it was open, without waiting for you")
    assert page.evaluate("globalThis.stillHere") is True, "the page is not reloaded into the new code"
    page.goto(f"{broker.address}/app/#/me")
    expect(page.get_by_role("alert")).to_contain_text("please do not answer here")
