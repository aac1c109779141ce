"""What the journal costs where it is large: each write beside one fdatasync of the same disk, each look, and the sweep.

All is measured in turns, in a store that `journal_store.py` has filled, and that has more in it afterwards. A write is held
against the fdatasync that was measured right before it. With a server, that is one of the current folder, which is to lie
on the server's disk, and `cpu` is that of this process alone.

Run: python benchmarks/journal_scale.py STORE [--rounds N] [--seed N] [--due N]
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import random
import tempfile
import time
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from journal_store import AGENTS, CROWDED_ENTRY, Size, fill_journal
from side_by_side import in_turns, percentile, seconds
from sqlalchemy import create_engine, func, insert, select, text
from store_writes import entry_row, open_bare

from pytest_golden.clock import utc_now
from pytest_golden.journal.hints import read_words
from pytest_golden.journal.model import ExpectationStatus, RoutedBy, SignalType
from pytest_golden.journal.review import FILTERS
from pytest_golden.journal.routing import News
from pytest_golden.journal.routing_store import find_route
from pytest_golden.journal.service import Journal
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.location import parse_location
from pytest_golden.storage.schema import entries, entry_history, expectations, signals
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

WRITE_LIMIT_MS, LOOK_LIMIT_MS, ROUTE_LIMIT_MS = 3.0, 50.0, 20.0
BUSY, QUIET = AGENTS[0], AGENTS[-1]
#: A type that is common, one that is rare, and one that nobody has.
TYPES = (None, "deploy", "refund", "nobodys")
_TABLES = (entries, expectations, signals, entry_history)
_INDEXES = text(
    "SELECT string_agg(quote_ident(of_it.attname), ', ' ORDER BY of_it.attnum) AS columns, "
    "coalesce(pg_get_expr(one.indpred, one.indrelid), 'true') AS condition "
    "FROM pg_index AS one JOIN pg_attribute AS of_it ON of_it.attrelid = one.indexrelid "
    "WHERE one.indrelid = CAST(:table AS regclass) GROUP BY one.indexrelid, one.indpred, one.indrelid"
)
WHOSE = {"all": None, "busy": BUSY, "quiet": QUIET}


class Timed:
    """Seconds that something took, by the clock and of the processor, and those that one fdatasync took before each time.

    The processor's own tell what is ours where others use the machine at the same time.
    """

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.busy: list[float] = []
        self.flushed: list[float] = []

    def add(self, call: Callable[[], object]) -> None:
        """Time one call."""
        began = time.process_time()
        self.taken.append(seconds(call))
        self.busy.append(time.process_time() - began)


class Asked(NamedTuple):
    """An open expectation that a signal can be made for."""

    id: str
    agent_id: str
    session_key: str | None
    hint: Mapping[str, Any] | None


class Flush:
    """One fdatasync of the disk that the store lies on."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __call__(self) -> float:
        """Write a page, flush it, and give how long the flush took."""
        self._file.write(b"-" * 4096)
        self._file.flush()
        return seconds(lambda: os.fdatasync(self._file.fileno()))


