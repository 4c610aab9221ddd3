"""The console in a real browser: a requester's whole journey, and pages that everybody can use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from broker.conftest import Server, draft, new_home
from browser.conftest import PHONE
from browser.test_access import in_light_and_dark, on_the_smallest_phone
from playwright.sync_api import BrowserContext, Page, expect
from typer.testing import CliRunner

from crowdveil.cli import app
from crowdveil.client import Worker

pytestmark = pytest.mark.slow
MOVED_SIDEWAYS = """() => [...document.querySelectorAll(".scroll")]
  .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.innerText.split("\\n")[0])"""
DESKTOP = {"width": 960, "height": 900}
N_WORKERS = 24
LONG = "Donaudampfschifffahrtsgesellschaftskapitänsmützenfabrik or another place with a name without end"


def questions() -> list[dict[str, Any]]:
    boxes = {"type": "tick-all", "boxes": ["money", "deadline", "colleagues"]}
    places = {"type": "choices", "options": ["at home", LONG]}
    return [
        *draft()["questions"],
        {"id": "why", "text": "Why? Tick all that apply.", "domain": boxes},
        {"id": "where", "text": "Where do you work?", "domain": places, "gold": "at home"},
    ]


def somebodys(number: int) -> dict[str, Any]:
    """Answers that differ from worker to worker."""
    reasons = ["deadline", "colleagues"] if number % 3 else ["money"]
    return {"ill": "yes" if number % 4 else "no", "days": 2 + number % 3, "why": reasons, "where": "at home"}


def answer_as_crowd(
    server: Server, study: str, homes: Path, answers: Callable[[int], dict[str, Any]], n_workers: int
) -> None:
    """Workers of the SDK, a few at a time."""

    def one(number: int) -> None:
        with Worker(server.broker(), homes / str(number), epsilon_cap=100) as worker:
            worker.sign_up(default_level="low")
            worker.answer(study, answers(number))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(one, range(n_workers)))


@pytest.fixture(scope="module")
def server(homes: Path) -> Iterator[Server]:
    running = Server(new_home(homes, "console"))
    yield running
    running.end()


@pytest.fixture(scope="module")
def token(server: Server) -> str:
    return server.requester_token("Public health lab")


@pytest.fixture(scope="module")
def answered(server: Server, token: str, homes: Path) -> str:
    """A linkable study with results of every kind."""
    broker = server.broker(token)
    levels = [{"name": "low", "mechanism": "randomized-response", "epsilon": "4", "pay_cents": 40}]
    wanted = draft(questions=questions(), levels=levels, linkable=True, minimum_n=10)
    study = str(broker.call("POST", "/requester/studies", wanted)["id"])
    broker.call("POST", f"/requester/studies/{study}/open")
    answer_as_crowd(server, study, new_home(homes, "crowd"), somebodys, N_WORKERS)
    return study


def cookie(server: Server, token: str) -> Any:
    return {"name": "crowdveil_session", "value": token, "url": f"{server.address}/console/"}


@pytest.fixture
def console(device: Callable[..., BrowserContext], server: Server) -> Iterator[Callable[..., Page]]:
    """Pages signed in with a token; whatever the browser complains about fails the test."""
    complaints: list[str] = []

    def opened(signed_in: str = "", **options: Any) -> Page:
        context = device(**({"viewport": DESKTOP} | options))
        if signed_in:
            context.add_cookies(
                [{"name": "crowdveil_session", "value": signed_in, "url": f"{server.address}/console/"}]
            )
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        return page

    yield opened
    assert [each for each in complaints if "status of 403" not in each] == []


def test_the_requesters_journey(
    console: Callable[..., Page], server: Server, token: str, tmp_path: Path, pictures: Path
) -> None:
    page = console(token)
    page.goto(f"{server.address}/console/")
    page.get_by_role("link", name="New study").first.click()
    page.get_by_label("Title").fill("Going to work ill")
    page.get_by_label("Purpose").fill("How many people work while they are ill, and how it feels.")
    page.get_by_label("Consent text").fill("My device randomises every answer before it leaves.")
    page.get_by_label("Text", exact=True).fill("Did you work while you were ill last year?")
    page.get_by_label("Options, one per line").fill("no\nyes")
    page.get_by_role("button", name="Add a scale question").click()
    expect(page.locator("#q1-text")).to_be_focused()
    page.keyboard.type("How much pressure did you feel?")
    preview = page.locator("#preview")
    expect(preview.get_by_text("How much pressure did you feel?")).to_be_visible()
    expect(preview.get_by_role("radio")).to_have_count(3 + 6)
    page.evaluate("document.querySelector('#questions').scrollIntoView()")
    page.screenshot(path=pictures / "console-editor.png")
    page.get_by_role("region", name="As workers see it").screenshot(path=pictures / "console-preview.png")
    page.get_by_role("button", name="Work out the plan").click()
    expect(page.locator("#plan .mixed")).to_have_count(2)
    page.get_by_role("region", name="What to expect").screenshot(path=pictures / "console-plan.png")
    pay = page.locator("#level-medium-pay_cents")
    pay.fill("-1")
    page.get_by_label("Offer level medium").uncheck()
    expect(pay).to_be_visible()  # what is wrong is not folded away: nobody could find it
    pay.fill("0")
    expect(pay).to_be_hidden()
    page.get_by_label("Offer level high").uncheck()
    page.get_by_label("Offer level low").check()
    slider = page.locator("#level-low-epsilon")
    slider.focus()
    page.keyboard.press("End")
    expect(page.locator("#words-low")).to_contain_text("ε = 5. One report changes the odds")
    page.get_by_label("Places", exact=True).fill("40")
    page.get_by_label("Show results from").fill("10")
    page.get_by_role("button", name="Work out the plan").click()
    expect(page.locator("#plan tbody tr")).to_have_count(2)
    expect(page.locator("#plan")).to_contain_text("percentage points")
    page.get_by_role("button", name="Save the draft").click()
    page.get_by_role("button", name="Open the study").click()
    expect(page.locator("#progress")).to_contain_text("0 / 40")
    study = page.url.rpartition("/")[2]
    answer_as_crowd(server, study, tmp_path / "homes", lambda number: {"q1": "yes", "q2": 4}, 10)
    # No reload: the page asks by itself.
    expect(page.locator("#progress")).to_contain_text("10 / 40")
    expect(page.locator("#progress")).to_contain_text("5.00")
    page.screenshot(path=pictures / "console-study.png")
    page.get_by_role("link", name="Results").click()
    expect(page.get_by_role("img")).to_have_count(3)
    expect(page.get_by_text("a guess without asking").first).to_be_visible()
    page.get_by_role("link", name="Back to the study").click()
    page.get_by_role("button", name="Close the study").click()
    page.get_by_role("link", name="Results").click()
    with page.expect_download() as saved:
        page.get_by_role("link", name="Parquet").first.click()
    reports, estimates = tmp_path / "reports.parquet", tmp_path / "estimates.csv"
    saved.value.save_as(reports)
    command = ["infer", str(reports), "-o", str(estimates), "--method", "frequency", "--json"]
    inferred = CliRunner().invoke(app, command)
    assert inferred.exit_code == 0, inferred.output
    assert json.loads(inferred.stdout)["n_reports"] == 10
    assert estimates.read_text(encoding="utf-8").splitlines()[1].startswith("q1,yes")


def every_page(page: Page, server: Server, study: str, tokens: dict[str, str]) -> Iterator[str]:
    """Every page of the console, one after the other."""
    site = f"{server.address}/console"

    def sign_in(role: str) -> None:
        page.context.add_cookies([cookie(server, tokens[role])])

    page.goto(f"{site}/sign-in")
    yield "sign-in"
    sign_in("enrol")
    page.goto(f"{site}/enrol")
    yield "enrol"
    sign_in("requester")
    for name, path in {
        "home": "/",
        "editor": "/studies/new",
        "study": f"/studies/{study}",
        "results": f"/studies/{study}/results",
        "waiting": f"/studies/{tokens['waiting']}/results",
        "draft": f"/studies/{tokens['draft']}",
        "draft-editor": f"/studies/{tokens['draft']}/edit",
        "refused": "/operator",
    }.items():
        page.goto(f"{site}{path}")
        page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        yield name
    sign_in("operator")
    page.goto(f"{site}/operator")
    yield "operator"


@pytest.fixture(scope="module")
def tokens(server: Server, token: str) -> dict[str, str]:
    made = server.broker(server.operator()).call("POST", "/operator/accounts", {"name": "new", "role": "requester"})
    first = {"name": "new", "password": made["one_time_password"]}
    broker = server.broker(token)
    kept, waiting = (broker.call("POST", "/requester/studies", draft(questions=questions()))["id"] for _ in range(2))
    broker.call("POST", f"/requester/studies/{waiting}/open")
    return {
        "enrol": str(server.broker().call("POST", "/sessions", first)["token"]),
        "requester": token,
        "operator": server.operator(),
        "draft": str(kept),
        "waiting": str(waiting),
    }


def test_everybody_can_use_every_page(
    console: Callable[..., Page], server: Server, answered: str, tokens: dict[str, str], pictures: Path
) -> None:
    page = console()
    for name in every_page(page, server, answered, tokens):
        in_light_and_dark(page, name)
        on_the_smallest_phone(page, name)
        if name in ("results", "operator"):
            clip = {"x": 0, "y": 0, "width": DESKTOP["width"], "height": 1200}
            page.screenshot(path=pictures / f"console-{name}.png", full_page=True, clip=clip)
        if name == "results":
            in_print(page)
            page.set_viewport_size(PHONE)
            page.emulate_media(color_scheme="dark")
            clip = {"x": 0, "y": 0, "width": PHONE["width"], "height": 1100}
            page.screenshot(path=pictures / "console-phone.png", full_page=True, clip=clip)
            page.set_viewport_size(DESKTOP)


def in_print(page: Page) -> None:
    """On paper there are no buttons, every chart and table is there, and what was folded is unfolded."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = false; })")
    page.emulate_media(media="print", color_scheme="light")
    assert page.locator("header, footer, button, .button").locator("visible=true").count() == 0
    charts = page.get_by_role("img").all()
    assert charts
    assert all(chart.bounding_box() and chart.bounding_box()["height"] > 40 for chart in charts)
    page.emulate_media(media="screen")


