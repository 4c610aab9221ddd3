"""A newcomer's three minutes: `crowdveil serve --demo`, the printed addresses, and nothing else."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

from broker.conftest import Server
from browser import journey
from playwright.sync_api import BrowserContext, expect

THREE_MINUTES = 180


def test_from_the_printed_addresses_to_the_estimate(
    device: Callable[..., BrowserContext], tmp_path: Path, pictures: Path
) -> None:
    begun = time.monotonic()
    server = Server(tmp_path, demo=True)
    printed = server.log_path.read_text(encoding="utf-8")
    as_worker = re.search(r"answer as a worker: +(\S+)", printed)
    as_requester = re.search(r"look as its requester: +(\S+)", printed)
    assert as_worker
    assert as_requester
    page = device().new_page()
    page.goto(as_worker[1])
    page.get_by_role("button", name="Start").click()
    page.get_by_role("heading", level=1, name="Going to work ill").wait_for()
    page.get_by_label("I agree").check()
    page.get_by_role("button", name="Accept and answer").click()
    page.get_by_role("button", name="Protect my answers").wait_for()
    journey.answer(page, {"worked_ill": "yes", "reasons": "deadline"})
    journey.protect(page)
    assert journey.panels(page, "stays") == {"worked_ill": "yes", "reasons": "deadline"}
    assert set(journey.panels(page, "leaves")) == {"worked_ill", "reasons"}
    journey.send(page)
    page = device(viewport={"width": 960, "height": 900}).new_page()
    page.goto(as_requester[1])
    page.get_by_role("link", name="Results").click()
    # The page looks again by itself until thirty people have answered.
    expect(page.get_by_role("img").first).to_be_visible(timeout=THREE_MINUTES * 1000)
    expect(page.get_by_text("a guess without asking").first).to_be_visible()
    took = time.monotonic() - begun
    page.screenshot(path=pictures / "console-demo.png")
    log = server.log_path.read_text(encoding="utf-8")
    server.end()
    print(f"newcomer: from the command to the estimate in {took:.0f} s")
    assert took < THREE_MINUTES
    assert '"request"' not in log, "the request log must not push the addresses away"