class Writes:
    """Calls that write, each with something that is not there yet."""

    def __init__(self, store: Store, seed: int) -> None:
        self._store = store
        self._journal = Journal(store)
        self._chance = random.Random(seed)
        self._numbers = itertools.count(to_ms(utc_now()))
        with store.read() as connection:
            self._hinted = _sample(connection, expectations.c.hint_anchor.is_not(None))
            self._in_session = _sample(
                connection, expectations.c.hint_shape == "", expectations.c.session_key.is_not(None)
            )
            self._in_window = _sample(
                connection, expectations.c.hint_shape == "", expectations.c.expires_at.is_not(None)
            )
            newest = select(entries.c.id).where(entries.c.assessment != "open").order_by(entries.c.number.desc())
            self._closed = itertools.cycle(connection.scalars(newest.limit(5_000)).all())

    def make(self) -> dict[str, Callable[[], Callable[[], object]]]:
        """Return by name what prepares a call."""
        outcomes = {f"log_outcome, {count} expected": lambda count=count: self._outcome(count) for count in range(4)}
        return {
            "log_intent": self._intent,
            **outcomes,
            "add_signal by hint, of an agent": lambda: self._by_hint(is_agents=True),
            "add_signal by hint, of a webhook": lambda: self._by_hint(is_agents=False),
            "add_signal by session": lambda: self._by_guess(self._in_session, RoutedBy.SESSION_KEY),
            "add_signal by window": lambda: self._by_guess(self._in_window, RoutedBy.TIME_WINDOW),
            "add_signal to an entry": self._to_entry,
            "add_signal as an orphan": self._orphan,
            "assess": self._assess,
        }

    def _intent(self) -> Callable[[], object]:
        agent, number = self._chance.choice(AGENTS), next(self._numbers)
        return lambda: self._journal.log_intent(
            f"change {number}: make the load faster", "deploy", agent_id=agent, session_key=f"{agent}/{number // 100}"
        )

    def _outcome(self, count: int) -> Callable[[], object]:
        number = next(self._numbers)
        begun = self._journal.log_intent(f"change {number}", "deploy", agent_id=self._chance.choice(AGENTS))
        asked = [_expect(number, turn) for turn in range(count)]
        return lambda: self._journal.log_outcome(
            begun.id, "success", "all tests pass", actions=[{"tool": "edit"}], expectations=asked
        )

    def _by_hint(self, *, is_agents: bool) -> Callable[[], object]:
        one = next(self._hinted)
        said = {**(one.hint or {}), "delivery": next(self._numbers), "title": "Make the load faster"}
        source = str(said.pop("source"))
        agent = one.agent_id if is_agents else None
        return lambda: _heard(RoutedBy.MATCH_HINT, self._journal, source, data=said, agent_id=agent)

    def _by_guess(self, asked: Iterator[Asked], rule: RoutedBy) -> Callable[[], object]:
        one, said = self._next_open(asked), {"note": next(self._numbers)}
        session = one.session_key if rule is RoutedBy.SESSION_KEY else None
        return lambda: _heard(rule, self._journal, "callback", data=said, agent_id=one.agent_id, session_key=session)

    def _next_open(self, asked: Iterator[Asked]) -> Asked:
        """Return the next that no signal of an earlier call has answered, as a guess may answer any of an agent's."""
        with self._store.read() as connection:
            status = select(expectations.c.status)
            return next(
                one
                for one in asked
                if connection.scalar(status.where(expectations.c.id == one.id)) == ExpectationStatus.OPEN
            )

    def _to_entry(self) -> Callable[[], object]:
        entry, said = next(self._closed), {"note": next(self._numbers)}
        return lambda: self._journal.add_signal("callback", "neutral", "a remark", data=said, entry_id=entry)

    def _orphan(self) -> Callable[[], object]:
        said = {"repository": "acme/repo-7", "pr": -next(self._numbers), "event": "check_run"}
        return lambda: _heard(RoutedBy.ORPHAN, self._journal, "github", data=said)

    def _assess(self) -> Callable[[], object]:
        entry = next(self._closed)
        return lambda: self._journal.assess(entry, "success", "looked at", by="ada")


def _heard(rule: RoutedBy, journal: Journal, source: str, **where: Any) -> None:
    kept = journal.add_signal(source, "positive", "it went well", **where)
    if kept.routed_by is not rule:
        raise RuntimeError(f"{where} was routed by {kept.routed_by}, where {rule} was to be measured")


def _expect(number: int, turn: int) -> dict[str, Any]:
    hint = {"source": "github", "repository": "acme/repo-7", "pr": number, "sha": f"{number:036x}{turn:04x}"}
    return {"description": "it is merged", "match_hint": hint, "expires_minutes": 60 * 24 * 30}


def _sample(connection: Any, *wanted: Any) -> Iterator[Asked]:
    columns = (expectations.c.id, expectations.c.agent_id, expectations.c.session_key, expectations.c.match_hint)
    chosen = select(*columns).where(expectations.c.status == "open", *wanted).order_by(func.random()).limit(5_000)
    return itertools.cycle([Asked(*row) for row in connection.execute(chosen)])


def time_writes(store: Store, writes: Writes, rounds: int) -> dict[str, Timed]:
    """Make every call in every round, with one fdatasync before each."""
    made = writes.make()
    found = {name: Timed() for name in made}
    with tempfile.TemporaryFile(dir=store.path.parent if store.path else ".") as file:
        flush = Flush(file)
        for _ in range(rounds):
            for name, prepare in made.items():
                call = prepare()
                found[name].flushed.append(flush())
                found[name].add(call)
    return found


