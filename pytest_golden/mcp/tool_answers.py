"""The tools' answers: JSON-safe, bounded in size, safe to show on a terminal; and their JSON Schemas. Pure.

An answer is sent twice, as a value and as the text of the same JSON; together they stay below 256 KiB. A schema names what
every answer has; there may be more.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from pydantic import BaseModel, create_model

from pytest_golden.cycle.past_cycles import PastCycle
from pytest_golden.history.recorded_model import Declaration, FailureExplanation
from pytest_golden.history.suspects import Suspect
from pytest_golden.journal.model import Expectation, JournalEntry, Signal
from pytest_golden.journal.review import EntryDetails
from pytest_golden.learning.agent_hints import Hint
from pytest_golden.learning.lessons.model import Recalled, SkillMemory
from pytest_golden.learning.model import ExtractedPlan
from pytest_golden.regression.model import GoldenProjectResult, Reason
from pytest_golden.regression.verdict import RunVerdict
from pytest_golden.values.json_form import escape_in_json
from pytest_golden.values.shape_model import list_of, model_of, schema_of

#: The largest answer of a tool, both forms together; the rest is for the protocol around it.
MOST_BYTES = 250 * 1024
#: How long a text may be before it is cut.
MOST_TEXT_BYTES = 4 * 1024
NOTICE = "notice"
_MOST_DEPTH = 32
_MOST_KEYS = 64
_ROOM_FOR_MARK = 48
# Texts whose end tells more than their beginning.
_KEPT_BY_THE_END = frozenset({"output_tail"})
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f]")


class _Room(NamedTuple):
    text_bytes: int
    items: int


# Tried in this order. Texts are shortened first: an item matters more than all of its words.
_ROOMS = (
    _Room(MOST_TEXT_BYTES, 1_000),
    _Room(1_024, 1_000),
    _Room(384, 500),
    _Room(160, 200),
    _Room(72, 200),
    _Room(160, 100),
    _Room(160, 40),
    _Room(160, 10),
    _Room(72, 3),
)


class Answer(NamedTuple):
    """A tool's answer: the value, and the text of the same JSON."""

    value: dict[str, Any]
    text: str


def make_answer(given: Mapping[str, Any]) -> Answer:
    """Return an answer of JSON content, shortened until it fits; `notice` then tells what was left out.

    Raises:
        ValueError: it cannot be made to fit.
    """
    for room in _ROOMS:
        cutter = _Cutter(room)
        value = cutter.cut_members(given)
        if cutter.left_out:
            value[NOTICE] = f"{cutter.left_out:,} items did not fit into this answer: ask for fewer, or more narrowly"
        text = write_json(value)
        if _size_of(text) <= MOST_BYTES:
            return Answer(value, text)
    raise ValueError("the answer is larger than 256 KiB whatever is left out: ask more narrowly")


def make_visible(text: str) -> str:
    """Return a sentence of at most 4 KiB with its control and bidi characters as escapes."""
    seen = escape_in_json(_CONTROLS.sub(lambda found: json.dumps(found[0])[1:-1], text))
    return _cut_text(seen, MOST_TEXT_BYTES)


def write_json(value: Any) -> str:
    """Write JSON in one line."""
    return escape_in_json(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))


def _size_of(text: str) -> int:
    return len(text.encode()) + len(json.dumps(text, ensure_ascii=False).encode())


