"""What a step says, as text of bounded length for people and for models. Never raises, whatever the content."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.trajectory.json_form import json_form

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.trajectory.step import Step

MOST_READ = 20_000
MOST_STEP_IDS = 50
_LONGEST_LINE = 300
_MOST_METADATA = 12
# Where agents put what they say, when a step's content is a mapping.
_SAYING_KEYS = ("text", "thought", "content", "message")


def text_of(content: Any) -> str:
    """Give what a step's content says, its first 20,000 characters; None says nothing."""
    if isinstance(content, str):
        return content[:MOST_READ]
    if content is None:
        return ""
    if isinstance(content, Mapping):
        said = next((content[key] for key in _SAYING_KEYS if isinstance(content.get(key), str)), None)
        if said is not None:
            return str(said)[:MOST_READ]
    plain = json_form(content)
    return (plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False))[:MOST_READ]


def one_line(text: str, limit: int = _LONGEST_LINE) -> str:
    """Give the text in one line without control characters, cut to `limit` characters with three dots at its end."""
    shown = " ".join(strip_escapes(text[: limit * 4]).split())
    shown = "".join(character if character.isprintable() else "\ufffd" for character in shown)
    return shown if len(shown) <= limit and len(text) <= limit * 4 else f"{shown[: limit - 3]}..."


def title_of(step: Step, limit: int = 80) -> str:
    """Give what a step says in a few words; one that says nothing is called by its type."""
    return one_line(text_of(step.content), limit) or f"a step of type {step.type.value}"


def error_of(step: Step) -> str:
    """Give the text of a step's error; empty when the step says no more than that it failed."""
    for key in ("error", "failed"):
        told = step.metadata.get(key)
        if told and told is not True:
            return one_line(text_of(told))
    return ""


def told_metadata(step: Step) -> dict[str, Any]:
    """Give the first few scalars of a step's metadata, its error left out; long text is cut."""
    told: dict[str, Any] = {}
    for key, value in step.metadata.items():
        if key in {"error", "failed"} or not isinstance(value, (str, int, float)):
            continue
        told[one_line(str(key), 80)] = one_line(value, 200) if isinstance(value, str) else json_form(value)
        if len(told) == _MOST_METADATA:
            break
    return told


def bounded_ids(steps: Iterable[Step]) -> tuple[str, ...]:
    """Give the ids of the first 50 steps, each once."""
    ids: dict[str, None] = {}
    for step in steps:
        ids[step.id] = None
        if len(ids) == MOST_STEP_IDS:
            break
    return tuple(ids)


def count_of(number: int, noun: str) -> str:
    """Write a number of things."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