def test_german_pages_fit_and_speak_german(
    console: Callable[..., Page], server: Server, answered: str, tokens: dict[str, str], pictures: Path
) -> None:
    page = console(locale="de-DE")
    for name in every_page(page, server, answered, tokens):
        on_the_smallest_phone(page, name)
        english = page.locator("main [lang=en]").all_inner_texts()
        assert english == [], name
        assert not re.search(r"\d{4}-\d\d-\d\d", page.locator("main").inner_text()), name
    assert re.search(r"\b\d\d\.\d\d\.20\d\d \d\d:\d\d\b", page.get_by_role("row").last.inner_text())
    page.set_viewport_size({"width": 360, "height": 640})
    assert page.evaluate(MOVED_SIDEWAYS) == [], "operator"
    page.screenshot(path=pictures / "console-operator-phone.png", full_page=True)
    page.set_viewport_size(DESKTOP)
    page.get_by_role("button", name="English").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Operations")


def test_new_results_come_by_themselves_and_nothing_else_moves(
    console: Callable[..., Page], server: Server, token: str, tmp_path: Path
) -> None:
    broker = server.broker(token)
    levels = [{"name": "low", "mechanism": "randomized-response", "epsilon": "4", "pay_cents": 40}]
    study = str(
        broker.call("POST", "/requester/studies", draft(questions=questions(), levels=levels, minimum_n=3))["id"]
    )
    broker.call("POST", f"/requester/studies/{study}/open")
    page = console(token)
    # The clock of the page is ours: minutes of waiting pass at once.
    page.clock.install()
    page.goto(f"{server.address}/console/studies/{study}/results")
    expect(page.get_by_text("Nothing is shown before 3 people")).to_be_visible()
    answer_as_crowd(server, study, tmp_path / "first", somebodys, 3)
    page.clock.run_for(6000)
    expect(page.get_by_text("From 3 submissions (")).to_be_visible()
    page.locator("#f-why-shares").click()
    page.evaluate("document.querySelector('#results').setAttribute('data-same', '')")
    with page.expect_response(lambda response: "seen=" in response.url) as nothing:
        page.clock.run_for(16000)
    assert nothing.value.status == 204
    expect(page.locator("#results[data-same] details[open]")).to_have_count(1)
    page.locator("#f-why-shares").focus()
    answer_as_crowd(server, study, tmp_path / "second", somebodys, 3)
    page.clock.run_for(16000)
    expect(page.get_by_text("From 6 submissions (")).to_be_visible()
    expect(page.locator("#f-why-shares")).to_be_focused()
    expect(page.get_by_role("status")).to_have_text("Results from 6 submissions.")
    broker.call("POST", f"/requester/studies/{study}/close")
    page.clock.run_for(16000)
    expect(page.locator("#results[hx-get]")).to_have_count(0)