def list_looks(store: Store) -> dict[str, Callable[[], object]]:
    """Return by name what only looks."""
    journal = Journal(store)
    since = utc_now() - timedelta(days=90)
    with store.read() as connection:
        entry = connection.scalars(select(entries.c.id).order_by(entries.c.number.desc()).limit(1)).one()
        signal = connection.scalars(select(signals.c.id).order_by(signals.c.number.desc()).limit(1)).one()
    looks: dict[str, Callable[[], object]] = {}
    for word, kind, (whose, agent) in itertools.product(FILTERS, TYPES, WHOSE.items()):
        looks[f"review {word}, {kind or 'any type'}, {whose}"] = lambda word=word, kind=kind, agent=agent: (  # type: ignore[misc]
            journal.review_journal(word, kind, agent_id=agent)
        )
    for whose, agent in WHOSE.items():
        looks[f"open_expectations, {whose}"] = lambda agent=agent: journal.open_expectations(agent)  # type: ignore[misc]
        looks[f"summary of 90 days, {whose}"] = lambda agent=agent: journal.summary(agent, since)  # type: ignore[misc]
    looks["orphans"] = journal.orphans
    looks["get, the newest"] = lambda: journal.get(entry)
    looks["get, 2,000 signals"] = lambda: journal.get(CROWDED_ENTRY)
    looks["explain_routing"] = lambda: journal.explain_routing(signal)
    return looks


def list_routings(store: Store) -> dict[str, Callable[[], object]]:
    """Return by name what finds the place of a signal, and nothing else."""
    moment = to_ms(utc_now())
    with store.read() as connection:
        hinted = _sample(connection, expectations.c.hint_anchor.is_not(None))
        in_session = _sample(connection, expectations.c.session_key.is_not(None), expectations.c.hint_shape == "")

    def find(news: News) -> None:
        with store.read() as connection:
            find_route(connection, news)

    def by_hint(*, is_agents: bool) -> None:
        one = next(hinted)
        said = dict(one.hint or {})
        words = read_words(str(said.pop("source")), said)
        find(News(words, SignalType.POSITIVE, moment, one.agent_id if is_agents else None))

    def by_session() -> None:
        one = next(in_session)
        find(News(read_words("callback", {"note": 1}), SignalType.NEGATIVE, moment, one.agent_id, one.session_key))

    def guess(source: str, said: Mapping[str, Any], agent: str | None) -> Callable[[], None]:
        return lambda: find(News(read_words(source, said), SignalType.NEGATIVE, moment, agent, "no session"))

    half = {"repository": "acme/another", "event": "workflow_run"}
    wide = {f"key{number}": f"value {number}" for number in range(400)}
    return {
        "route by hint, of an agent": lambda: by_hint(is_agents=True),
        "route by hint, of a webhook": lambda: by_hint(is_agents=False),
        "route by session": by_session,
        "route by window, busy": guess("callback", {"note": 1}, BUSY),
        "route by window, quiet": guess("callback", {"note": 1}, QUIET),
        "route where half a hint speaks against it": guess("github", half, BUSY),
        "route what many hints share": guess("monitor", {"environment": "production", "service": "service-3"}, QUIET),
        "route 400 keys": guess("github", wide, BUSY),
        "route an orphan": guess("github", {"pr": -1, "sha": "f" * 40}, None),
    }


def time_looks(looks: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timed]:
    """Call each in every round."""
    found = {name: Timed() for name in looks}
    for _ in range(rounds):
        for name, look in looks.items():
            found[name].add(look)
    return found


def show_writes(found: Mapping[str, Timed]) -> bool:
    """Print the writes as a table, and tell whether each holds its limit."""
    print(
        f"{'write (ms)':36} {'p50':>7} {'p95':>7} {'flush':>7} {'p95':>7} {'ours':>7} {'p95':>7} {'cpu p50':>7} {'p95':>7}"
    )
    holds = True
    for name, timed in found.items():
        taken, flushed = _to_ms(timed.taken), _to_ms(timed.flushed)
        own = [one - flush for one, flush in zip(taken, flushed, strict=True)]
        is_within = percentile(taken, 95) <= percentile(flushed, 95) + WRITE_LIMIT_MS
        holds = holds and is_within
        columns = (taken, flushed, own, _to_ms(timed.busy))
        figures = (f"{percentile(values, share):7.2f}" for values in columns for share in (50, 95))
        print(f"{name:36} {' '.join(figures)}{'' if is_within else '   MISSED'}")
    return holds