@dataclass
class _Cutter:
    """Copies JSON content into the room that there is, and counts what is left out."""

    room: _Room
    left_out: int = field(default=0, init=False)

    def cut_members(self, value: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
        """Return a copy of a mapping; one with very many keys loses the last of them."""
        members = list(value.items())
        most = max(_MOST_KEYS, self.room.items)
        self.left_out += max(0, len(members) - most)
        return {
            _cut_text(str(key), self.room.text_bytes): self._cut(item, depth + 1, keeps_end=key in _KEPT_BY_THE_END)
            for key, item in members[:most]
        }

    def _cut(self, value: Any, depth: int, *, keeps_end: bool = False) -> Any:
        if isinstance(value, str):
            return _cut_text(value, self.room.text_bytes, keeps_end=keeps_end)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if value is None or isinstance(value, bool | int):
            return value
        if depth > _MOST_DEPTH:
            self.left_out += 1
            return "[cut: nested too deeply]"
        if isinstance(value, Mapping):
            return self.cut_members(value, depth)
        items = list(value)
        self.left_out += max(0, len(items) - self.room.items)
        return [self._cut(item, depth + 1) for item in items[: self.room.items]]


def _cut_text(text: str, most: int, *, keeps_end: bool = False) -> str:
    """Return a text of at most `most` bytes, marked where it is cut; surrogates become escapes."""
    if len(text) * 4 <= most:
        return text if text.isascii() else _encodable(text)
    near = text[-most:] if keeps_end else text[:most]
    raw = _encodable(near).encode()
    if len(near) == len(text) and len(raw) <= most:
        return raw.decode()
    room = most - _ROOM_FOR_MARK
    kept = (raw[-room:] if keeps_end else raw[:room]).decode(errors="ignore")
    mark = f"[cut: {len(text) - len(kept):,} more characters]"
    return f"{mark} ... {kept}" if keeps_end else f"{kept} ... {mark}"


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


@cache
def describe_answers() -> Mapping[str, Mapping[str, Any]]:
    """Return the JSON Schema of each tool's answer, by the tool's name."""
    cycle = model_of(PastCycle, "cycle_id", "entry_id", "task", "verdict", "why", "branch", "branch_state", "commit")
    expectation = model_of(Expectation, "id", "description", "status", "expires_at")
    lesson = model_of(SkillMemory, "id", "lesson", "what_failed", "what_worked", "why", "approved")
    entry = model_of(JournalEntry, "id", "intent", "intent_type", "assessment", expectations=list_of(expectation))
    hint = model_of(Hint, "kind", "advice", "score", "why", "id")
    plan = model_of(ExtractedPlan, "plan_id", "outcome_id", "strategy_description", "tools_sequence", "confidence")
    logged = model_of(JournalEntry, "entry_id", "assessment", entry_id=str)
    recalled = model_of(Recalled, "lesson", "score", "why", lesson=lesson)
    project = model_of(Declaration, "name", "path", "description", "expected_outcome", last_status=str | None)
    reason = model_of(Reason, "kind", "message")
    result = model_of(GoldenProjectResult, "name", "status", reasons=list_of(reason))
    answers = {
        "log_intent": logged,
        "log_outcome": model_of(
            JournalEntry, "entry_id", "assessment", entry_id=str, expectations=list_of(expectation)
        ),
        "add_signal": model_of(Signal, "id", "entry_id", "expectation_id", "routed_by"),
        "propose_acceptance": create_model("Proposed", project=(str, ...), outputs=(list[str], ...), next=(str, ...)),
        "start_task": create_model("Started", task_id=(str, ...), hints=(list_of(hint), ...)),
        "log_attempt": create_model("Attempted", hints=(list_of(hint), ...)),
        "finish_task": create_model("Finished", kept=(bool, ...)),
        "propose_lesson": create_model(
            "ProposedLesson", lesson_id=(str | None, ...), kept=(bool, ...), reason=(str, ...), next=(str | None, ...)
        ),
        "get_hints": create_model("Hints", hints=(list_of(hint), ...)),
        "get_plan": create_model("Plans", plans=(list_of(plan), ...), warnings=(list[str], ...)),
        "review_journal": create_model("Entries", entries=(list_of(entry), ...)),
        "get_entry": model_of(
            EntryDetails, "id", "intent", "assessment", "assessment_notes", expectations=list_of(expectation)
        ),
        "list_cycles": create_model("Cycles", cycles=(list_of(cycle), ...)),
        "search_lessons": create_model("Lessons", lessons=(list_of(lesson), ...)),
        "recall": create_model(
            "Recollection",
            recall_id=(str | None, ...),
            recalled=(list_of(recalled), ...),
            suspects=(list_of(model_of(Suspect)), ...),
        ),
        "list_golden_projects": create_model("Projects", projects=(list_of(project), ...)),
        "golden_status": model_of(
            RunVerdict, "final_status", "is_partial", "verdict", gate=dict[str, Any], results=list_of(result)
        ),
        "explain_failure": model_of(
            FailureExplanation,
            *("explanation", "project", "status", "reasons", "failing_step", "output_tail"),
            *("changed_since_last_pass", "known"),
            reasons=list_of(reason),
        ),
    }
    return {name: _answer(model) for name, model in answers.items()}


def _answer(model: type[BaseModel]) -> dict[str, Any]:
    schema = schema_of(model)
    schema["properties"][NOTICE] = {"type": "string", "description": "What did not fit into this answer."}
    return schema
