"""The steps of a worker in the app, as a person would take them."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route

STUDY = "a" * 32
ANSWERS = {"smoked": "yes", "often": "4", "where": "at work"}


def until(page: Page, expression: str) -> None:
    """Wait for something that cannot be seen. Playwright's own way needs eval, which the page's policy forbids."""
    for _ in range(400):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(expression)


def controlled(page: Page) -> None:
    """Wait until the app's files are kept by its service worker."""
    until(page, "() => navigator.serviceWorker.controller !== null")


def settled(page: Page) -> None:
    """Wait until what a button began is done: meanwhile the others do nothing."""
    page.locator("body:not(.busy)").wait_for()


def start(page: Page, address: str) -> None:
    page.goto(f"{address}/app/")
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", name="Studies").wait_for()


def accept(page: Page, title: str = "Smoking and work", level: str | None = None) -> None:
    page.get_by_role("link", name=title).click()
    page.get_by_role("heading", level=1, name=title).wait_for()
    if level is not None:
        page.locator(f"input[name=level][value={level}]").check()
    page.get_by_label("I agree").check()
    page.get_by_role("button", name="Accept and answer").click()
    page.locator(".question").first.wait_for()


def answer(page: Page, answers: dict[str, str] | None = None) -> None:
    for question, value in (ANSWERS if answers is None else answers).items():
        page.locator(f"input[name={question}][value='{value}']").check()


def protect(page: Page) -> None:
    """Draw. Whoever answered less than half is asked first, and says yes."""
    page.get_by_role("button", name=re.compile("Protect my answers|Show what will be sent")).click()
    page.get_by_role("button", name=re.compile("Yes, spend|Send exactly this")).wait_for()
    if (sure := page.get_by_role("button", name="Yes, spend")).count():
        sure.click()
    page.get_by_role("button", name="Send exactly this").wait_for()


def send(page: Page) -> None:
    page.get_by_role("button", name="Send exactly this").click()
    page.get_by_text("Thank you.").wait_for()


def lose_the_reply(page: Page) -> None:
    """Send: the reports arrive, but the broker's reply does not come back."""

    def lost(route: Route) -> None:
        route.fetch()
        route.abort()

    page.route("**/submissions", lost)
    page.get_by_role("button", name="Send exactly this").click()
    page.get_by_text("no reply came: it may have arrived").wait_for()
    page.unroute("**/submissions")


def take_back(page: Page) -> None:
    page.get_by_role("button", name="Take my reports back").click()
    page.get_by_role("button", name="Yes, take them back").click()


def panels(page: Page, kind: str) -> dict[str, str]:
    """What the panels of one kind (stays, leaves, tells) say, by question."""
    page.locator(".cell").first.wait_for()
    cells = page.locator(".cell").all()
    return {cell.get_attribute("data-question") or "": cell.locator(f".{kind} p").inner_text() for cell in cells}


def take_over(page: Page, text: str) -> None:
    """Show what a text from another device would change, and agree to it."""
    page.get_by_role("link", name="Me", exact=True).click()
    page.get_by_label("Text from another device").fill(text)
    page.get_by_role("button", name="Take it over").click()
    page.get_by_role("button", name="Yes, take it over").click()
