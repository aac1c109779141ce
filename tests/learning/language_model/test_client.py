from __future__ import annotations

import asyncio
import gc
import logging
import socket
import threading
import time
from datetime import timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import BaseModel

from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.learning.language_model.client import LanguageModel, ask, ask_within
from pytest_golden.learning.language_model.prompting import reflect
from pytest_golden.trajectory.insight.analysis import analyze_trajectory
from pytest_golden.trajectory.model import Trajectory
from tests.learning.language_model.server import (
    answers,
    breaks_off,
    drips,
    drips_headers,
    drops,
    hangs,
    says,
)
from tests.patience import without_hanging

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.learning.language_model.server import ModelServer

KEY = "sk-golden-0123456789abcdefghij"
GOOD = '{"lesson": "cast the key", "confidence": 0.9}'


class Wording(BaseModel):
    lesson: str
    confidence: float


def at(server: ModelServer, *, provider: str = "openai", timeout_seconds: float = 60.0) -> LanguageModel:
    path = "/v1" if provider == "openai" else ""
    return LanguageModel(f"{provider}:test-1", server.address + path, KEY, timeout_seconds=timeout_seconds)


def complete(model: LanguageModel, schema: Any = Wording, prompt: str = "Word the lesson.") -> Any:
    return asyncio.run(model.complete(prompt, schema))


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_reply_becomes_a_value_of_the_schema(server: ModelServer, provider: str) -> None:
    server.behave(says(GOOD))
    assert complete(at(server, provider=provider)) == Wording(lesson="cast the key", confidence=0.9)


def test_openai_compatible_endpoint_gets_what_it_wants(server: ModelServer) -> None:
    server.behave(says(GOOD))
    complete(at(server))
    [(path, headers, body)] = server.requests
    assert path == "/v1/chat/completions"
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["content-type"] == "application/json"
    assert set(body) == {"model", "messages"}
    assert body["model"] == "test-1"
    assert [said["role"] for said in body["messages"]] == ["system", "user"]
    assert '"lesson"' in body["messages"][0]["content"]
    assert body["messages"][1]["content"] == "Word the lesson."


def test_anthropic_gets_what_it_wants(server: ModelServer) -> None:
    server.behave(says(GOOD))
    complete(at(server, provider="anthropic"))
    [(path, headers, body)] = server.requests
    assert path == "/v1/messages"
    assert headers["x-api-key"] == KEY
    assert headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in headers
    assert body["max_tokens"] > 0
    assert '"lesson"' in body["system"]
    assert body["messages"] == [{"role": "user", "content": "Word the lesson."}]


def test_model_without_a_key_is_asked_without_one(server: ModelServer) -> None:
    server.behave(says(GOOD))
    assert complete(LanguageModel("openai:local", f"{server.address}/v1")) is not None
    assert "authorization" not in server.requests[0][1]


def test_any_type_that_pydantic_can_describe_is_a_schema(server: ModelServer) -> None:
    server.behave(says('["a", "b"]'))
    assert complete(at(server), tuple[str, ...]) == ("a", "b")
    server.behave(says("yes"))
    assert complete(at(server), Literal["yes", "no"]) == "yes"


def test_schema_that_is_none_is_refused(server: ModelServer) -> None:
    with pytest.raises(ValueError, match=r"schema .* cannot be described"):
        complete(at(server), object())


def test_secrets_never_reach_the_model(server: ModelServer) -> None:
    server.behave(says(GOOD))
    environ = {
        "GOLDEN_LLM_MODEL": "openai:test-1",
        "GOLDEN_LLM_BASE_URL": f"{server.address}/v1",
        "GOLDEN_LLM_API_KEY": KEY,
        "WAREHOUSE_PASSWORD": "correct-horse-battery",
    }
    model = LanguageModel.from_env(environ)
    assert model is not None
    prompt = (
        f"key {KEY}, login correct-horse-battery, postgresql://u:hunter22x@h/db, Authorization: Bearer abcdef0123456789"
    )
    complete(model, prompt=prompt)
    sent = server.requests[0][2]["messages"][1]["content"]
    for secret in (KEY, "correct-horse-battery", "hunter22x", "abcdef0123456789"):
        assert secret not in sent
    assert "postgresql://u:" in sent


def test_half_characters_are_replaced_before_anything_is_sent(server: ModelServer) -> None:
    server.behave(says(GOOD))
    assert complete(at(server), prompt="half \ud800 a character") is not None
    assert server.requests[0][2]["messages"][1]["content"] == "half ? a character"


