"""The console over HTTP: who sees which page, forms that cannot be forged, and words that stay words."""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx
import pytest
from broker import plain
from broker.conftest import SOURCE, Server, draft
from broker.scene import Scene

from crowdveil.broker.identity.totp import code_at
from crowdveil.client import Worker

COOKIE = "crowdveil_session"
EVIL = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'&{{ 7|add:1 }}"
PAGES = {
    "/console/": ("requester", "operator"),
    "/console/studies/new": ("requester",),
    "/console/studies/{study}": ("requester",),
    "/console/studies/{draft}/edit": ("requester",),
    "/console/studies/{study}/progress": ("requester",),
    "/console/studies/{study}/results": ("requester",),
    "/console/epsilon?level-low-epsilon=1": ("requester",),
    "/console/operator": ("operator",),
    "/console/enrol": ("enrol",),
}
FORMS = {
    "/console/studies/new": ("requester",),
    "/console/plan": ("requester",),
    "/console/preview": ("requester",),
    "/console/studies/{draft}/copy": ("requester",),
    "/console/operator/invite": ("operator",),
    "/console/operator/payouts": ("operator",),
    "/console/operator/accounts/{study}": ("operator",),
    "/console/operator/accounts/{study}/reset": ("operator",),
}


class Console:
    """A browser without scripts: keeps cookies, fills the CSRF token into forms."""

    def __init__(self, address: str, token: str = "") -> None:
        self.http = plain.Client(base_url=address, follow_redirects=False, timeout=60)
        self.http.headers["Referer"] = address
        if token:
            self.http.cookies.set(COOKIE, token, domain="127.0.0.1", path="/console/")

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.http.get(path, headers=headers)

    def post(
        self, path: str, fields: dict[str, str] | None = None, *, forged: bool = False, german: bool = False
    ) -> httpx.Response:
        sent = dict(fields or {})
        if not forged:
            found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', self.get("/console/sign-in").text)
            assert found
            sent["csrfmiddlewaretoken"] = found[1]
        return self.http.post(path, data=sent, headers={"Accept-Language": "de"} if german else {})


