"""Every table of the store, in SQLAlchemy Core. Rows are made and read by the stations' `store.py` modules.

Timestamps are integer milliseconds since the epoch. `number` gives the order of recording: ids sort by a clock that may
go back. Digests are the first 32 hexadecimal digits of a SHA-256.
`upgrading.py` makes the tables, and adds what PostgreSQL needs: written here, it would load that dialect at each start.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    column,
    false,
    table,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Without this, None would be stored as the JSON text `null`, which is not NULL.
_JSON_OR_NULL = JSON(none_as_null=True)
_IS_OPEN = text("status = 'open'")
_HAS_SHAPE = text("hint_shape IS NOT NULL")
_IS_NO_SUCCESS = text("assessment <> 'success'")


def _number() -> Column[int]:
    # SQLite counts up by itself only in a column of exactly INTEGER.
    return Column("number", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True)


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


# An assessment is computed from the counts, so that a signal costs the same however many an entry has.
entries = Table(
    "entries",
    metadata,
    _number(),
    Column("id", Text, nullable=False, unique=True),
    Column("job_id", Text),
    Column("agent_id", Text, nullable=False),
    Column("session_key", Text),
    Column("parent_id", Text),
    Column("intent", Text, nullable=False),
    Column("intent_type", Text),
    Column("actions", JSON, nullable=False),
    Column("immediate_result", Text, nullable=False),
    Column("immediate_notes", Text),
    Column("assessment", Text, nullable=False),
    Column("assessment_notes", Text),
    Column("closed_at", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    *map(_count, ("open_count", "met_count", "unmet_count", "expired_count", "critical_lost_count")),
    *map(_count, ("positive_count", "negative_count", "correction_count")),
    Column("human_word", Text),
    Index(None, "agent_id", "number"),
    Index(None, "parent_id", "number"),
    Index(None, "intent_type", "number"),
    Index("ix_entries_open", "number", sqlite_where=text("closed_at IS NULL")),
    Index(None, "created_at"),
    Index("ix_entries_session", "agent_id", "session_key", "number", sqlite_where=text("session_key IS NOT NULL")),
    # Most entries succeed, and are found without an index of their own.
    Index("ix_entries_agent_assessment", "agent_id", "assessment", "number", sqlite_where=_IS_NO_SUCCESS),
    Index("ix_entries_assessment", "assessment", "number", sqlite_where=_IS_NO_SUCCESS),
    Index("ix_entries_agent_intent_type", "agent_id", "intent_type", "number"),
    Index("ix_entries_type_assessment", "intent_type", "assessment", "number", sqlite_where=_IS_NO_SUCCESS),
    Index(
        *("ix_entries_agent_type_assessment", "agent_id", "intent_type", "assessment", "number"),
        sqlite_where=_IS_NO_SUCCESS,
    ),
)

#: In the tally, no agent's name.
ALL_AGENTS = ""
# Not in the metadata, since only triggers write it: see `upgrading.py`.
entry_tally = table(
    "entry_tally", column("day"), column("agent_id"), column("intent_type"), column("assessment"), column("amount")
)

# Signals find an expectation by the columns from `agent_id` to `hint_rank`, see `journal/hints.py`; one without a shape is found
# by its hint alone. The last two columns are when its check is run next, and how often it was claimed.
expectations = Table(
    "expectations",
    metadata,
    _number(),
    Column("id", Text, nullable=False, unique=True),
    Column("entry_id", Text, ForeignKey("entries.id"), nullable=False),
    Column("description", Text, nullable=False),
    Column("polarity", Text, nullable=False),
    Column("critical", Boolean, nullable=False),
    Column("status", Text, nullable=False),
    Column("match_hint", _JSON_OR_NULL),
    Column("expires_at", BigInteger),
    Column("check", _JSON_OR_NULL),
    Column("resolved_by", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("resolved_at", BigInteger),
    Column("agent_id", Text),
    Column("session_key", Text),
    Column("hint_anchor", BigInteger),
    Column("hint_shape", Text),
    Column("hint_rank", BigInteger),
    Column("check_due_at", BigInteger),
    _count("check_tries"),
    Index(None, "entry_id", "number"),
    Index("ix_expectations_open", "expires_at", sqlite_where=_IS_OPEN),
    Index("ix_expectations_open_agent", "agent_id", "expires_at", "number", sqlite_where=_IS_OPEN),
    Index(
        *("ix_expectations_asked", "agent_id", "status", "hint_shape", "hint_rank", "number"),
        sqlite_where=_HAS_SHAPE,
    ),
    Index(
        *("ix_expectations_session", "agent_id", "session_key", "status", "hint_shape", "hint_rank", "number"),
        sqlite_where=text("session_key IS NOT NULL"),
    ),
    Index("ix_expectations_anchor", "hint_anchor", "number", sqlite_where=_HAS_SHAPE),
    Index("ix_expectations_open_anchor", "hint_anchor", "hint_rank", "number", sqlite_where=_IS_OPEN),
    Index("ix_expectations_agent_anchor", "hint_anchor", "agent_id", "number", sqlite_where=_HAS_SHAPE),
    Index(
        *("ix_expectations_open_agent_anchor", "hint_anchor", "agent_id", "hint_rank", "number"),
        sqlite_where=_IS_OPEN,
    ),
    Index(
        *("ix_expectations_check_due", "check_due_at", "number"),
        sqlite_where=text("status = 'open' AND check_due_at IS NOT NULL"),
    ),
)

# `routing` holds the rule and the candidates. `content_digest` finds repeated news, which is new only to expectations after
# `expectation_mark`, the last one when it was first received.
signals = Table(
    "signals",
    metadata,
    _number(),
    Column("id", Text, nullable=False, unique=True),
    Column("entry_id", Text, ForeignKey("entries.id")),
    Column("expectation_id", Text),
    Column("agent_id", Text),
    Column("session_key", Text),
    Column("source", Text, nullable=False),
    Column("signal_type", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("data", _JSON_OR_NULL),
    Column("external_id", Text),
    Column("content_digest", Text),
    Column("routed_by", Text, nullable=False),
    Column("routing", _JSON_OR_NULL),
    Column("is_late", Boolean, nullable=False, server_default=false()),
    Column("created_at", BigInteger, nullable=False),
    Column("expectation_mark", BigInteger),
    Index(None, "entry_id", "number"),
    Index(None, "content_digest"),
    Index("ix_signals_orphans", "routed_by", "created_at", "number", sqlite_where=text("routed_by = 'orphan'")),
    Index(None, "routed_by", "number"),
    Index("ix_signals_agent", "agent_id", "routed_by", "number", sqlite_where=text("agent_id IS NOT NULL")),
    UniqueConstraint("source", "external_id"),
)

entry_history = Table(
    "entry_history",
    metadata,
    _number(),
    Column("entry_id", Text, ForeignKey("entries.id"), nullable=False),
    Column("changed_at", BigInteger, nullable=False),
    Column("what", Text, nullable=False),
    Column("who", Text, nullable=False),
    Column("why", Text),
    Column("details", _JSON_OR_NULL),
    Index(None, "entry_id", "number"),
)

# What many runs have in common is kept once, under the digest of its text.
documents = Table(
    "documents",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("body", JSON, nullable=False),
)

gate_runs = Table(
    "gate_runs",
    metadata,
    _number(),
    Column("entry_id", Text, ForeignKey("entries.id"), nullable=False, unique=True),
    Column("workspace_root", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("command_line", JSON, nullable=False),
    Column("commit", Text),
    Column("branch", Text),
    Column("dirty", Boolean),
    Column("dirty_files", _JSON_OR_NULL),
    Column("environment_digest", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Column("final_status", Text),
    Column("facts", _JSON_OR_NULL),
    Index("ix_gate_runs_unfinished", "number", sqlite_where=text("finished_at IS NULL")),
)

# The current state of a run, which it updates from time to time and deletes when it ends; it is stale if the run was killed.
# `machine` names the machine that its pid belongs to.
gate_live = Table(
    "gate_live",
    metadata,
    _number(),
    Column("run_id", Text, ForeignKey("gate_runs.entry_id", ondelete="CASCADE"), nullable=False, unique=True),
    Column("beat_at", BigInteger, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("machine", Text, nullable=False),
    Column("total_count", Integer, nullable=False),
    Column("running", JSON, nullable=False),
)

# `pass_streak` counts the passes in a row up to this one. `result` is the gate report's, without the steps.
gate_results = Table(
    "gate_results",
    metadata,
    _number(),
    Column("entry_id", Text, ForeignKey("entries.id"), nullable=False, unique=True),
    Column("run_id", Text, ForeignKey("entries.id"), nullable=False),
    Column("project", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("exit_code", Integer),
    Column("execution_time_seconds", Float, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("is_flaky", Boolean, nullable=False),
    Column("is_regression", Boolean, nullable=False),
    Column("regression_kind", Text),
    Column("pass_streak", Integer, nullable=False),
    Column("declaration_digest", Text, nullable=False),
    Column("trajectory_id", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("learned_at", BigInteger),
    Column("result", JSON, nullable=False),
    Index(None, "project", "number"),
    Index(None, "run_id", "number", "status"),
    Index("ix_gate_results_last_pass", "project", "number", sqlite_where=text("status = 'PASSED'")),
    Index("ix_gate_results_not_passed", "project", "number", sqlite_where=text("status <> 'PASSED'")),
    Index("ix_gate_results_unlearned", "number", sqlite_where=text("learned_at IS NULL")),
)

trajectories = Table(
    "trajectories",
    metadata,
    _number(),
    Column("id", Text, nullable=False, unique=True),
    Column("entry_id", Text),
    Column("agent_id", Text),
    Column("project", Text),
    Column("outcome", Text),
    Column("started_at", BigInteger, nullable=False),
    Column("completed_at", BigInteger),
    Column("duration_ms", Float),
    Column("steps_total", Integer, nullable=False),
    Column("body", JSON, nullable=False),
    Index(None, "project", "number"),
    Index(None, "entry_id"),
)

# `namespace` is written by `columns.write_namespace`, so that a prefix of whole elements is a range. `words` is what the
# full-text index holds of the newest version; older versions have none.
memories = Table(
    "memories",
    metadata,
    _number(),
    Column("namespace", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("is_newest", Boolean, nullable=False),
    Column("value", JSON, nullable=False),
    Column("tags", JSON, nullable=False),
    Column("provenance", _JSON_OR_NULL),
    Column("words", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    UniqueConstraint("namespace", "key", "version"),
)

# The vector of a memory from an embedding model: little-endian 32-bit floats in Base64, since rows are compared as JSON. It is
# made again when the memory or the model changes. Stamps rise with each write: stamps and the number of rows show a reader who
# keeps vectors in memory what was added and whether rows were removed.
memory_vectors = Table(
    "memory_vectors",
    metadata,
    Column(
        "number",
        BigInteger().with_variant(Integer, "sqlite"),
        ForeignKey("memories.number", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("model", Text, nullable=False),
    Column("vector", Text, nullable=False),
    Column("stamp", BigInteger, nullable=False),
    Index(None, "model", "stamp", "number"),
)

# The errors that find a lesson. They follow from the lessons, which are memories.
lesson_signatures = Table(
    "lesson_signatures",
    metadata,
    _number(),
    Column("digest", Text, nullable=False),
    Column("lesson_id", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("project", Text),
    UniqueConstraint("digest", "lesson_id"),
    Index(None, "lesson_id"),
    Index("ix_lesson_signatures_project", "project", "lesson_id", sqlite_where=text("project IS NOT NULL")),
)

# Each time that a lesson was shown, and its result, settled once by the next run of the same project.
lesson_recalls = Table(
    "lesson_recalls",
    metadata,
    _number(),
    Column("id", Text, nullable=False, unique=True),
    Column("lesson_id", Text, nullable=False),
    Column("agent", Text, nullable=False),
    Column("project", Text),
    Column("entry_id", Text),
    Column("why", Text, nullable=False),
    Column("score", Float, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("settled_at", BigInteger),
    Column("passed", Boolean),
    Index(None, "lesson_id", "number"),
    Index("ix_lesson_recalls_unsettled", "project", "number", sqlite_where=text("settled_at IS NULL")),
)