_USELESS: dict[str, Callable[[Any], object]] = {
    "page": answers(200, b"<html>busy</html>", content_type="text/html"),
    "empty": answers(200, b""),
    "no text": answers(200, b"\xff\xfe\xfa"),
    "deep": answers(200, b"[" * 100_000),
    "list": answers(200, b"[]"),
    "no choices": answers(200, b'{"choices": []}'),
    "error": answers(200, b'{"error": {"message": "no such model"}}'),
    "compressed": answers(200, b"x", content_encoding="gzip"),
    "no content": answers(204),
    "prose": says("I cannot help with that."),
    "other type": says('{"lesson": 7}'),
    "null": says(None),
    "no number": answers(200, b'{"choices": [{"message": {"content": {"lesson": "x", "confidence": NaN}}}]}'),
}


@pytest.mark.parametrize("name", _USELESS)
def test_whatever_cannot_be_used_is_none_and_a_warning(
    server: ModelServer, provider: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.behave(_USELESS[name])
    assert complete(at(server, provider=provider)) is None
    assert len(server.requests) == 1
    assert [record.levelno for record in caplog.records if record.name.startswith("pytest_golden")] == [logging.WARNING]


def test_wrong_content_type_around_good_json_does_not_matter(server: ModelServer) -> None:
    server.behave(
        answers(
            200, b'{"choices": [{"message": {"content": {"lesson": "a", "confidence": 1}}}]}', content_type="text/plain"
        )
    )
    assert complete(at(server)) == Wording(lesson="a", confidence=1)


def test_any_success_is_one(server: ModelServer) -> None:
    server.behave(answers(201, b'{"choices": [{"message": {"content": {"lesson": "a", "confidence": 1}}}]}'))
    assert complete(at(server)) is not None


def test_reply_in_chunks_or_without_a_length_is_read(server: ModelServer) -> None:
    body = b'{"choices": [{"message": {"content": {"lesson": "a", "confidence": 1}}}]}'

    def in_chunks(exchange: Any) -> None:
        exchange.send_response(200)
        exchange.send_header("transfer-encoding", "chunked")
        exchange.end_headers()
        for part in (body[:20], body[20:]):
            exchange.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        exchange.wfile.write(b"0\r\n\r\n")

    def until_the_end(exchange: Any) -> None:
        exchange.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n" + body)
        exchange.close_connection = True

    for behaviour in (in_chunks, until_the_end):
        server.behave(behaviour)
        assert complete(at(server)) is not None


def test_reply_that_was_cut_off_is_none(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    server.behave(says(GOOD, finish_reason="length"))
    assert complete(at(server)) is None
    server.behave(says(GOOD, stop_reason="max_tokens"))
    assert complete(at(server, provider="anthropic")) is None
    assert "cut off (length)" in caplog.text
    assert "cut off (max_tokens)" in caplog.text


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_passing_trouble_is_tried_once_more(server: ModelServer, status: int) -> None:
    server.behave(answers(status), says(GOOD))
    assert complete(at(server)) is not None
    assert len(server.requests) == 2


@pytest.mark.parametrize("behaviour", [answers(500), answers(429), drops, breaks_off], ids=range(4))
def test_lasting_trouble_is_tried_twice_and_no_more(
    server: ModelServer, behaviour: Callable[[Any], object], caplog: pytest.LogCaptureFixture
) -> None:
    server.behave(behaviour)
    assert complete(at(server)) is None
    assert len(server.requests) == 2
    assert "twice" in caplog.text


def test_dropped_connection_is_tried_once_more(server: ModelServer) -> None:
    server.behave(drops, says(GOOD))
    assert complete(at(server)) is not None


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_refused_request_is_not_tried_again(server: ModelServer, status: int, caplog: pytest.LogCaptureFixture) -> None:
    server.behave(answers(status, b'{"error": {"message": "the model `test-1`\\nis unknown"}}'), says(GOOD))
    assert complete(at(server)) is None
    assert len(server.requests) == 1
    assert f"status {status}" in caplog.text
    assert ("the model `test-1` is unknown" in caplog.text) == (status not in {401, 403, 404})


def test_error_that_is_no_json_is_told_as_it_is_and_cut(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    server.behave(answers(400, b"bad request " * 10_000))
    assert complete(at(server)) is None
    [record] = [record for record in caplog.records if record.name.startswith("pytest_golden")]
    assert "bad request" in record.getMessage()
    assert len(record.getMessage()) < 400


def test_server_gets_a_second_to_say_what_is_wrong(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    def drips_error(exchange: Any) -> None:
        exchange.send_response(400)
        exchange.send_header("content-length", "1000")
        exchange.end_headers()
        exchange.wfile.write(b"wrong shape")
        hangs(exchange)

    server.behave(drips_error)
    with without_hanging():
        assert complete(at(server)) is None
    assert "status 400: wrong shape" in caplog.text


def test_redirect_does_not_carry_the_key_elsewhere(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    server.behave(answers(307, location=f"{server.address}/elsewhere"), says(GOOD))
    assert complete(at(server)) is None
    assert len(server.requests) == 1
    assert "redirects are not followed" in caplog.text


def test_retry_after_within_the_deadline_is_waited_for(server: ModelServer) -> None:
    server.behave(answers(429, retry_after="1"), says(GOOD))
    started = time.monotonic()
    assert complete(at(server)) is not None
    assert time.monotonic() - started >= 1


@pytest.mark.parametrize("said", ["3600", "60", "60.5", "9" * 400, "a date"])
def test_retry_after_beyond_the_deadline_is_not_waited_for(server: ModelServer, said: str) -> None:
    date = format_datetime(utc_now() + timedelta(hours=1), usegmt=True)
    server.behave(answers(429, retry_after=date if said == "a date" else said), says(GOOD))
    with without_hanging():
        assert complete(at(server)) is None
    assert len(server.requests) == 1


_NO_DATES = [
    "Fri, 01 Jan 1999 00:00:00 +99999999999999",
    "Fri, 01 Jan 9999999999999 00:00:00 GMT",
    "Fri, 01 Jan 2099 99999999999999999999:00:00 GMT",
]


@pytest.mark.parametrize(
    "said", ["soon", "-1", "0", "Mon, 02 Mar 2026 08:00:00 GMT", "Mon, 02 Mar 2026 08:00:00", "nan", "0.1", *_NO_DATES]
)
def test_retry_after_that_says_nothing_is_a_short_pause(server: ModelServer, said: str) -> None:
    server.behave(answers(503, retry_after=said), says(GOOD))
    with without_hanging():
        assert complete(at(server)) is not None


@pytest.mark.parametrize("behaviour", [hangs, drips, drips_headers])
def test_deadline_covers_headers_and_body(
    server: ModelServer, provider: str, behaviour: Callable[[Any], object], caplog: pytest.LogCaptureFixture
) -> None:
    server.behave(behaviour)
    with without_hanging():
        assert complete(at(server, provider=provider, timeout_seconds=0.4)) is None
    assert "no answer within 0.4 s" in caplog.text


def test_deadline_covers_both_tries(server: ModelServer) -> None:
    server.behave(answers(500), hangs)
    with without_hanging():
        assert complete(at(server, timeout_seconds=5)) is None
    assert len(server.requests) == 2


def test_deadline_covers_connecting() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        # Those who wait fill the queue, so that the next one hangs while it connects.
        waiting = [socket.socket() for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(address)
        with without_hanging():
            model = LanguageModel("openai:x", f"http://127.0.0.1:{address[1]}/v1", timeout_seconds=0.4)
            assert complete(model) is None
        for one in waiting:
            one.close()


def test_deadline_covers_the_handshake_of_tls() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with without_hanging():
            model = LanguageModel("openai:x", f"https://127.0.0.1:{port}/v1", timeout_seconds=0.6)
            assert complete(model) is None
        # What the library left open would be told of here.
        gc.collect()


def test_endless_reply_is_not_read_to_its_end(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    server.behave(answers(200, b" " * (10 * 1024 * 1024) + b"{}"))
    assert complete(at(server)) is None
    assert "more than 1,048,576 bytes" in caplog.text


def test_nobody_listening_is_none_and_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert complete(LanguageModel("openai:x", f"http://127.0.0.1:{port}/v1")) is None
    assert "no connection" in caplog.text


def test_certificate_trouble_is_none_and_a_warning(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    server.behave(says(GOOD))
    address = server.address.replace("http:", "https:")
    assert complete(LanguageModel("openai:x", f"{address}/v1", KEY)) is None
    assert "SSL" in caplog.text


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:9", "nonsense://x y", "socks5://127.0.0.1:9"])
def test_proxy_that_cannot_be_used_is_none_and_a_warning(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, proxy: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert complete(LanguageModel("openai:test-1", "http://model.invalid/v1", KEY)) is None
    assert server.requests == []
    assert [record.levelno for record in caplog.records if record.name.startswith("pytest_golden")] == [logging.WARNING]


def test_model_on_this_machine_is_asked_past_all_proxies(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.behave(says(GOOD))
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert complete(at(server)) is not None
    [(path, _, _)] = server.requests
    assert path == "/v1/chat/completions"


def test_cancelled_handshake_leaves_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        model = LanguageModel("openai:test-1", f"https://127.0.0.1:{listener.getsockname()[1]}/v1", KEY)

        async def cancel() -> bytes:
            asking = asyncio.create_task(model.complete("Word it.", Wording))
            accepted, _ = await asyncio.to_thread(listener.accept)
            with accepted:
                await asyncio.to_thread(accepted.recv, 1)
                asking.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asking
                accepted.settimeout(60)
                while received := await asyncio.to_thread(accepted.recv, 65_536):
                    pass
                return received

        assert asyncio.run(cancel()) == b""
    gc.collect()


def test_key_is_nowhere_to_be_seen(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    model = at(server)
    for behaviour in (
        says(GOOD),
        answers(400, f"your key {KEY} is wrong".encode()),
        answers(401, f"Incorrect API key provided: {KEY}".encode()),
        answers(200, f'{{"error": "{KEY}"}}'.encode()),
        says(KEY),
        drops,
    ):
        server.behave(behaviour)
        complete(model)
    shown = [caplog.text, repr(model), str(model), repr(model.endpoint), str(model.endpoint), repr(vars(model))]
    shown += [repr(vars(record)) for record in caplog.records]
    assert not any(KEY in text for text in shown)


def test_key_that_a_server_echoes_is_in_no_reply(server: ModelServer, provider: str) -> None:
    key = "a/plain-word-without-form"
    model = LanguageModel(f"{provider}:test-1", server.address + ("/v1" if provider == "openai" else ""), key)
    for reply in (f'{{"lesson": "use {key}", "confidence": 1}}', {"lesson": key, "confidence": 1}):
        content = (
            [{"type": "tool_use", "input": reply}] if provider == "anthropic" and isinstance(reply, dict) else reply
        )
        server.behave(says(content))
        found = complete(model)
        assert found is not None
        assert key not in found.lesson


def test_providers_own_service_is_not_asked_without_a_key(caplog: pytest.LogCaptureFixture) -> None:
    assert complete(LanguageModel("openai:gpt")) is None
    assert "needs a key" in caplog.text


def test_prompt_beyond_the_limit_is_not_sent(server: ModelServer, caplog: pytest.LogCaptureFixture) -> None:
    assert complete(at(server), prompt="x" * 200_001) is None
    assert server.requests == []
    assert "200,001 characters" in caplog.text


def test_calls_may_run_side_by_side(server: ModelServer) -> None:
    server.behave(says(GOOD))
    model = at(server)

    async def ask_all() -> list[Wording | None]:
        return await asyncio.gather(*(model.complete("Word it.", Wording) for _ in range(10)))

    assert asyncio.run(ask_all()) == [Wording(lesson="cast the key", confidence=0.9)] * 10


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_timeout_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="timeout_seconds"):
        LanguageModel("openai:x", timeout_seconds=seconds)


def test_missing_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "httpx2", None)
    with pytest.raises(SettingsError, match=r"pip install 'pytest-golden-projects\[llm\]'"):
        LanguageModel("openai:x")


def test_library_that_went_away_is_none_and_a_warning(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = at(server)
    monkeypatch.setitem(__import__("sys").modules, "httpx2", None)
    assert complete(model) is None
    assert "httpx2 cannot be loaded" in caplog.text


def test_nothing_is_configured_without_a_model() -> None:
    assert LanguageModel.from_env({}) is None
    assert LanguageModel.from_env({"GOLDEN_LLM_MODEL": " ", "GOLDEN_LLM_API_KEY": KEY}) is None


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


def test_ask_refuses_a_schema_that_is_none() -> None:
    with pytest.raises(ValueError, match="schema"):
        asyncio.run(ask(Scripted(None), "Word it.", object()))


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
