"""100 clients at once on `golden serve` over a mix of its pages, while another process writes gate results and journal entries.

Each client has a connection that it keeps, and asks for the next address as soon as it has an answer. An error is any answer
but 200, and a connection that breaks. Beside it stands the bare site of `bare_site.py` under the same clients. The
server's memory is looked at after a tenth of the requests and at the end: between these it must not grow.

Run: python benchmarks/web_load.py STORE MANIFEST [--seconds N] [--clients N] [--without-writer]

STORE and MANIFEST are what `web_store.py` has made; what is written meanwhile stays in the store.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from journal_scale import read_through
from side_by_side import percentile
from web_site import bare_site, count_rows, golden_serve, list_of_api, list_pages
from web_store import run_gate

from pytest_golden.journal.service import Journal
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

_MIB = 1024 * 1024
_SECONDS_BETWEEN_WRITES = 0.05
_SECONDS_BETWEEN_LOOKS = 0.5
# A client is given up after so long without an answer.
_MOST_SECONDS = 60.0
_OK = 200
_WRITER = (sys.executable, "-c", "import sys, web_load; web_load.write_on(sys.argv[1])")


class Load:
    """What clients have seen."""

    def __init__(self) -> None:
        self.times_ms: dict[str, list[float]] = {}
        self.errors: Counter[str] = Counter()

    @property
    def all_ms(self) -> list[float]:
        """How long each answer took."""
        return [one for times in self.times_ms.values() for one in times]


async def load(address: str, pages: Sequence[tuple[str, str]], clients: int, seconds: float) -> Load:
    """Let so many clients ask for pages in turns, each from another place in the list, for so long."""
    found = Load()
    ends_at = time.perf_counter() + seconds
    host, _, port = address.removeprefix("http://").partition(":")
    places = random.Random(0)

    async def be_client() -> None:
        turns = itertools.cycle(places.sample(list(pages), len(pages)))
        while time.perf_counter() < ends_at:
            try:
                reader, writer = await asyncio.open_connection(host, int(port))
                try:
                    while time.perf_counter() < ends_at:
                        name, page = next(turns)
                        began = time.perf_counter()
                        status = await asyncio.wait_for(_ask(reader, writer, host, page), _MOST_SECONDS)
                        found.times_ms.setdefault(name, []).append((time.perf_counter() - began) * 1e3)
                        if status != _OK:
                            found.errors[f"{status} {name}"] += 1
                finally:
                    writer.close()
            except (OSError, EOFError, TimeoutError) as error:
                found.errors[type(error).__name__] += 1

    await asyncio.gather(*(be_client() for _ in range(clients)))
    return found


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, page: str) -> int:
    writer.write(f"GET {page} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    length = next(line for line in head.lower().split("\r\n") if line.startswith("content-length:"))
    await reader.readexactly(int(length.partition(":")[2]))
    return int(head.split(" ", 2)[1])


async def watch(process: int, sizes: list[int]) -> None:
    """Look at a process's memory until this is cancelled."""
    looked_at = psutil.Process(process)
    while True:
        sizes.append(looked_at.memory_info().rss)
        await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)


async def load_and_watch(
    served: tuple[str, int], pages: Sequence[tuple[str, str]], clients: int, seconds: float
) -> tuple[Load, list[int]]:
    """Do both."""
    sizes: list[int] = []
    watching = asyncio.create_task(watch(served[1], sizes))
    found = await load(served[0], pages, clients, seconds)
    watching.cancel()
    return found, sizes


def write_on(location: str) -> None:
    """Write gate results and journal entries until this process is ended."""
    with Store.open(location) as store:
        journal = Journal(store)
        for number in itertools.count():
            for _ in run_gate(store, [f"p{place}" for place in range(20)]):
                begun = journal.log_intent(f"busy {number}", "deploy", agent_id="agent-000")
                journal.log_outcome(begun.id, "success", "all tests pass")
                time.sleep(_SECONDS_BETWEEN_WRITES)


def measure(name: str, served: tuple[str, int], pages: Sequence[tuple[str, str]], options: argparse.Namespace) -> float:
    """Load a site, print what came of it, and give its rate; a site that gave an error ends the program."""
    server = psutil.Process(served[1])
    before = sum(server.cpu_times()[:2])
    found, sizes = asyncio.run(load_and_watch(served, pages, options.clients, options.seconds))
    busy = sum(server.cpu_times()[:2]) - before
    times = found.all_ms
    rate = len(times) / options.seconds
    figures = ", ".join(f"p{share} {percentile(times, share):.0f} ms" for share in (50, 95, 99))
    print(
        f"{name:14} {len(times):7,} requests, {rate:6.0f} a second, {sum(found.errors.values())} errors; {figures}; "
        f"{busy / len(times) * 1e3:.1f} ms of the processor each; "
        f"memory {sizes[len(sizes) // 10] / _MIB:.0f} MiB, at the end {sizes[-1] / _MIB:.0f} MiB"
    )
    for slow in sorted(found.times_ms, key=lambda one: -percentile(found.times_ms[one], 95))[: options.slowest]:
        told = found.times_ms[slow]
        print(f"    {slow:36} p50 {percentile(told, 50):6.0f} ms, p95 {percentile(told, 95):6.0f} ms")
    for told_error, count in found.errors.most_common(10):
        print(f"    {count} times {told_error}")
    if found.errors:
        raise SystemExit(1)
    return rate


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--slowest", type=int, default=5, help="how many of the slowest pages are named")
    parser.add_argument("--without-writer", action="store_true", help="nobody writes meanwhile")
    options = parser.parse_args()
    with Store.open(options.store) as store:
        read_through(store)
        print(count_rows(store))
        pages = [*list_pages(store).items(), *list_of_api(store).items()]
    writer = (
        None
        if options.without_writer
        else subprocess.Popen([*_WRITER, str(options.store.absolute())], cwd=Path(__file__).parent)
    )
    try:
        with golden_serve(options.store, options.manifest) as served:
            ours = measure("golden serve", served, pages, options)
        if writer is not None and writer.poll() is not None:
            raise SystemExit("the writer was kept from writing, and ended")
    finally:
        if writer is not None:
            writer.terminate()
            writer.wait()
    with Store.open(options.store) as store:
        print("with what was written meanwhile:", count_rows(store))
    with bare_site() as served:
        bare = measure("bare site", served, pages, options)
    print(f"the bare site answers {bare / ours:.0f} times as many")


if __name__ == "__main__":
    main()
