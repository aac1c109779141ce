"""How long gates wait for their results to be recorded while a PostgreSQL store is pruned, and while it is upgraded.

Gates, by default eight, record a result now and then, in turns of nothing beside them and of something: old runs are pruned, then
`golden store upgrade` looks through tables that are up to date. Once a second version of the tables is there, its migration belongs here too.

Run: python benchmarks/retention.py [--writers 8] [--every 0.1] [--runs 20000] [--large 40] [--rounds 3]
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import statistics
import sys
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from filled_store import fill_store
from side_by_side import percentile

from pytest_golden.clock import utc_now
from pytest_golden.gate.pruning_store import PruneOrder, prune_store
from pytest_golden.gate.store import record_event
from pytest_golden.storage.integrity import repair_store
from pytest_golden.storage.store import Store

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.gate.gate_events import begin, end, judge
from tests.postgres import run_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.synchronize import Event

    from sqlalchemy import Connection

    from tests.postgres import PostgresServer

_LEAST_SECONDS, _LONGEST_SECONDS = 3.0, 120
_PROJECTS = tuple(f"p{number}" for number in range(500))


def main() -> None:
    """Measure each, and print what the gates waited with it and without."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--every", type=float, default=0.1)
    parser.add_argument("--runs", type=int, default=20_000, help="Earlier runs of one or two projects.")
    parser.add_argument("--large", type=int, default=40, help="Earlier runs of 500 projects.")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    servers = run_server()
    server = next(servers)
    try:
        _start_durably(server)
        for told, action in (("pruning", _prune), ("upgrade, up to date", _upgrade)):
            _compare(told, action, server, arguments)
    finally:
        servers.close()


def _start_durably(server: PostgresServer) -> None:
    for setting in ("fsync = on", "max_connections = 100", "autovacuum = on"):
        server.execute(f"ALTER SYSTEM SET {setting}")
    server.stop()
    server.start()


def _compare(told: str, action: Callable[[str], object], server: PostgresServer, arguments: Any) -> None:
    quiet, beside, seconds = [], [], []
    for _ in range(arguments.rounds):
        url = server.make_database()
        _fill(url, arguments)
        for took, work in ((quiet, lambda _: None), (beside, action)):
            waits = _write_beside(url, arguments, work, seconds)
            took.append([wait for one in waits for wait in one])
        server.drop(url)
    shown = [
        f"{name} {_median(quiet, share):7.1f} -> {_median(beside, share):7.1f} ms ({_ratio(quiet, beside, share):.1f} x)"
        for name, share in (("p50", 50), ("p95", 95), ("max", 100))
    ]
    if action is _prune:
        held = [one * 1000 for one in _TimedStore.held]
        shown.append(f"{len(held)} batches, p95 {percentile(held, 95):.0f} ms, longest {max(held):.0f} ms")
    print(f"{told:>19}, {statistics.median(seconds[1::2]):5.1f} s: {'; '.join(shown)}", flush=True)


def _median(rounds: list[list[float]], share: float) -> float:
    return statistics.median(percentile(one, share) for one in rounds) * 1000


def _ratio(quiet: list[list[float]], beside: list[list[float]], share: float) -> float:
    pairs = zip(quiet, beside, strict=True)
    return statistics.median(percentile(after, share) / percentile(before, share) for before, after in pairs)


def _fill(url: str, arguments: Any) -> None:
    fill_store(url, arguments.runs, 20)
    with Store.open(url) as store:
        for number in range(arguments.large):
            begun = begin(*_PROJECTS, minute=number)
            with store.write() as connection:
                for event in (begun, *(judge(begun, name) for name in _PROJECTS), end(begun)):
                    record_event(connection, event)


def _write_beside(
    url: str, arguments: Any, work: Callable[[str], object], seconds: list[float]
) -> Iterator[list[float]]:
    context = multiprocessing.get_context("spawn")
    stop, answers = context.Event(), context.Queue()
    writers = [
        context.Process(target=_record, args=(url, arguments.every, stop, answers)) for _ in range(arguments.writers)
    ]
    for writer in writers:
        writer.start()
    for _ in writers:
        assert answers.get(timeout=_LONGEST_SECONDS) == "ready"
    started = time.monotonic()
    work(url)
    seconds.append(time.monotonic() - started)
    time.sleep(max(0.2, _LEAST_SECONDS - seconds[-1]))
    stop.set()
    yield from [answers.get(timeout=_LONGEST_SECONDS) for _ in writers]
    for writer in writers:
        writer.join()


class _TimedStore(Store):
    """A store that knows how long each write has kept others waiting."""

    held: ClassVar[list[float]] = []

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with super().write() as connection:
            started = time.perf_counter()
            yield connection
        self.held.append(time.perf_counter() - started)


def _prune(url: str) -> None:
    with _TimedStore.open(url) as store:
        order = PruneOrder(closed_after=utc_now() - timedelta(days=90))
        prune_store(store, order, {}, utc_now(), progress=lambda _: None)


def _upgrade(url: str) -> None:
    with Store.open(url, upgrades=True) as store:
        assert repair_store(store) == ()


def _record(url: str, every: float, stop: Event, answers: Any) -> None:
    """Record results as a gate does, until told to stop."""
    spread, took = random.Random(), []
    with Store.open(url) as store:
        begun = begin("p1", moment=int(time.time() * 1000))
        with store.write() as connection:
            record_event(connection, begun)
        answers.put("ready")
        while not stop.is_set():
            judged = judge(begun, "p1")
            started = time.perf_counter()
            with store.write() as connection:
                record_event(connection, judged)
            took.append(time.perf_counter() - started)
            time.sleep(every * (0.5 + spread.random()))
    answers.put(took)


if __name__ == "__main__":
    main()
