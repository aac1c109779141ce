"""The pages by the keyboard alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.web.browser.walking import ALL_PAGES, PARTS, make_site, walk
from tests.web.seeded import TOKEN, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

_MARK_CONTROLS = """() => {
  document.activeElement.blur();
  window.scrollTo(0, 0);
  const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
    .filter((one) => one.tabIndex >= 0 && one.type !== "hidden" && one.checkVisibility({ visibilityProperty: true }));
  all.forEach((one, at) => { one.dataset.at = at; });
  return all.length;
}"""
# Where the focus is, whether it is seen, and whether what sticks to the top of the page covers it.
_FOCUSED = """() => {
  const one = document.activeElement, style = getComputedStyle(one), at = one.getBoundingClientRect();
  const top = document.querySelector(".top");
  const seen = document.elementFromPoint(
    Math.min(Math.max(at.x + at.width / 2, 1), innerWidth - 1), Math.min(Math.max(at.y + Math.min(at.height / 2, 20), 1), innerHeight - 1));
  return {
    at: one.dataset.at === undefined ? null : Number(one.dataset.at),
    isMarked: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
    isCovered: !one.closest(".top") && top.contains(seen),
    html: one.outerHTML.slice(0, 200),
  };
}"""


def test_every_control_of_every_page_is_reached_in_order_and_seen_there(
    site: str, open_page: Callable[..., Page]
) -> None:
    page = open_page(site)
    walked = 0
    for name in walk(page):
        walked += 1
        count = page.evaluate(_MARK_CONTROLS)
        assert count > len(PARTS), name
        reached = []
        for _ in range(count):
            page.keyboard.press("Tab")
            told = page.evaluate(_FOCUSED)
            assert told["isMarked"], (name, told)
            assert not told["isCovered"], (name, told)
            reached.append(told["at"])
        assert reached == list(range(count)), name
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement === document.body"), f"{name} holds the keyboard"
    assert walked == ALL_PAGES


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
