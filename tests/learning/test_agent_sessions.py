"""Sessions of agents, in the forms in which they are left: the same work in each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.learning.agent_sessions import read_session, read_tasks

if TYPE_CHECKING:
    from pathlib import Path

ERROR = "E   KeyError: 'a'\n1 failed"
EDIT = {"file_path": "a.py", "old_string": "x", "new_string": "y"}
WORK = [("Bash", {"command": "pytest"}, ERROR), ("Edit", EDIT, "done"), ("Bash", {"command": "pytest"}, "1 passed")]


def openai() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "x"},
        {"role": "user", "content": "Fix the import\nplease"},
    ]
    for number, (tool, given, said) in enumerate(WORK):
        call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": said},
        ]
    return messages


def anthropic() -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Fix the import\nplease"}]
    for number, (tool, given, said) in enumerate(WORK):
        call = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}
        result = {
            "type": "tool_result",
            "tool_use_id": f"t{number}",
            "content": [{"type": "text", "text": said}],
            "is_error": said == ERROR,
        }
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": "I try."}, call]},
            {"role": "user", "content": [result]},
        ]
    return messages


def claude_code() -> list[dict[str, Any]]:
    lines = [{"type": one["role"], "sessionId": "s", "message": one} for one in anthropic()]
    return [
        {"type": "summary", "summary": "x"},
        {"type": "user", "message": {"role": "user", "content": "<command-name>/init"}},
        *lines,
    ]


def codex() -> list[dict[str, Any]]:
    words = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Fix the import"}]}
    lines: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": "s"}},
        {"type": "response_item", "payload": words},
    ]
    for number, (tool, given, said) in enumerate(WORK):
        call = {"type": "function_call", "name": tool, "arguments": json.dumps(given), "call_id": f"k{number}"}
        output = json.dumps({"output": said, "metadata": {"exit_code": int(said == ERROR)}})
        lines += [
            {"type": "response_item", "payload": call},
            {
                "type": "response_item",
                "payload": {"type": "function_call_output", "call_id": f"k{number}", "output": output},
            },
        ]
    return lines


def langchain() -> list[dict[str, Any]]:
    """Return the state of LangGraph, as `model_dump` of langchain-core 1.2 writes messages."""
    messages: list[dict[str, Any]] = [{"content": "Fix the import\nplease", "type": "human", "id": "m0"}]
    for number, (tool, given, said) in enumerate(WORK):
        call = {"name": tool, "args": given, "id": f"c{number}", "type": "tool_call"}
        status = "error" if said == ERROR else "success"
        messages += [
            {"content": "", "type": "ai", "tool_calls": [call], "invalid_tool_calls": []},
            {"content": said, "type": "tool", "name": tool, "tool_call_id": f"c{number}", "status": status},
        ]
    return messages


def langchain_dicts() -> list[dict[str, Any]]:
    return [{"type": message["type"], "data": message} for message in langchain()]


def langgraph_updates() -> list[dict[str, Any]]:
    first, *others = langchain()
    return [first, *({"node": {"messages": [message]}} for message in others)]


def langgraph_events() -> list[dict[str, Any]]:
    """Return what `astream_events(version="v2")` yields."""
    first, *others = langchain()
    started = {"input": {"messages": [first]}}
    events: list[dict[str, Any]] = [
        {"event": "on_chain_start", "name": "LangGraph", "run_id": "r", "parent_ids": [], "data": started},
        {"event": "on_chain_start", "name": "agent", "run_id": "n", "parent_ids": ["r"], "data": started},
    ]
    for number, (tool, given, said) in enumerate(WORK):
        start = {"event": "on_tool_start", "name": tool, "run_id": f"t{number}", "data": {"input": given}}
        ended = {"error": said, "input": given} if said == ERROR else {"output": others[2 * number + 1], "input": given}
        kind = "on_tool_error" if said == ERROR else "on_tool_end"
        events += [start, {"event": kind, "name": tool, "run_id": f"t{number}", "data": ended}]
        events.append({"event": "on_chain_end", "name": "tools", "data": {"output": {"messages": others}}})
    return events


def spans() -> list[dict[str, Any]]:
    """Return what OpenTelemetry's collector writes, one span in each line and the last one first."""

    def attribute(name: str, value: str) -> dict[str, Any]:
        return {"key": name, "value": {"stringValue": value}}

    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Fix the import\nplease"}]}])
    told = [{"name": "invoke_agent fixer", "attributes": [attribute("gen_ai.input.messages", asked)]}]
    for tool, given, said in WORK:
        names = {"operation.name": "execute_tool", "tool.name": tool, "tool.call.arguments": json.dumps(given)}
        span: dict[str, Any] = {"name": f"execute_tool {tool}"}
        if said == ERROR:
            raised = {"name": "exception", "attributes": [attribute("exception.message", said)]}
            span |= {"status": {"code": 2, "message": "it failed"}, "events": [raised]}
        else:
            names["tool.call.result"] = said
        told.append({**span, "attributes": [attribute(f"gen_ai.{name}", value) for name, value in names.items()]})
    lines = [
        {**span, "traceId": "a" * 32, "spanId": f"{number:016x}", "startTimeUnixNano": str(number + 1)}
        for number, span in enumerate(told)
    ]
    return [{"resourceSpans": [{"scopeSpans": [{"spans": [line]}]}]} for line in reversed(lines)]


