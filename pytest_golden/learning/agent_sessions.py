"""Read what agents did from the files that they leave: messages of OpenAI, Anthropic and LangGraph, sessions of Claude Code and Codex, spans.

A file is JSON (a list of messages, or a mapping with `messages`) or one JSON value in each line. A person's words begin a task; what
follows are its calls. Words of praise or correction are about the calls before. Of OpenTelemetry's spans, as a collector writes them to a file, each trace is a task.
https://platform.openai.com/docs/guides/function-calling, https://docs.anthropic.com/en/docs/build-with-claude/tool-use,
https://docs.langchain.com/oss/python/langgraph/streaming, https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans/
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.journal.model import SignalType
from pytest_golden.journal.outside.human import human_signal
from pytest_golden.trajectory.otel.spans import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pytest_golden.trajectory.otel.spans import Span

_MOST_BYTES = 256 << 20
_MOST_OF_TASK, _MOST_OF_RESULT = 300, 20_000
# Where no flag says whether a call failed.
_FAILED = re.compile(
    r"Traceback \(most recent call last\)|^E   |^(?:FAILED|ERROR)\b|^(?:\w*[Ee]rror|fatal|FATAL): |\bexit(?:ed with)? code:? [1-9]",
    re.MULTILINE,
)
_RESULT_TYPES = frozenset({"tool_result", "function_call_output", "custom_tool_call_output"})
_CALL_TYPES = frozenset({"tool_use", "function_call", "custom_tool_call"})
# Of LangChain's messages.
_ROLES = {"human": "user", "ai": "assistant", "tool": "tool"}
#: `(kind, key, content)`: a task, a call by its id, or the result of one.
Event = tuple[str, str, Any]


class Call(NamedTuple):
    """A call of a tool; `error` is its output if it failed."""

    tool: str
    arguments: Any
    result: str | None
    error: str | None


@dataclass(slots=True)
class SessionTask:
    """What a person asked for, in the first line of their words, the calls that followed, and what the person said against them."""

    description: str
    calls: list[Call] = field(default_factory=list)
    correction: str = ""


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
            f"{path} holds no calls of tools: give messages of OpenAI, Anthropic or LangGraph, a session of Claude Code or Codex, or spans"
        )
    return found


def read_tasks(records: Iterable[Any]) -> tuple[SessionTask, ...]:
    """Read the tasks of messages, those without a call left out."""
    tasks = [SessionTask("a task")]
    waiting: dict[str, tuple[str, Any]] = {}
    for kind, key, one in _iterate_events(records):
        if kind == "task":
            tasks.append(_continue(tasks[-1], str(one)))
        elif kind == "call":
            waiting[key] = one
        elif key in waiting:
            tool, arguments = waiting.pop(key)
            said, is_error = one
            tasks[-1].calls.append(Call(tool, arguments, None if is_error else said, said if is_error else None))
    return tuple(task for task in tasks if task.calls)


def _continue(last: SessionTask, words: str) -> SessionTask:
    """Begin what a person asks for; after words against the last calls it is the same task once more."""
    signal = human_signal(words) if last.calls else None
    if signal is None:
        return SessionTask(words)
    if signal["signal_type"] == SignalType.CORRECTION:
        last.correction = signal["summary"]
    return SessionTask(last.description)


def _iterate_events(records: Iterable[Any]) -> Iterator[Event]:
    """Yield what the records say, those of spans at last: one trace may be in many of them, in any order."""
    spans: list[Span] = []
    for record in records:
        if isinstance(record, dict) and "resourceSpans" in record:
            with suppress(ValueError):
                spans += filter(None, parse_json(json.dumps(record).encode()))
        elif isinstance(record, dict) and isinstance(record.get("event"), str):
            yield from _read_graph_event(record)
        else:
            with suppress(RecursionError):
                yield from list(_list_events(record))
    yield from _read_spans(spans)


def _read_graph_event(record: dict[str, Any]) -> Iterator[Event]:
    """Read an event of LangGraph's `astream_events`; the messages inside of it say the same again."""
    key, data = str(record.get("run_id")), record.get("data")
    if not isinstance(data, dict):
        return
    if record["event"] == "on_chain_start" and not record.get("parent_ids"):
        given = data.get("input")
        messages = given.get("messages") if isinstance(given, dict) else None
        for message in messages if isinstance(messages, list) else ():
            yield from (event for event in _list_events(message) if event[0] == "task")
    elif record["event"] == "on_tool_start":
        yield "call", key, (str(record.get("name")), data.get("input"))
    elif record["event"] == "on_tool_error":
        yield "result", key, (_read_text(data.get("error"))[-_MOST_OF_RESULT:], True)
    elif record["event"] == "on_tool_end":
        output = data.get("output")
        said = _read_tool_message(output) if isinstance(output, dict) and "content" in output else (output, None)
        yield "result", key, _judge(*said)


