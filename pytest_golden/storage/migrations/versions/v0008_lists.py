"""Indexes for the lists that the faces show: signals by rule and agent, results by run, failures and lessons by project."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_HAS_AGENT = "agent_id IS NOT NULL"
_NOT_PASSED = "status <> 'PASSED'"
_HAS_PROJECT = "project IS NOT NULL"


def upgrade() -> None:
    """Make them; that of a run's results, by which they are counted now, takes the place of a narrower one."""
    op.create_index("ix_signals_routed_by_number", "signals", ["routed_by", "number"])
    _index_some("ix_signals_agent", "signals", ["agent_id", "routed_by", "number"], _HAS_AGENT)
    op.drop_index("ix_gate_results_run_id_number", "gate_results")
    op.create_index("ix_gate_results_run_id_number_status", "gate_results", ["run_id", "number", "status"])
    _index_some("ix_gate_results_not_passed", "gate_results", ["project", "number"], _NOT_PASSED)
    _index_some("ix_lesson_signatures_project", "lesson_signatures", ["project", "lesson_id"], _HAS_PROJECT)


def _index_some(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))
