"""One result out of its rows, with its neighbours. Works on an open connection and decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import literal_column, select

from pytest_golden.gate.recorded.results.model import RecordedResult, read_differences
from pytest_golden.gate.recorded.store import read_result, read_run_facts
from pytest_golden.gate.trends.store import ENVIRONMENT
from pytest_golden.regression.model import Reason
from pytest_golden.storage.documents import read_document
from pytest_golden.storage.json_member import json_member
from pytest_golden.storage.moments import from_ms
from pytest_golden.storage.own_runs import is_own_place, is_own_run
from pytest_golden.storage.schema import gate_results, gate_runs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection, Row

    from pytest_golden.gate.recorded.results.model import OutputDifference

# Others stood against their exit codes or the like.
_MOST_LOOKED_AT = 50
# Written out, so that the index of those that did not pass is known to hold them.
_NOT_PASSED = gate_results.c.status != literal_column("'PASSED'")
_REASONS = json_member(gate_results.c.result, "reasons")
_FACTS = json_member(gate_runs.c.facts, ENVIRONMENT)
_OF_RUN = (gate_runs.c.workspace_root, gate_runs.c.environment_digest, _FACTS)


def find_result(connection: Connection, entry_id: str) -> RecordedResult | None:
    """Give the result of this entry, without looking for its log; None: there is no such result."""
    row = connection.execute(
        select(gate_results, *_OF_RUN)
        .join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id)
        .where(gate_results.c.entry_id == entry_id)
    ).one_or_none()
    run = None if row is None else read_run_facts(connection, row.run_id)
    if row is None or run is None:
        return None
    surroundings = read_document(connection, row.environment_digest) or {}
    return RecordedResult(
        entry_id=row.entry_id,
        run_id=row.run_id,
        created_at=from_ms(row.created_at),
        pass_streak=row.pass_streak,
        is_own=is_own_place(row.workspace_root),
        result=read_result(connection, row),
        gate=run.gate,
        environment={**_as_mapping(row.environment), **_as_mapping(run.gate.get("environment"))},
        distributions=_as_mapping(surroundings.get("distributions")),
        declaration=read_document(connection, row.declaration_digest) or {},
        previous_entry_id=_find_neighbour(connection, row, is_next=False),
        next_entry_id=_find_neighbour(connection, row, is_next=True),
    )


def find_last_entry(connection: Connection, project: str) -> str | None:
    """Give the entry of a project's last result in people's own runs; None without one."""
    query = _own_results(gate_results.c.entry_id).where(gate_results.c.project == project)
    entry_id: str | None = connection.scalar(query.order_by(gate_results.c.number.desc()).limit(1))
    return entry_id


def find_last_difference(connection: Connection, project: str) -> tuple[Row[Any], tuple[OutputDifference, ...]] | None:
    """Give the last result of a project whose outputs differed, with the differences; None where none is known."""
    query = _own_results(*(gate_results.c[name] for name in ("entry_id", "run_id", "created_at")), _REASONS)
    query = query.where(gate_results.c.project == project, _NOT_PASSED)
    for row in connection.execute(query.order_by(gate_results.c.number.desc()).limit(_MOST_LOOKED_AT)):
        reasons = [Reason.from_dict(one) for one in row.reasons or () if isinstance(one, dict) and "kind" in one]
        differences = tuple(read_differences(reasons))
        if differences:
            return row, differences
    return None


def _find_neighbour(connection: Connection, row: Row[Any], *, is_next: bool) -> str | None:
    number = gate_results.c.number
    beyond, order = (number > row.number, number) if is_next else (number < row.number, number.desc())
    query = _own_results(gate_results.c.entry_id).where(gate_results.c.project == row.project, beyond)
    entry_id: str | None = connection.scalar(query.order_by(order).limit(1))
    return entry_id


def _own_results(*columns: Any) -> Any:
    return select(*columns).join(gate_runs, gate_runs.c.entry_id == gate_results.c.run_id).where(is_own_run())


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
