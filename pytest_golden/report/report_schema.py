"""The JSON Schema of the gate report. It follows from `GateReport`; what stands here are the parts that no class has."""

from __future__ import annotations

from typing import Any

from pytest_golden.report.gate_report import GateReport
from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.step import Step
from pytest_golden.values.shape_model import model_of, schema_of


def report_schema() -> dict[str, Any]:
    """Return the JSON Schema of the gate report. Readers must tolerate further keys."""
    schema = schema_of(model_of(GateReport))
    schema["properties"] |= {"schema_version": {"const": GateReport.SCHEMA_VERSION}, "gate": _GATE}
    result = schema["$defs"]["GoldenProjectResult"]["properties"]
    # A plugged-in gateway's steps need not have every key.
    step, trajectory = schema_of(model_of(Step)), schema_of(model_of(Trajectory))
    result["steps"]["items"] = {**step, "required": []}
    result["trajectory"]["anyOf"][0] = {**trajectory, "required": ["id"]}
    trajectory["properties"].pop("steps")
    schema["$defs"] |= trajectory.pop("$defs")
    schema["$defs"].pop("Step")
    result["known"]["items"] = _KNOWN
    result["entry_id"] = {
        "type": "string",
        "description": "Its entry in the journal, where the report was read back from there.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "title": "pytest-golden-projects gate report",
    }


_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_FLAG = {"type": "boolean"}
_TEXTS = {"type": "array", "items": _TEXT}
# A plug-in's kinds have members of their own.
_KNOWN = {
    "type": "object",
    "properties": {
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
    "additionalProperties": True,
}
# All of them in the report of a gate; one of `golden run` has its command alone.
_GATE = {
    "type": "object",
    "properties": {
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
        "started_at": {"type": "string", "format": "date-time"},
        "finished_at": {"type": ["string", "null"], "format": "date-time"},
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
}
