"""A store with something of everything, and a real server on it, for the tests that need more than the application."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pytest_golden.gateway.table_difference import (
    ChangedCell,
    ChangedRow,
    ColumnDifference,
    HistogramBar,
    PairedBy,
    TableDifference,
)
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.outcome_logger import log_agent_outcome
from pytest_golden.regression.model import Reason, ReasonKind, ResultStatus
from pytest_golden.storage.store import Store
from pytest_golden.web.services import Services
from tests.running import PROGRAMS, running
from tests.web.recorded import record_run

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

TOKEN = "a-token-of-the-team-0123456789"
_AMOUNTS = ColumnDifference("amount", 2, 0.5, 0, 1, 4, 3, 8.0, histogram=(HistogramBar("0 to 9", 3, 1),))
_ROWS = (
    ChangedRow(("1",), (ChangedCell("amount", "1", "9"),)),
    ChangedRow(("2",), (ChangedCell("amount", "2", None),)),
)
_TABLE = TableDifference(4, 4, 2, paired_by=PairedBy.KEY, place_names=("id",), columns=(_AMOUNTS,), changed_rows=_ROWS)
_DIFFERS = Reason(ReasonKind.OUTPUT_DIFFERS, "out.csv differs from its baseline\n- 1\n+ 2", "out.csv", table=_TABLE)


def seed(folder: Path) -> str:
    """Make a workspace: a manifest of two projects, and a store with runs, entries, signals, lessons and plans.

    Give the entry of a result.
    """
    manifest = folder / "golden_projects.yaml"
    manifest.write_text(
        "defaults: {network: false}\n"
        "golden_projects:\n  - {name: orders, path: orders.py}\n  - {name: prices, path: prices.py}\n"
    )
    for name in ("orders", "prices"):
        (folder / f"{name}.py").write_text("print('3 rows')\n")
    (folder / ".golden").mkdir(exist_ok=True)
    with Store.open(folder / ".golden" / "golden.db") as store:
        record_run(store, 0, orders={}, prices={})
        failed = {"status": ResultStatus.FAILED, "reasons": (_DIFFERS,)}
        recorded = record_run(store, 1, orders={"output_summary": "\x1b[32m3 rows\x1b[0m <b>"}, prices=failed)
        services = Services.on(store, manifest)
        _log_entries(services)
        _learn(services)
    return recorded.results["prices"]


def _log_entries(services: Services) -> None:
    journal = services.journal
    for number in range(3):
        entry = journal.log_intent(f"Rebuild orders {number}", "deploy", agent_id="builder", session_key=f"s{number}")
        quiet = {"description": "no alarm for an hour", "match_hint": {"source": "pager"}, "expires_minutes": 60_000}
        journal.log_outcome(entry.id, "success", "done", expectations=[quiet])
    journal.add_signal("pager", "positive", "all quiet", data={"table": "orders"}, agent_id="builder")
    journal.add_signal("grafana", "neutral", "nobody waits for this")
    journal.log_intent("Widen customer_id", agent_id="reviewer")


def _learn(services: Services) -> None:
    told = ("Use customer_id instead of customer in the orders table", "Close the cursor before the orders are rebuilt")
    for lesson in told:
        skill = SkillMemory(
            lesson=lesson,
            context="when the orders table is read",
            what_failed="select customer from orders",
            what_worked="select customer_id from orders",
            evidence={"error": f"no such column: {lesson}", "project": "orders"},
        )
        assert services.lessons.add(skill, "builder").kept
    outcome = log_agent_outcome(services.store, "Rebuild", {"rows": 3}, True, ["read", "join", "write"], "builder", 1.5)
    asyncio.run(outcome)


def serving(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None, programs: Path = PROGRAMS
) -> AbstractContextManager[tuple[subprocess.Popen[str], str]]:
    """Run `golden serve`, and give its process and its address; see `running` for `programs`.

    It demands the token only with `--require-token`.
    """
    words = words if "--require-token" in words else (*words, "--no-token")
    given = {"GOLDEN_SERVE_TOKEN": TOKEN, **(environment or {})}
    return running(folder, "serve", *words, environment=given, programs=programs)
