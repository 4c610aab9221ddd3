"""Everybody can use the app: axe finds nothing, the keyboard suffices, any width and direction works, it is fast."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import journey
from device.node import ROOT
from device.server import FixtureBroker
from playwright.sync_api import BrowserContext, Page, expect

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
TARGETS = """() => [...document.querySelectorAll("a, button, input, select, textarea, summary")]
  .filter((element) => element.checkVisibility())
  .map((element) => element.closest("label") ?? element)
  .filter((element) => getComputedStyle(element).display !== "inline")
  .map((element) => [element.outerHTML.slice(0, 80), element.getBoundingClientRect().height])
  .filter(([, height]) => height < 40)"""


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
    for name in ("how-it-protects.html", "how-it-protects.de.html"):
        page.goto(f"{address}/app/{name}")
        yield name


def violations(page: Page, rules: list[str]) -> list[Any]:
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found = page.evaluate("(rules) => axe.run({ runOnly: rules })", rules)
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]]


def test_axe_finds_nothing_on_any_page(page: Page, broker: FixtureBroker, pictures: Path) -> None:
    for name in pages(page, broker.address):
        assert violations(page, RULES) == [], name
        assert page.evaluate(TARGETS) == [], name
        if not name.endswith(".html"):
            page.screenshot(path=pictures / f"worker-{name}.png", full_page=True)


def test_contrast_suffices_in_the_dark(device: Callable[..., BrowserContext], broker: FixtureBroker) -> None:
    page = device(color_scheme="dark").new_page()
    for name in pages(page, broker.address):
        assert violations(page, ["color-contrast"]) == [], name


@pytest.mark.parametrize(("locale", "direction"), [("en-US", "ltr"), ("de-DE", "rtl")])
def test_nothing_is_cut_off_on_a_small_phone(
    device: Callable[..., BrowserContext], broker: FixtureBroker, locale: str, direction: str
) -> None:
    page = device(viewport={"width": 320, "height": 640}, locale=locale).new_page()
    for name in pages(page, broker.address):
        page.evaluate("(direction) => { document.documentElement.dir = direction; }", direction)
        too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert too_wide <= 0, name


def test_german_is_spoken_to_germans(device: Callable[..., BrowserContext], broker: FixtureBroker) -> None:
    page = device(locale="de-DE").new_page()
    page.goto(f"{broker.address}/app/")
    expect(page.get_by_role("heading", level=1)).to_have_text("Deine Antworten bleiben auf diesem Gerät")
    assert page.evaluate("document.documentElement.lang") == "de"


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
    to("I would rather not say")
    page.keyboard.press("ArrowUp")
    expect(page.locator("input[name=smoked][value=yes]")).to_be_checked()
    to("Protect my answers")
    page.keyboard.press("Enter")
    page.locator(".cell").first.wait_for()
    to("Send exactly this")
    page.keyboard.press("Enter")
    page.get_by_text("Thank you.").wait_for()


def test_the_first_view_is_there_in_under_a_second(
    device: Callable[..., BrowserContext], broker: FixtureBroker
) -> None:
    times: list[float] = []
    while len(times) < 5 and min(times, default=1000) >= 1000:
        page = device().new_page()
        page.goto(f"{broker.address}/app/")
        page.get_by_role("button", name="Start").wait_for()
        times.append(page.evaluate("performance.now()"))
    # A machine that is busy with other things is allowed to be as much slower as it is busy.
    assert min(times) < 1000 * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
