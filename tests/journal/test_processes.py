"""Many processes at one journal, and processes that are killed in the middle of it, on each database."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from pytest_golden.journal.service import Journal
from pytest_golden.storage.schema import entries, expectations, signals
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pathlib import Path

PROCESSES, ROUNDS = 8, 6
# Each process answers its own question and, with the others, one that all of them have.
WRITE = """
import sys
from pytest_golden.journal.service import Journal
location, who, rounds = sys.argv[1:]
with Journal.open(location) as journal:
    for number in range(int(rounds)):
        entry = journal.log_intent(f"load {number}", agent_id=who)
        asked = [{"description": "green", "match_hint": {"pr": f"{who}-{number}"}}]
        journal.log_outcome(entry.id, "success", expectations=asked)
        journal.add_signal("ci", "positive", "green", data={"pr": f"{who}-{number}"}, external_id=f"{who}-{number}")
        journal.add_signal("ci", "positive", "green", data={"pr": "all"}, external_id=f"all-{number}")
        print(entry.id, flush=True)
"""


def start(location: str | Path, who: str, rounds: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WRITE, str(location), who, str(rounds)],
        stdout=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def test_nothing_is_lost_and_news_said_by_many_has_one_effect(location: str | Path) -> None:
    with Journal.open(location) as journal:
        shared = journal.log_intent("watch", agent_id="watcher")
        journal.log_outcome(
            shared.id, "success", expectations=[{"description": "all green", "match_hint": {"pr": "all"}}]
        )
        writers = [start(location, f"agent{number}", ROUNDS) for number in range(PROCESSES)]
        told = [writer.communicate(timeout=120)[0].split() for writer in writers]
        assert [writer.returncode for writer in writers] == [0] * PROCESSES
        for ids in told:
            assert len(ids) == ROUNDS
            assert all(journal.get(one).assessment == "success" for one in ids)
        assert journal.get(shared.id).assessment == "success"
        assert journal.summary().n == PROCESSES * ROUNDS + 1
    with Store.open(location) as store, store.read() as connection:
        counted = [
            connection.scalar(select(func.count()).select_from(table)) for table in (entries, expectations, signals)
        ]
        assert counted == [PROCESSES * ROUNDS + 1, PROCESSES * ROUNDS + 1, PROCESSES * ROUNDS + ROUNDS]
        began = connection.execute(select(entries.c.number, entries.c.id).order_by(entries.c.number)).all()
        assert len({row.number for row in began}) == len(began)


def test_what_was_confirmed_outlives_its_writer(location: str | Path) -> None:
    for number in range(2):
        writer = start(location, f"agent{number}", 10_000)
        assert writer.stdout is not None
        confirmed = [writer.stdout.readline().strip() for _ in range(5)]
        writer.kill()
        confirmed += [line.strip() for line in writer.stdout if line.endswith("\n")]
        writer.stdout.close()
        writer.wait(60)
        with Journal.open(location) as journal:
            assert all(journal.get(one).assessment == "success" for one in confirmed)
            # Whoever comes after one that was killed need not wait.
            assert journal.log_intent("go on", agent_id="next").assessment == "open"
