"""Everybody can use the app: axe finds nothing, the keyboard suffices, any width and direction works, it is fast."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from browser import journey
from device.node import DEVICE, ROOT
from device.server import FixtureBroker
from playwright.sync_api import BrowserContext, Page, expect

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
TARGETS = """() => [...document.querySelectorAll("a, button, input, select, textarea, summary")]
  .filter((element) => element.checkVisibility())
  .map((element) => element.closest("label") ?? element)
  .filter((element) => getComputedStyle(element).display !== "inline")
  .map((element) => [element.outerHTML.slice(0, 80), element.getBoundingClientRect()])
  .filter(([, { width, height }]) => height < 44 || width < 24)"""

RUN_AXE = """async (rules) => {
  const { violations } = await axe.run({ runOnly: rules, reporter: "no-passes", preload: false });
  return violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)]);
}"""
REFUSED = """async (study) => {
  const { openStore } = await import("./store.js"), { setEntry } = await import("./outbox.js");
  const receipt = { refused: "all places of this study are taken", code: "no-money" };
  await setEntry(await openStore(), study, { state: "refused", receipt });
}"""
# Whatever people write: every text gets a word without end. The levels of a scale are numbers.
TOO_WIDE = """() => {
  const root = document.documentElement, usual = root.dir;
  const texts = document.querySelectorAll("h1, h2, legend, main p, main li, dd, .option span, tbody th");
  const free = [...texts].filter((text) => !text.closest(".scale .options"));
  const added = free.map((text) => text.appendChild(document.createTextNode("w".repeat(90))));
  const excess = ["ltr", "rtl"].map((direction) => {
    root.dir = direction;
    return Math.max(root.scrollWidth - root.clientWidth, 0);
  });
  root.dir = usual;
  added.forEach((word) => word.remove());
  return excess;
}"""


def pages(page: Page, address: str) -> Iterator[str]:
    """Every page of the app, one after the other."""
    page.goto(f"{address}/app/")
    page.get_by_role("button").first.wait_for()
    yield "welcome"
    page.get_by_role("button").first.click()
    page.locator(".card").wait_for()
    yield "studies"
    page.locator(".card .button").click()
    page.locator("form").wait_for()
    yield "offer"
    page.locator("input[name=agree]").check()
    page.locator("form button.main").click()
    page.locator(".question").first.wait_for()
    journey.answer(page)
    yield "answers"
    page.locator("button.main").click()
    page.locator(".cell").first.wait_for()
    yield "review"
    page.locator("button.main").click()
    page.locator(".notice.good").wait_for()
    yield "receipt"
    page.goto(f"{address}/app/#/privacy")
    page.locator("table").wait_for()
    yield "privacy"
    page.goto(f"{address}/app/#/me")
    page.locator("textarea").first.wait_for(state="attached")
    yield "me"
    page.goto(f"{address}/app/#/studies/nowhere")
    page.get_by_role("alert").wait_for()
    yield "nowhere"
    for name in ("how-it-protects.html", "how-it-protects.de.html"):
        page.goto(f"{address}/app/{name}")
        yield name


def violations(page: Page) -> list[Any]:
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    return list(page.evaluate(RUN_AXE, RULES))


def in_light_and_dark(page: Page, name: str) -> None:
    """Every rule of axe holds in both; everything that can be touched is large enough."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == [], f"{name}, {scheme}"
    assert page.evaluate(TARGETS) == [], name


def on_the_smallest_phone(page: Page, name: str) -> None:
    """Nothing is cut off at 320 pixels, whichever way one reads."""
    usual = page.viewport_size
    page.set_viewport_size({"width": 320, "height": 640})
    assert page.evaluate(TOO_WIDE) == [0, 0], name
    page.set_viewport_size(usual)


def whole_page(page: Page, path: Path) -> None:
    """A picture as on a phone that is as long as the page, so that what is fixed to the bottom is there."""
    usual = page.viewport_size or {"width": 390, "height": 844}
    long = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": usual["width"], "height": max(long, usual["height"])})
    page.screenshot(path=path)
    page.set_viewport_size(usual)


def test_everybody_can_use_every_page(page: Page, broker: FixtureBroker, pictures: Path) -> None:
    for name in pages(page, broker.address):
        in_light_and_dark(page, name)
        on_the_smallest_phone(page, name)
        if not name.endswith(".html"):
            whole_page(page, pictures / f"worker-{name}.png")


def test_german_is_spoken_to_germans_unless_they_choose_otherwise(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    page = device(locale="de-DE").new_page()
    for name in pages(page, broker.address):
        on_the_smallest_phone(page, name)
        if not name.endswith(".html"):
            assert page.evaluate("document.documentElement.lang") == "de", name
            assert spoken_in_english(page) == [], name
    page.goto(f"{broker.address}/app/")
    page.evaluate(REFUSED, journey.STUDY)
    page.goto(f"{broker.address}/app/#/studies/{journey.STUDY}")
    expect(page.get_by_role("alert")).to_contain_text("Alle Plätze dieser Studie sind vergeben")
    page.goto(f"{broker.address}/app/#/me")
    page.get_by_label("Sprache").select_option("English")
    expect(page.get_by_role("heading", level=1)).to_have_text("Me")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Me")
    assert page.evaluate("document.documentElement.lang") == "en"


def spoken_in_english(page: Page) -> list[str]:
    """Sentences of the English catalogue that are visible on the page."""
    said = page.locator("body").inner_text()
    english, german = (
        json.loads((DEVICE / f"strings.{name}.json").read_text(encoding="utf-8")) for name in ("en", "de")
    )
    pieces = {key: max(re.split(r"\{\w+\}", sentence), key=len).strip() for key, sentence in english.items()}
    return [piece for key, piece in pieces.items() if len(piece) > 12 and piece in said and piece not in german[key]]


def test_the_keyboard_suffices(page: Page, broker: FixtureBroker) -> None:
    page.goto(f"{broker.address}/app/")
    page.get_by_role("button", name="Start").wait_for()

    def to(name: str) -> None:
        for _ in range(40):
            page.keyboard.press("Tab")
            focused = page.evaluate(
                "document.activeElement.innerText || document.activeElement.closest('label')?.innerText || ''"
            )
            if name in focused:
                return
        raise AssertionError(f"{name} cannot be reached by Tab")

    to("Start")
    page.keyboard.press("Enter")
    page.locator(".card").wait_for()
    to("Look at it")
    page.keyboard.press("Enter")
    page.locator("form").wait_for()
    to("I agree")
    page.keyboard.press("Space")
    to("Accept and answer")
    page.keyboard.press("Enter")
    page.locator(".question").first.wait_for()
    to("no")
    page.keyboard.press("ArrowDown")
    expect(page.locator("input[name=smoked][value=yes]")).to_be_checked()
    to("Protect my answers")
    page.keyboard.press("Enter")
    # One answer of three: the question has the focus.
    page.get_by_role("button", name="Yes, spend").wait_for()
    page.keyboard.press("Enter")
    page.locator(".cell").first.wait_for()
    to("Send exactly this")
    page.keyboard.press("Enter")
    page.get_by_text("Thank you.").wait_for()
