"""How long a gate waits for its result to be recorded when many gates record in one PostgreSQL store, beside one gate alone.

Every process is a gate that records a result now and then, as projects end: by default four a second. What each was told is there
is looked for afterwards. With `--every 0` all write as fast as they can, which no gate does: that shows the queue itself.

Run: python benchmarks/many_writers.py [--writers 32] [--seconds 20] [--every 0.25] [--store URL]
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from side_by_side import percentile
from sqlalchemy import select

from pytest_golden.gate.store import record_event
from pytest_golden.storage.schema import gate_results
from pytest_golden.storage.store import Store

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.gate.gate_events import begin, judge
from tests.postgres import run_server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.synchronize import Barrier

_WARM_UP = 5
_AT_ONCE = 500


def main() -> None:
    """Measure one writer, then many, and look for what they wrote."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--writers", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--every", type=float, default=0.25)
    parser.add_argument("--store", help="A database of one's own whose tables may be filled (default: a new server).")
    arguments = parser.parse_args()
    servers = iter([]) if arguments.store else run_server()
    server = next(servers, None)
    try:
        if server is not None:
            server.execute("ALTER SYSTEM SET fsync = on")
            server.execute("ALTER SYSTEM SET max_connections = 100")
            server.stop()
            server.start()
        url = arguments.store or server.make_database()
        alone = _measure(url, 1, arguments.seconds, arguments.every)
        together = _measure(url, arguments.writers, arguments.seconds, arguments.every)
    finally:
        getattr(servers, "close", lambda: None)()
    for name, found in (("1 writer", alone), (f"{arguments.writers} writers", together)):
        print(
            f"{name:>11}: {len(found['took']):>6} results, {len(found['took']) / arguments.seconds:6.1f}/s, "
            f"median {statistics.median(found['took']) * 1000:6.2f} ms, p95 {percentile(found['took'], 95) * 1000:7.2f} ms, "
            f"longest {max(found['took']) * 1000:7.1f} ms, {found['missing']} missing, errors {dict(found['errors']) or 'none'}"
        )
    print(f"p95 of many over one: {percentile(together['took'], 95) / percentile(alone['took'], 95):.1f}")


def _measure(url: str, writers: int, seconds: float, every: float) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(writers)
    with context.Manager() as manager:
        told = manager.list()
        processes = [context.Process(target=_write, args=(url, barrier, seconds, every, told)) for _ in range(writers)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        answers = [json.loads(one) for one in told]
    entries = [entry for answer in answers for entry in answer["entries"]]
    return {
        "took": [took for answer in answers for took in answer["took"]],
        "errors": sum((Counter(answer["errors"]) for answer in answers), Counter())
        + Counter(lost=writers - len(answers)),
        "missing": len(entries) - _count(url, entries),
    }


def _write(url: str, barrier: Barrier, seconds: float, every: float, told: Any) -> None:
    spread = random.Random()
    took, entries, errors = [], [], Counter()
    with Store.open(url, busy_seconds=30) as store:
        begun = begin("orders", "stock")
        with store.write() as connection:
            record_event(connection, begun)
        for number in range(_WARM_UP):
            _record(store, begun, number)
        barrier.wait()
        time.sleep(spread.random() * every)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            started = time.perf_counter()
            try:
                entries.append(_record(store, begun, len(entries)))
                took.append(time.perf_counter() - started)
            except Exception as error:
                errors[f"{type(error).__name__}: {error}"[:120]] += 1
            time.sleep(every * (0.5 + spread.random()))
    told.append(json.dumps({"took": took, "entries": entries, "errors": errors}))


def _record(store: Store, begun: Any, number: int) -> str:
    judged = judge(begun, ("orders", "stock")[number % 2])
    with store.write() as connection:
        record_event(connection, judged)
    return judged.entry_id


def _count(url: str, entries: Sequence[str]) -> int:
    with Store.open(url) as store, store.read() as connection:
        return sum(
            len(connection.scalars(select(gate_results.c.entry_id).where(gate_results.c.entry_id.in_(some))).all())
            for some in (entries[start : start + _AT_ONCE] for start in range(0, len(entries), _AT_ONCE))
        )


if __name__ == "__main__":
    main()
