"""The pages in a real browser: what only it knows of scripts, layout, keys and accessibility."""

from __future__ import annotations

import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.clock import utc_now
from pytest_golden.gate.recording import record_event
from pytest_golden.storage.moments import to_ms
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin
from tests.requirement import require
from tests.web.seeded import TOKEN, seed, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

PARTS = ("Gate runs", "Projects", "Journal", "Expectations", "Summary", "Signals", "Lessons", "Plans")
WIDTHS = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 900}}
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}}
MOST_BYTES = 200 * 1024
_IS_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


def make_site(folder: Path) -> Path:
    """Fill a folder; in a thread, since the browser keeps a loop of events in this one."""
    with ThreadPoolExecutor(1) as executor:
        executor.submit(seed, folder).result()
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    sync_api = pytest.importorskip("playwright.sync_api")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    require(found, "a Chromium")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[str]:
    with serving(folder) as (_, address):
        yield address


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open a page that notes what the browser complains about; at the end of the test that must be nothing."""
    opened: list[Any] = []
    complaints: list[str] = []

    def open_one(address: str, **options: Any) -> Page:
        context = browser.new_context(**options)
        opened.append(context)
        page = context.new_page()
        page.set_default_timeout(8_000)
        page.on(
            "console",
            lambda told: (
                complaints.append(f"{told.text} {told.location}") if told.type in {"error", "warning"} else None
            ),
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        return page

    yield open_one
    for context in opened:
        context.close()
    assert complaints == []


def walk(page: Page) -> Iterator[str]:
    """Click through every page: each part of the site, and the first thing that it lists."""
    for part in PARTS:
        page.get_by_role("navigation").get_by_role("link", name=part, exact=True).click()
        assert page.locator("nav [aria-current=page]").inner_text() == part
        yield part
        listed = page.locator("#list").locator("tbody th a, li a")
        if part == "Summary" or not listed.count():
            continue
        listed.first.click()
        yield f"one of {part}"
    page.get_by_role("link", name="Gate runs", exact=True).first.click()
    page.locator("#list tbody th a").first.click()
    page.locator("#list tbody th a").first.click()
    yield "a result"
    page.locator("h1 a").click()
    yield "its project"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_fits_its_screen_and_the_browser_complains_of_none(
    site: str, open_page: Callable[..., Page], scheme: str, width: str
) -> None:
    page = open_page(site, viewport=WIDTHS[width], color_scheme=scheme)
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(re.sub(r"(//[^/]+).*", r"\1", request.url)))
    walked = 0
    for name in walk(page):
        walked += 1
        assert not page.evaluate(_IS_TOO_WIDE), name
        assert page.locator("h1").count() == 1, name
        assert page.locator("main").count() == 1, name
    assert walked == 17
    assert hosts == {site}


@pytest.mark.parametrize(("width", "scheme"), [("phone", "light"), ("desktop", "dark")])
def test_every_page_is_accessible(site: str, open_page: Callable[..., Page], scheme: str, width: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    # The check is a script of the test, which the policy of the pages rightly does not know.
    page = open_page(site, viewport=WIDTHS[width], color_scheme=scheme, bypass_csp=True)
    found = {}
    for name in walk(page):
        result = axe.run(page, options=RULES)
        if result.violations_count:
            found[name] = result.generate_report()
    assert found == {}


def test_no_page_weighs_more_than_it_may(site: str, open_page: Callable[..., Page]) -> None:
    page = open_page(site)
    for name in walk(page):
        weight = page.evaluate(
            "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
            ".reduce((sum, one) => sum + (one.decodedBodySize || 0), 0)"
        )
        assert 0 < weight <= MOST_BYTES, name


def test_first_key_reaches_the_link_that_skips_to_the_content(site: str, open_page: Callable[..., Page]) -> None:
    page = open_page(site)
    page.keyboard.press("Tab")
    assert page.locator(":focus").get_attribute("href") == "#main"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_chosen_theme_holds_on_the_next_page(site: str, open_page: Callable[..., Page]) -> None:
    page = open_page(site, color_scheme="light")
    page.locator("#theme").click()
    page.get_by_role("link", name="Lessons", exact=True).click()
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"


def test_list_follows_what_is_typed(site: str, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{site}/lessons")
    page.locator("#q").press_sequentially("cursor")
    page.locator("#list li").filter(has_text="customer_id").wait_for(state="detached")
    assert page.locator("#list li").filter(has_text="Close the cursor").count() == 1
    assert "q=cursor" in page.url


def test_running_gate_shows_by_itself_and_a_lost_server_is_said(tmp_path: Path, browser: Browser) -> None:
    make_site(tmp_path)
    page = browser.new_page()
    try:
        with serving(tmp_path) as (_, address):
            with page.expect_response("**/events"):
                page.goto(address)
            with Store.open(tmp_path / ".golden" / "golden.db") as store, store.write() as connection:
                record_event(connection, begin("orders", "prices", moment=to_ms(utc_now()), pid=os.getpid()))
            page.get_by_text("A gate is running: 0 of 2 projects done").wait_for()
        page.get_by_text("Connection lost").wait_for()
        port = address.rpartition(":")[2]
        with serving(tmp_path, "--port", port):
            page.get_by_text("Connection lost").wait_for(state="hidden")
    finally:
        page.close()


def test_everything_can_be_done_without_a_script(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    make_site(tmp_path)
    with serving(tmp_path, "--require-token") as (_, address):
        page = open_page(address, java_script_enabled=False)
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="Journal", exact=True).click()
        page.get_by_role("link", name="Widen customer_id").click()
        page.get_by_label("It was a").select_option("partial")
        page.get_by_label("Because").fill("right, but slow")
        page.get_by_role("button", name="Say so").click()
        assert "right, but slow" in page.locator("main").inner_text()
        page.get_by_role("link", name="Lessons", exact=True).click()
        page.get_by_label("Search").fill("cursor")
        page.get_by_role("button", name="Show").click()
        page.locator("#list li a").click()
        for action in ("Approve", "Reject"):
            page.get_by_role("button", name=action).click()
        assert "rejected" in page.locator("main").inner_text()
        page.get_by_role("button", name="Delete").click()
        assert page.url == f"{address}/lessons"
        page.get_by_role("button", name="Sign out").click()
        assert "/sign-in" in page.url


def test_lesson_is_deleted_only_after_a_yes(tmp_path: Path, open_page: Callable[..., Page]) -> None:
    make_site(tmp_path)
    with serving(tmp_path) as (_, address):
        page = open_page(f"{address}/lessons")
        page.locator("#list li a").first.click()
        here = page.url
        page.once("dialog", lambda dialog: dialog.dismiss())
        page.get_by_role("button", name="Delete").click()
        assert page.url == here
        page.once("dialog", lambda dialog: dialog.accept())
        page.get_by_role("button", name="Delete").click()
        page.wait_for_url(f"{address}/lessons")
        assert page.locator("#list li").count() == 1
