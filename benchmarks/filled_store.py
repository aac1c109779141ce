"""Fills a store as many earlier gate runs would have, without running any: a row for each thing that they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import insert

from pytest_golden.storage.schema import (
    entries,
    expectations,
    gate_results,
    gate_runs,
    memories,
    signals,
    trajectories,
)
from pytest_golden.storage.search import index_memories
from pytest_golden.storage.store import Store

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Table

    Rows = dict[Table, list[dict[str, Any]]]

_RUNS_AT_ONCE = 2_000
_MINUTE_MS = 60_000
_BEGAN = 1_600_000_000_000
_WORDS = "Run golden project {} extract orders transform orders load orders success main"


def fill_store(path: Path, run_count: int, project_count: int) -> None:
    """Put so many ended runs of one or two results each into a store, spread over the projects `p0`, `p1` and so on."""
    with Store.open(path) as store:
        for first in range(0, run_count, _RUNS_AT_ONCE):
            rows: Rows = {}
            for run in range(first, min(first + _RUNS_AT_ONCE, run_count)):
                _add_run(rows, run, project_count)
            with store.write() as connection:
                for table, new in rows.items():
                    connection.execute(insert(table), new)
                index_memories(connection, [(row["number"], row["words"]) for row in rows[memories]])


def _add_run(rows: Rows, run: int, project_count: int) -> None:
    moment, run_id = _BEGAN + run * _MINUTE_MS, f"entry_0{run:024d}R"
    numbers = [run * 2, run * 2 + 1][: 1 + run % 2]
    rows.setdefault(entries, []).append(_entry(run_id, None, "regression_check", moment, met_count=len(numbers)))
    rows.setdefault(gate_runs, []).append(
        {
            "entry_id": run_id,
            "workspace_root": "/work",
            "manifest": "golden_projects.yaml",
            "command_line": ["pytest", "--golden"],
            "commit": f"{run:040x}",
            "branch": "main",
            "dirty": False,
            "environment_digest": "earlier",
            "host": "earlier",
            "pid": 1,
            "started_at": moment,
            "finished_at": moment + 1000,
            "final_status": "passed",
        }
    )
    for number in numbers:
        _add_result(rows, run_id, number, f"p{number % project_count}", moment)


def _add_result(rows: Rows, run_id: str, number: int, project: str, moment: int) -> None:
    entry_id, trajectory_id = f"entry_0{number:024d}P", f"traj_0{number:025d}"
    rows[entries].append(_entry(entry_id, run_id, "golden_run", moment))
    rows.setdefault(expectations, []).append(
        {
            "id": f"expectation_0{number:025d}",
            "entry_id": run_id,
            "description": f"{project} passes",
            "polarity": "positive",
            "critical": False,
            "status": "met",
            "match_hint": {"source": "golden", "run": run_id, "project": project},
            "created_at": moment,
            "resolved_at": moment,
        }
    )
    rows.setdefault(signals, []).append(
        {
            "id": f"signal_0{number:025d}",
            "entry_id": run_id,
            "source": "golden",
            "signal_type": "positive",
            "summary": f"{project}: PASSED",
            "data": {"run": run_id, "project": project},
            "external_id": entry_id,
            "routed_by": "match_hint",
            "created_at": moment,
        }
    )
    rows.setdefault(gate_results, []).append(
        {
            "entry_id": entry_id,
            "run_id": run_id,
            "project": project,
            "status": "PASSED",
            "exit_code": 0,
            "execution_time_seconds": 1.0,
            "attempts": 1,
            "is_flaky": False,
            "is_narrowed": False,
            "is_regression": False,
            "pass_streak": number // 3_000 + 1,
            "declaration_digest": "earlier",
            "trajectory_id": trajectory_id,
            "created_at": moment,
            "learned_at": moment,
            "result": {"name": project, "error_message": None, "output_summary": "loaded 1,000 orders\n" * 10},
        }
    )
    _add_learned(rows, number, project, trajectory_id, moment)


def _add_learned(rows: Rows, number: int, project: str, trajectory_id: str, moment: int) -> None:
    steps = [{"type": "action", "content": f"{name} orders"} for name in ("extract", "transform", "load")]
    row = {"id": trajectory_id, "project": project, "outcome": "success", "started_at": moment, "steps_total": 3}
    rows.setdefault(trajectories, []).append(
        {**row, "agent_id": "golden", "body": {"id": trajectory_id, "steps": steps}}
    )
    for offset, kind in enumerate(("outcomes", "training")):
        rows.setdefault(memories, []).append(
            {
                "number": number * 2 + offset + 1,
                "namespace": f"{kind}/golden/",
                "key": f"{kind}_0{number:025d}",
                "version": 1,
                "is_newest": True,
                "value": {"task_description": f"Run golden project {project}", "steps": steps, "success": True},
                "tags": ["production", "success"],
                "words": _WORDS.format(project),
                "created_at": moment,
                "updated_at": moment,
            }
        )


def _entry(
    entry_id: str, parent_id: str | None, intent_type: str, moment: int, *, met_count: int = 0
) -> dict[str, Any]:
    return {
        "id": entry_id,
        "agent_id": "golden",
        "parent_id": parent_id,
        "intent": "an earlier run",
        "intent_type": intent_type,
        "actions": [],
        "immediate_result": "success",
        "assessment": "success",
        "closed_at": moment,
        "created_at": moment,
        "updated_at": moment,
        "met_count": met_count,
    }
