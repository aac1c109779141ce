"""Every table of the store, in SQLAlchemy Core, and which version of them a database has.

Rows are made and read by the stations' `store.py` modules.

Timestamps are integer milliseconds since the epoch. `number` gives the order of recording: ids sort by a clock that may
go back. Digests are the first 32 hexadecimal digits of a SHA-256.
`upgrading.py` makes the tables, and adds what PostgreSQL needs: written here, it would load that dialect at each start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from pytest_golden.errors import StorageError, StorageTrouble

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sqlalchemy import Connection
    from sqlalchemy.types import TypeEngine

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Without this, None would be stored as the JSON text `null`, which is not NULL.
_JSON_OR_NULL = sa.JSON(none_as_null=True)
_IS_OPEN = sa.text("status = 'open'")
_HAS_SHAPE = sa.text("hint_shape IS NOT NULL")
_IS_NO_SUCCESS = sa.text("assessment <> 'success'")


def _number() -> sa.Column[int]:
    # SQLite counts up by itself only in a column of exactly INTEGER.
    return sa.Column("number", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True)


def _id() -> sa.Column[str]:
    return sa.Column("id", sa.Text, nullable=False, unique=True)


def _required(kind: type[TypeEngine[Any]], *names: str) -> Iterator[sa.Column[Any]]:
    return (sa.Column(name, kind, nullable=False) for name in names)


def _optional(kind: TypeEngine[Any] | type[TypeEngine[Any]], *names: str) -> Iterator[sa.Column[Any]]:
    return (sa.Column(name, kind) for name in names)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=sa.text("0"))


# An assessment is computed from the counts, so that a signal costs the same however many an entry has.
entries = sa.Table(
    "entries",
    metadata,
    _number(),
    _id(),
    *_required(sa.Text, "agent_id", "intent", "immediate_result", "assessment"),
    *_optional(sa.Text, "job_id", "session_key", "parent_id", "intent_type", "immediate_notes", "assessment_notes"),
    *_optional(sa.Text, "human_word"),
    *_required(sa.BigInteger, "created_at", "updated_at"),
    *_optional(sa.BigInteger, "closed_at"),
    *map(_count, ("open_count", "met_count", "unmet_count", "expired_count", "critical_lost_count")),
    *map(_count, ("positive_count", "negative_count", "correction_count")),
    *_required(sa.JSON, "actions"),
    sa.Index(None, "agent_id", "number"),
    sa.Index(None, "parent_id", "number"),
    sa.Index(None, "intent_type", "number"),
    sa.Index("ix_entries_open", "number", sqlite_where=sa.text("closed_at IS NULL")),
    sa.Index(None, "created_at"),
    sa.Index(
        "ix_entries_session", "session_key", "agent_id", "number", sqlite_where=sa.text("session_key IS NOT NULL")
    ),
    # Most entries succeed, and are found without an index of their own.
    sa.Index("ix_entries_agent_assessment", "agent_id", "assessment", "number", sqlite_where=_IS_NO_SUCCESS),
    sa.Index("ix_entries_assessment", "assessment", "number", sqlite_where=_IS_NO_SUCCESS),
    sa.Index("ix_entries_agent_intent_type", "agent_id", "intent_type", "number"),
    sa.Index("ix_entries_type_assessment", "intent_type", "assessment", "number", sqlite_where=_IS_NO_SUCCESS),
    sa.Index(
        *("ix_entries_agent_type_assessment", "agent_id", "intent_type", "assessment", "number"),
        sqlite_where=_IS_NO_SUCCESS,
    ),
)

#: In the tally, no agent's name.
ALL_AGENTS = ""
# Not in the metadata, since only triggers write it: see `upgrading.py`.
entry_tally = sa.table(
    "entry_tally",
    sa.column("day"),
    sa.column("agent_id"),
    sa.column("intent_type"),
    sa.column("assessment"),
    sa.column("amount"),
)

# Signals find an expectation by its agent, its session and the columns `hint_...`, see `journal/hints.py`; one without a shape is
# found by its hint alone. `check_due_at` is when its check is run next, `check_tries` how often it was claimed.
expectations = sa.Table(
    "expectations",
    metadata,
    _number(),
    _id(),
    sa.Column("entry_id", sa.Text, sa.ForeignKey("entries.id"), nullable=False),
    *_required(sa.Text, "description", "polarity", "status"),
    *_required(sa.Boolean, "critical"),
    *_optional(sa.Text, "resolved_by", "agent_id", "session_key", "hint_shape"),
    *_required(sa.BigInteger, "created_at"),
    *_optional(sa.BigInteger, "expires_at", "resolved_at", "hint_anchor", "hint_rank", "check_due_at"),
    _count("check_tries"),
    *_optional(_JSON_OR_NULL, "match_hint", "check"),
    sa.Index(None, "entry_id", "number"),
    sa.Index("ix_expectations_open", "expires_at", sqlite_where=_IS_OPEN),
    sa.Index("ix_expectations_open_agent", "agent_id", "expires_at", "number", sqlite_where=_IS_OPEN),
    sa.Index(
        *("ix_expectations_asked", "agent_id", "status", "hint_shape", "hint_rank", "number"),
        sqlite_where=_HAS_SHAPE,
    ),
    sa.Index(
        *("ix_expectations_session", "agent_id", "session_key", "status", "hint_shape", "hint_rank", "number"),
        sqlite_where=sa.text("session_key IS NOT NULL"),
    ),
    sa.Index("ix_expectations_anchor", "hint_anchor", "number", sqlite_where=_HAS_SHAPE),
    sa.Index("ix_expectations_open_anchor", "hint_anchor", "hint_rank", "number", sqlite_where=_IS_OPEN),
    sa.Index("ix_expectations_agent_anchor", "hint_anchor", "agent_id", "number", sqlite_where=_HAS_SHAPE),
    sa.Index(
        *("ix_expectations_open_agent_anchor", "hint_anchor", "agent_id", "hint_rank", "number"),
        sqlite_where=_IS_OPEN,
    ),
    sa.Index(
        *("ix_expectations_check_due", "check_due_at", "number"),
        sqlite_where=sa.text("status = 'open' AND check_due_at IS NOT NULL"),
    ),
)

# `routing` holds the rule and the candidates. `content_digest` finds repeated news, which is new only to expectations after
# `expectation_mark`, the last one when it was first received.
signals = sa.Table(
    "signals",
    metadata,
    _number(),
    _id(),
    sa.Column("entry_id", sa.Text, sa.ForeignKey("entries.id")),
    *_required(sa.Text, "source", "signal_type", "summary", "routed_by"),
    *_optional(sa.Text, "expectation_id", "agent_id", "session_key", "external_id", "content_digest"),
    sa.Column("is_late", sa.Boolean, nullable=False, server_default=sa.false()),
    *_required(sa.BigInteger, "created_at"),
    *_optional(sa.BigInteger, "expectation_mark"),
    *_optional(_JSON_OR_NULL, "data", "routing"),
    sa.Index(None, "entry_id", "number"),
    sa.Index(None, "content_digest"),
    sa.Index("ix_signals_orphans", "routed_by", "created_at", "number", sqlite_where=sa.text("routed_by = 'orphan'")),
    sa.Index(
        *("ix_signals_neutral", "source", "created_at", "number"),
        sqlite_where=sa.text("signal_type = 'neutral'"),
    ),
    sa.Index(None, "routed_by", "number"),
    sa.Index("ix_signals_agent", "agent_id", "routed_by", "number", sqlite_where=sa.text("agent_id IS NOT NULL")),
    sa.UniqueConstraint("source", "external_id"),
)

entry_history = sa.Table(
    "entry_history",
    metadata,
    _number(),
    sa.Column("entry_id", sa.Text, sa.ForeignKey("entries.id"), nullable=False),
    *_required(sa.BigInteger, "changed_at"),
    *_required(sa.Text, "what", "who"),
    *_optional(sa.Text, "why"),
    *_optional(_JSON_OR_NULL, "details"),
    sa.Index(None, "entry_id", "number"),
)

# What many runs have in common is kept once, under the digest of its text.
documents = sa.Table(
    "documents",
    metadata,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("body", sa.JSON, nullable=False),
)

gate_runs = sa.Table(
    "gate_runs",
    metadata,
    _number(),
    sa.Column("entry_id", sa.Text, sa.ForeignKey("entries.id"), nullable=False, unique=True),
    *_required(sa.Text, "workspace_root", "manifest", "environment_digest", "host"),
    *_optional(sa.Text, "commit", "branch", "final_status"),
    *_optional(sa.Boolean, "dirty"),
    *_required(sa.Integer, "pid"),
    *_required(sa.BigInteger, "started_at"),
    *_optional(sa.BigInteger, "finished_at"),
    *_required(sa.JSON, "command_line"),
    *_optional(_JSON_OR_NULL, "dirty_files", "facts"),
    sa.Index("ix_gate_runs_unfinished", "number", sqlite_where=sa.text("finished_at IS NULL")),
)

# The current state of a run, which it updates from time to time and deletes when it ends; it is stale if the run was killed.
# `machine` names the machine that its pid belongs to.
gate_live = sa.Table(
    "gate_live",
    metadata,
    _number(),
    sa.Column("run_id", sa.Text, sa.ForeignKey("gate_runs.entry_id", ondelete="CASCADE"), nullable=False, unique=True),
    *_required(sa.BigInteger, "beat_at"),
    *_required(sa.Integer, "pid", "total_count"),
    *_required(sa.Text, "machine"),
    *_required(sa.JSON, "running"),
)

# `pass_streak` counts the passes in a row up to this one. `result` is the gate report's, without the steps.
gate_results = sa.Table(
    "gate_results",
    metadata,
    _number(),
    sa.Column("entry_id", sa.Text, sa.ForeignKey("entries.id"), nullable=False, unique=True),
    sa.Column("run_id", sa.Text, sa.ForeignKey("entries.id"), nullable=False),
    *_required(sa.Text, "project", "status", "declaration_digest"),
    *_optional(sa.Text, "regression_kind", "trajectory_id"),
    *_required(sa.Integer, "attempts", "pass_streak"),
    *_optional(sa.Integer, "exit_code"),
    *_required(sa.Float, "execution_time_seconds"),
    *_required(sa.Boolean, "is_flaky", "is_regression", "is_narrowed"),
    *_required(sa.BigInteger, "created_at"),
    *_optional(sa.BigInteger, "learned_at"),
    *_required(sa.JSON, "result"),
    sa.Index(None, "project", "number"),
    sa.Index(None, "run_id", "number", "status"),
    sa.Index("ix_gate_results_last_pass", "project", "number", sqlite_where=sa.text("status = 'PASSED'")),
    sa.Index("ix_gate_results_not_passed", "project", "number", sqlite_where=sa.text("status <> 'PASSED'")),
    sa.Index("ix_gate_results_unlearned", "number", sqlite_where=sa.text("learned_at IS NULL")),
)

trajectories = sa.Table(
    "trajectories",
    metadata,
    _number(),
    _id(),
    *_optional(sa.Text, "entry_id", "agent_id", "project", "outcome"),
    *_required(sa.BigInteger, "started_at"),
    *_optional(sa.BigInteger, "completed_at"),
    *_optional(sa.Float, "duration_ms"),
    *_required(sa.Integer, "steps_total"),
    *_required(sa.JSON, "body"),
    sa.Index(None, "project", "number"),
    sa.Index(None, "entry_id"),
)

# `namespace` is written by `columns.write_namespace`, so that a prefix of whole elements is a range. `words` is what the
# full-text index holds of the newest version; older versions have none.
memories = sa.Table(
    "memories",
    metadata,
    _number(),
    *_required(sa.Text, "namespace", "key"),
    *_required(sa.Integer, "version"),
    *_required(sa.Boolean, "is_newest"),
    *_required(sa.BigInteger, "created_at", "updated_at"),
    *_required(sa.JSON, "value", "tags"),
    *_optional(_JSON_OR_NULL, "provenance"),
    *_optional(sa.Text, "words"),
    sa.UniqueConstraint("namespace", "key", "version"),
    # The newest memories of a kind are found without reading the others.
    sa.Index("ix_memories_newest", "namespace", "number", sqlite_where=sa.text("is_newest")),
)

# The vector of a memory from an embedding model: little-endian 32-bit floats in Base64, since rows are compared as JSON. It is
# made again when the memory or the model changes. Stamps rise with each write: stamps and the number of rows show a reader who
# keeps vectors in memory what was added and whether rows were removed.
memory_vectors = sa.Table(
    "memory_vectors",
    metadata,
    sa.Column(
        "number",
        sa.BigInteger().with_variant(sa.Integer, "sqlite"),
        sa.ForeignKey("memories.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("vector", sa.Text, nullable=False),
    sa.Column("stamp", sa.BigInteger, nullable=False),
    sa.Index(None, "model", "stamp", "number"),
)

# The errors that find a lesson. They follow from the lessons, which are memories.
lesson_signatures = sa.Table(
    "lesson_signatures",
    metadata,
    _number(),
    *_required(sa.Text, "digest", "lesson_id", "agent"),
    *_optional(sa.Text, "project"),
    sa.UniqueConstraint("digest", "lesson_id"),
    sa.Index(None, "lesson_id"),
    sa.Index("ix_lesson_signatures_project", "project", "lesson_id", sqlite_where=sa.text("project IS NOT NULL")),
)

# Each time that a lesson was shown, and its result, settled once by the next run of the same project.
lesson_recalls = sa.Table(
    "lesson_recalls",
    metadata,
    _number(),
    _id(),
    *_required(sa.Text, "lesson_id", "agent", "why"),
    *_optional(sa.Text, "project", "entry_id"),
    *_required(sa.Float, "score"),
    *_required(sa.BigInteger, "created_at"),
    *_optional(sa.BigInteger, "settled_at"),
    *_optional(sa.Boolean, "passed"),
    sa.Index(None, "lesson_id", "number"),
    sa.Index("ix_lesson_recalls_unsettled", "project", "number", sqlite_where=sa.text("settled_at IS NULL")),
)

#: The newest version: that of these tables, and of the last migration. Versions are four digits and sort as text.
HEAD = "0001"
#: Not Alembic's own name, so that the database of another program that uses Alembic is never taken for ours.
VERSION_TABLE = "golden_version"
#: Reads the version of tables that are ours.
ASK_VERSION = f"SELECT version_num FROM {VERSION_TABLE}"
_NAMES_ON_SQLITE = "SELECT name FROM sqlite_master"
_NAMES_ON_SERVER = (
    "SELECT relname FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace "
    "WHERE nspname = current_schema() AND relkind IN ('r', 'p', 'v', 'm', 'f')"
)


def newest_version() -> str:
    """Return the version that this program makes and needs."""
    return HEAD


def find_version(connection: Connection, where: str) -> str | None:
    """Return the version of the store `where`; None for a database without our tables.

    A file holds only a store. In a schema on a server, other tables may stand beside it.

    Raises:
        StorageError: the version is newer than this program knows, or the tables are another program's.
    """
    is_file = connection.dialect.name == "sqlite"
    names = set(connection.exec_driver_sql(_NAMES_ON_SQLITE if is_file else _NAMES_ON_SERVER).scalars())
    if not is_file:
        names &= {*metadata.tables, VERSION_TABLE}
    if not names:
        return None
    if VERSION_TABLE not in names:
        raise describe_foreign(where) if is_file else _describe_foreign_tables(where, names)
    version = connection.exec_driver_sql(ASK_VERSION).scalar()
    if version is None:
        raise _describe_lost(where)
    if version > HEAD:
        raise StorageError(
            f"the store {where}: it was made by a newer pytest-golden-projects (version {version} of the tables, this "
            f"one knows {HEAD}); upgrade it with `pip install --upgrade pytest-golden-projects`",
            StorageTrouble.NEWER,
        )
    return str(version)


def refuse_upgraded(row: Sequence[Any] | None, where: str) -> None:
    """Refuse a store whose tables have changed since it was opened: by a newer program, or by restoring an older backup.

    `row` is the answer to `ASK_VERSION` at the start of each transaction; None if the version is lost.

    Raises:
        StorageError: the tables are of another version.
    """
    if row is None:
        raise _describe_lost(where)
    if row[0] < HEAD:
        raise describe_older(where, row[0], "a backup of that time was restored: run `golden store upgrade` for it")
    if row[0] > HEAD:
        raise StorageError(
            f"the store {where}: it was brought up to version {row[0]} of the tables by a newer pytest-golden-projects "
            f"(this one knows {HEAD}): restart this process with the newer one",
            StorageTrouble.NEWER,
        )


def describe_older(where: str, version: str | None, remedy: str) -> StorageError:
    """Return the error for a store that has no tables or older ones, and is not brought up to date here."""
    what = "it has no tables yet" if version is None else f"its tables are of an older version ({version})"
    return StorageError(f"the store {where}: {what}; {remedy}", StorageTrouble.OLDER)


def describe_foreign(where: str) -> StorageError:
    """Return the error for a database of another program."""
    return StorageError(f"the store {where}: it is a database of another program; give another file")


def _describe_lost(where: str) -> StorageError:
    return StorageError(f"the store {where}: it is damaged (its version is lost)", StorageTrouble.CORRUPT)


def _describe_foreign_tables(where: str, names: set[str]) -> StorageError:
    named = ", ".join(sorted(names))
    message = f"the store {where}: tables of another program are there ({named}); give another database or schema"
    return StorageError(message)
