"""How the tests go through the pages, and what they look at on each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.web.seeded import seed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Locator, Page, ViewportSize

PARTS = ("Gate runs", "Projects", "Journal", "Expectations", "Summary", "Signals", "Waiting", "Lessons", "Plans")
ALL_PAGES = 19
WIDTHS: dict[str, ViewportSize] = {"phone": {"width": 390, "height": 844}, "desktop": {"width": 1280, "height": 900}}
_RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}
_IS_TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"

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


def apart(work: Callable[..., Any], *given: Any) -> Any:
    """Do something in a thread of its own, since the browser keeps a loop of events in this one."""
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(work, *given).result()


def make_site(folder: Path) -> Path:
    """Fill a folder with something of everything."""
    apart(seed, folder)
    return folder


def walk(page: Page) -> Iterator[str]:
    """Click through every page: each part of the site, and the first thing that it lists."""
    for part in PARTS:
        follow(page, page.get_by_role("navigation").get_by_role("link", name=part, exact=True))
        assert page.locator("nav [aria-current=page]").inner_text() == part
        yield part
        listed = page.locator("#list").locator("tbody th a, li a")
        if part == "Summary" or not listed.count():
            continue
        follow(page, listed.first)
        yield f"one of {part}"
    follow(page, page.get_by_role("link", name="Gate runs", exact=True).first)
    follow(page, page.locator("#list tbody th a").first)
    follow(page, page.locator("#list tbody th a").first)
    yield "a result"
    follow(page, page.locator("h1 a"))
    yield "its project"
    page.keyboard.press("/")
    page.keyboard.type("orders")
    with page.expect_navigation():
        page.keyboard.press("Enter")
    yield "what a search finds"


def follow(page: Page, link: Locator) -> None:
    """Click what leads to another page and wait for that page: a click alone is over before it is there."""
    with page.expect_navigation():
        link.click()


def is_too_wide(page: Page) -> bool:
    """Tell whether the page as a whole must be moved sideways to be read."""
    return bool(page.evaluate(_IS_TOO_WIDE))


def reach_by_keys(page: Page) -> None:
    """Go through all controls of a page by Tab: each is reached in order, marked and seen, and the last one lets go."""
    count = page.evaluate(_MARK_CONTROLS)
    assert count > len(PARTS)
    reached = []
    for _ in range(count):
        page.keyboard.press("Tab")
        told = page.evaluate(_FOCUSED)
        assert told["isMarked"], told
        assert not told["isCovered"], told
        reached.append(told["at"])
    assert reached == list(range(count))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement === document.body"), "the page holds the keyboard"


def find_barriers(page: Page) -> list[str]:
    """Return what axe finds against a page on a phone in the light, and on a desktop in the dark, and where it is too wide."""
    axe: Any = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = []
    for width, scheme in (("phone", "light"), ("desktop", "dark")):
        page.set_viewport_size(WIDTHS[width])
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        if is_too_wide(page):
            found.append(f"{width}: too wide")
        result = axe.run(page, options=_RULES)
        if result.violations_count:
            found.append(f"{width}, {scheme}: {result.generate_report()}")
    return found
