"""The JSON Schema of the gate report. What the report says is `json_report.py`'s and its parts' own."""

from __future__ import annotations

from typing import Any

from pytest_golden.regression.model import OutputChange, ResultStatus
from pytest_golden.regression.verdict import RunStatus, WeakeningKind

SCHEMA_VERSION = 1


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the gate report. Readers must tolerate further keys."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pytest-golden-projects gate report",
        "description": "What `pytest --golden --golden-json` writes. Readers must tolerate further keys.",
        **_object(
            {
                "schema_version": {"const": SCHEMA_VERSION},
                "final_status": {
                    "enum": [*(str(status) for status in RunStatus), None],
                    "description": "The run's verdict; null until the run ends.",
                },
                "is_partial": {**_FLAG, "description": "Some projects were left out."},
                "verdict": {**_TEXT, "description": "The verdict in one sentence."},
                "total_count": {**_COUNT, "description": "All results."},
                "passed_count": _COUNT,
                "failed_count": {**_COUNT, "description": "Results that fail the gate, whatever their status."},
                "error_count": {**_COUNT, "description": "Failing results with status ERROR."},
                "skipped_count": {**_COUNT, "description": "Skipped without failing the gate."},
                "quarantined_count": {**_COUNT, "description": "Not passed, but quarantined."},
                "flaky_count": {**_COUNT, "description": "Passed, but not on the first attempt."},
                "unchanged_count": {**_COUNT, "description": "Skipped because unchanged."},
                "deselected_count": _COUNT,
                "other_shards_count": {**_COUNT, "description": "Run by another shard."},
                "not_run_count": {**_COUNT, "description": "Selected, but not reached."},
                "weakening_count": {**_COUNT, "description": "Ways in which the floor is weaker."},
                "other_failures_count": {**_COUNT, "description": "Other failed tests."},
                "floor_accepted": {**_FLAG, "description": "A person has accepted a weaker floor."},
                "problems": {**_TEXTS, "description": "Why the harness could not do its job."},
                "regression_detected": {**_FLAG, "description": "A golden project failed the gate."},
                "weakened_floor": {"type": "array", "items": _WEAKENING},
                "gate": _GATE,
                "results": {"type": "array", "items": _RESULT, "description": "In declaration order."},
            }
        ),
    }


def _object(
    properties: dict[str, Any], optional: dict[str, Any] | None = None, *, additional: bool = False
) -> dict[str, Any]:
    told = {"type": "object", "required": [*properties], "properties": {**properties, **(optional or {})}}
    return {**told, "additionalProperties": True} if additional else told


