"""What the tools answer, as JSON Schemas: what every answer has; there may be more."""

from __future__ import annotations

from typing import Any

from pytest_golden.journal.model import Assessment, ExpectationStatus, RoutedBy
from pytest_golden.mcp.answers import NOTICE

_TEXT: dict[str, Any] = {"type": "string"}
_OPTIONAL_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_ASSESSMENT: dict[str, Any] = {"type": "string", "enum": [str(word) for word in Assessment]}
_ANY_OBJECT: dict[str, Any] = {"type": "object"}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _answer(**properties: dict[str, Any]) -> dict[str, Any]:
    schema = _object(**properties)
    noticed = {NOTICE: {"type": "string", "description": "What did not fit into this answer."}}
    return {**schema, "properties": {**properties, **noticed}}


_EXPECTATION = _object(
    id=_TEXT,
    description=_TEXT,
    status={"type": "string", "enum": [str(word) for word in ExpectationStatus]},
    expires_at=_OPTIONAL_TEXT,
)
_ENTRY = _object(
    id=_TEXT, intent=_TEXT, intent_type=_OPTIONAL_TEXT, assessment=_ASSESSMENT, expectations=_list_of(_EXPECTATION)
)
_LESSON = _object(id=_TEXT, lesson=_TEXT, what_failed=_TEXT, what_worked=_TEXT, why=_TEXT, approved={"type": "boolean"})
_REASON = _object(kind=_TEXT, message=_TEXT)
_RESULT = _object(name=_TEXT, status=_TEXT, reasons=_list_of(_REASON))

LOG_INTENT = _answer(entry_id=_TEXT, assessment=_ASSESSMENT)
LOG_OUTCOME = _answer(entry_id=_TEXT, assessment=_ASSESSMENT, expectations=_list_of(_EXPECTATION))
ADD_SIGNAL = _answer(
    id=_TEXT,
    entry_id=_OPTIONAL_TEXT,
    expectation_id=_OPTIONAL_TEXT,
    routed_by={"type": "string", "enum": [str(word) for word in RoutedBy]},
)
REVIEW_JOURNAL = _answer(entries=_list_of(_ENTRY))
SEARCH_LESSONS = _answer(lessons=_list_of(_LESSON))
RECALL = _answer(
    recall_id=_OPTIONAL_TEXT,
    recalled=_list_of(_object(lesson=_LESSON, score={"type": "number"}, why=_TEXT)),
)
LIST_GOLDEN_PROJECTS = _answer(
    projects=_list_of(
        _object(name=_TEXT, path=_TEXT, description=_OPTIONAL_TEXT, expected_outcome=_TEXT, last_status=_OPTIONAL_TEXT)
    )
)
GOLDEN_STATUS = _answer(final_status=_OPTIONAL_TEXT, gate={"type": ["object", "null"]}, results=_list_of(_RESULT))
EXPLAIN_FAILURE = _answer(
    project=_TEXT,
    status=_OPTIONAL_TEXT,
    reasons=_list_of(_REASON),
    failing_step={"type": ["object", "null"]},
    output_tail=_OPTIONAL_TEXT,
    changed_since_last_pass={},
    known=_list_of({}),
)