def show_looks(found: Mapping[str, Timed], limit_ms: float, *, most_shown: int) -> bool:
    """Print the slowest looks, and tell whether each holds the limit."""
    slowest = sorted(found, key=lambda name: -percentile(found[name].taken, 95))
    for name in slowest[:most_shown]:
        taken = _to_ms(found[name].taken)
        told = "" if percentile(taken, 95) <= limit_ms else "   MISSED"
        busy = percentile(_to_ms(found[name].busy), 50)
        print(f"{name:44} {percentile(taken, 50):7.2f} {percentile(taken, 95):7.2f} {busy:7.2f}{told}")
    rest = [one for name in slowest[most_shown:] for one in _to_ms(found[name].taken)]
    if rest:
        print(f"{f'{len(slowest) - most_shown} others':44} {percentile(rest, 50):7.2f} {percentile(rest, 95):7.2f}")
    return not slowest or percentile(_to_ms(found[slowest[0]].taken), 95) <= limit_ms


def show_sweep(store: Store, due_count: int) -> None:
    """Let so many expectations become due, and print what resolving them takes."""
    now = to_ms(utc_now())
    size = Size(due_count * 2, due_count * 2, due_count, 0, days=1)
    fill_journal(store, size, first=now, ended_at=now, lasting_ms=(60_000, 120_000))
    journal = Journal(store, clock=lambda: utc_now() + timedelta(minutes=5))
    count = 0

    def sweep() -> None:
        nonlocal count
        count += journal.sweep()

    took = seconds(sweep)
    print(f"sweep of {count:,} due: {took:.2f} s, {took / max(count, 1) * 1000:.3f} ms each")


def show_rate(store: Store, location: str, rounds: int) -> None:
    """Print the rate of `log_intent` over that of bare SQLAlchemy Core in the same store."""
    engine = create_engine(parse_location(location).url) if store.path is None else open_bare(store.path)
    journal = Journal(store)

    def bare() -> None:
        with engine.begin() as connection:
            connection.execute(insert(entries), entry_row())

    def ours() -> None:
        journal.log_intent("load the orders", agent_id="bench")

    bare()
    ours()
    floor_seconds, our_seconds, ratio = in_turns(bare, ours, rounds)
    print(
        f"log_intent: {our_seconds * 1000:.2f} ms, bare Core {floor_seconds * 1000:.2f} ms, {1 / ratio:.0%} of its rate"
    )
    engine.dispose()


def _to_ms(times: list[float]) -> list[float]:
    return [one * 1000 for one in times]


def read_through(store: Store) -> None:
    """Have the store kept in memory, as one in daily use is: else the disk's reads are measured.

    A file is in the system's memory then. A server reads rows, and each index in its order, into its own buffers.
    """
    if store.path is not None:
        with store.path.open("rb", buffering=0) as opened:
            while opened.read(1 << 24):
                pass
        return
    with store.read() as connection:
        for table in _TABLES:
            connection.exec_driver_sql(f"SELECT sum(hashtext(one::text)) FROM {table.name} AS one")
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off")
        connection.exec_driver_sql("SET LOCAL enable_sort = off; SET LOCAL max_parallel_workers_per_gather = 0")
        for table in _TABLES:
            for columns, condition in connection.execute(_INDEXES, {"table": table.name}).all():
                ordered = f"SELECT {columns} FROM {table.name} WHERE {condition} ORDER BY {columns} OFFSET 0"
                connection.exec_driver_sql(f"SELECT count(*) FROM ({ordered}) AS all_of_it")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", help="a file or a URL")
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--due", type=int, default=10_000, help="how many expectations the sweep resolves; 0: no sweep")
    options = parser.parse_args()
    with Store.open(options.store) as store:
        read_through(store)
        with store.read() as connection:
            is_open = expectations.c.status == "open"
            counts = [connection.scalar(select(func.max(table.c.number))) for table in (entries, signals)]
            counts.append(connection.scalar(select(func.count()).where(is_open)))
        print("{:,} entries, {:,} signals, {:,} open expectations".format(*counts))
        writes = Writes(store, options.seed)
        # What is held here is not part of what a caller of the journal holds.
        gc.collect()
        gc.freeze()
        holds = show_writes(time_writes(store, writes, options.rounds))
        print(f"\n{'look (ms)':44} {'p50':>7} {'p95':>7} {'cpu p50':>7}")
        rounds = max(options.rounds // 10, 5)
        holds &= show_looks(time_looks(list_looks(store), rounds), LOOK_LIMIT_MS, most_shown=16)
        holds &= show_looks(time_looks(list_routings(store), options.rounds), ROUTE_LIMIT_MS, most_shown=20)
        print()
        show_rate(store, options.store, options.rounds)
        if options.due:
            show_sweep(store, options.due)
    if not holds:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