def fill_by_keyboard(page: Page, label: str, text: str) -> None:
    """Press Tab until the field with this label has the focus, then type."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.labels?.[0]?.innerText ?? ''").startswith(label):
            page.keyboard.press("ControlOrMeta+a")
            page.keyboard.type(text)
            return
    raise AssertionError(f"{label} cannot be reached by Tab")


def test_the_keyboard_suffices(console: Callable[..., Page], server: Server, token: str) -> None:
    page = console(token)
    page.goto(f"{server.address}/console/studies/new")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for label, text in (("Title", "By keyboard"), ("Purpose", "To see."), ("Consent", "I agree."), ("Text", "Well?")):
        fill_by_keyboard(page, label, text)
    fill_by_keyboard(page, "Options", "no")
    page.keyboard.press("Enter")
    page.keyboard.type("yes")
    fill_by_keyboard(page, "Places", "50")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("By keyboard")


def test_everything_works_without_scripts(console: Callable[..., Page], server: Server, token: str) -> None:
    page = console(token, java_script_enabled=False)
    page.goto(f"{server.address}/console/studies/new")
    page.get_by_label("Title").fill("Without scripts")
    page.get_by_label("Purpose").fill("To see.")
    page.get_by_label("Consent text").fill("I agree.")
    page.get_by_label("Text", exact=True).fill("Well?")
    page.get_by_label("Options, one per line").fill("no\nyes")
    page.get_by_role("button", name="Refresh the preview").click()
    expect(page.locator("#preview").get_by_role("radio")).to_have_count(3)
    page.get_by_role("button", name="Work out the plan").click()
    expect(page.locator("#plan tbody tr")).to_have_count(3)
    page.get_by_role("button", name="Save the draft").click()
    page.get_by_role("button", name="Start a pilot").click()
    expect(page.locator("#progress")).to_contain_text("0 / 10")
    page.get_by_role("button", name="Open the study").click()
    expect(page.locator("#progress")).to_contain_text("0 / 500")
