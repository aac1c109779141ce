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


@pytest.mark.parametrize("records", [openai(), anthropic(), claude_code(), codex()])
@pytest.mark.parametrize("as_lines", [True, False])
def test_the_same_work_is_read_from_each_form(tmp_path: Path, records: list[Any], *, as_lines: bool) -> None:
    file = tmp_path / "session"
    file.write_text("\n".join(map(json.dumps, records)) + "\n{cut" if as_lines else json.dumps({"messages": records}))
    (task,) = read_session(file)
    assert task.description == "Fix the import"
    assert [(call.tool, call.arguments) for call in task.calls] == [(tool, given) for tool, given, _ in WORK]
    assert [(call.result, call.error) for call in task.calls] == [(None, ERROR), ("done", None), ("1 passed", None)]


def test_each_wish_of_a_person_is_a_task() -> None:
    first, second = read_tasks([*openai(), {"role": "user", "content": "And now the export"}, *anthropic()[1:]])
    assert (first.description, second.description) == ("Fix the import", "And now the export")
    assert len(first.calls) == len(second.calls) == 3


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