def _read_spans(spans: list[Span]) -> Iterator[Event]:
    traces: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda span: span.start_ns):
        traces.setdefault(span.trace_id, []).append(span)
    for some in traces.values():
        asked = (words for span in some for words in _read_asked(span))
        yield "task", "", next(asked, some[0].name or "a task")
        for span in some:
            if span.attributes.get("gen_ai.operation.name") == "execute_tool":
                tool = span.attributes.get("gen_ai.tool.name") or span.name.removeprefix("execute_tool ")
                yield "call", span.span_id, (str(tool), _parse(span.attributes.get("gen_ai.tool.call.arguments")))
                yield "result", span.span_id, _judge_span(span)


def _read_asked(span: Span) -> Iterator[str]:
    """Yield what a person asked for, where a span has it: instrumentations leave it out unless they are told to."""
    messages = _parse(span.attributes.get("gen_ai.input.messages"))
    for message in messages if isinstance(messages, list) else ():
        parts = message.get("parts") if isinstance(message, dict) and message.get("role") == "user" else None
        for part in parts if isinstance(parts, list) else ():
            words = str(part.get("content") or "").strip() if isinstance(part, dict) else ""
            if words:
                yield words.splitlines()[0][:_MOST_OF_TASK]


def _judge_span(span: Span) -> tuple[str, bool]:
    if not span.is_error:
        return _judge(span.attributes.get("gen_ai.tool.call.result"), None)
    raised = [
        str(event.attributes.get("exception.message") or "") for event in span.events if event.name == "exception"
    ]
    said = next(filter(None, [*raised, span.message, str(span.attributes.get("error.type") or "")]), "failed")
    return said[-_MOST_OF_RESULT:], True


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


def _list_events(record: Any) -> Iterator[Event]:
    if not isinstance(record, dict):
        return
    inside = [record[name] for name in ("message", "payload", "data") if isinstance(record.get(name), dict)][:1]
    for one in inside or _list_messages_of_nodes(record):
        yield from _list_events(one)
    if inside:
        return
    yield from _read_part(record)
    role = _ROLES.get(str(record.get("type")), record.get("role"))
    if role == "tool":
        yield "result", str(record.get("tool_call_id")), _judge(*_read_tool_message(record))
        return
    yield from _list_calls(record)
    content = record.get("content")
    for part in content if isinstance(content, list) else ():
        yield from _read_part(part)
    if role == "user" and (words := _read_text(content).strip()) and not words.startswith("<"):
        yield "task", "", words.splitlines()[0][:_MOST_OF_TASK]


def _list_messages_of_nodes(record: dict[str, Any]) -> Iterator[Any]:
    """Yield the messages of LangGraph's `stream_mode="updates"`: nodes by their names, each with what it adds to the state."""
    for node in record.values():
        messages = node.get("messages") if isinstance(node, dict) else None
        yield from messages if isinstance(messages, list) else ()


def _read_tool_message(record: dict[str, Any]) -> tuple[Any, bool | None]:
    """Return what a tool said, and whether that is an error, as far as LangChain tells."""
    status = str(record.get("status"))
    return record.get("content"), status == "error" if status in {"error", "success"} else None


def _list_calls(record: dict[str, Any]) -> Iterator[Event]:
    calls = record.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        if not isinstance(call, dict):
            continue
        function = call.get("function")
        if isinstance(function, dict):
            yield "call", str(call.get("id")), (str(function.get("name")), _parse(function.get("arguments")))
        elif "args" in call:
            yield "call", str(call.get("id")), (str(call.get("name")), call["args"])


def _read_part(part: Any) -> Iterator[Event]:
    if not isinstance(part, dict):
        return
    key, kind = str(part.get("call_id") or part.get("tool_use_id") or part.get("id")), str(part.get("type"))
    if kind in _CALL_TYPES:
        given = part.get("input") if "input" in part else part.get("arguments")
        yield "call", key, (str(part.get("name")), _parse(given))
    elif kind in _RESULT_TYPES:
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
