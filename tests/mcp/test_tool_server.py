"""The reference's table of tools is that of the server."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.journal.expectation_input import EXPECTATION_KEYS
from pytest_golden.mcp.tool_server import make_server
from pytest_golden.mcp.tools import TOOLS, arguments_schema
from pytest_golden.mcp.workplace import CallerOptions, Workplace
from pytest_golden.storage.store import Store
from tests.docs.documents import DOCS
from tests.docs.tables import list_rows
from tests.mcp.talking import MODES, talk_to

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_types import Tool

    from tests.mcp.conftest import MakeServer
    from tests.mcp.talking import Talk

WRITERS = (
    *("log_intent", "log_outcome", "add_signal", "propose_acceptance"),
    *("start_task", "log_attempt", "finish_task", "propose_lesson"),
)
ARGUMENTS = {
    "log_intent": (["intent"], ["intent_type", "job_id", "parent_id"]),
    "log_outcome": (["entry_id", "result"], ["notes", "actions", "expectations"]),
    "add_signal": (["source", "signal_type", "summary"], ["data", "external_id", "entry_id"]),
    "propose_acceptance": (["project", "reason"], ["outputs"]),
    "start_task": (["description"], ["files", "tools"]),
    "log_attempt": (["task_id", "tool"], ["arguments", "error", "result"]),
    "finish_task": (["task_id", "success"], ["note"]),
    "propose_lesson": (["lesson"], ["error", "context", "what_worked", "why"]),
    "get_hints": ([], ["task", "error", "files", "tool", "language"]),
    "get_plan": (["task"], ["limit"]),
    "review_journal": ([], ["filter", "intent_type", "limit"]),
    "get_entry": (["entry_id"], []),
    "list_cycles": ([], ["cycle_id", "limit"]),
    "search_lessons": (["query"], ["limit"]),
    "recall": (["text"], ["project", "limit"]),
    "list_golden_projects": ([], []),
    "golden_status": ([], []),
    "explain_failure": (["project"], []),
}


def test_the_tools_take_what_they_are_said_to_take(talk: Talk) -> None:
    tools = talk.tools()
    assert list(tools) == list(ARGUMENTS)
    for name, (required, optional) in ARGUMENTS.items():
        schema = tools[name].input_schema
        assert list(schema["properties"]) == required + optional
        assert schema.get("required", []) == required
        assert schema["additionalProperties"] is False


def test_the_schemas_are_schemas(talk: Talk) -> None:
    for tool in talk.tools().values():
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        assert tool.output_schema is not None
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
        assert tool.description
        assert tool.title


def test_readers_and_writers_say_what_they_are(talk: Talk) -> None:
    for name, tool in talk.tools().items():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (name not in WRITERS)
        assert tool.annotations.destructive_hint is (False if name in WRITERS else None)


def test_an_expectations_schema_has_the_journals_own_keys() -> None:
    schema = arguments_schema(TOOLS["log_outcome"].kind)["properties"]["expectations"]["items"]
    assert set(schema["properties"]) == set(EXPECTATION_KEYS.keys)
    assert schema["required"] == ["description"]


@pytest.mark.parametrize("mode", MODES)
def test_read_only_neither_lists_nor_allows_the_writers(make: MakeServer, mode: str) -> None:
    with talk_to(make(is_read_only=True), mode=mode) as talk:
        assert not set(WRITERS) & set(talk.tools())
        assert len(talk.tools()) == 10
        for name in WRITERS:
            assert "--read-only" in talk.refusal(name, intent="a")
        assert "--read-only" in str(talk.client.instructions)
        assert talk.ask("review_journal") == {"entries": []}


def test_an_unknown_tool_is_told_which_there_are(talk: Talk) -> None:
    assert "there are log_intent, log_outcome" in talk.refusal("drop_everything")


@pytest.mark.parametrize("mode", MODES)
def test_the_instructions_tell_when_to_log_and_when_not(make: MakeServer, mode: str) -> None:
    with talk_to(make(), mode=mode) as talk:
        told = str(talk.client.instructions)
    for word in (*TOOLS, "trifles", "expectation", "secrets"):
        assert word in told or word == "list_golden_projects"


@pytest.mark.parametrize("mode", MODES)
def test_the_caller_is_the_client_and_its_session_the_connection(make: MakeServer, place: Workplace, mode: str) -> None:
    server = make()
    sessions = []
    for _ in range(2):
        with talk_to(server, name="claude-code", mode=mode) as talk:
            ids = [talk.ask("log_intent", intent="a")["entry_id"] for _ in range(2)]
        kept = [place.services().journal.get(one) for one in ids]
        assert {one.agent_id for one in kept} == {"claude-code"}
        (session,) = {one.session_key for one in kept}
        sessions.append(session)
    assert sessions[0] != sessions[1]
    assert None not in sessions


def test_a_named_agent_and_session_stand_above_the_clients(make: MakeServer, place: Workplace) -> None:
    with talk_to(make(agent="builder", session="issue-7")) as talk:
        kept = place.services().journal.get(talk.ask("log_intent", intent="a")["entry_id"])
    assert (kept.agent_id, kept.session_key) == ("builder", "issue-7")


@pytest.mark.parametrize(
    ("name", "kept"), [("", "mcp"), ("\x1b\u202e", "mcp"), ("x" * 5_000, "x" * 100), ("a\x1bb", "ab")]
)
def test_any_name_of_a_client_is_made_fit(make: MakeServer, place: Workplace, name: str, kept: str) -> None:
    with talk_to(make(), name=name) as talk:
        entry = place.services().journal.get(talk.ask("log_intent", intent="a")["entry_id"])
    assert entry.agent_id == kept


def test_a_client_that_calls_itself_as_the_gate_is_told_to_take_another_name(make: MakeServer) -> None:
    with talk_to(make(), name="Golden") as talk:
        assert "--agent NAME" in talk.refusal("log_intent", intent="a")


def test_while_the_store_is_locked_reads_go_on_and_writes_say_so(talk: Talk, store_file: Path) -> None:
    talk.ask("log_intent", intent="before")
    holder = sqlite3.connect(store_file)
    try:
        holder.execute("BEGIN IMMEDIATE")
        told = talk.refusal("log_intent", intent="meanwhile")
        assert "has locked it; try again" in told
        assert [one["intent"] for one in talk.ask("review_journal")["entries"]] == ["before"]
    finally:
        holder.close()
    talk.ask("log_intent", intent="after")
    assert [one["intent"] for one in talk.ask("review_journal")["entries"]] == ["after", "before"]


def test_a_store_that_was_removed_is_made_anew_by_the_call_after(talk: Talk, store_file: Path) -> None:
    talk.ask("log_intent", intent="a")
    for path in store_file.parent.iterdir():
        path.unlink()
    assert "moved, removed or replaced" in talk.refusal("log_intent", intent="b")
    talk.ask("log_intent", intent="c")
    assert [one["intent"] for one in talk.ask("review_journal")["entries"]] == ["c"]


def test_a_file_that_takes_the_place_of_the_store_is_read_by_the_next_call(talk: Talk, store_file: Path) -> None:
    talk.ask("log_intent", intent="a")
    with Store.open(store_file.with_name("other.db")):
        pass
    store_file.with_name("other.db").replace(store_file)
    assert talk.ask("review_journal") == {"entries": []}
    talk.ask("log_intent", intent="b")
    assert [one["intent"] for one in talk.ask("review_journal")["entries"]] == ["b"]


def test_a_store_that_a_newer_version_brought_up_to_date_is_refused_until_a_restart(
    talk: Talk, store_file: Path
) -> None:
    talk.ask("log_intent", intent="a")
    with Store.open(store_file) as store, store.write() as connection:
        connection.exec_driver_sql("UPDATE golden_version SET version_num = '9999'")
    for told in (talk.refusal("log_intent", intent="b"), talk.refusal("review_journal")):
        assert "by a newer pytest-golden-projects" in told
        assert "restart" in told


def test_a_store_that_is_not_there_yet_is_asked_for_again_by_the_next_call(workspace: Path) -> None:
    file = workspace / "late.db"

    def open_late() -> Store:
        if not file.exists():
            raise SettingsError(f"nothing is recorded yet in {file}: run `pytest --golden`")
        return Store.open(file)

    with Workplace(open_late, workspace / "golden_projects.yaml") as late:
        server = make_server(late, CallerOptions())
        with talk_to(server) as talk:
            assert "run `pytest --golden`" in talk.refusal("review_journal")
            Store.open(file).close()
            assert talk.ask("review_journal") == {"entries": []}


def test_a_tool_that_crashes_tells_no_more_than_that(workspace: Path, caplog: pytest.LogCaptureFixture) -> None:
    def open_nothing() -> Store:
        raise TypeError("the secret inside")

    with Workplace(open_nothing, workspace / "golden_projects.yaml") as broken:
        server = make_server(broken, CallerOptions())
        with talk_to(server) as talk:
            told = talk.refusal("review_journal")
    assert "secret" not in told
    assert "failed unexpectedly" in told
    assert "the secret inside" in caplog.text


def test_the_tools_in_the_reference_are_those_of_the_server(talk: Talk) -> None:
    told = list_rows(DOCS / "reference" / "mcp.md", "Tools")
    assert told == tuple(write_row(tool) for tool in talk.tools().values())


def write_row(tool: Tool) -> str:
    required = tool.input_schema.get("required", [])
    taken = [name if name in required else f"[{name}]" for name in tool.input_schema["properties"]]
    assert tool.output_schema is not None
    assert tool.annotations is not None
    writes = "" if tool.annotations.read_only_hint else " (writes)"
    given = ", ".join(f"`{name}`" for name in tool.output_schema["required"])
    arguments = ", ".join(f"`{name}`" for name in taken) or "none"
    return f"| `{tool.name}`{writes} | {arguments} | {given} |"