def nest(depth: int) -> dict[str, Any]:
    inside: dict[str, Any] = {}
    for _ in range(depth):
        inside = {"message": inside}
    return inside


FORMS = [
    *(openai(), anthropic(), claude_code(), codex()),
    *(langchain(), langchain_dicts(), langgraph_updates(), langgraph_events(), spans()),
]


@pytest.mark.parametrize("records", FORMS)
@pytest.mark.parametrize("as_lines", [True, False])
def test_the_same_work_is_read_from_each_form(tmp_path: Path, records: list[Any], *, as_lines: bool) -> None:
    file = tmp_path / "session"
    file.write_text("\n".join(map(json.dumps, records)) + "\n{cut" if as_lines else json.dumps({"messages": records}))
    (task,) = read_session(file)
    assert task.description == "Fix the import"
    assert [(call.tool, call.arguments) for call in task.calls] == [(tool, given) for tool, given, _ in WORK]
    assert [(call.result, call.error) for call in task.calls] == [(None, ERROR), ("done", None), ("1 passed", None)]


def test_each_trace_is_a_task() -> None:
    other = json.loads(json.dumps(spans()).replace("a" * 32, "b" * 32).replace("Fix the import", "Fix the export"))
    first, second = read_tasks([*other, *spans()])
    assert {first.description, second.description} == {"Fix the import", "Fix the export"}
    assert len(first.calls) == len(second.calls) == 3


def test_a_span_without_words_is_told_by_its_status() -> None:
    line = spans()[2]
    (span,) = line["resourceSpans"][0]["scopeSpans"][0]["spans"]
    span["events"] = []
    (task,) = read_tasks([line])
    assert (task.description, task.calls[0].error) == ("execute_tool Bash", "it failed")
    span["status"] = {"code": 2}
    (task,) = read_tasks([line])
    assert task.calls[0].error == "failed"


def test_each_wish_of_a_person_is_a_task() -> None:
    first, second = read_tasks([*openai(), {"role": "user", "content": "And now the export"}, *anthropic()[1:]])
    assert (first.description, second.description) == ("Fix the import", "And now the export")
    assert len(first.calls) == len(second.calls) == 3


def test_words_against_the_work_are_a_correction_and_the_task_goes_on() -> None:
    messages: list[dict[str, Any]] = []
    for number, words in enumerate(
        ["Load the orders", "That's wrong: use the table orders_v2", "perfect, thanks", "Write the report", "wrong"]
    ):
        messages += [
            {"role": "user", "content": words},
            {"role": "assistant", "tool_calls": [{"id": f"c{number}", "function": {"name": "sql", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": "ok"},
        ]
    tasks = read_tasks(messages)
    assert [(task.description, task.correction) for task in tasks] == [
        ("Load the orders", "use the table orders_v2"),
        ("Load the orders", ""),
        ("Load the orders", ""),
        ("Write the report", "wrong"),
        ("Write the report", ""),
    ]


@pytest.mark.parametrize(
    "record",
    [
        None,
        3,
        "x",
        [],
        {},
        {"message": {"message": 3}},
        {"role": "user"},
        {"role": "user", "content": [3, {"type": "image"}]},
        {"event": "on_tool_start"},
        {"event": "on_tool_end", "data": {"output": 3}, "run_id": "x"},
        {"event": "on_chain_start", "data": {"input": {"messages": 3}}},
        {"resourceSpans": 3},
        {"resourceSpans": [{"scopeSpans": [{"spans": [3, {"name": "x", "attributes": 3}]}]}]},
        {"type": "tool", "status": []},
        nest(5000),
        {"type": [], "tool_calls": [3, {"args": 3}]},
        {"node": {"messages": [3, {"node": {"messages": "x"}}]}},
    ],
)
def test_what_is_no_message_is_passed_over(record: Any) -> None:
    (task,) = read_tasks([record, *openai(), record])
    assert len(task.calls) == 3


@pytest.mark.parametrize("text", ["", "hello", "[]", "{}", '{"messages": 3}', "[" * 100_000])
def test_a_file_without_calls_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(GoldenError, match="holds no calls of tools"):
        read_session(tmp_path / "file")
    with pytest.raises(GoldenError, match="cannot be read: No such file"):
        read_session(tmp_path / "nothing")
