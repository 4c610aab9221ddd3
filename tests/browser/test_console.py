"""The console in a real browser: a requester's whole journey, and pages that everybody can use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from broker.conftest import Server, draft, new_home
from broker.test_languages import entries
from browser.conftest import PHONE
from browser.test_access import in_light_and_dark, on_the_smallest_phone
from playwright.sync_api import BrowserContext, Page, expect
from typer.testing import CliRunner
from waiting import until

from crowdveil.cli import app
from crowdveil.client import ProblemError, Worker

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
    server: Server,
    study: str,
    homes: Path,
    answers: Callable[[int], dict[str, Any]],
    n_workers: int,
    level: str = "low",
) -> None:
    """Workers of the SDK, a few at a time."""

    def one(number: int) -> None:
        with Worker(server.broker(), homes / str(number), epsilon_cap=100) as worker:
            worker.sign_up(default_level=level)
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
    until(partial(read_results, broker, study))
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
    page.get_by_role("link", name="Open the study").click()
    expect(page.get_by_text("They can never be changed afterwards.")).to_be_visible()
    page.screenshot(path=pictures / "console-confirm.png")
    page.get_by_role("button", name="Open for everybody").click()
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
    page.get_by_role("link", name="Close the study").click()
    page.get_by_role("link", name="Cancel").click()
    expect(page.locator("#progress")).to_contain_text("open")
    page.get_by_role("link", name="Close the study").click()
    page.get_by_role("button", name="Close for good").click()
    page.get_by_role("link", name="Results", exact=True).click()
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
        "confirm-open": f"/studies/{tokens['draft']}/open",
        "confirm-discard": f"/studies/{tokens['draft']}/discard",
        "confirm-close": f"/studies/{study}/close",
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
        broker.call(
            "POST", "/requester/studies", draft(questions=questions(), levels=levels, minimum_n=3, linkable=True)
        )["id"]
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
    page.locator("#f-quality").click()
    page.evaluate("document.querySelector('#results').setAttribute('data-same', '')")
    with page.expect_response(lambda response: "seen=" in response.url) as nothing:
        page.clock.run_for(16000)
    assert nothing.value.status == 204
    expect(page.locator("#results[data-same] details[open]")).to_have_count(1)
    page.locator("#f-quality").focus()
    answer_as_crowd(server, study, tmp_path / "second", somebodys, 3)
    page.clock.run_for(16000)
    expect(page.get_by_text("From 6 submissions (")).to_be_visible()
    expect(page.locator("#f-quality")).to_be_focused()
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
    page.get_by_role("link", name="Start a pilot").click()
    page.get_by_role("button", name="Start the pilot").click()
    expect(page.locator("#progress")).to_contain_text("0 / 10")
    page.get_by_role("link", name="Open the study").click()
    page.get_by_role("button", name="Open for everybody").click()
    expect(page.locator("#progress")).to_contain_text("0 / 500")


# Any word of protection, in any sentence. What denies it is in the catalogue as such.
CLAIMS = {
    "en": re.compile(r"randomi[sz]|protect|nois|never (had|sees)|hidden|privacy", re.I),
    "de": re.compile(r"verrausch|schütz|schutz|rauschen|hatte .*nie|sieht nie|verborgen", re.I),
}
DENIAL = re.compile(r"not protected|without privacy|no privacy|protects nothing")


def sentences(context: str, language: str) -> list[re.Pattern[str]]:
    """Sentences of the catalogue that claim protection, or deny it, as a page shows them."""
    spelled = [
        text
        for entry in entries()
        if entry.get("msgctxt") == context or (context == "unprotected" and DENIAL.search(entry["msgid"]))
        for name, text in entry.items()
        if name.startswith("msgid" if language == "en" else "msgstr")
    ]
    assert len(spelled) >= 4
    escaped = (re.split(r"%\(\w+\)[sd]", text.replace("%%", "%")) for text in spelled)
    return [re.compile(r"[\d.,]+".join(map(re.escape, parts)), re.I) for parts in escaped]


def read_results(broker: Any, study: str) -> Any:
    """The results, or None while another thread of the broker is estimating."""
    try:
        return broker.call("GET", f"/requester/studies/{study}/results")
    except ProblemError as refused:
        if refused.code != "below-minimum":
            raise
        return None


@pytest.fixture(scope="module")
def by_protection(server: Server, token: str, homes: Path) -> dict[str, str]:
    """Studies whose answers were all sent as they are, or some of them, or none."""
    broker = server.broker(token)
    bare = {"name": "none", "mechanism": "none", "pay_cents": 40}
    low = {"name": "low", "mechanism": "randomized-response", "epsilon": "4", "pay_cents": 40}
    crowds = {"none-only": {"none": 12}, "mixed": {"none": 4, "low": 8}, "protected": {"low": 12}}
    made = {}
    for name, crowd in crowds.items():
        offered = [bare] if name == "none-only" else [bare, low]
        asked = draft(title=name, questions=questions(), levels=offered, minimum_n=12, linkable=True)
        made[name] = str(broker.call("POST", "/requester/studies", asked)["id"])
        broker.call("POST", f"/requester/studies/{made[name]}/open")
        for level, n_workers in crowd.items():
            answer_as_crowd(server, made[name], new_home(homes, f"{name}-{level}"), somebodys, n_workers, level)
        until(partial(read_results, broker, made[name]))
    return made


@pytest.mark.parametrize("language", ["en", "de"])
def test_protection_is_claimed_only_where_there_is_some(
    console: Callable[..., Page],
    server: Server,
    token: str,
    by_protection: dict[str, str],
    language: str,
    pictures: Path,
) -> None:
    claims, denials = sentences("protected", language), sentences("unprotected", language)
    assert all(CLAIMS[language].search(claim.pattern.replace("\\", "")) for claim in claims)
    page = console(token, locale=language)
    texts = {}
    for name, study in by_protection.items():
        for path in ("", "/close", "/results"):
            page.goto(f"{server.address}/console/studies/{study}{path}")
            page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            texts[name, path] = page.locator("body").inner_text()
        page.screenshot(path=pictures / f"console-{name}-{language}.png", full_page=True)
    for (name, path), text in texts.items():
        said = text
        for denial in denials:
            said = denial.sub("", said)
        if name == "none-only":
            assert [line for line in said.splitlines() if CLAIMS[language].search(line)] == [], path
    sent = {"en": "4 of 12 were sent as they are", "de": "4 von 12 wurden so gesendet, wie sie sind"}[language]
    everybody = {"en": "Every answer was randomised", "de": "Jede Antwort wurde auf dem Gerät verrauscht"}[language]
    assert sent in texts["mixed", "/results"]
    assert everybody not in texts["mixed", "/results"]
    assert everybody in texts["protected", "/results"]
    assert not any(denial.search(texts["protected", "/results"]) for denial in denials)


KINDS = [
    {"id": "ill", "text": "Were you ill?\nLast year.", "domain": {"type": "choices", "options": ["no", "yes"]}},
    {"id": "mood", "text": "How do you feel?", "domain": {"type": "scale", "low": "1", "high": "5"}},
    {"id": "minutes", "text": "How long?", "domain": {"type": "scale", "low": "0", "high": "60", "step": "5"}},
    {"id": "land", "text": "Where?", "domain": {"type": "choices", "options": [f"state {n}" for n in range(16)]}},
    {"id": "why", "text": "Why?", "domain": {"type": "tick-all", "boxes": ["money", "deadline"]}},
]
CONTROLS = """(root) => [...root.querySelectorAll("fieldset")].map((field) => ({
  text: field.querySelector("legend").innerText,
  controls: [...field.querySelectorAll("input, select")].map((each) => each.type),
  words: [...field.querySelectorAll("label, option")].map((each) => each.innerText.trim()),
}))"""


def test_the_preview_shows_what_workers_see(
    console: Callable[..., Page], device: Callable[..., BrowserContext], server: Server, token: str
) -> None:
    broker = server.broker(token)
    levels = [{"name": "medium", "mechanism": "randomized-response", "epsilon": "0.5", "pay_cents": 1}]
    asked = draft(title="Every kind", questions=KINDS, levels=levels)
    study = str(broker.call("POST", "/requester/studies", asked)["id"])
    page = console(token)
    page.goto(f"{server.address}/console/studies/{study}/edit")
    preview = page.locator("#preview")
    assert preview.locator("input:checked").count() == 0
    shown = preview.evaluate(CONTROLS)
    broker.call("POST", f"/requester/studies/{study}/open")
    worker = device().new_page()
    worker.goto(f"{server.address}/app/#/studies/{study}")
    worker.get_by_role("button", name="Start").click()
    worker.get_by_label("I agree").check()
    worker.get_by_role("button", name="Accept and answer").click()
    worker.get_by_role("button", name="Protect my answers").wait_for()
    seen = worker.locator("main").evaluate(CONTROLS)
    # How a question is left out is the app's own matter: the first or the last entry of a list, a button or a box.
    skip = {"Please choose", "I would rather not say"}
    assert [field["text"].replace("\n", " ") for field in shown] == [each["text"].replace("\n", " ") for each in seen]
    for mine, theirs in zip(shown, seen, strict=True):
        assert set(mine["controls"]) == set(theirs["controls"]), mine["text"]
        assert [word for word in mine["words"] if word not in skip] == [
            word for word in theirs["words"] if word not in skip
        ]
        assert "I would rather not say" in mine["words"]


@pytest.mark.parametrize("language", ["en", "de"])
def test_a_phone_shows_the_whole_plan_and_all_results(
    console: Callable[..., Page], server: Server, token: str, answered: str, tokens: dict[str, str], language: str
) -> None:
    page = console(token, locale=language, viewport=PHONE)
    page.goto(f"{server.address}/console/studies/{tokens['draft']}/edit")
    page.locator("button[name=plan]").click()
    page.locator("#plan tbody tr").first.wait_for()
    assert page.evaluate(MOVED_SIDEWAYS) == []
    page.goto(f"{server.address}/console/studies/{answered}/results")
    moved = page.evaluate(MOVED_SIDEWAYS)
    assert moved == [], moved
