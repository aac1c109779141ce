"""Many processes that write one journal at once, and kill -9 of them, again and again: is all there that was acknowledged?

First every writer writes its share undisturbed: nothing may be lost, and nothing may fail. Then writers are killed at
random moments; afterwards everything whose call had returned must be there, and two must be able to write at once.

Run: python benchmarks/journal_kills.py [--store STORE] [--writers N] [--writes N] [--kills N] [--seed N] [--kill-server]
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import func, select

from pytest_golden.clock import new_id
from pytest_golden.errors import GoldenError, StorageError
from pytest_golden.journal.service import Journal
from pytest_golden.storage.schema import entries, entry_history, expectations, signals
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Every writer's entry too, so that they meet in one row.
SHARED_AGENT = "together"
_MOST_BEFORE_KILL = 120
_LONGEST_DELAY = 0.05
_RECOVERY_SECONDS = 1.0
_PATIENCE_SECONDS = 120
_AT_ONCE = 500


class Found(NamedTuple):
    """What a series has left: how many writes were acknowledged, by kind, and what is wrong."""

    acknowledged: Counter[str]
    problems: tuple[str, ...]


def write_journal(place: str, file: IO[str], count: int, shared: str) -> None:
    """Write so many times, and put a line into the file after each call that has returned; 0 is without end."""

    def acknowledge(kind: str, **said: Any) -> None:
        file.write(json.dumps({"kind": kind, **said}) + "\n")
        file.flush()

    agent = new_id("writer")
    numbers = itertools.count() if not count else range(count)
    parent = os.getppid()
    with Journal.open(place) as journal:
        acknowledge("ready")
        entry = ""
        for number in numbers:
            if os.getppid() != parent:
                return
            try:
                if number % 4 == 0:
                    entry = journal.log_intent(f"write {number}", "deploy", agent_id=agent, session_key=agent).id
                    acknowledge("intent", entry=entry)
                elif number % 4 == 1:
                    asked = {"description": "it is heard", "match_hint": {"source": "ci", "entry": entry}}
                    journal.log_outcome(entry, "success", expectations=[asked, asked | {"expires_minutes": 600}])
                    acknowledge("outcome", entry=entry)
                else:
                    where = {"data": {"entry": entry}} if number % 4 == 2 else {"entry_id": shared}
                    said = f"{agent}/{number}"
                    heard = journal.add_signal("ci", "positive", "it went well", external_id=said, **where)
                    acknowledge("signal", id=heard.id, external_id=said, entry=heard.entry_id)
            except GoldenError as error:
                acknowledge("failed", why=str(error))


class Writers:
    """Processes that write, each with a file of what was acknowledged."""

    def __init__(self, place: str, folder: Path, shared: str) -> None:
        self._place = place
        self._folder = folder
        self._shared = shared
        self._numbers = itertools.count()

    @contextmanager
    def started(self, number: int, writes: int) -> Iterator[dict[subprocess.Popen[bytes], Path]]:
        """Start so many, let them go when all are ready, and leave none behind."""
        begun: dict[subprocess.Popen[bytes], Path] = {}
        try:
            for _ in range(number):
                path = self._folder / f"acknowledged-{next(self._numbers)}.jsonl"
                path.touch()
                own = [sys.executable, __file__, "--as-writer", str(path), "--shared", self._shared]
                begun[subprocess.Popen([*own, "--store", self._place, "--writes", str(writes)])] = path
            deadline = time.monotonic() + _PATIENCE_SECONDS
            while not all(path.stat().st_size for path in begun.values()):
                if time.monotonic() > deadline or any(writer.poll() for writer in begun):
                    raise RuntimeError("a writer does not start")
                time.sleep(0.01)
            yield begun
        finally:
            for writer in begun:
                writer.kill()
                writer.wait()


def wait_for_some(paths: Sequence[Path], chance: random.Random) -> None:
    """Wait until a random number of writes were acknowledged, and a moment more."""
    wanted = chance.randint(0, _MOST_BEFORE_KILL) + len(paths)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while sum(path.read_bytes().count(b"\n") for path in paths) < wanted and time.monotonic() < deadline:
        time.sleep(0.005)
    time.sleep(chance.uniform(0, _LONGEST_DELAY))


def read_acknowledged(paths: Sequence[Path]) -> list[dict[str, Any]]:
    """Read what was acknowledged; a last line that was cut off was not."""
    said = []
    for path in paths:
        whole, _, _ = path.read_text(encoding="utf-8").rpartition("\n")
        said += [json.loads(line) for line in whole.splitlines()]
    return said


def find_lost(store: Store, said: Sequence[dict[str, Any]]) -> list[str]:
    """Look for everything that was acknowledged."""
    problems = [f"a write failed: {one['why']}" for one in said if one["kind"] == "failed"]
    for start in range(0, len(said), _AT_ONCE):
        part = said[start : start + _AT_ONCE]
        problems += _find_lost_entries(store, [one["entry"] for one in part if one["kind"] == "intent"])
        problems += _find_lost_outcomes(store, [one["entry"] for one in part if one["kind"] == "outcome"])
        problems += _find_lost_signals(store, [one for one in part if one["kind"] == "signal"])
    return problems


def _find_lost_entries(store: Store, wanted: Sequence[str]) -> list[str]:
    with store.read() as connection:
        there = set(connection.scalars(select(entries.c.id).where(entries.c.id.in_(wanted))))
    return [f"entry {entry} is lost" for entry in wanted if entry not in there]


def _find_lost_outcomes(store: Store, wanted: Sequence[str]) -> list[str]:
    said = select(entry_history.c.entry_id).where(
        entry_history.c.entry_id.in_(wanted), entry_history.c.what == "outcome"
    )
    asked = select(expectations.c.entry_id).where(expectations.c.entry_id.in_(wanted))
    with store.read() as connection:
        outcomes, counted = Counter(connection.scalars(said)), Counter(connection.scalars(asked))
    return [f"the outcome of {entry} is lost" for entry in wanted if (outcomes[entry], counted[entry]) != (1, 2)]


def _find_lost_signals(store: Store, wanted: Sequence[dict[str, Any]]) -> list[str]:
    chosen = select(signals.c.id, signals.c.external_id, signals.c.entry_id)
    with store.read() as connection:
        rows = connection.execute(chosen.where(signals.c.id.in_([one["id"] for one in wanted])))
        there = {row.id: (row.external_id, row.entry_id) for row in rows}
    return [
        f"signal {one['id']} is lost" for one in wanted if there.get(one["id"]) != (one["external_id"], one["entry"])
    ]


def find_surplus(store: Store, known: Counter[str], most: int) -> list[str]:
    """Look for entries and signals that nobody acknowledged: at most so many may have been cut off in between."""
    with store.read() as connection:
        there = {
            "intent": connection.scalar(select(func.count()).where(entries.c.agent_id.startswith("writer_"))) or 0,
            "signal": connection.scalar(select(func.count()).where(signals.c.source == "ci")) or 0,
        }
    surplus = {kind: there[kind] - known[kind] for kind in there}
    return [
        f"{number} of kind {kind} are there and were never acknowledged, at most {most} may be"
        for kind, number in surplus.items()
        if not 0 <= number <= most
    ]


def check_whole(place: str) -> list[str]:
    """Let `golden store check` look, and let two write who have the store open at once."""
    checked = subprocess.run(
        [sys.executable, "-m", "pytest_golden", "store", "check", "--store", place],
        capture_output=True,
        text=True,
        check=False,
    )
    problems = [] if checked.returncode == 0 else [checked.stdout + checked.stderr]
    with Journal.open(place) as one, Journal.open(place) as other:
        entry = one.log_intent("after the kill", agent_id=SHARED_AGENT).id
        other.log_outcome(entry, "success")
        if one.get(entry).assessment != "success":
            problems.append("two who have it open do not see each other's writes")
    return problems


def write_together(place: str, writers: Writers, number: int, writes: int) -> Found:
    """Let writers write their shares undisturbed."""
    began = time.perf_counter()
    with writers.started(number, writes) as begun:
        codes = [writer.wait() for writer in begun]
        said = read_acknowledged(list(begun.values()))
    took = time.perf_counter() - began
    known = Counter(one["kind"] for one in said)
    with Store.open(place) as store:
        problems = [*find_lost(store, said), *find_surplus(store, known, 0)]
    done = known.total() - known["ready"] - known["failed"]
    if done != number * writes or any(codes):
        problems.append(f"{done:,} of {number * writes:,} were acknowledged, the writers ended with {codes}")
    print(f"{number} processes wrote {done:,} times in {took:.0f} s ({done / took:.0f} a second)", flush=True)
    return Found(known, (*problems, *check_whole(place)))


def kill_writers(place: str, writers: Writers, chance: random.Random, count: int, before: Counter[str]) -> Found:
    """Kill three writers at one random moment, so many times; `before` is what was acknowledged until then."""
    known: Counter[str] = Counter()
    problems: list[str] = []
    for _ in range(count):
        with writers.started(3, 0) as begun:
            wait_for_some(list(begun.values()), chance)
            for writer in chance.sample(list(begun), len(begun)):
                writer.send_signal(signal.SIGKILL)
            for writer in begun:
                writer.wait()
            said = read_acknowledged(list(begun.values()))
        known.update(one["kind"] for one in said)
        with Store.open(place) as store:
            problems += find_lost(store, said)
            problems += find_surplus(store, before + known, 3 * count)
        problems += check_whole(place)
    return Found(known, tuple(problems))


def kill_server(place: str, writers: Writers, chance: random.Random) -> Found:
    """Kill the database's own process of a writer, upon which PostgreSQL breaks off all others and recovers."""
    with writers.started(3, 0) as begun:
        wait_for_some(list(begun.values()), chance)
        with Store.open(place) as store, store.read() as connection:
            asked = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            victim = connection.exec_driver_sql(asked).scalars().first()
            assert victim is not None
            with suppress(StorageError):
                os.kill(victim, signal.SIGKILL)
        time.sleep(_RECOVERY_SECONDS)
        for writer in begun:
            writer.kill()
            writer.wait()
        said = [one for one in read_acknowledged(list(begun.values())) if one["kind"] != "failed"]
    with _opened_again(place) as store:
        problems = find_lost(store, said)
    return Found(Counter(one["kind"] for one in said), (*problems, *check_whole(place)))


