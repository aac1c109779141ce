"""One exchange with a model's server, in the form of OpenAI's chat completions or Anthropic's messages.

All deadlines are the caller's. Redirects are not followed: they would carry the key elsewhere. Failures are
`LanguageModelError`s whose text holds neither the key nor the prompt.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import LanguageModelError, SettingsError
from pytest_golden.learning.language_model.endpoint import Provider, find_loopback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from pytest_golden.learning.language_model.endpoint import Endpoint

_ANTHROPIC_VERSION = "2023-06-01"
# Anthropic wants a limit; it is far above what a reply under the cap of bytes in 5 s has.
_MOST_TOKENS = 4_096
_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})
_REFUSED = frozenset({"content_filter", "refusal"})
_MOST_OF_MESSAGE = 200
MOST_BYTES = 1024 * 1024
_HTTP_LIBRARY = "httpx2"
_PAUSE_SECONDS = 0.25
# Of what is left: for the connection, and as much for the handshake of TLS.
_SHARE_OF_CONNECTING = 0.45
_MOST_OF_ERROR_BYTES, _ERROR_SECONDS = 16 * 1024, 1.0
_STATUS_WORDS = {
    401: "the key is not accepted",
    403: "the key may not do this",
    404: "there is no such model or address",
}


@dataclass(frozen=True, slots=True)
class Request:
    """What is posted; the headers hold the key, so no representation shows them."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes


def write_request(endpoint: Endpoint, instructions: str, prompt: str) -> Request:
    """Return a request in the endpoint's form, with only those fields that every server knows.

    Sources: OpenAI's chat completions, https://platform.openai.com/docs/api-reference/chat, which many servers speak, and
    Anthropic's messages, https://docs.anthropic.com/en/api/messages.
    """
    body: dict[str, Any] = {"model": endpoint.name}
    headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
    said = {"role": "user", "content": _whole(prompt)}
    if endpoint.provider is Provider.ANTHROPIC:
        body |= {"max_tokens": _MOST_TOKENS, "system": _whole(instructions), "messages": [said]}
        headers["anthropic-version"] = _ANTHROPIC_VERSION
        key_header, key_form = "x-api-key", "{}"
    else:
        body |= {"messages": [{"role": "system", "content": _whole(instructions)}, said]}
        key_header, key_form = "authorization", "Bearer {}"
    if endpoint.api_key is not None:
        headers[key_header] = key_form.format(endpoint.api_key)
    return Request(endpoint.url, headers, json.dumps(body).encode())


async def exchange(
    request: Request, *, deadline: float, clock: Callable[[], datetime], most_bytes: int = MOST_BYTES
) -> Any:
    """Post the request and return the JSON content of the answer.

    A connection error, 429 and 5xx are tried once more, after what `Retry-After` says; not when that is past the deadline,
    which is a time of the running loop's clock.

    Raises:
        LanguageModelError: no content came; the message says why.
    """
    try:
        http: Any = import_module(_HTTP_LIBRARY)
    except ImportError as error:
        raise LanguageModelError(f"{_HTTP_LIBRARY} cannot be loaded: {error}") from None
    exchange_once = partial(_post, http, request, deadline=deadline, clock=clock, most_bytes=most_bytes)
    try:
        return await exchange_once()
    except _PassingError as failure:
        await _wait_for_another_try(failure, deadline)
    try:
        return await exchange_once()
    except _PassingError as failure:
        raise LanguageModelError(f"{failure.reason}, twice") from None


async def _wait_for_another_try(failure: _PassingError, deadline: float) -> None:
    pause = _PAUSE_SECONDS if failure.after_seconds is None else failure.after_seconds
    if asyncio.get_running_loop().time() + pause >= deadline:
        raise LanguageModelError(f"{failure.reason}; another try in {pause:.3g} s would be too late")
    await asyncio.sleep(pause)


async def _post(http: Any, request: Request, *, deadline: float, clock: Callable[[], datetime], most_bytes: int) -> Any:
    opened = _Opened()
    try:
        async with (
            _make_client(http, request, deadline) as client,
            client.stream(
                "POST",
                request.url,
                headers=dict(request.headers),
                content=request.body,
                extensions={"trace": opened.note},
            ) as response,
        ):
            if response.is_success:
                return _read_json(await _read_body(response, most_bytes))
            await _refuse_status(response, clock)
    except asyncio.CancelledError:
        await opened.close()
        raise
    except http.ConnectTimeout:
        raise _PassingError("no connection in time") from None
    except (http.ConnectError, http.ProxyError) as error:
        raise _PassingError(f"no connection: {find_message(str(error))}") from None
    except http.TransportError as error:
        raise _PassingError(f"the connection broke ({_name_kind(error)})") from None
    except (http.HTTPError, http.InvalidURL, ImportError, OSError, ValueError) as error:
        # Settings of a proxy or of certificates that cannot be used, and what else the library finds wrong before it sends.
        raise LanguageModelError(f"nothing could be sent ({_name_kind(error)})") from None


def _make_client(http: Any, request: Request, deadline: float) -> Any:
    connecting = max(0.0, deadline - asyncio.get_running_loop().time()) * _SHARE_OF_CONNECTING
    timeout = http.Timeout(None, connect=connecting)
    host = find_loopback(request.url)
    # A model on this machine is reached without the environment's proxy, which would receive prompts and key.
    mounts = None if host is None else {f"all://[{host}]" if ":" in host else f"all://{host}": None}
    return http.AsyncClient(timeout=timeout, follow_redirects=False, mounts=mounts)


