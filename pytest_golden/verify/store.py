"""Recorded results of a commit, and the marks that a verification leaves on results.

Works on an open connection and decides nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import and_, func, or_, select, update

from pytest_golden.regression.model import GoldenProjectResult
from pytest_golden.regression.verdict import RunStatus
from pytest_golden.storage.schema import entries, gate_results, gate_runs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import Connection

_MOST_RUNS_LOOKED_AT = 2_000
_MOST_RUNS = 50
_MOST_VERIFICATIONS = 50
_INTERRUPTED = RunStatus.INTERRUPTED.value
_FAILED = frozenset({"FAILED", "ERROR"})


class CleanRun(NamedTuple):
    """A gate run that ended on a commit without edits."""

    run_id: str
    manifest: str
    workspace_root: str


def list_clean_runs(connection: Connection, commit: str, environment_digest: str) -> tuple[CleanRun, ...]:
    """Return the newest runs that ended on a commit without edits, in this environment; newest first."""
    oldest = select(func.max(gate_runs.c.number) - _MOST_RUNS_LOOKED_AT).scalar_subquery()
    rows = connection.execute(
        select(gate_runs.c.entry_id, gate_runs.c.manifest, gate_runs.c.workspace_root)
        .where(gate_runs.c.number > oldest, gate_runs.c.commit == commit, gate_runs.c.dirty.is_(False))
        .where(gate_runs.c.environment_digest == environment_digest, _has_ended())
        .order_by(gate_runs.c.number.desc())
        .limit(_MOST_RUNS)
    )
    return tuple(CleanRun(row.entry_id, row.manifest, row.workspace_root) for row in rows)


def list_ended(connection: Connection, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Return those of these runs that ended and were not interrupted."""
    found = connection.scalars(
        select(gate_runs.c.entry_id).where(gate_runs.c.entry_id.in_(list(run_ids)), _has_ended())
    )
    return tuple(found)


def list_verifications(connection: Connection, agent_id: str, intent_type: str) -> tuple[Mapping[str, Any], ...]:
    """Return the notes of the newest verifications, newest first."""
    rows = connection.scalars(
        select(entries.c.actions)
        .where(entries.c.agent_id == agent_id, entries.c.intent_type == intent_type)
        .order_by(entries.c.number.desc())
        .limit(_MOST_VERIFICATIONS)
    )
    return tuple(action for actions in rows for action in actions or () if isinstance(action, dict))


def list_results_of(connection: Connection, run_ids: Iterable[str]) -> tuple[GoldenProjectResult, ...]:
    """Return the results of these runs, newest first. Failed results include their steps, so that failures can be compared.

    A failed result whose steps have been removed is left out.
    """
    rows = connection.scalars(
        select(gate_results.c.result)
        .where(gate_results.c.run_id.in_(list(run_ids)))
        .order_by(gate_results.c.number.desc())
    ).all()
    whole = (_add_steps(connection, plain) for plain in rows)
    return tuple(GoldenProjectResult.from_dict(plain) for plain in whole if plain is not None)


def mark_regressions(connection: Connection, run_ids: Iterable[str], kinds: Mapping[str, str]) -> None:
    """Note on the failures of these runs whether each is new or known, by project."""
    rows = connection.execute(
        select(gate_results.c.number, gate_results.c.project, gate_results.c.result)
        .where(gate_results.c.run_id.in_(list(run_ids)), gate_results.c.project.in_(list(kinds)))
        .where(or_(gate_results.c.is_regression, gate_results.c.status.in_(["FAILED", "ERROR"])))
    ).all()
    for row in rows:
        kind = kinds[row.project]
        connection.execute(
            update(gate_results)
            .where(gate_results.c.number == row.number)
            .values(regression_kind=kind, result={**row.result, "regression_kind": kind})
        )


def _add_steps(connection: Connection, plain: Mapping[str, Any]) -> Mapping[str, Any] | None:
    if plain["status"] not in _FAILED or not plain.get("steps_total"):
        return plain
    # Imported here: a base that passed does not need it.
    from pytest_golden.trajectory.store import find_dict_form

    kept = find_dict_form(connection, plain["trajectory_id"])
    return None if kept is None else {**plain, "steps": kept["steps"]}


def _has_ended() -> Any:
    return and_(gate_runs.c.finished_at.is_not(None), gate_runs.c.final_status != _INTERRUPTED)
