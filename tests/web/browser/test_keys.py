"""The pages by the keyboard alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.web.browser.walking import make_site
from tests.web.seeded import TOKEN, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page


def test_a_person_with_keys_alone_does_all_that_there_is_to_do(
    tmp_path: Path, open_page: Callable[..., Page], warm_starts: Path
) -> None:
    make_site(tmp_path)
    with serving(tmp_path, "--require-token", programs=warm_starts) as (_, address):
        page = open_page(address, color_scheme="light")
        page.keyboard.type(TOKEN)
        _enter(page)

        _look_around(page)
        _choose_and_assess(page)
        _follow(page, "nav a[href$='/lessons']", "/lessons")
        _tab_to(page, "#q")
        page.keyboard.type("cursor")
        page.locator("#list li").filter(has_text="customer_id").wait_for(state="detached")
        _follow(page, "#list .row a", "/lessons/lesson_")
        _tab_to(page, "button.main")
        _enter(page)
        _delete_after_a_yes(page)
        _tab_to(page, ".tools form button")
        _enter(page)
        assert page.url == f"{address}/sign-in"


def _look_around(page: Page) -> None:
    _tab_to(page, "a.skip")
    _press(page, "Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    _tab_to(page, "#theme")
    _press(page, "Space")
    assert page.locator("html").get_attribute("data-theme") == "dark"

    _follow(page, "nav a[href$='/projects']", "/projects")
    _follow(page, ".strip a[href*='/results/']", "/results/")
    _tab_to(page, "summary")
    assert page.evaluate("document.activeElement.parentElement.open") is False
    _press(page, "Space")
    assert page.evaluate("document.activeElement.parentElement.open") is True


def _choose_and_assess(page: Page) -> None:
    _follow(page, "nav a[href$='/journal']", "/journal")
    _tab_to(page, "#agent")
    _press(page, "ArrowDown")
    page.locator("#list li").filter(has_text="Widen customer_id").wait_for(state="detached")
    # The list is another one, and whoever chose is still where they were.
    assert page.evaluate("document.activeElement.id") == "agent"
    _follow(page, "nav a[href$='/journal']", "/journal")
    _follow(page, "#list .row a", "/journal/")
    _tab_to(page, "#assessment")
    _press(page, "ArrowDown")
    _tab_to(page, "#notes")
    page.keyboard.type("told by keys")
    _tab_to(page, "button.main")
    _enter(page)
    assert "told by keys" in page.locator("main").inner_text()


def _delete_after_a_yes(page: Page) -> None:
    here = page.url
    page.once("dialog", lambda dialog: dialog.dismiss())
    _tab_to(page, "button.risk")
    _press(page, "Enter")
    assert page.url == here
    page.once("dialog", lambda dialog: dialog.accept())
    _enter(page)
    assert page.url.endswith("/lessons")
    assert page.locator("#list li").count() == 1


def _press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def _tab_to(page: Page, selector: str) -> None:
    """Go on by Tab until the focus is on the first control that the selector names, or any of them."""
    for _ in range(80):
        page.keyboard.press("Tab")
        if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"no Tab leads to {selector}")


def _follow(page: Page, selector: str, expected: str) -> None:
    _tab_to(page, selector)
    _enter(page)
    assert expected in page.url


def _enter(page: Page) -> None:
    """Press what leads to another page."""
    with page.expect_navigation():
        page.keyboard.press("Enter")
