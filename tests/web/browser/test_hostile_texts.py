"""Texts of pipelines, agents and monitors in the pages: whatever they hold, they stay texts in their own places."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_golden.storage.paging import DEFAULT_ITEMS
from tests.web.browser.hostile import begin_ill, make_ill, make_long, seed_ill
from tests.web.browser.many import MOST_STEPS, RESULTS, seed_many
from tests.web.browser.walking import WIDTHS, apart, is_too_wide
from tests.web.seeded import serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

# Controls, and the signs that turn what follows them round; a page may hold none of them.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")
_MOST_BYTES = 400 * 1024
_WHAT_A_TEXT_MADE = (
    "[...document.querySelectorAll('main script, main img, main iframe, [onload], [onerror], [href^=javascript]')]"
    ".map((one) => one.outerHTML)"
)
# Letters that are written from the right turn round what follows them, unless that is outside of their own element.
# Nothing follows the Arabic letter of an ill text but marks. What is in a `pre` is one text.
_LEAKS = r"""() => {
  const own = (parent) => [...parent.childNodes].map((one) => {
    if (one.nodeType === Node.TEXT_NODE)
      return getComputedStyle(parent).whiteSpace.startsWith("pre") ? one.data : one.data.replaceAll("\n", " ");
    if (one.nodeType !== Node.ELEMENT_NODE) return "";
    const style = getComputedStyle(one);
    if (one.tagName === "BR" || !style.display.startsWith("inline")) return "\n";
    return style.display === "inline" && style.unicodeBidi === "normal" ? own(one) : "\ufffc";
  }).join("");
  return [...document.body.querySelectorAll("*")].filter((one) => !one.closest("svg") && !["OPTION", "PRE"].includes(one.tagName))
    .map(own).filter((text) => /\u0627[^\n]*[\p{L}\p{N}]/u.test(text));
}"""


def test_ill_texts_in_every_field_stay_texts(tmp_path: Path, open_page: Callable[..., Page], warm_starts: Path) -> None:
    addresses = apart(seed_ill, tmp_path, make_ill, make_long)
    with serving(tmp_path, programs=warm_starts) as (_, site):
        page = open_page(site)
        asked: list[str] = []
        leaks: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        for address in addresses:
            answer = page.goto(f"{site}{address}")
            assert answer is not None
            assert answer.ok, address
            assert len(answer.body()) <= _MOST_BYTES, address
            assert page.evaluate(_WHAT_A_TEXT_MADE) == [], address
            assert page.evaluate("window.pwned") is None, address
            assert _UNSEEN.search(answer.text()) is None, address
            leaks += page.evaluate(_LEAKS)
            for size in WIDTHS.values():
                page.set_viewport_size(size)
                assert not is_too_wide(page), address
        # What a running gate tells comes by itself, maybe after the page was looked at, and not for long without a sign of life.
        apart(begin_ill, tmp_path, make_long)
        page.goto(site)
        page.locator("#live-gates .line", has_text="step").first.wait_for()
        leaks += page.evaluate(_LEAKS)
        page.goto("about:blank")
        assert leaks == []
        assert {url for url in asked if not url.startswith(f"{site}/")} == set()


def test_long_lists_of_long_names_steps_and_output_fit_the_page(
    tmp_path: Path, open_page: Callable[..., Page], warm_starts: Path
) -> None:
    addresses = apart(seed_many, tmp_path)
    with serving(tmp_path, programs=warm_starts) as (_, site):
        page = open_page(site, viewport=WIDTHS["phone"])
        for address in addresses:
            page.goto(f"{site}{address}")
            assert not is_too_wide(page), address
            if address.startswith("/results/"):
                assert page.locator(".waterfall tbody tr").count() == MOST_STEPS
                continue
            shown = page.locator("#list tbody tr, #list .list > li").count()
            assert shown == (RESULTS if address.startswith("/runs/") else DEFAULT_ITEMS), address
