from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from pydantic import BaseModel

from pytest_golden.learning.language_model.client import BudgetedModel, ask, ask_within
from pytest_golden.learning.language_model.prompting import reflect
from pytest_golden.trajectory.insight.analysis import analyze_trajectory
from pytest_golden.trajectory.model import Trajectory
from tests.patience import without_hanging


class Lesson(BaseModel):
    lesson: str


class Scripted:
    """Somebody's own client: gives what it is told to, after some seconds, or raises it."""

    def __init__(self, reply: Any, seconds: float = 0.0) -> None:
        self.prompts: list[str] = []
        self._reply = reply
        self._seconds = seconds

    async def complete(self, prompt: str, schema: Any) -> Any:
        self.prompts.append(prompt)
        await asyncio.sleep(self._seconds)
        if isinstance(self._reply, BaseException):
            raise self._reply
        return self._reply


@pytest.mark.parametrize(
    "reply",
    [
        Lesson(lesson="a"),
        {"lesson": "a"},
        '```json\n{"lesson": "a"}\n```',
        {"choices": [{"message": {"content": '{"lesson": "a"}'}}]},
        {"content": [{"text": '{"lesson": "a"}'}], "stop_reason": "end_turn"},
    ],
)
def test_any_client_with_any_form_of_reply_may_be_asked(reply: object) -> None:
    assert asyncio.run(ask(Scripted(reply), "Word it.", Lesson)) == Lesson(lesson="a")


def test_client_that_is_no_coroutine_may_be_asked_too() -> None:
    class Plain:
        def complete(self, prompt: str, schema: Any) -> Any:
            return {"lesson": "a"}

    plain: Any = Plain()
    assert asyncio.run(ask(plain, "Word it.", Lesson)) == Lesson(lesson="a")


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("no", "does not fit"),
        ({"choices": [{"finish_reason": "length"}]}, "cut off"),
        (RuntimeError("password=hunter22x"), "RuntimeError: password="),
        (TimeoutError(), "no answer"),
    ],
)
def test_whatever_a_client_does_is_none_and_a_warning(reply: Any, told: str, caplog: pytest.LogCaptureFixture) -> None:
    assert asyncio.run(ask(Scripted(reply), "Word it.", Lesson)) is None
    assert told in caplog.text
    assert "hunter22x" not in caplog.text


def test_none_is_none_without_another_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert asyncio.run(ask(Scripted(None), "Word it.", Lesson)) is None
    assert caplog.text == ""


def test_client_that_is_late_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    with without_hanging():
        assert asyncio.run(ask(Scripted({"lesson": "a"}, 600), "Word it.", Lesson, seconds=0.1)) is None
    assert "no answer within 0.1 s" in caplog.text


def test_client_is_not_told_secrets() -> None:
    client = Scripted(None)
    asyncio.run(ask(client, "postgresql://u:hunter22x@h/db", Lesson))
    assert "hunter22x" not in client.prompts[0]


def test_schema_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="schema"):
        asyncio.run(ask(Scripted(None), "Word it.", object()))


def test_budget_is_shared_by_all_calls() -> None:
    now = 100.0
    model = Scripted({"lesson": "a"})
    budgeted = BudgetedModel(model, 10.0, monotonic=lambda: now)
    assert asyncio.run(budgeted.complete("1", Lesson)) is not None
    now = 109.0
    assert asyncio.run(budgeted.complete("2", Lesson)) is not None
    now = 110.0
    assert asyncio.run(budgeted.complete("3", Lesson)) is None
    assert model.prompts == ["1", "2"]


def test_budget_ends_a_call_in_its_middle() -> None:
    budgeted = BudgetedModel(Scripted({"lesson": "a"}, 600), 0.1)
    with without_hanging():
        assert asyncio.run(budgeted.complete("1", Lesson)) is None
        assert budgeted.was_cut_short


def test_asking_within_a_time_gives_the_result() -> None:
    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    assert ask_within(60, answer) == 42


def test_asking_within_a_time_ends_with_it() -> None:
    with without_hanging():
        assert ask_within(0.1, lambda: asyncio.sleep(600)) is None


def test_what_was_asked_may_raise() -> None:
    async def fail() -> None:
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        ask_within(60, fail)


def test_time_that_ran_out_in_what_was_asked_is_its_own_error() -> None:
    async def fail() -> None:
        raise TimeoutError("inside")

    with pytest.raises(TimeoutError, match="inside"):
        ask_within(60, fail)


@pytest.mark.parametrize("head_start", [0.0, 0.001, 0.01])
def test_end_that_meets_the_time_is_no_error(head_start: float) -> None:
    for _ in range(5):
        assert ask_within(0.03, lambda: asyncio.sleep(0.03 - head_start)) is None


def test_nobody_waits_for_a_look_up_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    done = threading.Event()

    def look_up() -> str:
        done.wait(600)
        return "late"

    async def wait_for_look_up() -> str:
        return await asyncio.get_running_loop().run_in_executor(None, look_up)

    with without_hanging():
        assert ask_within(0.2, wait_for_look_up) is None
    done.set()


def test_call_in_a_thread_gives_its_result_and_its_error() -> None:
    async def call(function: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(None, function, *arguments)

    assert ask_within(60, lambda: call(int, "7")) == 7
    with pytest.raises(ValueError, match="invalid literal"):
        ask_within(60, lambda: call(int, "x"))


def _failed_run() -> Trajectory:
    run = Trajectory.new().add_step("action", "connect to postgresql://u:hunter22x@h/db")
    run = run.add_step(
        "tool_call", "load orders", importance="critical", metadata={"error": "password=hunter22x refused"}
    )
    return run.complete("failure", error="password=hunter22x refused")


@pytest.mark.parametrize("is_analysed", [False, True])
def test_model_reflects_on_a_run_without_its_secrets(is_analysed: bool) -> None:
    client = Scripted(
        {
            "analysis": "the login is wrong",
            "suggestions": [{"description": "Add a check of the login", "type": "add", "category": "constraint"}],
            "confidence": 0.8,
        }
    )
    run = analyze_trajectory(_failed_run()) if is_analysed else _failed_run()
    reflection = asyncio.run(
        reflect(run, client, original_prompt="Load all. api_key=k3y-9f8e7d6c5b4a", task_description="nightly load")
    )
    assert reflection is not None
    assert reflection.analysis == "the login is wrong"
    assert [one.description for one in reflection.suggestions] == ["Add a check of the login"]
    assert "hunter22x" not in client.prompts[0]
    assert "k3y-9f8e7d6c5b4a" not in client.prompts[0]
    assert "nightly load" in client.prompts[0]


def test_model_that_says_nothing_reflects_nothing() -> None:
    assert asyncio.run(reflect(_failed_run(), Scripted(None), original_prompt="Load all.")) is None


def test_blank_prompt_to_reflect_on_is_refused() -> None:
    with pytest.raises(ValueError, match="original_prompt"):
        asyncio.run(reflect(_failed_run(), Scripted(None), original_prompt=" "))
