"""Debian's Chromium through Playwright, a broker to talk to, and a record of everything that left the browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from device import studies
from device.server import FixtureBroker
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = os.environ.get("CROWDVEIL_CHROMIUM") or shutil.which("chromium")
    assert program, "the browser tests need Chromium; install the Debian package chromium"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def broker() -> Iterator[FixtureBroker]:
    started = FixtureBroker()
    started.open(studies.definition())
    yield started
    started.stop()


@pytest.fixture
def device(browser: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """New devices, each with an empty memory; every one fails the test when a script error or a foreign host shows."""
    contexts: list[BrowserContext] = []
    troubles: list[str] = []

    def made(*, may_fail: bool = False, **options: Any) -> BrowserContext:
        context = browser.new_context(**({"viewport": PHONE, "locale": "en-US"} | options))
        context.set_default_timeout(10_000)
        if not may_fail:
            context.on("weberror", lambda error: troubles.append(str(error.error)))
        context.on("request", lambda request: None if _is_ours(request.url) else troubles.append(request.url))
        contexts.append(context)
        return context

    yield made
    for context in contexts:
        context.close()
    assert troubles == []


def _is_ours(url: str) -> bool:
    return url.startswith(("http://127.0.0.1:", "blob:http://127.0.0.1:"))


@pytest.fixture
def page(device: Callable[..., BrowserContext]) -> Page:
    return device().new_page()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where a test run leaves pictures of the main pages."""
    folder = Path(os.environ.get("CROWDVEIL_PICTURES", "test-results"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
