"""Messages to a channel: a webhook of our own hears them."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.cli.main import main
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.store import record_event
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import judge_run
from pytest_golden.report.notification import ChangeKind, Channel, GateChange, find_change, post_change
from pytest_golden.storage.store import Store
from tests.gate.gate_events import begin, end, judge

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Hook(ThreadingHTTPServer):
    """Hears messages, and answers with `status`."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.heard: list[str] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/services/T0/secret"


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert (self.path, body.keys()) == ("/services/T0/secret", {"text"})
        self.server.heard.append(body["text"])
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


class Gate:
    """Records gate runs, each a minute after the one before."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.minute = 0

    def run(self, *statuses: str, branch: str = "main", flaky: bool = False) -> None:
        names = [f"p{number}" for number in range(len(statuses))]
        self.minute += 2
        checkout = {"commit": "c" * 40, "branch": branch, "dirty": False, "dirty_files": {}}
        run = begin(*names, minute=self.minute, checkout=checkout)
        results = [judge(run, name, ResultStatus(status)) for name, status in zip(names, statuses, strict=True)]
        verdict = judge_run([one.result for one in results]).to_dict()
        if flaky:
            verdict["flaky_count"] = 1
        with self.store.write() as connection:
            record_event(connection, run)
            for result in results:
                record_event(connection, result)
            record_event(connection, end(run, verdict=verdict))


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    with Store.open(tmp_path / "golden.db") as store:
        yield Gate(store)


def told(gate: Gate) -> str | None:
    change = find_change(gate.store)
    return None if change is None else change.text


def test_the_first_red_the_first_green_and_flaky_runs_are_told(gate: Gate) -> None:
    assert told(gate) is None
    gate.run("PASSED", "PASSED")
    assert told(gate) is None
    gate.run("PASSED", "PASSED")
    gate.run("FAILED", "PASSED", branch="other")
    assert told(gate) == "Golden projects are RED on other at cccccccccc: p0. FAILED: 1 passed, 1 failed."
    gate.run("PASSED", "FAILED")
    assert (
        told(gate)
        == "Golden projects are RED on main at cccccccccc, after 2 green runs: p1. FAILED: 1 passed, 1 failed."
    )
    gate.run("PASSED", "FAILED")
    assert told(gate) is None
    gate.run("PASSED", "PASSED")
    assert told(gate) == "Golden projects are green again on main at cccccccccc, after 2 red runs. PASSED: 2 passed."
    gate.run("PASSED", "PASSED", flaky=True)
    change = find_change(gate.store, link="https://ci.example/7")
    assert change is not None
    assert change.kind is ChangeKind.FLAKY
    assert change.text.startswith("Golden projects passed on main at cccccccccc, but not on the first attempt.")
    assert change.text.endswith("https://ci.example/7")


def test_a_server_posts_each_change_once_and_nothing_that_is_old(gate: Gate, hook: Hook) -> None:
    gate.run("FAILED")
    channel = Channel(gate.store, hook.url, "https://golden.example/runs/")
    for _ in range(2):
        channel.look()
    assert hook.heard == []
    gate.run("PASSED")
    for _ in range(2):
        channel.look()
    (text,) = hook.heard
    assert text.startswith("Golden projects are green again on main")
    assert "https://golden.example/runs/entry_" in text
    hook.status = 500
    gate.run("FAILED")
    with pytest.raises(GoldenError, match="refuses the message: status 500"):
        channel.look()
    channel.look()
    assert len(hook.heard) == 2


def test_trouble_is_told_without_the_address(hook: Hook) -> None:
    change = GateChange(ChangeKind.RED, "entry_1", "red")
    post_change(hook.url, change)
    assert hook.heard == ["red"]
    with pytest.raises(GoldenError, match="cannot be reached") as trouble:
        post_change("http://127.0.0.1:1/services/T0/secret", change)
    assert "secret" not in str(trouble.value)
    for url in ("ftp://x/secret", "http://example.org/secret", "https:///secret", "secret"):
        with pytest.raises(SettingsError) as refused:
            post_change(url, change)
        assert "/secret" not in str(refused.value)


def test_the_command_posts_if_the_gate_has_changed(
    gate: Gate,
    hook: Hook,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["report", "--notify", "--store", str(tmp_path / "golden.db")]
    monkeypatch.delenv("GOLDEN_NOTIFY_URL", raising=False)
    gate.run("PASSED")
    assert main(command) == 2
    assert "GOLDEN_NOTIFY_URL, which is not set" in capsys.readouterr().err
    monkeypatch.setenv("GOLDEN_NOTIFY_URL", hook.url)
    assert main(command) == 0
    assert capsys.readouterr().out == "nothing has changed: nothing is posted\n"
    gate.run("FAILED")
    assert main([*command, "--json", "--link", "https://ci.example/8"]) == 0
    change = json.loads(capsys.readouterr().out)["change"]
    assert (change["kind"], [change["text"]]) == ("red", hook.heard)
    assert "https://ci.example/8" in hook.heard[0]