_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = {"type": "array", "items": _TEXT}
_ANYTHING = {"type": "object", "additionalProperties": True}
_MOMENT = {"type": "string", "format": "date-time"}
_MOMENT_OR_NULL = {"type": ["string", "null"], "format": "date-time"}
_WEAKENING = _object(
    {
        "project": {**_TEXT_OR_NULL, "description": "null: the whole manifest."},
        "kind": {"enum": [str(kind) for kind in WeakeningKind]},
        "message": _TEXT,
        "base": _TEXT_OR_NULL,
        "head": _TEXT_OR_NULL,
    }
)
_WRITTEN_FILE = _object({"kind": {"enum": ["file", "symlink", "mode"]}, "size_bytes": _COUNT, "sha256": _TEXT})
_WRITE_SET = _object(
    {
        "created": _TEXTS,
        "changed": _TEXTS,
        "removed": _TEXTS,
        "files": {"type": "object", "additionalProperties": _WRITTEN_FILE},
    }
)
# A plug-in's kinds have members of their own.
_KNOWN = _object(
    {},
    {
        "kind": {**_TEXT, "examples": ["changed_since_pass", "seen_before", "lesson"]},
        "lines": {**_TEXTS, "description": "What the failure's text says of it."},
        "recall_id": {**_TEXT, "description": "lesson: settles what came of it; empty where nothing is kept of it."},
        "lesson": {
            "type": "object",
            "required": ["id", "lesson", "kind", "evidence", "approved"],
            "properties": {
                "id": _TEXT,
                "lesson": _TEXT,
                "kind": _TEXT,
                "evidence": {"type": "object"},
                "approved": _FLAG,
            },
        },
        "score": {"type": "number"},
        "why": {**_TEXT, "examples": ["signature", "project", "words"]},
    },
    additional=True,
)
_ACCEPTED = _object(
    {"path": _TEXT, "change": {"enum": [str(change) for change in OutputChange]}, "message": _TEXT},
    {
        "allowed": {
            **_TEXT,
            "description": "Where redaction finds a secret in it, and why allow_secret allows that.",
        }
    },
)
# A plugged-in gateway's steps need not have them all.
_STEP = _object(
    {},
    {
        "id": _TEXT,
        "type": _TEXT,
        "content": {"description": "Its name, or any JSON value."},
        "timestamp": _MOMENT,
        "duration_ms": {"type": ["number", "null"], "minimum": 0},
        "metadata": {**_ANYTHING, "description": "`error` or `failed` where the step failed."},
        "context": {},
        "importance": _TEXT,
        "parent_step_id": _TEXT_OR_NULL,
    },
)
_SNAPSHOT = _object(
    {
        "id": _TEXT,
        "timestamp": _MOMENT,
        "state": {},
        "reason": _TEXT,
        "step_id": _TEXT_OR_NULL,
        "metadata": _ANYTHING,
    }
)
_TRAJECTORY = _object(
    {"id": _TEXT},
    {
        "schema_version": _COUNT,
        "state_snapshots": {"type": "array", "items": _SNAPSHOT},
        "started_at": _MOMENT,
        "completed_at": _MOMENT_OR_NULL,
        "duration_ms": {"type": ["number", "null"], "minimum": 0},
        "metadata": _ANYTHING,
        "outcome": _TEXT_OR_NULL,
        "error": _TEXT_OR_NULL,
        "filtered": _FLAG,
    },
)
# All of them in the report of a gate; one of `golden run` has its command alone.
_GATE = _object(
    {},
    {
        "entry_id": {**_TEXT_OR_NULL, "description": "The run's entry in the journal; null where it was not recorded."},
        "commit": _TEXT_OR_NULL,
        "branch": _TEXT_OR_NULL,
        "dirty": {"type": ["boolean", "null"], "description": "With edits that were not committed."},
        "manifest": _TEXT,
        "mode": _TEXT,
        "require": {**_FLAG, "description": "A skipped project fails the gate."},
        "command": {**_TEXT, "description": "What made a report of one project."},
        "command_line": {**_TEXTS, "type": ["array", "null"]},
        "environment": {"type": "object", "additionalProperties": _TEXT_OR_NULL},
        "started_at": _MOMENT,
        "finished_at": _MOMENT_OR_NULL,
        "interrupted": _FLAG,
        "shard": {
            **_TEXT_OR_NULL,
            "description": "Which part of the declared projects was run, as 2/4; null means all.",
        },
        "deselected": _TEXTS,
        "not_run": _TEXTS,
        "floor_base": _TEXT_OR_NULL,
        "floor_accepted": _FLAG,
    },
)
_RESULT = _object(
    {
        "name": _TEXT,
        "path": _TEXT,
        "status": {"enum": [str(status) for status in ResultStatus]},
        "is_regression": _FLAG,
        "exit_code": {
            "type": ["integer", "null"],
            "description": "Negative: the signal that ended it. null: never ran.",
        },
        "reasons": {"type": "array", "items": _object({"kind": _TEXT, "message": _TEXT}, {"path": _TEXT})},
        "output_summary": _TEXT,
        "error_message": _TEXT_OR_NULL,
        "execution_time_seconds": {"type": "number", "minimum": 0},
        "attempts": _COUNT,
        "is_flaky": _FLAG,
        "regression_kind": {"enum": ["new", "known", None]},
        "quarantined": {**_TEXT_OR_NULL, "description": "The quarantine's reason while it lasts."},
        "steps_total": _COUNT,
        "steps": {"type": "array", "items": _STEP},
        "write_set": _WRITE_SET,
        "warnings": _TEXTS,
        "command": _TEXTS,
        "log_path": _TEXT_OR_NULL,
        "kept_view": _TEXT_OR_NULL,
        "trajectory_id": _TEXT_OR_NULL,
        "trajectory": {**_TRAJECTORY, "type": ["object", "null"], "description": "The trajectory without its steps."},
        "known": {"type": "array", "items": _KNOWN, "description": "What earlier runs tell about a failure."},
        "accepted": {
            "type": ["array", "null"],
            "items": _ACCEPTED,
            "description": "null unless --golden-update made this run the new baseline, of its duration too.",
        },
    },
    {
        "entry_id": {**_TEXT, "description": "Its entry in the journal, where the report was read back from there."},
        "output_colours": {
            "type": "object",
            "additionalProperties": _TEXT,
            "description": "Lines of the summary as a terminal coloured them.",
        },
    },
)
