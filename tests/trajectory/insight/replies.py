"""Replies as models give them."""

from __future__ import annotations

import json
from typing import Any

SUGGESTION: dict[str, Any] = {
    "type": "add",
    "category": "constraint",
    "description": "Say which column joins the tables.",
    "rationale": "join_orders failed with KeyError: 'customer_id'.",
    "priority": "high",
    "specific_text": "Join orders and customers on customer_id.",
    "target_section": "Tables",
}
ANSWER: dict[str, Any] = {
    "analysis": "The join used a column that is not there.",
    "root_causes": ["The prompt does not name the key."],
    "suggestions": [SUGGESTION],
    "expected_improvement": "The join finds its key.",
    "confidence": 0.8,
    "needs_clarification": False,
}
REPLY = json.dumps(ANSWER)


def answer(**changes: Any) -> dict[str, Any]:
    """Return the answer with other fields; None takes one out."""
    return {key: value for key, value in {**ANSWER, **changes}.items() if value is not None}


def suggesting(**changes: Any) -> dict[str, Any]:
    """Return the answer with its suggestion changed; None takes a field out."""
    suggestion = {key: value for key, value in {**SUGGESTION, **changes}.items() if value is not None}
    return answer(suggestions=[suggestion])
