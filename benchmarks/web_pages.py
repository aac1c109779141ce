"""What each page and each list of the JSON API costs where there are 1,000,000 entries, and how soon a browser paints it.

Server time is measured in this process, from the request to the last byte of its answer, through the boundary, a thread of the
pool, the store and the template: beside the same page on a store of 1,000 entries, and beside a bare Starlette app that
answers `ok`, all in turns. Weight is the page with all that it loads. First paint is Chromium's own entry, of pages that
`golden serve` gives in a process of its own, with an empty cache.

Run: python benchmarks/web_pages.py STORE MANIFEST [--rounds N] [--paints N] [--only WORDS]

STORE and MANIFEST are what `web_store.py` has made.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import bare_site
from journal_scale import read_through
from side_by_side import percentile
from web_site import count_rows, golden_serve, list_of_api, list_pages
from web_store import Wanted, fill_web_store, write_manifest

from pytest_golden.storage.store import Store
from pytest_golden.web.access import PublicPlace
from pytest_golden.web.app import make_app
from pytest_golden.web.services import ServeOptions, Services

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import ASGIApp, Message

SERVER_LIMIT_MS, PAINT_LIMIT_MS, WEIGHT_LIMIT_KIB = 100.0, 1000.0, 200.0
SMALL = Wanted(entries=1_000, lessons=300, plans=100, projects=50)
_KIB = 1024
_ASSETS = ("style.css", "theme.js", "htmx.min.js", "golden.js", "icon.svg")
_GIVES_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null"


class Answer(NamedTuple):
    """What a request came to: how long it took by the clock and of the processor, and how much it brought."""

    status: int
    ms: float
    busy_ms: float
    size_bytes: int


async def ask(app: ASGIApp, address: str) -> Answer:
    """Ask an application in this process for an address."""
    path, _, query = address.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1"), (b"accept", b"text/html")],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 80),
    }
    status, size = 0, 0

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        nonlocal status, size
        status = message.get("status", status)
        size += len(message.get("body", b""))

    began, busy = time.perf_counter(), time.process_time()
    await app(scope, receive, send)
    return Answer(status, (time.perf_counter() - began) * 1e3, (time.process_time() - busy) * 1e3, size)


class Times:
    """The answers to one address: of the store in question, of a small one, and of the bare site."""

    def __init__(self) -> None:
        self.ours: list[Answer] = []
        self.small: list[Answer] = []
        self.bare: list[Answer] = []


async def time_pages(
    apps: tuple[ASGIApp, ASGIApp], pages: tuple[Mapping[str, str], Mapping[str, str]], rounds: int
) -> dict[str, Times]:
    """Ask for every address in every round, in turns; what is asked for first is not counted."""
    found = {name: Times() for name in pages[0]}
    for turn in range(rounds + 1):
        for name, times in found.items():
            bare = await ask(bare_site.app, "/")
            small = await ask(apps[1], pages[1][name])
            ours = await ask(apps[0], pages[0][name])
            if turn:
                times.bare.append(bare)
                times.small.append(small)
                times.ours.append(ours)
    return found


def show_times(found: Mapping[str, Times], *, has_weight: bool) -> bool:
    """Print a line for each address, the slowest first, and tell whether all hold what is promised."""
    assets = sum(len(files("pytest_golden.web").joinpath("static", name).read_bytes()) for name in _ASSETS)
    print(
        f"{'ms':36} {'p50':>7} {'p95':>7} {'cpu p50':>7} {'p95':>7} {'1,000':>7} {'times':>6} {'bare':>6} {'times':>6} {'KiB':>6}"
    )
    holds = True
    for name in sorted(found, key=lambda name: -_p(found[name].ours, "ms", 95)):
        times = found[name]
        weight = (max(one.size_bytes for one in times.ours) + (assets if has_weight else 0)) / _KIB
        wrong = {one.status for one in (*times.ours, *times.small)} - {200}
        is_missed = _p(times.ours, "ms", 95) > SERVER_LIMIT_MS or (has_weight and weight > WEIGHT_LIMIT_KIB)
        holds = holds and not is_missed and not wrong
        ours, small, bare = (_p(one, "busy_ms", 50) for one in (times.ours, times.small, times.bare))
        print(
            f"{name:36} {_p(times.ours, 'ms', 50):7.1f} {_p(times.ours, 'ms', 95):7.1f} {ours:7.1f} "
            f"{_p(times.ours, 'busy_ms', 95):7.1f} {small:7.1f} {ours / small:6.1f} {bare:6.2f} {ours / bare:6.0f} "
            f"{weight:6.0f}{'   MISSED' if is_missed else ''}{f'   status {sorted(wrong)}' if wrong else ''}"
        )
    return holds


def _p(answers: Sequence[Answer], name: str, share: float) -> float:
    return percentile([getattr(answer, name) for answer in answers], share)


def show_paints(store: Path, manifest: Path, pages: Mapping[str, str], rounds: int) -> bool:
    """Let Chromium load every page so often with an empty cache, and print how soon it painted the slowest ones."""
    from playwright.sync_api import sync_playwright

    painted: dict[str, list[float]] = {name: [] for name in pages}
    with golden_serve(store, manifest, "--read-only") as (address, _), sync_playwright() as player:
        chromium = player.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        for turn in range(rounds + 1):
            for name, page in pages.items():
                # To wait for the paint asks for what the policy of the pages forbids.
                context: Any = chromium.new_context(viewport={"width": 1280, "height": 900}, bypass_csp=True)
                tab = context.new_page()
                tab.goto(address + page, wait_until="load")
                tab.wait_for_function(f"({_GIVES_PAINT}) !== null")
                if turn:
                    painted[name].append(tab.evaluate(_GIVES_PAINT))
                context.close()
        chromium.close()
    everything = [value for values in painted.values() for value in values]
    print(
        f"\nfirst paint: p50 {statistics.median(everything):.0f} ms, p95 {percentile(everything, 95):.0f} ms; latest:"
    )
    for name in sorted(painted, key=lambda name: -max(painted[name]))[:8]:
        print(f"  {name:36} p50 {statistics.median(painted[name]):5.0f} ms, at most {max(painted[name]):5.0f} ms")
    return percentile(everything, 95) <= PAINT_LIMIT_MS


def _serve_here(store: Store, manifest: Path) -> ASGIApp:
    options = ServeOptions(manifest, PublicPlace.parse(None, "127.0.0.1"))
    return make_app(options, Services.on(store, manifest))


def _choose(pages: Mapping[str, str], words: str | None) -> dict[str, str]:
    return {name: page for name, page in pages.items() if words is None or words in name}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--paints", type=int, default=3, help="how often each page is painted; 0: no browser")
    parser.add_argument("--only", help="those alone whose names hold this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        fill_web_store(folder / "small.db", SMALL)
        write_manifest(folder / "small.yaml", SMALL.projects)
        with Store.open(options.store) as store, Store.open(folder / "small.db") as small:
            read_through(store)
            print(count_rows(store), "beside", count_rows(small))
            apps = _serve_here(store, options.manifest), _serve_here(small, folder / "small.yaml")
            gc.collect()
            gc.freeze()
            holds = True
            for list_addresses, has_weight in ((list_pages, True), (list_of_api, False)):
                pages = tuple(_choose(list_addresses(one), options.only) for one in (store, small))
                print(f"\n{'pages' if has_weight else 'JSON API'}, of the processor beside both:")
                holds &= show_times(
                    asyncio.run(time_pages(apps, (pages[0], pages[1]), options.rounds)), has_weight=has_weight
                )
            pages_to_paint = _choose(list_pages(store), options.only)
        if options.paints:
            holds &= show_paints(options.store, options.manifest, pages_to_paint, options.paints)
    if not holds:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
