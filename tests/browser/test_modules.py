"""The device's modules inside a real browser: the shared vectors, real entropy, the database, pinned code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from browser.conftest import PATIENCE
from device import studies
from device.node import vectors
from device.server import FixtureBroker
from playwright.sync_api import Browser, BrowserContext, Page, expect
from scipy.stats import chisquare

DRAW_VECTORS = """async (rows) => {
  const { readChannel } = await import("./channel.js"), { draw } = await import("./sampler.js");
  const bytes = (text) => ({ take: () => Uint8Array.from(text.match(/../g), (pair) => parseInt(pair, 16)) });
  return rows.map(({ channel, draws }) => {
    const read = readChannel(channel);
    return { epsilon: Number.isFinite(read.epsilon) ? read.epsilon : "inf",
             reports: draws.map((each) => draw(read, each.answers, bytes(each.bytes))) };
  });
}"""
REFUSE = """async (channels) => {
  const { readChannel } = await import("./channel.js");
  return channels.map((channel) => {
    try { readChannel(channel); return "accepted"; } catch (error) { return error.name; }
  });
}"""
DRAW = """async ([channel, answer, n]) => {
  const { readChannel } = await import("./channel.js"), { draw } = await import("./sampler.js");
  return draw(readChannel(channel), Array(n).fill(answer));
}"""
RACE = """async () => {
  const { openStore } = await import("./store.js"), { charge } = await import("./ledger.js");
  const store = await openStore("race"), cap = { epsilon: 5, rho: 0 };
  const spend = (i) => store.update(({ ledger }) => {
    const words = { key: `k${i}`, kind: "study", name: "", level: "", day: "" };
    const line = charge(ledger, { ...words, reports: 1, epsilon: 1, rho: 1 }, cap);
    return { result: "charged", writes: [{ table: "ledger", key: line.key, value: line }] };
  }).catch((error) => error.key);
  const results = await Promise.all(Array.from({ length: 20 }, (_, i) => spend(i)));
  const smaller = { table: "ledger", key: "k0", value: { epsilon: 0, rho: 0 } };
  const replaced = await store.update(() => ({ writes: [smaller] })).then(() => "replaced", (error) => error.name);
  const lines = await store.update(({ ledger }) => ({ result: ledger.size }));
  const kept = await store.update(({ ledger }) => ({ result: ledger.get("k0").epsilon }));
  return { results, lines, replaced, kept };
}"""


@pytest.fixture(scope="module")
def app(browser: Browser) -> Iterator[Page]:
    """One page for all tests that only ask its modules."""
    broker = FixtureBroker()
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{broker.address}/app/")
    page.get_by_role("button", name="Start").wait_for()
    yield page
    page.context.close()
    broker.stop()


def test_the_browser_draws_the_shared_vectors(app: Page) -> None:
    rows = vectors("channels.json")
    got = app.evaluate(DRAW_VECTORS, rows)
    for row, drawn in zip(rows, got, strict=True):
        assert drawn["reports"] == [each["reports"] for each in row["draws"]], row["name"]
        assert drawn["epsilon"] == row["epsilon"], row["name"]


def test_the_browser_refuses_what_python_refuses(app: Page) -> None:
    cases = vectors("refused.json")
    assert set(app.evaluate(REFUSE, [case["channel"] for case in cases])) == {"Refusal"}


@pytest.mark.parametrize("answer", [0, 2, -1])
def test_ten_thousand_reports_follow_the_channel(app: Page, answer: int) -> None:
    channel = studies.channel_of("medium", studies.domain_of(studies.QUESTIONS[1]["domain"]), protects=True)
    reports = Counter(app.evaluate(DRAW, [channel.to_json(), answer, 10_000]))
    expected = channel.table[answer if answer >= 0 else len(channel.inputs) - 1] * 10_000
    # Real entropy: one test run in ten million may fail by chance.
    assert chisquare([reports[code] for code in range(len(channel.outputs))], expected).pvalue > 1e-7


def test_the_database_never_overspends_in_a_race(app: Page) -> None:
    done = app.evaluate(RACE)
    assert Counter(done["results"]) == {"charged": 5, "ledger.refused": 15}
    assert done["lines"] == 5
    assert (done["replaced"], done["kept"]) == ("ConstraintError", 1), "a line is never replaced"


@pytest.mark.parametrize("name", ["sampler.js", "ledger.js", "app.js"])
def test_a_swapped_module_does_not_run(page: Page, broker: FixtureBroker, name: str) -> None:
    original = broker.file(name)
    assert original is not None
    broker.changed_files[name] = original + b"\nglobalThis.swapped = true;\n"
    with page.expect_console_message(lambda message: "integrity" in message.text):
        page.goto(f"{broker.address}/app/")
    expect(page.locator("main")).to_contain_text("a file of this app was changed on the way")
    assert page.evaluate("globalThis.swapped") is None
    assert page.locator("h1").count() == 0


def test_changed_words_are_not_shown(device: Callable[..., BrowserContext], broker: FixtureBroker) -> None:
    page = device(may_fail=True).new_page()
    original = broker.file("strings.en.json")
    assert original is not None
    broker.changed_files["strings.en.json"] = original.replace(b"stay on this device", b"are sent to us")
    with page.expect_console_message(lambda message: "integrity" in message.text):
        page.goto(f"{broker.address}/app/")
    expect(page.locator("body")).not_to_contain_text("are sent to us")
    expect(page.locator("main")).to_contain_text("a file of this app was changed on the way")


def test_text_cannot_become_code(app: Page) -> None:
    blocked = app.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; } catch (error) { return error.name; } }"
    )
    assert blocked == "TypeError"
    assert app.evaluate("() => fetch('http://127.0.0.1:9/').then(() => 'sent', (error) => error.name)") == "TypeError"