class _Opened:
    """The connections of one exchange: the library leaves one open whose handshake of TLS is cancelled."""

    def __init__(self) -> None:
        self._streams: list[Any] = []

    async def note(self, event: str, told: Mapping[str, Any]) -> None:
        if event.endswith("connect_tcp.complete"):
            self._streams.append(told["return_value"])

    async def close(self) -> None:
        for stream in self._streams:
            with suppress(Exception):
                await stream.aclose()


async def _read_body(response: Any, most_bytes: int) -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise LanguageModelError("the answer is compressed, which was not asked for")
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most_bytes:
            raise LanguageModelError(f"the answer has more than {most_bytes:,} bytes")
    return bytes(body)


def _read_json(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise LanguageModelError("the answer is no JSON") from None


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


async def _refuse_status(response: Any, clock: Callable[[], datetime]) -> None:
    status = response.status_code
    if status == 429 or status >= 500:
        raise _PassingError(f"status {status}", _read_retry_after(response.headers.get("retry-after"), clock))
    if status in _STATUS_WORDS:
        raise LanguageModelError(f"status {status}: {_STATUS_WORDS[status]}")
    if 300 <= status < 400:
        raise LanguageModelError(
            f"status {status}: redirects are not followed, since they would carry the key elsewhere"
        )
    raise LanguageModelError(f"status {status}: {await _read_error(response)}")


async def _read_error(response: Any) -> str:
    """Return what the server says; it has a second for that."""
    body = bytearray()
    with suppress(TimeoutError):
        async with asyncio.timeout(_ERROR_SECONDS):
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _MOST_OF_ERROR_BYTES:
                    break
    with suppress(ValueError, RecursionError):
        return find_message(json.loads(body))
    return find_message(body.decode("utf-8", "replace"))


def _read_retry_after(said: str | None, clock: Callable[[], datetime]) -> float | None:
    """Return seconds for seconds or for a date (RFC 9110, 10.2.3); None for anything else."""
    text = (said or "").strip()
    with suppress(ValueError):
        seconds = float(text)
        return seconds if seconds >= 0 else None
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, (parsedate_to_datetime(text) - clock()).total_seconds())
    return None


def _name_kind(error: Exception) -> str:
    """Return the kind of an error: its text may quote a header or an address with a password."""
    return type(error).__name__


class _PassingError(Exception):
    """A failure that may not occur again, and the seconds that the server asks to wait."""

    def __init__(self, reason: str, after_seconds: float | None = None) -> None:
        self.reason = reason
        self.after_seconds = after_seconds
        super().__init__(reason)


def list_replies(answer: object) -> tuple[object, ...]:
    """Return what the model said, text or values, in the order to try them. Answers are read by form, whoever sent them.

    Raises:
        LanguageModelError: there is nothing, or it is an error, cut off, or refused.
    """
    if not isinstance(answer, dict):
        raise LanguageModelError("the answer is no JSON object")
    if answer.get("error"):
        raise LanguageModelError(f"the answer is an error: {find_message(answer)}")
    choices = answer.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else answer
    reason = str(first.get("finish_reason") or first.get("stop_reason") or "")
    if reason in _CUT_OFF:
        raise LanguageModelError(f"the reply was cut off ({reason})")
    if reason in _REFUSED:
        raise LanguageModelError(f"the model refused ({reason})")
    replies = tuple(_replies_in(first))
    if not replies:
        raise LanguageModelError("the answer holds no reply")
    return replies


def find_message(answer: object) -> str:
    """Return what the provider says is wrong, in one printable line of 200 characters at most. It may quote anything: redact it."""
    said = answer.get("error", answer) if isinstance(answer, dict) else answer
    if isinstance(said, dict):
        said = said.get("message") or said.get("type") or "no message"
    line = " ".join(str(said)[: 10 * _MOST_OF_MESSAGE].split())[:_MOST_OF_MESSAGE]
    return "".join(character if character.isprintable() else "\ufffd" for character in line)


def _replies_in(choice: Mapping[str, Any]) -> Iterator[object]:
    """Yield arguments of calls first: a model that calls a function puts the answer there, and comments beside it."""
    message = choice["message"] if isinstance(choice.get("message"), dict) else choice
    if isinstance(message.get("parsed"), dict):
        yield message["parsed"]
    calls = message.get("tool_calls")
    called = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    for function in (*called, message.get("function_call")):
        if isinstance(function, dict) and isinstance(function.get("arguments"), (str, dict)):
            yield function["arguments"]
    yield from _content_replies(message.get("content"))
    if isinstance(choice.get("text"), str):
        yield choice["text"]


def _content_replies(content: object) -> Iterator[object]:
    if isinstance(content, (str, dict)):
        yield content
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, dict)]
        yield from (part["input"] for part in parts if isinstance(part.get("input"), dict))
        texts = [part if isinstance(part, str) else _text_of(part) for part in content]
        if any(texts):
            yield "".join(texts)


def _text_of(part: object) -> str:
    """Return the text of a part; what a model thought before it answered is none."""
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def _whole(text: str) -> str:
    """Return the text with half characters replaced, which no server takes."""
    return text.encode("utf-8", "replace").decode()


def refuse_missing_extra(who: str = "a language model", extra: str = "llm") -> None:
    """Raise if the HTTP library is not installed; it is not imported.

    Raises:
        SettingsError: it is not; the message says how to get it.
    """
    if find_spec(_HTTP_LIBRARY) is None:
        message = (
            f"{who} wants {_HTTP_LIBRARY}, which is not installed: `pip install 'pytest-golden-projects[{extra}]'`"
        )
        raise SettingsError(message)
