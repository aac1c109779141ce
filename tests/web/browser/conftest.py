from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import PATIENCE_SECONDS
from tests.requirement import require
from tests.web.browser.walking import make_site
from tests.web.seeded import serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One for all; it keeps a loop of events in this thread until the tests of this folder are over."""
    sync_api = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    require(found, "a Chromium")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory, warm_starts: Path) -> Iterator[str]:
    """The address of a server that no test changes anything on."""
    with serving(make_site(tmp_path_factory.mktemp("site")), programs=warm_starts) as (_, address):
        yield address


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page that notes what the browser complains about; at the end of the test that must be nothing."""
    opened: list[Any] = []
    complaints: list[str] = []

    def open_one(address: str, *, expected: tuple[str, ...] = (), **options: Any) -> Page:
        context = browser.new_context(**options)
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_SECONDS * 1000)

        def hear(told: Any) -> None:
            if told.type in {"error", "warning"} and not any(words in told.text for words in expected):
                complaints.append(f"{told.text} {told.location}")

        page.on("console", hear)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        return page

    yield open_one
    for context in opened:
        context.close()
    assert complaints == []