class Fields(HTMLParser):
    """What a browser would send from the editor."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self._text = self._select = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        name = given.get("name", "")
        if tag == "input" and name and "form" not in given and name != "csrfmiddlewaretoken":
            if given.get("type") not in ("checkbox", "radio"):
                self.fields[name] = given.get("value", "")
            elif "checked" in given:
                self.fields[name] = given.get("value", "on")
        elif tag == "textarea":
            self._text, self.fields[name] = name, ""
        elif tag == "select":
            self._select = name
        elif tag == "option" and "selected" in given:
            self.fields[self._select] = given["value"]

    def handle_data(self, data: str) -> None:
        if self._text:
            self.fields[self._text] += data

    def handle_endtag(self, tag: str) -> None:
        self._text = "" if tag == "textarea" else self._text


@pytest.fixture(scope="module")
def visit() -> Iterator[Callable[..., Console]]:
    """Consoles that are closed in the end."""
    made: list[Console] = []

    def opened(address: str, token: str = "") -> Console:
        made.append(Console(address, token))
        return made[-1]

    yield opened
    for each in made:
        each.http.close()


@pytest.fixture(scope="module")
def tokens(sqlite_server: Server) -> dict[str, str]:
    made = sqlite_server.broker(sqlite_server.operator()).call(
        "POST", "/operator/accounts", {"name": "half enrolled", "role": "requester"}
    )
    first = {"name": "half enrolled", "password": made["one_time_password"]}
    return {
        "requester": sqlite_server.requester_token("console requester"),
        "operator": sqlite_server.operator(),
        "worker": sqlite_server.worker_token(),
        "enrol": str(sqlite_server.broker().call("POST", "/sessions", first)["token"]),
    }


@pytest.fixture(scope="module")
def consoles(sqlite_server: Server, tokens: dict[str, str], visit: Callable[..., Console]) -> dict[str, Console]:
    signed_in = {role: visit(sqlite_server.address, token) for role, token in tokens.items()}
    return signed_in | {"nobody": visit(sqlite_server.address)}


@pytest.fixture(scope="module")
def studies(sqlite_server: Server, tokens: dict[str, str]) -> dict[str, str]:
    """An open study and a draft of the requester."""
    broker = sqlite_server.broker(tokens["requester"])
    opened, kept = (broker.call("POST", "/requester/studies", draft())["id"] for _ in range(2))
    broker.call("POST", f"/requester/studies/{opened}/open")
    return {"study": opened, "draft": kept}


@pytest.fixture(scope="module")
def mine(consoles: dict[str, Console]) -> Console:
    return consoles["requester"]


def form(**changes: str) -> dict[str, str]:
    """The editor filled in with one question, as a browser sends it."""
    return {
        "n_questions": "1",
        "title": "Sleep",
        "purpose": "How well people sleep.",
        "consent_text": "I agree.",
        "goal": "population",
        "quota": "100",
        "minimum_n": "20",
        "pilot_quota": "10",
        "reservation_minutes": "60",
        "budget": "100.00",
        "policy": "first-come",
        "q0-id": "sleep",
        "q0-text": "Did you sleep well?",
        "q0-type": "choices",
        "q0-options": "no\nyes",
        "level-medium": "on",
        "level-medium-epsilon": "1",
        "level-medium-pay_cents": "20",
        **changes,
    }


def n_studies(server: Server) -> int:
    with sqlite3.connect(server.home / "crowdveil.sqlite3") as database:
        return int(database.execute("select count(*) from studies_study").fetchone()[0])


@pytest.mark.parametrize("role", ["nobody", "worker", "enrol", "requester", "operator"])
def test_every_page_is_for_its_role_alone(consoles: dict[str, Console], studies: dict[str, str], role: str) -> None:
    for path, roles in PAGES.items():
        reply = consoles[role].get(path.format(**studies))
        if role in roles:
            assert reply.status_code == (302 if (role, path) == ("operator", "/console/") else 200), path
        elif role in ("nobody", "worker"):
            assert (reply.status_code, reply.headers["Location"]) == (302, "/console/sign-in"), path
        else:
            assert reply.status_code == 403, path
            assert "this page is for" in reply.text


@pytest.mark.parametrize("role", ["nobody", "worker", "enrol", "requester", "operator"])
def test_every_form_needs_its_role_and_its_token(
    consoles: dict[str, Console], studies: dict[str, str], role: str
) -> None:
    for path, roles in FORMS.items():
        forged = consoles[role].post(path.format(**studies), form(), forged=True)
        assert forged.status_code == 403, path
        assert "expired or came from elsewhere" in forged.text
        if role not in roles:
            refused = consoles[role].post(path.format(**studies), form())
            assert refused.status_code == (401 if role in ("nobody", "worker") else 403), path


def test_what_was_typed_survives_the_end_of_a_session(
    visit: Callable[..., Console], sqlite_server: Server, tokens: dict[str, str]
) -> None:
    late = visit(sqlite_server.address)
    typed = late.post("/console/studies/new", form(title='Typed "late"', password="never shown"))
    assert "never shown" not in typed.text
    kept = Fields(typed.text.partition("</main>")[0]).fields
    assert kept["title"] == 'Typed "late"'
    again = visit(sqlite_server.address, tokens["requester"]).post("/console/studies/new", kept)
    assert again.status_code == 302


def test_a_part_of_a_page_says_that_the_session_has_ended(consoles: dict[str, Console]) -> None:
    part = consoles["nobody"].http.get("/console/epsilon?epsilon=1", headers={"HX-Request": "true"})
    assert (part.status_code, part.headers["HX-Retarget"]) == (286, "#ended")
    assert "Your session has ended." in part.text
    assert "<html" not in part.text


def test_an_address_that_leads_nowhere_has_a_page(consoles: dict[str, Console]) -> None:
    lost = consoles["nobody"].get("/console/no/where")
    assert (lost.status_code, "<h1>Not possible</h1>" in lost.text) == (404, True)


def test_every_page_allows_nothing_from_elsewhere(consoles: dict[str, Console], studies: dict[str, str]) -> None:
    for path, roles in [*PAGES.items(), ("/console/sign-in", ("nobody",)), ("/console/enter/none", ("nobody",))]:
        reply = consoles[roles[0]].get(path.format(**studies))
        policy = reply.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'"), path
        assert "unsafe" not in policy
        assert reply.headers["Cache-Control"] == "no-store", path
        assert not re.search(r"<script(?! src=\"/console/assets/)|\son\w+=|style=|https?://", reply.text), path


def test_another_requesters_study_does_not_exist(
    sqlite_server: Server, visit: Callable[..., Console], studies: dict[str, str]
) -> None:
    other = visit(sqlite_server.address, sqlite_server.requester_token("console stranger"))
    for path in ("", "/edit", "/progress", "/results", "/exports/0/csv"):
        assert other.get(f"/console/studies/{studies['study']}{path}").status_code == 404
    assert other.post(f"/console/studies/{studies['study']}/close").status_code == 404


def test_enrolling_and_signing_in_leads_to_a_careful_cookie(
    sqlite_server: Server, visit: Callable[..., Console], consoles: dict[str, Console]
) -> None:
    invited = consoles["operator"].post("/console/operator/invite", {"name": "newcomer", "role": "requester"})
    one_time = re.search(r'class="secret">([^<]+)<', invited.text)
    assert one_time
    visitor, name = visit(sqlite_server.address), {"name": "newcomer"}
    assert visitor.post("/console/sign-in", name | {"password": "wrong"}).status_code == 401
    entered = visitor.post("/console/sign-in", name | {"password": one_time[1]})
    assert entered.headers["Location"] == "/console/enrol"
    flags = {part.strip().lower() for part in entered.headers["Set-Cookie"].split(";")[1:]}
    assert flags >= {"httponly", "samesite=strict", "path=/console/"}
    assert not any(flag.startswith(("domain", "expires", "max-age")) for flag in flags)
    assert visitor.get("/console/").status_code == 403
    assert visitor.post("/console/enrol", {"password": "short"}).status_code == 422
    lasting = "a lasting password"
    shown = visitor.post("/console/enrol", {"password": lasting})
    secret = re.search(r'class="secret">([A-Z2-7]+)', shown.text)
    assert secret
    # The same key as a QR code, which the page's policy lets pass: an element without styles, scripts or addresses.
    code = re.search(r"<svg .*?</svg>", shown.text, re.DOTALL)
    assert code
    assert not re.search(r"style|script|href|url\(", code[0])
    assert visitor.post("/console/enrol", {"code": "000000"}).status_code == 422
    assert "authenticator works" in visitor.post("/console/enrol", {"code": code_of(secret[1], 0)}).text
    without_code = visitor.post("/console/sign-in", name | {"password": lasting})
    assert without_code.status_code == 401
    signed_in = visitor.post("/console/sign-in", name | {"password": lasting, "code": code_of(secret[1], 1)})
    assert signed_in.headers["Location"] == "/console/"
    assert visitor.get("/console/").status_code == 200
    token = visitor.http.cookies[COOKIE]
    assert visitor.post("/console/sign-out").headers["Location"] == "/console/sign-in"
    assert visit(sqlite_server.address, token).get("/console/").status_code == 302


def code_of(secret: str, shift: int) -> str:
    return code_at(secret, int(time.time() // 30) + shift)


def test_the_front_door_leads_workers_to_the_app(consoles: dict[str, Console]) -> None:
    assert consoles["nobody"].get("/").headers["Location"] == "/app/"
    assert consoles["nobody"].get("/console").headers["Location"] == "/console/"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"title": ""}, "Title: must not be empty"),
        ({"quota": "many"}, "Places: must be a number"),
        ({"budget": "1e9"}, "the budget must be an amount such as 300.00; got &#x27;1e9&#x27;"),
        ({"budget": "٣٠٠"}, "the budget must be an amount"),
        ({"n_questions": "x"}, "Questions: needs at least 1"),
        ({"q0-options": "only one"}, "Question 1, Options, one per line: needs at least 2"),
        ({"q0-id": "Bad Id"}, "Question 1, Short name: is spelled"),
        ({"q0-type": "scale", "q0-low": "5", "q0-high": "1"}, "Question 1: a scale must rise"),
        ({"q0-show_if": "later", "q0-any_of": "yes"}, "does not stand before it"),
        ({"q0-gold": "maybe"}, "maybe"),
        ({"level-medium-epsilon": "-1"}, "ε of one report: is spelled"),
        ({"level-medium-epsilon": "99"}, "epsilon must be above 0 and at most 20; got 99"),
        ({"level-medium-parameters": "{"}, "JSON object"),
        ({"level-medium": ""}, "Privacy levels and pay: needs at least 1"),
        ({"policy": "greedy"}, "mark the study linkable"),
        ({"policy": "nepotism"}, "Who may answer, policy"),
        ({"minimum_n": "101"}, "minimum_n must not be above the quota"),
        ({"level-none": "on", "level-none-pay_cents": "1", "protects_participation": "on"}, "protects nothing"),
    ],
)
def test_a_form_that_makes_no_sense_is_refused_in_a_sentence(
    sqlite_server: Server, mine: Console, changes: dict[str, str], sentence: str
) -> None:
    before = n_studies(sqlite_server)
    reply = mine.post("/console/studies/new", form(**changes))
    assert reply.status_code == 422
    notice = re.search(r'role="alert"><p>(.*?)</p>', reply.text, re.S)
    assert notice
    assert sentence in notice[1]
    assert "Traceback" not in reply.text
    assert n_studies(sqlite_server) == before


def test_what_was_typed_survives_a_refusal_and_adding_a_question(mine: Console) -> None:
    refused = mine.post("/console/studies/new", form(quota="many", title="Kept title"))
    assert 'value="Kept title"' in refused.text
    added = Fields(mine.post("/console/studies/new", form(add="scale")).text).fields
    assert added["n_questions"] == "2"
    assert (added["q0-text"], added["q1-type"], added["q1-high"]) == ("Did you sleep well?", "scale", "5")
    removed = Fields(mine.post("/console/studies/new", form(remove="0")).text).fields
    assert removed["n_questions"] == "0"


def test_a_study_of_many_questions_can_be_saved(sqlite_server: Server, mine: Console) -> None:
    fields = form(n_questions="200")
    for n in range(200):
        each = {"id": f"q{n}", "text": "?", "type": "choices", "options": "no\nyes"}
        empty = ("low", "high", "step", "gold", "show_if", "any_of")
        fields |= {f"q{n}-{name}": each.get(name, "") for name in (*each, *empty)}
    saved = mine.post("/console/studies/new", fields)
    assert saved.status_code == 302
    edited = Fields(mine.get(f"{saved.headers['Location']}/edit").text).fields
    assert len(edited) > 1400
    assert mine.post(f"{saved.headers['Location']}/edit", edited).status_code == 302


def test_a_form_beyond_measure_gets_a_page(mine: Console) -> None:
    reply = mine.post("/console/studies/new", {f"x{n}": "" for n in range(6000)})
    assert reply.status_code == 400
    assert "<h1>Not possible</h1>" in reply.text


@pytest.mark.parametrize(
    "changes",
    [
        {"n_questions": "9" * 5000},
        {"remove": "²"},
        {"remove": "9" * 5000},
        {"level-medium-parameters": "[" * 100_000},
        {"title": "a\0b"},
    ],
)
def test_no_form_makes_the_console_fail(mine: Console, changes: dict[str, str]) -> None:
    reply = mine.post("/console/studies/new", form(**changes))
    assert reply.status_code in (200, 302, 400, 422)


def test_a_page_that_fails_says_so_and_the_log_says_where(
    django_here: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.test import RequestFactory

    from crowdveil.broker.console.access import page

    @page()
    def broken(request: Any) -> Any:
        raise ZeroDivisionError("what somebody typed")

    monkeypatch.setattr(logging.getLogger("crowdveil"), "propagate", True)
    reply = broken(RequestFactory().get("/console/"))
    assert reply.status_code == 500
    assert "something went wrong here; nothing was stored" in reply.content.decode()
    (line,) = [each for each in caplog.records if each.name == "crowdveil.console"]
    assert line.error == "ZeroDivisionError"
    assert "test_console.py" in line.where
    assert "typed" not in caplog.text + reply.content.decode()


def test_a_draft_of_the_api_survives_the_editor(sqlite_server: Server, mine: Console, tokens: dict[str, str]) -> None:
    broker = sqlite_server.broker(tokens["requester"])
    full = draft(
        protects_participation=True,
        max_answers=2,
        linkable=True,
        selection={"policy": "greedy", "fairness": "0.5"},
        reservation_minutes=90,
        questions=[
            *draft()["questions"],
            {
                "id": "why",
                "text": "Why?",
                "domain": {"type": "tick-all", "boxes": ["money", "deadline, boss"]},
                "show_if": {"question": "ill", "any_of": ["yes"]},
                "identifying": ["employer", "postcode"],
                "gold": '["money"]',
            },
        ],
        levels=[{"name": "low", "mechanism": "subset-selection", "epsilon": "1.33", "pay_cents": 7, "parameters": {}}],
    )
    study = broker.call("POST", "/requester/studies", full)
    fields = Fields(mine.get(f"/console/studies/{study['id']}/edit").text).fields
    assert mine.post(f"/console/studies/{study['id']}/edit", fields).status_code == 302
    again = broker.call("GET", f"/requester/studies/{study['id']}")
    assert again["draft"] == study["draft"]


def test_the_plan_and_the_preview_work_with_and_without_scripts(mine: Console) -> None:
    several = form(
        **{"level-high": "on", "level-high-epsilon": "0.5", "level-high-pay_cents": "10", "level-high-share": "30"}
    )
    for reply in (mine.post("/console/plan", several), mine.post("/console/studies/new", several | {"plan": "1"})):
        assert reply.status_code == 200
        assert "percentage points" in reply.text
        assert "A guess without asking" in reply.text
    assert "expected mix" in mine.post("/console/plan", several | {"level-medium-share": "70"}).text
    wrong = mine.post("/console/plan", several | {"level-high-share": "a third"})
    assert "must be a number such as 40" in wrong.text
    few = mine.post("/console/plan", form(quota="20", budget="1.00", **{"level-medium-epsilon": "0.1"}))
    assert "cannot tell: no better than a guess" in few.text
    mixed = mine.post("/console/plan", several | {"goal": "truth"}).text
    assert mixed.index("expected mix") < mixed.index("wrong in")
    dear = mine.post("/console/plan", form(goal="truth", **{"level-medium-epsilon": "5"}))
    assert "wrong in" in dear.text
    assert "usual budget: few can answer" in dear.text
    for reply in (mine.post("/console/preview", form()), mine.post("/console/studies/new", form(preview="1"))):
        assert reply.text.count('name="as-worker-1"') == 3
        assert "I would rather not say" in reply.text


def test_words_of_others_stay_words(sqlite_server: Server, mine: Console, tokens: dict[str, str]) -> None:
    evil = form(
        **{"title": EVIL, "purpose": EVIL, "consent_text": EVIL, "minimum_n": "2", "q0-text": EVIL},
        **{"q0-options": f"{EVIL}\nplain", "q0-id": "evil"},
    )
    saved = mine.post("/console/studies/new", evil)
    assert saved.status_code == 302, saved.text
    study = saved.headers["Location"]
    pages = [mine.get("/console/").text, mine.get(f"{study}/edit").text, mine.post("/console/plan", evil).text]
    assert mine.post(f"{study}/open").status_code == 302
    key = study.rpartition("/")[2]
    for number, answer in enumerate(("plain", EVIL)):
        with Worker(sqlite_server.broker(), sqlite_server.home / f"evil-{number}") as worker:
            worker.sign_up()
            worker.answer(key, {"evil": answer})
    pages += [mine.get(study).text, mine.get(f"{study}/results").text]
    assert "<svg" in pages[-1]
    refused = mine.post("/console/studies/new", evil | {"q0-gold": EVIL, "q0-options": "a\nb"})
    pages += [refused.text, mine.post("/console/preview", evil).text]
    for page in pages:
        assert "alert(" in page
        assert not re.search(r"<script(?! src=\"/console/assets/)|<img(?! src=\"/console/assets/)", page)
        assert "{{ 7|add:1 }}" in page or "{{ 7" not in page


def test_results_wait_for_the_minimum_and_then_speak_plainly(
    sqlite_server: Server, mine: Console, tokens: dict[str, str], tmp_path: Path
) -> None:
    boxes = {"id": "why", "text": "Why?", "domain": {"type": "tick-all", "boxes": ["money", "deadline"]}, "gold": "[]"}
    levels = [{"name": "low", "mechanism": "randomized-response", "epsilon": "8", "pay_cents": 33}]
    questions = [*draft()["questions"], boxes]
    broker = sqlite_server.broker(tokens["requester"])
    key = broker.call(
        "POST",
        "/requester/studies",
        draft(questions=questions, levels=levels, minimum_n=5, linkable=True),
    )["id"]
    study = f"/console/studies/{key}"
    assert mine.post(f"{study}/open").status_code == 302
    assert "Nothing is shown before 5 people" in mine.get(f"{study}/results").text
    for number in range(5):
        with Worker(sqlite_server.broker(), tmp_path / str(number), epsilon_cap=100) as worker:
            worker.sign_up(default_level="low")
            worker.answer(key, {"ill": "yes", "days": 4, "why": ["money", "deadline"]})
    page = mine.get(f"{study}/results").text
    for words in ("Share that ticked each box", "money + deadline", "nothing ticked", "a guess without asking"):
        assert words in page
    assert "[&quot;" not in page
    assert "How well workers did" in page
    progress = mine.get(f"{study}/progress").text
    assert "1.65" in progress
    assert mine.get(f"{study}/exports/0/csv").status_code == 409
    assert mine.post(f"{study}/close").status_code == 302
    assert "/exports/0/parquet" in mine.get(f"{study}/results").text
    table = mine.get(f"{study}/exports/0/csv")
    assert table.headers["Content-Disposition"] == 'attachment; filename="reports-0.csv"'
    assert table.text.splitlines()[0] == "worker,question,report,channel"
    assert json.loads(mine.get(f"{study}/exports/0/channels").text)["channels"]
    assert mine.get(f"{study}/exports/0/exe").status_code == 404
    assert mine.get(f"{study}/exports/9/csv").status_code == 404
    assert mine.post(f"{study}/publish").status_code == 302
    assert "Check questions" in mine.get(f"{study}/results").text


def test_studies_move_on_only_in_their_order(mine: Console) -> None:
    study = mine.post("/console/studies/new", form(policy="random")).headers["Location"]
    assert mine.post(f"{study}/close").status_code == 409
    assert mine.post(f"{study}/sing").status_code == 404
    assert mine.post(f"{study}/pilot").status_code == 302
    assert mine.post(f"{study}/edit", form()).status_code == 409
    assert "workers were invited now" in mine.post(f"{study}/choose").text
    copied = mine.post(f"{study}/copy").headers["Location"]
    assert mine.post(f"{copied}/discard").headers["Location"] == "/console/"
    assert mine.get(copied).status_code == 404


def test_operators_see_what_they_must_and_pay_out_once(consoles: dict[str, Console], mine: Console) -> None:
    telling = form(
        n_questions="3",
        title="Telling",
        **{f"q{n}-id": name for n, name in enumerate(("born", "sex", "where"))},
        **{f"q{n}-text": text for n, text in enumerate(("When were you born?", "Your gender?", "Your postcode?"))},
        **{f"q{n}-options": "a\nb" for n in range(3)},
    )
    study = mine.post("/console/studies/new", telling).headers["Location"]
    assert "joined, such answers can tell who somebody is" in mine.get(study).text
    mine.post(f"{study}/open")
    operator = consoles["operator"]
    page = operator.get("/console/operator").text
    for words in ("all sums agree", "chain intact", "joined, such answers can tell", "study.open", "half enrolled"):
        assert words in page
    assert operator.post("/console/operator/payouts").status_code == 302
    batch = re.search(r"/console/operator/payouts/(\w+)", operator.get("/console/operator").text)
    assert batch
    assert operator.get(batch[0]).text.startswith("payee,")
    assert operator.post("/console/operator/invite", {"name": "x", "role": "king"}).status_code == 422
    assert operator.post("/console/operator/invite", {"name": "", "role": "operator"}).status_code == 422
    assert operator.post("/console/operator/accounts/nobody").status_code == 409


def test_a_disabled_requester_is_out_at_once(
    sqlite_server: Server, visit: Callable[..., Console], consoles: dict[str, Console]
) -> None:
    token = sqlite_server.requester_token("fired")
    fired, operator = visit(sqlite_server.address, token), consoles["operator"]
    assert fired.get("/console/").status_code == 200
    row = re.search(r'<th scope="row"[^>]*>fired</th>.*?accounts/(\w+)', operator.get("/console/operator").text, re.S)
    assert row
    assert operator.post(f"/console/operator/accounts/{row[1]}").status_code == 302
    assert fired.get("/console/").status_code == 302
    assert operator.post(f"/console/operator/accounts/{row[1]}").status_code == 302
    renewed = operator.post(f"/console/operator/accounts/{row[1]}/reset")
    password = re.search(r'class="secret">([^<]+)<', renewed.text)
    assert password
    entered = fired.post("/console/sign-in", {"name": "fired", "password": password[1]})
    assert entered.headers["Location"] == "/console/enrol"


def test_german_is_spoken_to_germans(consoles: dict[str, Console], mine: Console, studies: dict[str, str]) -> None:
    page = consoles["nobody"].get("/console/sign-in", **{"Accept-Language": "de-AT,de;q=0.9"})
    assert '<html lang="de" dir="ltr">' in page.text
    assert "Anmelden" in page.text
    assert page.headers["Content-Language"] == "de"
    for path in ("", "/results", "/edit"):
        text = mine.get(f"/console/studies/{studies['study']}{path}", **{"Accept-Language": "de"}).text
        assert '<html lang="de"' in text
        # The other languages' own names are the only words that are not German.
        assert re.findall(r'lang="(?!de")\w+"[^>]*>([^<]*)', text) == ["English"], path
    refused = mine.post("/console/studies/new", form(title="", **{"q0-options": "ja\nja"}), german=True).text
    assert "Titel: darf nicht leer sein" in refused


def test_the_language_can_be_chosen(visit: Callable[..., Console], sqlite_server: Server) -> None:
    somebody = visit(sqlite_server.address)
    chosen = somebody.post("/console/language", {"language": "de", "next": "/console/sign-in"})
    assert (chosen.status_code, chosen.headers["Location"]) == (302, "/console/sign-in")
    assert "Anmelden" in somebody.get("/console/sign-in", **{"Accept-Language": "en"}).text
    for elsewhere in ("https://example.org/", "//example.org/", "/console/\\example.org", ""):
        reply = somebody.post("/console/language", {"language": "en", "next": elsewhere})
        assert reply.headers["Location"] == "/console/", elsewhere
    assert somebody.post("/console/language", {"language": "tlh"}).status_code == 404
    assert "Sign in" in somebody.get("/console/sign-in", **{"Accept-Language": "de"}).text


def test_results_are_asked_again_only_while_the_study_runs_and_sent_only_when_new(
    sqlite_server: Server, mine: Console, tokens: dict[str, str], tmp_path: Path
) -> None:
    broker = sqlite_server.broker(tokens["requester"])
    study = broker.call("POST", "/requester/studies", draft(minimum_n=2))["id"]
    broker.call("POST", f"/requester/studies/{study}/open")
    path = f"/console/studies/{study}/results"

    def again() -> str:
        found = re.search(rf'hx-get="{path}(\?seen=[\w-]+)"', mine.get(path).text)
        return found[1] if found else ""

    first = again()
    assert mine.get(path + first).status_code == 204
    for number in range(2):
        with Worker(sqlite_server.broker(), tmp_path / str(number), epsilon_cap=100) as worker:
            worker.sign_up()
            worker.answer(study, {"ill": "yes"})
    fresh = mine.get(path + first)
    assert fresh.status_code == 200
    assert "Results from 2 submissions." in fresh.text
    assert again() != first
    assert mine.get(path + again()).status_code == 204
    running = again()
    mine.post(f"/console/studies/{study}/close")
    assert mine.get(path + running).status_code == 200
    assert again() == ""


def test_a_one_time_link_works_once(make_server: Any, visit: Callable[..., Console]) -> None:
    server = make_server(demo=True)
    link = re.search(r"(/console/enter/\S+)", server.log_path.read_text())
    assert link
    assert visit(server.address).http.head(link[1]).status_code == 405
    first, second = visit(server.address), visit(server.address)
    assert first.get(link[1]).headers["Location"] == "/console/"
    assert "Going to work ill" in first.get("/console/").text
    used = second.get(link[1])
    assert used.status_code == 404
    assert "used already" in used.text
    assert second.get("/console/").status_code == 302
    assert second.get("/console/enter/" + "x" * 500).status_code == 404
    server.end()


@pytest.fixture
def pages(django_here: Path) -> Callable[..., Any]:
    """The console inside this process, signed in as the owner of a study."""
    from django.test import Client

    from crowdveil.broker import clock
    from crowdveil.broker.identity.tokens import issue

    def signed_in(owner: Any, language: str = "en") -> Client:
        text, _ = issue(owner, scope="requester", expires=clock.after(hours=1), label="console")
        client = Client(HTTP_HOST="127.0.0.1", HTTP_ACCEPT_LANGUAGE=language)
        client.cookies[COOKIE] = text
        return client

    return signed_in


def results_page(pages: Callable[..., Any], scene: Scene, language: str = "en") -> str:
    from crowdveil.broker.results.batches import refresh

    refresh(scene.study)
    return str(pages(scene.owner, language).get(f"/console/studies/{scene.study.id}/results").content.decode())


def answered_study(n_by_level: dict[str, int], *, evenly: bool = False, **changes: Any) -> Scene:
    """A study whose reports are for the first option, or for all in turn: what results say does not hang on chance."""
    epsilon = {"low": "4", "medium": "1", "high": "0.1"}
    levels = [
        {"name": name, "mechanism": "randomized-response", "epsilon": epsilon[name], "pay_cents": 0}
        if name in epsilon
        else {"name": name, "mechanism": name, "pay_cents": 0}
        for name in n_by_level
    ]
    scene = Scene(draft(levels=levels, minimum_n=2) | changes)
    for level, n in n_by_level.items():
        sizes = zip(scene.opened.questions, scene.opened.levels[level].n_outputs, strict=True)
        n_outputs = {question: size if evenly else 1 for question, size in sizes}
        for number in range(n):
            scene.submit(scene.worker(), {name: number % size for name, size in n_outputs.items()}, level)
    return scene


def test_results_speak_of_the_levels_that_were_used(pages: Callable[..., Any]) -> None:
    mixed = results_page(pages, answered_study({"none": 12, "low": 0, "medium": 21}))
    assert "12 of 33 were sent as they are, without protection." in mixed
    assert "one report tells at most ε 1." in mixed
    assert "ε 4" not in mixed
    german = results_page(pages, answered_study({"none": 1, "medium": 2}), "de")
    assert "1 von 3 wurde so gesendet, wie sie ist, ohne Schutz." in german


def test_where_the_reports_cannot_tell_there_is_no_number_but_what_it_takes(pages: Callable[..., Any]) -> None:
    boxes = {"id": "who", "text": "Who?", "domain": {"type": "tick-all", "boxes": ["a superior", "a colleague"]}}
    scene = answered_study({"high": 20}, evenly=True, questions=[*draft()["questions"], boxes])
    page = results_page(pages, scene)
    assert page.count("The reports cannot tell.") == 3
    assert page.count("To be twice as precise as a guess takes about ") == 3
    assert 'class="finding"' not in page
    assert 'class="bar"' not in page
    assert 'class="dot"' not in page
    # Two options, a mean and two boxes; the levels of the scale and the combinations are not drawn.
    assert page.count('class="hatched"') == 2 + 1 + 2
    clear = results_page(pages, answered_study({"low": 20}))
    assert 'class="finding"' in clear
    assert 'class="hatched"' not in clear
    assert "twice as precise" not in clear


def test_every_number_on_a_card_has_one_interval(pages: Callable[..., Any]) -> None:
    questions = [{"id": "job", "text": "?", "domain": {"type": "choices", "options": ["a", "b", "c", "d"]}}]
    page = results_page(pages, answered_study({"low": 30}, questions=questions))
    headline = re.search(r'class="finding">.*?95 % interval ([^<]+)</span>', page)
    assert headline
    assert f'data-label="95 % interval">{headline[1]}</td>' in page
    assert "it allows for its having been picked as the largest" in page


def test_probabilities_of_the_right_answer_are_not_called_shares(pages: Callable[..., Any]) -> None:
    page = results_page(pages, answered_study({"low": 30}, goal="truth"))
    assert "Probability of being the right answer" in page
    assert "Estimated shares" not in page
    assert '<caption id="m-days">Right answer</caption>' in page
    assert "nowing nothing" not in page
    # Sentences of the library begin in small letters; after a full stop they do not.
    assert re.search(r"method channel-em\. [A-Z]", page)
    assert not re.search(r"method channel-\w+\. [a-z]", page)


def test_numbers_of_one_are_singular(pages: Callable[..., Any]) -> None:
    scene = answered_study({"low": 1})
    client, path = pages(scene.owner), f"/console/studies/{scene.study.id}"
    assert "1 has answered so far." in client.get(f"{path}/results").content.decode()
    assert "1 of 500 places is taken." in client.get(f"{path}/close").content.decode()
    scene.submit(scene.worker(), {"ill": 0}, "low")
    page = results_page(pages, scene)
    assert "From 1 report by the method" in page
    assert "From 2 reports by the method" in page


def test_what_cannot_be_undone_is_asked_about_first(pages: Callable[..., Any], make_draft: Any) -> None:
    from crowdveil.broker.identity.models import Account
    from crowdveil.broker.studies import lifecycle
    from crowdveil.broker.studies.draft import Draft

    owner = Account.objects.create(role="requester", name="careful")
    study = lifecycle.create(owner, Draft.model_validate(make_draft()))
    client, path = pages(owner), f"/console/studies/{study.id}"

    def page(action: str = "") -> str:
        return str(client.get(f"{path}{action}").content.decode())

    def acts() -> list[str]:
        return re.findall(rf'method="post" action="{path}/(\w+)"', page())

    assert acts() == []
    for action, warning in {
        "open": "They can never be changed afterwards.",
        "pilot": "They can never be changed afterwards.",
        "discard": "It cannot be brought back.",
    }.items():
        assert f'href="{path}/{action}"' in page()
        assert warning in page(f"/{action}")
        study.refresh_from_db()
        assert study.state == "draft"
    assert client.get(f"{path}/close").status_code == 409
    assert client.get(f"{path}/copy").status_code == 404
    lifecycle.start(study)
    assert acts() == ["copy"]
    assert "A closed study can never be opened again." in page("/close")
    lifecycle.close(study)
    assert "What is published cannot be taken back." in page("/publish")


def test_studies_stand_newest_first_with_their_dates(pages: Callable[..., Any], make_draft: Any) -> None:
    from datetime import date

    from crowdveil.broker.identity.models import Account
    from crowdveil.broker.studies import lifecycle
    from crowdveil.broker.studies.draft import Draft
    from crowdveil.broker.studies.models import Study

    owner = Account.objects.create(role="requester", name="orderly")
    made = [lifecycle.create(owner, Draft.model_validate(make_draft(title=f"Pulse {n}"))) for n in range(8)]
    Study.objects.filter(id=made[7].id).update(created=date(2020, 2, 29))
    page = pages(owner).get("/console/").content.decode()
    assert re.findall(r">(Pulse \d)<", page) == [f"Pulse {n}" for n in (6, 5, 4, 3, 2, 1, 0, 7)]
    assert "Created 2020-02-29." in page
    assert "Angelegt am 29.02.2020." in pages(owner, "de").get("/console/").content.decode()


def test_money_has_the_brokers_currency(pages: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from django.conf import settings

    scene = answered_study({"low": 2})
    client = pages(scene.owner)
    assert "1000.00\u00a0EUR" in client.get(f"/console/studies/{scene.study.id}").content.decode()
    monkeypatch.setattr(settings, "CURRENCY", "CHF")
    assert "1000.00\u00a0CHF" in client.get(f"/console/studies/{scene.study.id}").content.decode()
    editor = client.get("/console/studies/new").content.decode()
    assert "Budget, in CHF" in editor
    assert "Pay, in hundredths of CHF" in editor
    assert client.get("/api/v1/").json()["currency"] == "CHF"


def test_a_currency_that_is_none_is_refused_in_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "crowdveil", "serve", "--data-dir", str(tmp_path)]
    environment = os.environ | {"CROWDVEIL_CURRENCY": "euros", "PYTHONPATH": str(SOURCE)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "CROWDVEIL_CURRENCY must be an ISO 4217 code; got 'euros'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_line_breaks_of_texts_are_kept(mine: Console) -> None:
    text = "Premise: a.\r\nHypothesis: b."
    saved = mine.post("/console/studies/new", form(purpose=text, **{"q0-text": text}))
    assert saved.status_code == 302, saved.text
    page = mine.get(saved.headers["Location"]).text
    assert '<strong class="lines">Premise: a.\nHypothesis: b.</strong>' in page
    assert '<p class="lines">Premise: a.\nHypothesis: b.</p>' in page
    fields = Fields(mine.get(f"{saved.headers['Location']}/edit").text).fields
    assert fields["q0-text"] == "Premise: a.\nHypothesis: b."
    assert '<legend class="lines">Premise: a.\nHypothesis: b.</legend>' in mine.post("/console/preview", fields).text


def test_the_plan_has_the_unit_of_the_scale(mine: Console) -> None:
    scale = {"q0-type": "scale", "q0-low": "0", "q0-high": "60", "q0-step": "5"}
    page = mine.post("/console/plan", form(**scale)).text
    assert re.search(r"± [\d.]+ on a scale from 0 to 60", page)
    assert "levels</td>" not in page
