"""Read what agents did from the files that they leave: messages of OpenAI and Anthropic, sessions of Claude Code and Codex.

A file is JSON (a list of messages, or a mapping with `messages`) or one JSON value in each line. A person's words begin a task; what
follows are its calls. https://platform.openai.com/docs/guides/function-calling, https://docs.anthropic.com/en/docs/build-with-claude/tool-use
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_MOST_BYTES = 256 << 20
_MOST_OF_TASK, _MOST_OF_RESULT = 300, 20_000
# Where no flag says whether a call failed.
_FAILED = re.compile(
    r"Traceback \(most recent call last\)|^E   |^(?:FAILED|ERROR)\b|^(?:\w*[Ee]rror|fatal|FATAL): |\bexit(?:ed with)? code:? [1-9]",
    re.MULTILINE,
)
_RESULT_TYPES = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
_CALL_TYPES = frozenset({"tool_use", "function_call", "custom_tool_call"})


class Call(NamedTuple):
    """A call of a tool; `error` is its output if it failed."""

    tool: str
    arguments: Any
    result: str | None
    error: str | None


@dataclass(slots=True)
class SessionTask:
    """What a person asked for, in the first line of their words, and the calls that followed."""

    description: str
    calls: list[Call] = field(default_factory=list)


def read_session(path: Path) -> tuple[SessionTask, ...]:
    """Read the tasks of a file, those without a call left out.

    Raises:
        GoldenError: the file cannot be read, is larger than 256 MiB, or holds no calls of tools.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise GoldenError(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) > _MOST_BYTES:
        raise GoldenError(f"{path} is larger than 256 MiB: give a part of it")
    found = read_tasks(_list_records(raw.decode("utf-8", "replace")))
    if not found:
        raise GoldenError(
            f"{path} holds no calls of tools: give messages of OpenAI or Anthropic, or a session of Claude Code or Codex"
        )
    return found


def read_tasks(records: Iterable[Any]) -> tuple[SessionTask, ...]:
    """Read the tasks of messages, those without a call left out."""
    tasks = [SessionTask("a task")]
    waiting: dict[str, tuple[str, Any]] = {}
    for record in records:
        for kind, key, one in _list_events(record):
            if kind == "task":
                tasks.append(SessionTask(str(one)))
            elif kind == "call":
                waiting[key] = one
            elif key in waiting:
                tool, arguments = waiting.pop(key)
                said, is_error = one
                tasks[-1].calls.append(Call(tool, arguments, None if is_error else said, said if is_error else None))
    return tuple(task for task in tasks if task.calls)


def _list_records(text: str) -> Iterator[Any]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        for line in text.splitlines():
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                # A line that was cut, or is none of ours.
                continue
        return
    if isinstance(whole, dict) and isinstance(whole.get("messages"), list):
        whole = whole["messages"]
    yield from whole if isinstance(whole, list) else [whole]


def _list_events(record: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield `(kind, key, content)`: a task, a call by its id, or the result of one."""
    if not isinstance(record, dict):
        return
    inside = next((record[name] for name in ("message", "payload") if isinstance(record.get(name), dict)), None)
    if inside is not None:
        yield from _list_events(inside)
        return
    yield from _read_part(record)
    if record.get("role") == "tool":
        yield "result", str(record.get("tool_call_id")), _judge(record.get("content"), None)
        return
    yield from _list_openai_calls(record)
    content = record.get("content")
    for part in content if isinstance(content, list) else ():
        yield from _read_part(part)
    if record.get("role") == "user" and (words := _read_text(content).strip()) and not words.startswith("<"):
        yield "task", "", words.splitlines()[0][:_MOST_OF_TASK]


def _list_openai_calls(record: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    calls = record.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield "call", str(call.get("id")), (str(function.get("name")), _parse(function.get("arguments")))


def _read_part(part: Any) -> Iterator[tuple[str, str, Any]]:
    if not isinstance(part, dict):
        return
    key = str(part.get("call_id") or part.get("tool_use_id") or part.get("id"))
    if part.get("type") in _CALL_TYPES:
        given = part.get("input") if "input" in part else part.get("arguments")
        yield "call", key, (str(part.get("name")), _parse(given))
    elif part.get("type") in _RESULT_TYPES:
        said = part.get("content") if "content" in part else part.get("output")
        yield "result", key, _judge(said, part.get("is_error"))


def _judge(said: Any, flag: Any) -> tuple[str, bool]:
    """Return what a call said, and whether it failed: by its flag, by its exit code, or by its words."""
    told = _parse(said) if isinstance(said, str) else said
    if isinstance(told, dict) and "output" in told:
        about = told.get("metadata")
        code = about.get("exit_code") if isinstance(about, dict) else told.get("exit_code")
        flag = bool(code) if isinstance(code, int) and flag is None else flag
        said = told["output"]
    text = _read_text(said)[-_MOST_OF_RESULT:]
    return text, flag if isinstance(flag, bool) else bool(_FAILED.search(text))


def _read_text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(
            str(part["text"]) for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return content if isinstance(content, str) else "" if content is None else json.dumps(content)


def _parse(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
