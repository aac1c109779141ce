"""Each page in a real browser: its layout, its weight, what axe finds, what the browser complains of."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING

from tests.web.browser.walking import ALL_PAGES, PARTS, find_barriers, follow, reach_by_keys, walk
from tests.web.seeded import TOKEN, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

MOST_BYTES = 200 * 1024
_WEIGHT = (
    "[...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')]"
    ".reduce((sum, one) => sum + (one.decodedBodySize || 0), 0)"
)
_FAILED_LOAD = "Failed to load resource: the server responded with a status of 4"


def test_every_page_is_accessible_also_by_keys_fits_all_screens_weighs_little_and_loads_nothing_from_elsewhere(
    site: str, open_page: Callable[..., Page]
) -> None:
    page = open_page(site)
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(re.sub(r"(//[^/]+).*", r"\1", request.url)))
    walked = 0
    for name in walk(page):
        walked += 1
        assert 0 < page.evaluate(_WEIGHT) <= MOST_BYTES, name
        assert page.locator("h1").count() == page.locator("main").count() == 1, name
        reach_by_keys(page)
        assert find_barriers(page) == [], name
    assert walked == ALL_PAGES
    assert hosts == {site}


def test_page_for_signing_in_refusals_and_empty_pages_are_accessible_and_fit(
    tmp_path: Path,
    open_page: Callable[..., Page],
    warm_starts: Path,
) -> None:
    with serving(tmp_path, "--require-token", programs=warm_starts) as (_, address):
        page = open_page(address, expected=(_FAILED_LOAD,))
        _look_at(page, "Sign in")
        for field, value, heading in (
            ("csrf_token", "of-another-visit", "Forbidden"),
            ("next", "x" * 1024 * 1024, HTTPStatus(413).phrase),
        ):
            page.locator(f"input[name={field}]").evaluate("(input, value) => { input.value = value }", value)
            _send(page, TOKEN)
            _look_at(page, heading)
            page.goto(address)
        _send(page, "wrong")
        assert "That is not the token" in page.get_by_role("alert").inner_text()
        _look_at(page, "Sign in")
        _send(page, TOKEN)
        for part in PARTS:
            follow(page, page.get_by_role("navigation").get_by_role("link", name=part, exact=True))
            _look_at(page, "Open expectations" if part == "Expectations" else part)
            assert page.locator(".empty").count() == 1, part
        page.goto(f"{address}/journal/entry_0")
        _look_at(page, "Not Found")


def _send(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    follow(page, page.get_by_role("button", name="Sign in"))


def _look_at(page: Page, heading: str) -> None:
    assert page.locator("h1").inner_text() == heading
    assert find_barriers(page) == [], heading
