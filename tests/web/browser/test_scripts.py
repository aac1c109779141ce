"""What the scripts of the pages do, and that nothing needs them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.gate.store import record_event
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin
from tests.web.browser.walking import follow, make_site
from tests.web.seeded import TOKEN, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Browser, Page


def test_chosen_theme_holds_on_the_next_page(site: str, open_page: Callable[..., Page]) -> None:
    page = open_page(site, color_scheme="light")
    page.locator("#theme").click()
    follow(page, page.get_by_role("link", name="Lessons", exact=True))
    assert page.locator("html").get_attribute("data-theme") == "dark"
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"


def test_list_follows_what_is_typed(site: str, open_page: Callable[..., Page]) -> None:
    page = open_page(f"{site}/lessons")
    page.locator("#q").press_sequentially("cursor")
    page.locator("#list li").filter(has_text="customer_id").wait_for(state="detached")
    assert page.locator("#list li").filter(has_text="Close the cursor").count() == 1
    assert "q=cursor" in page.url


def test_running_gate_shows_by_itself_and_a_lost_server_is_said(
    tmp_path: Path, browser: Browser, warm_starts: Path
) -> None:
    make_site(tmp_path)
    page = browser.new_page()
    try:
        with serving(tmp_path, programs=warm_starts) as (_, address):
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


def test_everything_can_be_done_without_a_script(
    tmp_path: Path, open_page: Callable[..., Page], warm_starts: Path
) -> None:
    make_site(tmp_path)
    with serving(tmp_path, "--require-token", programs=warm_starts) as (_, address):
        page = open_page(address, java_script_enabled=False)
        page.get_by_label("Token").fill(TOKEN)
        follow(page, page.get_by_role("button", name="Sign in"))
        follow(page, page.get_by_role("link", name="Journal", exact=True))
        follow(page, page.get_by_role("link", name="Widen customer_id"))
        page.get_by_label("It was a").select_option("partial")
        page.get_by_label("Because").fill("right, but slow")
        follow(page, page.get_by_role("button", name="Say so"))
        assert "right, but slow" in page.locator("main").inner_text()
        follow(page, page.get_by_role("link", name="Lessons", exact=True))
        page.get_by_label("Search").fill("cursor")
        follow(page, page.get_by_role("button", name="Show"))
        follow(page, page.locator("#list li a"))
        for action in ("Approve", "Reject"):
            follow(page, page.get_by_role("button", name=action))
        assert "rejected" in page.locator("main").inner_text()
        follow(page, page.get_by_role("button", name="Delete"))
        assert page.url == f"{address}/lessons"
        follow(page, page.get_by_role("button", name="Sign out"))
        assert "/sign-in" in page.url
