"""What is in the store of a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from pytest_golden.history.past_store import list_results
from pytest_golden.journal.store import get_entry
from pytest_golden.storage.schema import gate_results, gate_runs, memories
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.history.changes import PastResult
    from pytest_golden.journal.model import JournalEntry

STEP = 'echo \'{"name": "%s"}\' >> "$GOLDEN_STEPS"'


class Recorded:
    """What is in the store of a workspace: its own file, or that of the URL."""

    def __init__(self, path: Path, url: str | None = None) -> None:
        self.path = path
        self._location = url or path

    def runs(self) -> list[JournalEntry]:
        with Store.open(self._location) as store, store.read() as connection:
            ids = connection.scalars(select(gate_runs.c.entry_id).order_by(gate_runs.c.number)).all()
            return [get_entry(connection, one) for one in ids]

    def facts(self) -> dict[str, Any]:
        """Return the row of the last run."""
        with Store.open(self._location) as store, store.read() as connection:
            row = connection.execute(select(gate_runs).order_by(gate_runs.c.number.desc()).limit(1)).mappings().one()
            return dict(row)

    def results(self) -> dict[str, str]:
        """Return the statuses of the last run, in the order of their recording."""
        last = self.facts()["entry_id"]
        with Store.open(self._location) as store, store.read() as connection:
            rows = connection.execute(
                select(gate_results.c.project, gate_results.c.status)
                .where(gate_results.c.run_id == last)
                .order_by(gate_results.c.number)
            ).all()
        assert len({row.project for row in rows}) == len(rows)
        return {row.project: row.status for row in rows}

    def past(self, project: str) -> tuple[PastResult, ...]:
        with Store.open(self._location) as store, store.read() as connection:
            return list_results(connection, project, 20)

    def accepted(self, project: str) -> Any:
        """Return what the last run of a project accepted, as it is kept."""
        newest = gate_results.c.number.desc()
        with Store.open(self._location) as store, store.read() as connection:
            kept = select(gate_results.c.result).where(gate_results.c.project == project).order_by(newest).limit(1)
            return connection.scalars(kept).one()["accepted"]

    def namespaces(self) -> list[str]:
        with Store.open(self._location) as store, store.read() as connection:
            return sorted(connection.scalars(select(memories.c.namespace).distinct()))

    def count_memories(self) -> int:
        with Store.open(self._location) as store, store.read() as connection:
            return len(connection.scalars(select(memories.c.number)).all())
