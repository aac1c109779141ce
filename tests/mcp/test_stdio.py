from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Any

import pytest
from mcp.client.stdio import StdioServerParameters, stdio_client

from pytest_golden.journal.service import Journal
from pytest_golden.storage.store import Store
from tests.mcp.talking import talk_to

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEGIN = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}},
}


@pytest.fixture
def command(warm_starts: Path) -> list[str]:
    return [str(warm_starts / "python"), "-m", "pytest_golden", "mcp"]


@pytest.fixture
def process(workspace: Path, command: list[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        command,
        cwd=workspace,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        yield started
        started.kill()


def send(process: subprocess.Popen[str], *messages: Any) -> None:
    for message in messages:
        pipe(process.stdin).write(message if isinstance(message, str) else json.dumps(message) + "\n")
    pipe(process.stdin).flush()


def pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def read_answer(process: subprocess.Popen[str]) -> Any:
    return json.loads(pipe(process.stdout).readline())


def call(number: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


def test_two_clients_at_once_share_the_store_and_have_sessions_of_their_own(
    workspace: Path, command: list[str]
) -> None:
    started = StdioServerParameters(
        command=command[0], args=[*command[1:], "--agent", "tess"], cwd=workspace, env=dict(os.environ)
    )
    with (
        talk_to(stdio_client(started), mode="legacy") as one,
        talk_to(stdio_client(started), mode="auto") as other,
    ):
        for talk in (one, other):
            talk.ask("log_intent", intent="a")
            talk.ask("log_intent", intent="x" * (1 << 20))
        entries = one.ask("review_journal")["entries"]
    assert len(entries) == 4
    assert len({entry["session_key"] for entry in entries}) == 2


def test_nothing_but_the_protocol_is_on_stdout_and_a_closed_stdin_ends_it(process: subprocess.Popen[str]) -> None:
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    send(process, BEGIN, initialized, "no protocol at all\n", "\n", call(2, "log_intent", intent="a"), call(3, "nope"))
    # More than is answered before the end of stdin is seen.
    many = range(4, 500)
    send(process, *({"jsonrpc": "2.0", "id": number, "method": "ping"} for number in many))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == ""
    answers = {one["id"]: one for one in map(json.loads, out.splitlines())}
    assert set(answers) == {1, 2, 3, *many}
    assert answers[2]["result"]["structuredContent"]["assessment"] == "open"
    assert answers[3]["result"]["isError"] is True


def test_a_ctrl_c_ends_it_quietly_although_nothing_comes_in(process: subprocess.Popen[str]) -> None:
    send(process, BEGIN)
    read_answer(process)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) in {0, 130}
    assert pipe(process.stderr).read() == ""
    assert pipe(process.stdout).read() == ""


def test_a_ctrl_c_ends_it_although_the_client_reads_no_more(process: subprocess.Popen[str]) -> None:
    send(process, BEGIN)
    read_answer(process)
    send(process, *({"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": {}} for number in range(2, 40)))
    # So much fits into no pipe: what is not read holds the writer up.
    assert len(pipe(process.stdout).readline()) > 4096
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) in {0, 130}
    assert pipe(process.stderr).read() == ""


def test_a_client_that_goes_away_in_the_middle_leaves_no_trace(process: subprocess.Popen[str]) -> None:
    send(process, BEGIN)
    read_answer(process)
    pipe(process.stdout).close()
    send(process, call(2, "log_intent", intent="written to its end"))
    assert process.wait(timeout=60) == 0
    assert pipe(process.stderr).read() == ""


def test_what_was_answered_outlives_a_kill(process: subprocess.Popen[str], workspace: Path) -> None:
    send(process, BEGIN)
    read_answer(process)
    send(process, call(2, "log_intent", intent="it stays"))
    entry_id = read_answer(process)["result"]["structuredContent"]["entry_id"]
    process.kill()
    process.wait(timeout=60)
    with Store.open(workspace / ".golden" / "golden.db") as store:
        assert Journal(store).get(entry_id).agent_id == "raw"


@pytest.mark.parametrize("redirected", [">/dev/full", ">&-"])
def test_a_stdout_that_takes_nothing_is_told_in_one_sentence(workspace: Path, redirected: str) -> None:
    command = [sys.executable, "-m", "pytest_golden", "mcp"]
    shell = ["sh", "-c", f'exec "$@" {redirected}', "sh", *command]
    ran = subprocess.run(shell, cwd=workspace, input=json.dumps(BEGIN), capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "golden: stdout" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_a_client_that_connects_waits_for_nothing_that_only_calls_need(workspace: Path) -> None:
    Store.open(workspace / "golden.db").close()
    code = (
        "import sys; from pytest_golden.cli.main import main; sys.argv = ['golden', 'mcp', '--store', 'golden.db']; main(); "
        "print(*sys.modules, file=sys.stderr)"
    )
    listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
    said = "".join(json.dumps(message) + "\n" for message in (BEGIN, listed))
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=workspace, input=said, capture_output=True, text=True, check=True
    )
    assert len(ran.stdout.splitlines()) == 2
    loaded = set(ran.stderr.split())
    assert "pytest_golden.storage.store" in loaded
    for unwanted in ("alembic", "pytest_golden.journal.service", "pytest_golden.gate.recorded", "pytest_golden.report"):
        assert unwanted not in loaded
