"""Debian's Chromium through Playwright, a broker to talk to, and a record of everything that left the browser."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Brokers and devices of these tests write through to the disk as well.
from broker.conftest import homes as homes
from broker.conftest import tmp_path as tmp_path
from device import studies
from device.server import FixtureBroker
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

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
# The machine may be busy with other tests.
PATIENCE = 20_000
expect.set_options(timeout=PATIENCE)
PHONE = {"width": 390, "height": 844}


# Playwright keeps an event loop running in this thread as long as it lives; other files' tests may want their own.
@pytest.fixture(scope="module")
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
        context.set_default_timeout(PATIENCE)
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
