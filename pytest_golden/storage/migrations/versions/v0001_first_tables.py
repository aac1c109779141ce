"""The first tables: journal, gate, trajectories, memories and their search index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

# By bytes on PostgreSQL too: ranges and the order of shapes go by them.
_TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make them."""
    _make_entries()
    _make_expectations()
    _make_signals()
    _make_entry_history()
    _make_documents()
    _make_gate_runs()
    _make_gate_results()
    _make_trajectories()
    _make_memories()
    _make_search_index(op.get_bind().dialect.name)


def _number() -> sa.Column[int]:
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    return sa.Column("number", kind, primary_key=True, autoincrement=True)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=sa.text("0"))


def _index_some(name: str, table: str, columns: list[str], where: str) -> None:
    op.create_index(name, table, columns, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


def _make_entries() -> None:
    op.create_table(
        "entries",
        _number(),
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("job_id", _TEXT),
        sa.Column("agent_id", _TEXT, nullable=False),
        sa.Column("session_key", _TEXT),
        sa.Column("parent_id", _TEXT),
        sa.Column("intent", _TEXT, nullable=False),
        sa.Column("intent_type", _TEXT),
        sa.Column("actions", sa.JSON, nullable=False),
        sa.Column("immediate_result", _TEXT, nullable=False),
        sa.Column("immediate_notes", _TEXT),
        sa.Column("assessment", _TEXT, nullable=False),
        sa.Column("assessment_notes", _TEXT),
        sa.Column("closed_at", sa.BigInteger),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        _count("open_count"),
        _count("met_count"),
        _count("unmet_count"),
        _count("expired_count"),
        _count("critical_lost_count"),
        _count("positive_count"),
        _count("negative_count"),
        _count("correction_count"),
        sa.Column("human_word", _TEXT),
        sa.PrimaryKeyConstraint("number", name="pk_entries"),
        sa.UniqueConstraint("id", name="uq_entries_id"),
    )
    op.create_index("ix_entries_agent_id_number", "entries", ["agent_id", "number"])
    op.create_index("ix_entries_intent_type_number", "entries", ["intent_type", "number"])
    _index_some("ix_entries_open", "entries", ["number"], "closed_at IS NULL")
    op.create_index("ix_entries_parent_id_number", "entries", ["parent_id", "number"])


def _make_expectations() -> None:
    op.create_table(
        "expectations",
        _number(),
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("entry_id", _TEXT, nullable=False),
        sa.Column("description", _TEXT, nullable=False),
        sa.Column("polarity", _TEXT, nullable=False),
        sa.Column("critical", sa.Boolean, nullable=False),
        sa.Column("status", _TEXT, nullable=False),
        sa.Column("match_hint", sa.JSON),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("check", sa.JSON),
        sa.Column("resolved_by", _TEXT),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("resolved_at", sa.BigInteger),
        sa.ForeignKeyConstraint(["entry_id"], ["entries.id"], name="fk_expectations_entry_id"),
        sa.PrimaryKeyConstraint("number", name="pk_expectations"),
        sa.UniqueConstraint("id", name="uq_expectations_id"),
    )
    op.create_index("ix_expectations_entry_id_number", "expectations", ["entry_id", "number"])
    _index_some("ix_expectations_open", "expectations", ["expires_at"], "status = 'open'")


def _make_signals() -> None:
    op.create_table(
        "signals",
        _number(),
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("entry_id", _TEXT),
        sa.Column("expectation_id", _TEXT),
        sa.Column("agent_id", _TEXT),
        sa.Column("session_key", _TEXT),
        sa.Column("source", _TEXT, nullable=False),
        sa.Column("signal_type", _TEXT, nullable=False),
        sa.Column("summary", _TEXT, nullable=False),
        sa.Column("data", sa.JSON),
        sa.Column("external_id", _TEXT),
        sa.Column("content_digest", _TEXT),
        sa.Column("routed_by", _TEXT, nullable=False),
        sa.Column("routing", sa.JSON),
        sa.Column("is_late", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.ForeignKeyConstraint(["entry_id"], ["entries.id"], name="fk_signals_entry_id"),
        sa.PrimaryKeyConstraint("number", name="pk_signals"),
        sa.UniqueConstraint("id", name="uq_signals_id"),
        sa.UniqueConstraint("source", "external_id", name="uq_signals_source_external_id"),
    )
    op.create_index("ix_signals_content_digest", "signals", ["content_digest"])
    op.create_index("ix_signals_entry_id_number", "signals", ["entry_id", "number"])


def _make_entry_history() -> None:
    op.create_table(
        "entry_history",
        _number(),
        sa.Column("entry_id", _TEXT, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.Column("what", _TEXT, nullable=False),
        sa.Column("who", _TEXT, nullable=False),
        sa.Column("why", _TEXT),
        sa.Column("details", sa.JSON),
        sa.ForeignKeyConstraint(["entry_id"], ["entries.id"], name="fk_entry_history_entry_id"),
        sa.PrimaryKeyConstraint("number", name="pk_entry_history"),
    )
    op.create_index("ix_entry_history_entry_id_number", "entry_history", ["entry_id", "number"])


def _make_documents() -> None:
    op.create_table(
        "documents",
        sa.Column("digest", _TEXT, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("digest", name="pk_documents"),
    )


def _make_gate_runs() -> None:
    op.create_table(
        "gate_runs",
        _number(),
        sa.Column("entry_id", _TEXT, nullable=False),
        sa.Column("workspace_root", _TEXT, nullable=False),
        sa.Column("manifest", _TEXT, nullable=False),
        sa.Column("command_line", sa.JSON, nullable=False),
        sa.Column("commit", _TEXT),
        sa.Column("branch", _TEXT),
        sa.Column("dirty", sa.Boolean),
        sa.Column("dirty_files", sa.JSON),
        sa.Column("environment_digest", _TEXT, nullable=False),
        sa.Column("host", _TEXT, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("final_status", _TEXT),
        sa.Column("facts", sa.JSON),
        sa.ForeignKeyConstraint(["entry_id"], ["entries.id"], name="fk_gate_runs_entry_id"),
        sa.PrimaryKeyConstraint("number", name="pk_gate_runs"),
        sa.UniqueConstraint("entry_id", name="uq_gate_runs_entry_id"),
    )
    _index_some("ix_gate_runs_unfinished", "gate_runs", ["number"], "finished_at IS NULL")


def _make_gate_results() -> None:
    op.create_table(
        "gate_results",
        _number(),
        sa.Column("entry_id", _TEXT, nullable=False),
        sa.Column("run_id", _TEXT, nullable=False),
        sa.Column("project", _TEXT, nullable=False),
        sa.Column("status", _TEXT, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("execution_time_seconds", sa.Float, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("is_flaky", sa.Boolean, nullable=False),
        sa.Column("is_regression", sa.Boolean, nullable=False),
        sa.Column("regression_kind", _TEXT),
        sa.Column("pass_streak", sa.Integer, nullable=False),
        sa.Column("declaration_digest", _TEXT, nullable=False),
        sa.Column("trajectory_id", _TEXT),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("learned_at", sa.BigInteger),
        sa.Column("result", sa.JSON, nullable=False),
        sa.ForeignKeyConstraint(["entry_id"], ["entries.id"], name="fk_gate_results_entry_id"),
        sa.ForeignKeyConstraint(["run_id"], ["entries.id"], name="fk_gate_results_run_id"),
        sa.PrimaryKeyConstraint("number", name="pk_gate_results"),
        sa.UniqueConstraint("entry_id", name="uq_gate_results_entry_id"),
    )
    _index_some("ix_gate_results_last_pass", "gate_results", ["project", "number"], "status = 'PASSED'")
    op.create_index("ix_gate_results_project_number", "gate_results", ["project", "number"])
    op.create_index("ix_gate_results_run_id_number", "gate_results", ["run_id", "number"])
    _index_some("ix_gate_results_unlearned", "gate_results", ["number"], "learned_at IS NULL")


def _make_trajectories() -> None:
    op.create_table(
        "trajectories",
        _number(),
        sa.Column("id", _TEXT, nullable=False),
        sa.Column("entry_id", _TEXT),
        sa.Column("agent_id", _TEXT),
        sa.Column("project", _TEXT),
        sa.Column("outcome", _TEXT),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("completed_at", sa.BigInteger),
        sa.Column("duration_ms", sa.Float),
        sa.Column("steps_total", sa.Integer, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_trajectories"),
        sa.UniqueConstraint("id", name="uq_trajectories_id"),
    )
    op.create_index("ix_trajectories_entry_id", "trajectories", ["entry_id"])
    op.create_index("ix_trajectories_project_number", "trajectories", ["project", "number"])


def _make_memories() -> None:
    op.create_table(
        "memories",
        _number(),
        sa.Column("namespace", _TEXT, nullable=False),
        sa.Column("key", _TEXT, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("is_newest", sa.Boolean, nullable=False),
        sa.Column("value", sa.JSON, nullable=False),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("provenance", sa.JSON),
        sa.Column("words", _TEXT),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("number", name="pk_memories"),
        sa.UniqueConstraint("namespace", "key", "version", name="uq_memories_namespace_key_version"),
    )


def _make_search_index(database: str) -> None:
    if database == "sqlite":
        # Without a copy of the text. The place narrows a search and does not count in the rank.
        op.execute(
            "CREATE VIRTUAL TABLE memory_words USING fts5("
            "place, words, content='', tokenize='unicode61 remove_diacritics 2')"
        )
        op.execute("INSERT INTO memory_words (memory_words, rank) VALUES ('rank', 'bm25(0.0, 1.0)')")
    else:
        op.execute(
            "CREATE TABLE memory_words (number BIGINT CONSTRAINT pk_memory_words PRIMARY KEY, words TSVECTOR NOT NULL)"
        )
        op.execute("CREATE INDEX ix_memory_words_words ON memory_words USING gin (words)")
