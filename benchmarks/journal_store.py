"""Fills a store with a journal as many agents would leave it after months of work, without running any of them.

Entries of every assessment, in sessions and out of them; expectations with the hints of pull requests, mails, records and
services, with sessions or a time window alone; signals that answered them, that came later, and that found no place.

Run: python benchmarks/journal_store.py STORE [--entries N] [--signals N] [--open N] [--orphans N] [--days N] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from side_by_side import seconds
from sqlalchemy import insert

from pytest_golden.clock import utc_now
from pytest_golden.journal.hints import anchor_of, rank, write_shape, write_text
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.postgresql import find_driver
from pytest_golden.storage.schema import entries, entry_history, expectations, signals
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection, Table

DAY_MS = 86_400_000
AGENTS = tuple(f"agent-{number:03d}" for number in range(200))
INTENT_TYPES = ("pull_request", "deploy", "email", "crm_update", "migration", "report", "refund", None)
SERVICES = tuple(f"service-{number}" for number in range(40))
#: An entry with so many signals that to read it is work.
CROWDED_ENTRY = f"entry_0{0:024d}C"
_SIGNALS_OF_CROWDED = 2_000
_AT_ONCE = 20_000
_IN_A_SESSION = 400
_CACHE_KIB = 512 * 1024
# A busy agent and many that are not.
_AGENT_WEIGHTS = tuple(1 / (place + 1) for place in range(len(AGENTS)))
_INTENT_WEIGHTS = (30, 20, 15, 15, 5, 10, 1, 4)
# How an entry that is not open stands, and the statuses of its expectations.
_ENDS = (
    ("success", ("met",), 45),
    ("success", ("met", "met"), 15),
    ("success", (), 20),
    ("failure", ("unmet",), 8),
    ("failure", ("met", "unmet"), 4),
    ("expired", ("expired",), 5),
    ("partial", ("met", "expired"), 3),
)
_END_WEIGHTS = tuple(weight for _, _, weight in _ENDS)
_RAREST_KEYS = ("sha", "pr", "message_id", "record", "service")
_ANSWERS = {"met": "positive", "unmet": "negative"}


class Size(NamedTuple):
    """How much there is; `open_count` expectations are open, in the newer half, one an entry."""

    entry_count: int
    signal_count: int
    open_count: int
    orphan_count: int
    days: int = 120


class Filling:
    """Rows on their way into a store."""

    def __init__(self, seed: int, *, first: int, ended_at: int, size: Size, lasting_ms: tuple[int, int]) -> None:
        self.rows: dict[Table, list[dict[str, Any]]] = {entries: [], expectations: [], signals: [], entry_history: []}
        self._chance = random.Random(seed)
        self._first = first
        self._size = size
        self._ended_at = ended_at
        self._lasting_ms = lasting_ms
        self._signal_number = 0

    def add_entry(self, place: int) -> None:
        """Add the entry of this place, with all that belongs to it."""
        size, chance = self._size, self._chance
        number = self._first + place
        began = self._ended_at - size.days * DAY_MS * (size.entry_count - place) // size.entry_count
        assessment: str
        statuses: tuple[str, ...]
        newer = place - size.entry_count // 2
        if newer >= 0 and _falls_on(newer, size.entry_count - size.entry_count // 2, size.open_count):
            assessment, statuses = "open", chance.choice((("open",), ("open", "met")))
        else:
            assessment, statuses, _ = chance.choices(_ENDS, _END_WEIGHTS)[0]
        agent = chance.choices(AGENTS, _AGENT_WEIGHTS)[0]
        session = f"{agent}/{number // _IN_A_SESSION}" if chance.random() < 0.9 else None
        entry = _make_entry(number, agent, session, began, assessment)
        entry["intent_type"] = chance.choices(INTENT_TYPES, _INTENT_WEIGHTS)[0]
        self.rows[entries].append(entry)
        asked = [self._add_expectation(entry, turn, status) for turn, status in enumerate(statuses)]
        self._add_news(entry, place, asked)
        self._add_history(entry)

    def add_crowded(self) -> None:
        """Add the entry that has very many signals."""
        entry = _make_entry(0, AGENTS[0], None, self._ended_at, "success") | {"id": CROWDED_ENTRY}
        self.rows[entries].append(entry)
        for _ in range(_SIGNALS_OF_CROWDED):
            self._add_signal(entry, None)

    def _add_expectation(self, entry: dict[str, Any], turn: int, status: str) -> dict[str, Any]:
        number = int(entry["id"][-25:-1])
        hint = _make_hint(self._chance, number)
        lasts = self._chance.randint(*self._lasting_ms)
        # What has no hint and no expiry is answered by its session.
        never = status != "expired" and self._chance.random() < 0.2
        expires_at = None if never else (self._ended_at if status == "open" else entry["created_at"]) + lasts
        answered = min(entry["created_at"] + lasts // 2, self._ended_at)
        if status == "expired":
            expires_at = answered
        row = {
            "id": f"expectation_{turn}{number:024d}J",
            "entry_id": entry["id"],
            "description": "it is merged and nobody complains",
            "polarity": "positive",
            "critical": False,
            "status": status,
            "match_hint": hint,
            "expires_at": expires_at,
            "resolved_by": "sweep" if status == "expired" else None,
            "created_at": entry["created_at"],
            "resolved_at": None if status == "open" else answered,
            "agent_id": entry["agent_id"],
            "session_key": entry["session_key"],
            "hint_anchor": _find_anchor(hint or {}),
            "hint_shape": write_shape(hint),
            "hint_rank": rank(len(hint or {}), expires_at),
        }
        self.rows[expectations].append(row)
        entry[f"{status}_count"] += 1
        return row

    def _add_news(self, entry: dict[str, Any], place: int, asked: list[dict[str, Any]]) -> None:
        size = self._size
        wanted = size.signal_count * (place + 1) // size.entry_count - size.signal_count * place // size.entry_count
        answered = [one for one in asked if one["status"] in _ANSWERS]
        if _falls_on(place, size.entry_count, size.orphan_count):
            self._add_signal(None, None, moment=entry["created_at"])
            wanted -= 1
        for expectation in answered:
            expectation["resolved_by"] = self._add_signal(entry, expectation)
        for _ in range(wanted - len(answered)):
            self._add_signal(entry, None)

    def _add_signal(
        self, entry: dict[str, Any] | None, answered: Mapping[str, Any] | None, *, moment: int | None = None
    ) -> str:
        self._signal_number += 1
        number = self._signal_number + self._first * 8
        hint = answered["match_hint"] if answered else _make_hint(self._chance, -number)
        said = dict(hint or {"note": f"remark {number}"})
        source, signal_type = str(said.pop("source", "callback")), "neutral"
        if entry is not None and answered is not None:
            signal_type = _ANSWERS[answered["status"]]
            entry[f"{signal_type}_count"] += 1
        is_outside = self._chance.random() < 0.5
        routed_by = "entry" if answered is None else "match_hint" if hint else "session_key"
        row = {
            "id": f"signal_0{number:024d}J",
            "entry_id": None if entry is None else entry["id"],
            "expectation_id": answered["id"] if answered else None,
            "agent_id": None if entry is None else entry["agent_id"],
            "session_key": None if entry is None else entry["session_key"],
            "source": source,
            "signal_type": signal_type,
            "summary": f"news {number} of {source}",
            "data": said or None,
            "external_id": f"delivery-{number}" if is_outside else None,
            "content_digest": None if is_outside else f"{self._chance.getrandbits(128):032x}",
            "routed_by": "orphan" if entry is None else routed_by,
            "routing": {"candidates": [_make_verdict(answered)] if answered else [], "others": 3},
            "is_late": False,
            "created_at": answered["resolved_at"] if answered else moment or (entry or {})["created_at"],
            "expectation_mark": number,
        }
        self.rows[signals].append(row)
        return str(row["id"])

    def _add_history(self, entry: dict[str, Any]) -> None:
        said = {"entry_id": entry["id"], "changed_at": entry["created_at"], "who": entry["agent_id"], "why": None}
        self.rows[entry_history].append(
            {**said, "what": "outcome", "details": {"result": "success", "expectations": 1}}
        )
        if entry["assessment"] != "open":
            details = {"from": "open", "to": entry["assessment"]}
            self.rows[entry_history].append({**said, "what": "assessment", "details": details})


def fill_journal(
    store: Store,
    size: Size,
    *,
    first: int = 0,
    seed: int = 0,
    ended_at: int | None = None,
    lasting_ms: tuple[int, int] = (DAY_MS, 60 * DAY_MS),
) -> None:
    """Put a journal of this size into a store; it ends at a moment, now by default (milliseconds since the epoch).

    `first` numbers its first entry: another filling wants numbers of its own. What is open expires so long after the end.
    """
    ended_at = to_ms(utc_now()) if ended_at is None else ended_at
    filling = Filling(seed, first=first, ended_at=ended_at, size=size, lasting_ms=lasting_ms)
    for start in range(0, size.entry_count, _AT_ONCE):
        for place in range(start, min(start + _AT_ONCE, size.entry_count)):
            filling.add_entry(place)
        if not first and start + _AT_ONCE >= size.entry_count:
            filling.add_crowded()
        with store.write() as connection:
            if connection.dialect.name == "sqlite":
                connection.exec_driver_sql(f"PRAGMA cache_size = -{_CACHE_KIB}")
            for table, rows in filling.rows.items():
                if rows:
                    _insert_rows(connection, table, rows)
                rows.clear()
    if store.path is None:
        _analyze(store, filling.rows)


def _insert_rows(connection: Connection, table: Table, rows: list[dict[str, Any]]) -> None:
    if connection.dialect.name == "sqlite":
        connection.execute(insert(table), rows)
        return
    dialect = connection.dialect
    binders = {name: table.c[name].type.dialect_impl(dialect).bind_processor(dialect) for name in rows[0]}
    columns = ", ".join(f'"{name}"' for name in binders)
    with find_driver(connection).cursor().copy(f"COPY {table.name} ({columns}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row([row[name] if bind is None else bind(row[name]) for name, bind in binders.items()])


def _analyze(store: Store, tables: Iterable[Table]) -> None:
    """Do what a server does by itself a minute later: tell the planner what is there."""
    with store.write() as connection:
        for table in tables:
            connection.exec_driver_sql(f"ANALYZE {table.name}")


def _make_entry(number: int, agent: str, session: str | None, began: int, assessment: str) -> dict[str, Any]:
    counted = ("open", "met", "unmet", "expired", "critical_lost", "positive", "negative", "correction")
    return {
        "id": f"entry_0{number:024d}J",
        "agent_id": agent,
        "session_key": session,
        "intent": f"change {number}: make the nightly load of the orders faster",
        "intent_type": None,
        "actions": [{"tool": "edit", "path": f"pipelines/load_{number % 90}.sql"}, {"tool": "test", "passed": 12}],
        "immediate_result": "success" if assessment == "success" else "unknown",
        "immediate_notes": "all tests pass",
        "assessment": assessment,
        "closed_at": None if assessment == "open" else began + 1,
        "created_at": began,
        "updated_at": began + 1,
        **{f"{name}_count": 0 for name in counted},
    }


def _make_hint(chance: random.Random, number: int) -> dict[str, Any] | None:
    sha, repository = f"{chance.getrandbits(160):040x}", f"acme/repo-{number % 50}"
    kinds: tuple[dict[str, Any] | None, ...] = (
        {"source": "github", "repository": repository, "pr": number, "sha": sha},
        {"source": "github", "event": "check_run", "sha": sha},
        {"source": "github", "repository": repository, "pr": number},
        {"source": "mail", "message_id": f"<{number}@mail.example.org>"},
        {"source": "crm", "record": f"A-{number}", "field": "stage"},
        {"source": "monitor", "service": chance.choice(SERVICES), "environment": "production"},
        None,
    )
    return chance.choice(kinds)


def _find_anchor(hint: Mapping[str, Any]) -> int | None:
    """Return the anchor that the journal would choose, since fewest share it."""
    return next((anchor_of(key, write_text(hint[key])) for key in _RAREST_KEYS if key in hint), None)


def _make_verdict(taken: Mapping[str, Any]) -> dict[str, Any]:
    rule = "match_hint" if taken["match_hint"] else "session_key"
    return {"expectation_id": taken["id"], "rule": rule, "taken": True, "reason": "every key of its hint fits"}


def _falls_on(place: int, places: int, wanted: int) -> bool:
    """Tell whether one of so many wanted, spread evenly, falls on a place."""
    return wanted * (place + 1) // places > wanted * place // places


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", help="a file or a URL")
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--signals", type=int, default=3_000_000)
    parser.add_argument("--open", type=int, default=100_000, help="how many expectations are open")
    parser.add_argument("--orphans", type=int, default=20_000)
    parser.add_argument("--days", type=int, default=120, help="over how many days, up to now")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    size = Size(options.entries, options.signals, options.open, options.orphans, options.days)
    with Store.open(options.store, upgrades=True) as store:
        took = seconds(lambda: fill_journal(store, size, seed=options.seed))
    print(f"{size.entry_count:,} entries, {size.signal_count:,} signals in {time.strftime('%M:%S', time.gmtime(took))}")


if __name__ == "__main__":
    main()
