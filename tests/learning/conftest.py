from __future__ import annotations

import asyncio
import inspect
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from sqlalchemy import insert

from pytest_golden.learning.model import ProductionOutcome
from pytest_golden.storage.schema import entries, gate_results, gate_runs, trajectories
from pytest_golden.storage.store import Store
from tests.learning.language_model.server import run_model_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.learning.language_model.server import ModelServer

# For tests of what differs between the two databases.
BOTH = pytest.mark.parametrize("location", ["sqlite", "postgresql"], indirect=True)
START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
START_MS = int(START.timestamp() * 1000)


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **amount: float) -> None:
        self.now += timedelta(**amount)


class MakeOutcome(Protocol):
    def __call__(self, **fields: Any) -> ProductionOutcome: ...


@pytest.fixture
def make_outcome() -> MakeOutcome:
    def make(**fields: Any) -> ProductionOutcome:
        plain = {
            "task_description": "load the orders",
            "agent_name": "etl",
            "execution_path": ["extract", "load"],
            "result": {"rows": 3},
            "success": True,
        }
        return ProductionOutcome(**{**plain, **fields})

    return make


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """The location of an empty store: an SQLite file, and also a PostgreSQL database for tests that are marked `BOTH`."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return tmp_path / "golden.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def store(location: str | Path) -> Iterator[Store]:
    with Store.open(location) as opened:
        yield opened


class GateHistory:
    """Writes gate runs and results as the gate does, without the rest of a journal."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.count = 0

    def run(self, commit: str | None = "a" * 40, *, dirty: bool = False) -> str:
        self.count += 1
        run_id = f"entry_RUN{self.count:05}"
        with self.store.write() as connection:
            self._insert_entry(connection, run_id)
            row = {
                "entry_id": run_id,
                "workspace_root": "/w",
                "manifest": "/w/golden_projects.yaml",
                "command_line": ["pytest", "--golden"],
                "commit": commit,
                "branch": "main",
                "dirty": dirty,
                "environment_digest": "0" * 32,
                "host": "here",
                "pid": 1,
                "started_at": START_MS + self.count,
            }
            connection.execute(insert(gate_runs), row)
        return run_id

    def result(
        self,
        run_id: str,
        project: str = "sales",
        status: str = "PASSED",
        *,
        message: str | None = None,
        kind: str = "exit_code",
        steps: tuple[Any, ...] = ("extract", "load"),
        **columns: Any,
    ) -> str:
        """Record a result; `columns` replace those of the row, `result` keys those of the report."""
        return self.results(run_id, [(project, status, message)], kind=kind, steps=steps, **columns)[0]

    def results(
        self,
        run_id: str,
        told: list[tuple[str, str, str | None]],
        *,
        kind: str = "exit_code",
        steps: tuple[Any, ...] = ("extract", "load"),
        **columns: Any,
    ) -> list[str]:
        made = []
        with self.store.write() as connection:
            for project, status, message in told:
                self.count += 1
                entry = f"entry_01ARZ3NDEKTSV4RRFF{self.count:08}"
                made.append(entry)
                self._insert_entry(connection, entry)
                trajectory_id = f"traj_{entry}"
                body = {"schema_version": 1, "id": trajectory_id, "steps": [_step(step) for step in steps]}
                connection.execute(
                    insert(trajectories),
                    {"id": trajectory_id, "started_at": START_MS, "steps_total": len(steps), "body": body},
                )
                reasons = [] if message is None else [{"kind": kind, "message": message}]
                row = {
                    "entry_id": entry,
                    "run_id": run_id,
                    "project": project,
                    "status": status,
                    "exit_code": 0 if status == "PASSED" else 1,
                    "execution_time_seconds": 1.5,
                    "attempts": 1,
                    "is_flaky": False,
                    "is_narrowed": False,
                    "is_regression": status in {"FAILED", "ERROR"},
                    "pass_streak": 0,
                    "declaration_digest": "0" * 32,
                    "trajectory_id": trajectory_id,
                    "created_at": START_MS + self.count * 1000,
                    "result": {
                        "name": project,
                        "reasons": reasons,
                        "error_message": message,
                        "write_set": {"created": ["out.csv"], "changed": [], "removed": []},
                        "output_summary": "x" * 4000,
                    },
                    **columns,
                }
                connection.execute(insert(gate_results), row)
        return made

    def _insert_entry(self, connection: Any, entry_id: str) -> None:
        connection.execute(
            insert(entries),
            {
                "id": entry_id,
                "agent_id": "golden",
                "intent": "run",
                "actions": [],
                "immediate_result": "unknown",
                "assessment": "open",
                "created_at": START_MS,
                "updated_at": START_MS,
            },
        )


def _step(step: Any) -> dict[str, Any]:
    return step if isinstance(step, dict) else {"id": f"step_{step}", "type": "action", "content": step, "metadata": {}}


@pytest.fixture
def history(store: Store) -> GateHistory:
    return GateHistory(store)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A server of models, reached without whatever proxy this machine has."""
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with run_model_server() as running:
        yield running


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in arguments}))
    return True
