"""A gate with a language model: it is asked after everything else, for ten seconds at most, and decides nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.learning.lessons.model import LessonSource
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.storage.store import Store
from tests.gate.test_rewording import SAID, fix
from tests.learning.language_model.server import answers, hangs, run_model_server, says
from tests.patience import wait_until
from tests.session.workspace import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.learning.lessons.model import SkillMemory
    from tests.learning.language_model.server import ModelServer
    from tests.session.recorded import Recorded
    from tests.session.workspace import Workspace

KEY = "sk-golden-0123456789abcdefghij"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model's server that the environment names, without whatever proxy this machine has."""
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    with run_model_server() as running:
        monkeypatch.setenv("GOLDEN_LLM_MODEL", "openai:test-1")
        monkeypatch.setenv("GOLDEN_LLM_BASE_URL", f"{running.address}/v1")
        monkeypatch.setenv("GOLDEN_LLM_API_KEY", KEY)
        yield running


@pytest.fixture
def gate(workspace: Workspace, recorded: Recorded) -> Workspace:
    """A workspace whose store knows one lesson of a fix."""
    workspace.declare({"name": "sales"})
    recorded.path.parent.mkdir()
    with Store.open(recorded.path) as store:
        Lessons(store).add(fix(), "golden")
    return workspace


def by_model(recorded: Recorded) -> list[SkillMemory]:
    with Store.open(recorded.path) as store:
        return [one for one in Lessons(store).list_lessons() if one.source == LessonSource.MODEL]


def test_model_words_a_lesson_after_the_session(gate: Workspace, recorded: Recorded, server: ModelServer) -> None:
    server.behave(says(json.dumps(SAID)))
    ran = gate.run()
    ran.assert_outcomes(passed=1)
    text = str(ran.stdout)
    assert f"golden model: openai:test-1 at {server.address}/v1" in text
    assert "the language model worded 1 lesson: `golden lessons list` shows what waits for approval" in text
    assert KEY not in text
    [worded] = by_model(recorded)
    assert (worded.lesson, worded.approved) == (SAID["lesson"], False)


def test_model_that_hangs_is_not_waited_for(gate: Workspace, recorded: Recorded, server: ModelServer) -> None:
    server.behave(hangs)
    ran = gate.run()
    assert ran.ret == 0
    assert str(ran.stdout).count("no answer within 5 s") == 1
    assert str(ran.stderr) == ""
    assert recorded.results() == {"sales": "PASSED"}
    # What got no answer is asked again by the next gate.
    server.behave(says(json.dumps(SAID)))
    gate.run()
    assert len(by_model(recorded)) == 1


def test_whoever_does_not_want_to_wait_may_end_it(gate: Workspace, recorded: Recorded, server: ModelServer) -> None:
    server.behave(hangs)
    command = [sys.executable, "-m", "pytest", "--golden", *OPTIONS, "-q"]
    with subprocess.Popen(command, cwd=gate.path, stdout=subprocess.PIPE, text=True) as process:
        wait_until(lambda: bool(server.requests))
        process.send_signal(signal.SIGINT)
        told, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "learning was interrupted; the next gate continues it" in told
    assert recorded.results() == {"sales": "PASSED"}


def test_model_that_fails_changes_no_verdict_and_is_told_once(gate: Workspace, server: ModelServer) -> None:
    server.behave(answers(401))
    ran = gate.run()
    ran.assert_outcomes(passed=1)
    assert str(ran.stdout).count("the key is not accepted") == 1
    assert KEY not in f"{ran.stdout}{ran.stderr}"


@pytest.mark.parametrize("learning", ["recall", "off"])
def test_model_is_not_asked_where_nothing_is_learned(gate: Workspace, server: ModelServer, learning: str) -> None:
    server.behave(says(json.dumps(SAID)))
    ran = gate.run(f"--golden-learning={learning}")
    assert "golden model" not in str(ran.stdout)
    assert server.requests == []


def test_wrong_setting_is_told_in_the_header_and_stops_no_gate(
    gate: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDEN_LLM_MODEL", "gpt-4")
    ran = gate.run()
    ran.assert_outcomes(passed=1)
    assert "WARNING: no language model is used: GOLDEN_LLM_MODEL 'gpt-4'" in str(ran.stdout)


def test_no_key_for_a_providers_own_service_is_told_too(gate: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDEN_LLM_MODEL", "anthropic:claude")
    for name in ("GOLDEN_LLM_BASE_URL", "GOLDEN_LLM_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert "no language model is used" in str(gate.run().stdout)


def test_nothing_is_said_of_a_model_where_none_is_named(gate: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOLDEN_LLM_MODEL", raising=False)
    assert "golden model" not in str(gate.run().stdout)