@contextmanager
def _opened_again(place: str) -> Iterator[Store]:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            store = Store.open(place)
            break
        except StorageError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
    with store:
        yield store


def show(name: str, found: Found) -> bool:
    for problem in found.problems[:20]:
        print(f"{name}: {problem}")
    told = ", ".join(f"{number:,} {kind}" for kind, number in sorted(found.acknowledged.items()) if kind != "ready")
    print(f"{name}: {len(found.problems) or 'no'} problems; acknowledged: {told}", flush=True)
    return not found.problems


def measure(options: argparse.Namespace, folder: Path) -> bool:
    """Make all series, and tell whether all was well."""
    place = options.store or str(folder / "golden.db")
    chance = random.Random(options.seed)
    Store.open(place, upgrades=True).close()
    with Journal.open(place) as journal:
        shared = journal.log_intent("what all hear of", agent_id=SHARED_AGENT).id
    writers = Writers(place, folder, shared)
    undisturbed = write_together(place, writers, options.writers, options.writes)
    outcomes = [show("undisturbed", undisturbed)]
    killed = kill_writers(place, writers, chance, options.kills, undisturbed.acknowledged)
    outcomes.append(show(f"{options.kills} kills", killed))
    if options.kill_server:
        outcomes.append(show("killed server", kill_server(place, writers, chance)))
    return all(outcomes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", help="a new store, a file or a URL; a file that is removed again by default")
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--writes", type=int, default=2_000, help="by each writer")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--kill-server", action="store_true", help="of PostgreSQL on this machine, in the end")
    parser.add_argument("--as-writer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--shared", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_writer:
        with options.as_writer.open("a", encoding="utf-8") as file:
            write_journal(options.store, file, options.writes, options.shared)
        return
    print(f"seed {options.seed}", flush=True)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        if not measure(options, Path(folder).absolute()):
            sys.exit(1)


if __name__ == "__main__":
    main()
