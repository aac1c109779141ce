"""The pages below a prefix, behind a proxy that is really there."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pytest_golden.clock import utc_now
from pytest_golden.gate.store import record_event
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin
from tests.web.browser.proxy import proxying
from tests.web.browser.walking import follow, make_site
from tests.web.seeded import TOKEN, serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page


def test_pages_forms_and_live_gates_stay_below_the_prefix_of_a_proxy(
    tmp_path: Path,
    open_page: Callable[..., Page],
    warm_starts: Path,
) -> None:
    make_site(tmp_path)
    with proxying("/team/golden") as proxy:
        origin = f"http://golden.localhost:{proxy.port}"
        public = f"{origin}/team/golden"
        with serving(tmp_path, "--public-url", public, programs=warm_starts) as (_, address):
            proxy.upstream_port = int(address.rpartition(":")[2])
            page = open_page(f"{public}/journal")
            assert page.url == f"{public}/sign-in?next=%2Fjournal"
            page.get_by_label("Token").fill(TOKEN)
            follow(page, page.get_by_role("button", name="Sign in"))
            assert page.url == f"{public}/journal"
            proxy.takes_prefix_off = True
            _use_forms(page)
            _watch(page, public, tmp_path)
            assert {cookie["path"] for cookie in page.context.cookies()} == {"/team/golden"}
            follow(page, page.get_by_role("button", name="Sign out"))
            assert page.url == f"{public}/sign-in"
    assert proxy.strays == []


def _use_forms(page: Page) -> None:
    follow(page, page.get_by_role("link", name="Journal", exact=True))
    follow(page, page.get_by_role("link", name="Widen customer_id"))
    page.get_by_label("Because").fill("seen through the proxy")
    follow(page, page.get_by_role("button", name="Say so"))
    page.get_by_text("seen through the proxy").first.wait_for()
    follow(page, page.get_by_role("link", name="Lessons", exact=True))
    follow(page, page.locator("#list li a").first)
    follow(page, page.get_by_role("button", name="Approve"))
    page.locator(".badge", has_text="approved").or_(page.locator(".badge", has_text="shown")).first.wait_for()


def _watch(page: Page, public: str, folder: Path) -> None:
    with page.expect_response(f"{public}/events"):
        page.get_by_role("link", name="Gate runs", exact=True).first.click()
    with Store.open(folder / ".golden" / "golden.db") as store, store.write() as connection:
        record_event(connection, begin("orders", "prices", moment=to_ms(utc_now()), pid=os.getpid()))
    link = page.get_by_role("link", name="A gate is running: 0 of 2 projects done")
    link.wait_for()
    follow(page, link)
    assert page.url.startswith(f"{public}/runs/")
