"""The gate report (`--golden-json`): one gate run as JSON with a versioned schema, for programs."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.floor import WeakeningKind
from pytest_golden.regression.model import ResultStatus
from pytest_golden.report.files import write_report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from pytest_golden.regression.floor import Weakening
    from pytest_golden.regression.model import RegressionCheckResult

SCHEMA_VERSION = 1


def gate_report(
    check: RegressionCheckResult, *, gate: Mapping[str, Any], weakened_floor: Iterable[Weakening] = ()
) -> dict[str, Any]:
    """Give the gate run as JSON-safe values.

    Args:
        check: all results.
        gate: facts of the run itself: entry_id, commit, branch, dirty, deselected and the like.
        weakened_floor: what is weaker than in the base.
    """
    report = {
        "schema_version": SCHEMA_VERSION,
        **check.to_dict(),
        "weakened_floor": [weakening.to_dict() for weakening in weakened_floor],
        "gate": dict(gate),
    }
    clean: dict[str, Any] = _clean(report)
    return clean


def write_gate_report(
    path: Path, check: RegressionCheckResult, *, gate: Mapping[str, Any], weakened_floor: Iterable[Weakening] = ()
) -> None:
    """Write the gate report; an existing file is replaced in one step, missing parent folders are made.

    Raises:
        GoldenError: the file cannot be written.
    """
    report = gate_report(check, gate=gate, weakened_floor=weakened_floor)
    write_report(path, json.dumps(report, indent=2, ensure_ascii=False, allow_nan=False) + "\n", option="--golden-json")


def report_schema() -> dict[str, Any]:
    """Give the JSON Schema of the gate report. Readers must tolerate further keys."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pytest-golden-projects gate report",
        **_object(
            {
                "schema_version": {"const": SCHEMA_VERSION},
                "final_status": _TEXT,
                "total_count": _COUNT,
                "passed_count": _COUNT,
                "failed_count": {**_COUNT, "description": "Regressions."},
                "skipped_count": _COUNT,
                "regression_detected": _FLAG,
                "weakened_floor": {"type": "array", "items": _WEAKENING},
                "gate": {"type": "object"},
                "results": {"type": "array", "items": _RESULT, "description": "In declaration order."},
            }
        ),
    }


def _object(properties: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "required": [*properties], "properties": {**properties, **(optional or {})}}


_TEXT = {"type": "string"}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = {"type": "array", "items": _TEXT}
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
        "steps": {"type": "array", "items": {"type": "object"}},
        "write_set": _WRITE_SET,
        "warnings": _TEXTS,
        "command": _TEXTS,
        "log_path": _TEXT_OR_NULL,
        "kept_view": _TEXT_OR_NULL,
        "trajectory_id": _TEXT_OR_NULL,
        "trajectory": {"type": ["object", "null"], "description": "The trajectory without its steps."},
        "known": {"type": "array", "items": _KNOWN, "description": "What earlier runs tell about a failure."},
    }
)


def _clean(value: Any) -> Any:
    """Make every text encodable (lone surrogates become escapes) and every number finite."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {_clean(str(key)): _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list | tuple) else value
