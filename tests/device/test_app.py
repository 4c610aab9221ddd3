"""The app's source keeps its promises: one module fetches, every word is translated, nothing is inline, it is small."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
from device.node import DEVICE

SCRIPTS = sorted(DEVICE.rglob("*.js"))
CATALOGUES = sorted(DEVICE.glob("strings.*.json"))
PAGES = sorted(DEVICE.glob("*.html"))
WAYS_OUT = re.compile(r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|RTCPeer|importScripts|\.src\s*=")
PLACEHOLDER = re.compile(r"\{\w+\}")


def words(path: Path) -> dict[str, str]:
    catalogue: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
    return catalogue


def code(path: Path) -> str:
    """The source without its comments."""
    return re.sub(r"/\*.*?\*/|(?<!:)//[^\n]*", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_only_one_module_talks_to_the_network() -> None:
    assert [path.name for path in SCRIPTS if WAYS_OUT.search(code(path))] == ["api.js"]


def test_nothing_is_made_from_text_that_could_be_code() -> None:
    dangerous = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|setAttributeNS")
    assert [path.name for path in SCRIPTS if dangerous.search(code(path))] == []


def test_released_reports_are_never_drawn_with_the_weak_generator() -> None:
    assert [path.name for path in SCRIPTS if "Math.random" in code(path)] == []


def test_the_code_is_at_most_60_kilobytes_to_download() -> None:
    """Compressed, as it travels: comments and names are free to be as long as they need."""
    loaded = [*SCRIPTS, *DEVICE.glob("*.css"), DEVICE / "index.html"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in loaded) <= 60_000


@pytest.mark.parametrize("path", CATALOGUES, ids=lambda path: path.name)
def test_every_language_says_everything(path: Path) -> None:
    english, other = words(DEVICE / "strings.en.json"), words(path)
    assert set(other) == set(english)
    for key, sentence in other.items():
        assert sentence.strip(), key
        assert sorted(PLACEHOLDER.findall(sentence)) == sorted(PLACEHOLDER.findall(english[key])), key


def test_another_language_is_really_another_language() -> None:
    english, german = words(DEVICE / "strings.en.json"), words(DEVICE / "strings.de.json")
    assert [key for key in english if english[key] == german[key]] == ["privacy.cost"]


def test_every_word_on_a_page_comes_from_the_catalogue_and_every_entry_is_used() -> None:
    source = "\n".join(code(path) for path in SCRIPTS)
    # A sentence that counts has a form for each plural.
    catalogue = {re.sub(r"\.(?:one|other)$", "", key) for key in words(DEVICE / "strings.en.json")}
    kinds = "|".join({key.partition(".")[0] for key in catalogue} - {"refusal", "offline", "error"})
    asked = set(re.findall(rf'"((?:{kinds})\.[\w.]+)"', source)) | set(re.findall(r'\bt\("([\w.]+)"', source))
    refusals = {f"refusal.{key}" for key in re.findall(r'(?:Refusal\(|refuseUnless\(.*, )"([\w.]+)"', source)}
    # These have two forms each, about what is protected and what is not.
    two_fold = set(re.findall(r'protectionText\([^"]*"([\w.]+)"', source))
    assert {f"{kind}.{key}" for key in two_fold for kind in ("protected", "unprotected")} <= catalogue
    asked -= two_fold
    missing = {key for key in asked if key not in catalogue and f"refusal.{key}" not in refusals | catalogue}
    silent = {key for key in refusals if key not in catalogue and key.rsplit(".", 1)[0] not in catalogue}
    assert (missing, silent) == (set(), {"refusal.bytes.short"} & silent)
    # Keys that are put together from a state, a column or a name.
    families = (
        "level.",
        "tag.",
        "me.period.",
        "me.delete",
        "me.anew",
        "me.leave",
        "advice.",
        "protected.",
        "unprotected.",
        "refusal.",
        "review.",
        "privacy.",
        "problem.",
        "asks.",
    )
    unused = {key for key in catalogue if f'"{key}"' not in source and not key.startswith(families)}
    assert unused == set()


# Words with which the app promises something, in both languages.
PROMISING = re.compile(
    r"\bstays?\b|nobody|at random|chance|hid(?:e|es|den)\b|protect|never leaves|only you\b|"
    r"bleib|niemand|zufällig|Zufall|verb[io]rg|schütz|verlässt",
    re.IGNORECASE,
)
# Sentences with such words that promise no protection of answers, or say that there is none. Whoever adds one must look
# at where it is shown: a promise that depends on the level belongs under "protected.", with its counterpart.
NO_PROMISE = {
    "nav.how", "nav.howPage", "update", "welcome.title", "welcome.lead", "welcome.level", "welcome.capHelp",
    "level.none.help", "level.low.help", "level.high.help", "studies.left", "studies.tooMuch", "studies.unprotected",
    "tag.answers", "tag.someAnswers", "tag.notAnswers", "tag.participation", "answer.few", "review.withdrawHelp",
    "privacy.bare", "me.capHelp", "me.accountLeft", "me.anewHelp", "me.leaveHelp", "me.left", "me.deleteHelp",
    "refusal.channel", "refusal.channel.hash", "refusal.study.log", "refusal.study.rewritten",
    "refusal.study.signature", "refusal.study.channel", "refusal.study.protection", "refusal.ledger.refused",
    "advice.level",
}  # fmt: skip


def test_every_promise_has_a_counterpart_for_what_is_not_protected() -> None:
    for path in CATALOGUES:
        keys = {re.sub(r"\.(?:one|other)$", "", key) for key in words(path)}
        promises = {key.removeprefix("protected.") for key in keys if key.startswith("protected.")}
        assert promises == {key.removeprefix("unprotected.") for key in keys if key.startswith("unprotected.")}


def test_no_sentence_outside_that_family_promises_protection() -> None:
    promising = {key for path in CATALOGUES for key, sentence in words(path).items() if PROMISING.search(sentence)}
    assert {key for key in promising if not key.startswith(("protected.", "unprotected."))} == NO_PROMISE


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_have_no_inline_code_and_name_no_other_host(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", page)
    assert re.findall(r"<script(?![^>]*\ssrc=)[^>]*>", page) in ([], ['<script type="importmap">'])
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)
    assert "default-src 'none'" in page
