"""Post JSON to a server and return the JSON of its answer: the one way in which this room speaks HTTP.

Redirects are not followed: they would carry the key elsewhere. Failures are `LanguageModelError`s whose text holds neither the
key nor what was sent.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_golden.clock import utc_now
from pytest_golden.errors import LanguageModelError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

MOST_BYTES = 1024 * 1024
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADERS = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
_MOST_OF_MESSAGE = 200
_PAUSE_SECONDS = 0.25
# Shares of the time that is left: one for the connection, and as much again for the TLS handshake.
_SHARE_OF_CONNECTING = 0.45
_MOST_OF_ERROR_BYTES, _ERROR_SECONDS = 16 * 1024, 1.0
_STATUS_WORDS = {
    401: "the key is not accepted",
    403: "the key may not do this",
    404: "there is no such model or address",
}


@dataclass(frozen=True, slots=True)
class Request:
    """JSON to post. The headers hold the key, so no representation shows them."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes

    @classmethod
    def of_json(cls, url: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Request:
        """Return a request with this content; `headers` are those beside the ones that every JSON request has."""
        return cls(url, {**_HEADERS, **headers}, json.dumps(body).encode())


def find_loopback(url: str) -> str | None:
    """Return the host of an address on this machine; None for any other address."""
    host = urlsplit(url).hostname
    return host if host in _LOOPBACK else None


def refuse_missing_extra(who: str = "a language model", extra: str = "llm") -> None:
    """Raise if the HTTP library is not installed; it is not imported.

    Raises:
        SettingsError: it is not; the message says how to install it.
    """
    if find_spec("httpx2") is None:
        message = f"{who} wants httpx2, which is not installed: `pip install 'pytest-golden-projects[{extra}]'`"
        raise SettingsError(message)


async def exchange(request: Request, *, seconds: float, most_bytes: int = MOST_BYTES) -> Any:
    """Post the request and return the JSON content of the answer, all within `seconds`.

    A connection error, 429 and 5xx are tried once more, after the time that `Retry-After` asks for; not when that would be
    too late.

    Raises:
        LanguageModelError: no content came; the message says why.
    """
    deadline = asyncio.get_running_loop().time() + seconds
    try:
        import httpx2
    except ImportError as error:
        raise LanguageModelError(f"httpx2 cannot be loaded: {error}") from None
    try:
        async with asyncio.timeout_at(deadline):
            try:
                return await _post(httpx2, request, deadline, most_bytes)
            except _PassingError as failure:
                await _wait_for_another_try(failure, deadline)
            return await _post(httpx2, request, deadline, most_bytes)
    except TimeoutError:
        raise LanguageModelError(f"no answer within {seconds:g} s") from None
    except _PassingError as failure:
        raise LanguageModelError(f"{failure.reason}, twice") from None


async def _wait_for_another_try(failure: _PassingError, deadline: float) -> None:
    pause = _PAUSE_SECONDS if failure.after_seconds is None else failure.after_seconds
    if asyncio.get_running_loop().time() + pause >= deadline:
        raise LanguageModelError(f"{failure.reason}; another try in {pause:.3g} s would be too late")
    await asyncio.sleep(pause)


async def _post(http: Any, request: Request, deadline: float, most_bytes: int) -> Any:
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
            await _refuse_status(response)
    except asyncio.CancelledError:
        await opened.close()
        raise
    except http.ConnectTimeout:
        raise _PassingError("no connection in time") from None
    except (http.ConnectError, http.ProxyError) as error:
        raise _PassingError(f"no connection: {find_message(str(error))}") from None
    # Only the kind of an error is named below: its text may quote a header or an address with a password.
    except http.TransportError as error:
        raise _PassingError(f"the connection broke ({type(error).__name__})") from None
    except (http.HTTPError, http.InvalidURL, ImportError, OSError, ValueError) as error:
        # Such as settings of a proxy or of certificates that cannot be used.
        raise LanguageModelError(f"nothing could be sent ({type(error).__name__})") from None


def _make_client(http: Any, request: Request, deadline: float) -> Any:
    connecting = max(0.0, deadline - asyncio.get_running_loop().time()) * _SHARE_OF_CONNECTING
    host = find_loopback(request.url)
    # A model on this machine is reached without the environment's proxy, which would receive prompts and key.
    mounts = None if host is None else {f"all://[{host}]" if ":" in host else f"all://{host}": None}
    return http.AsyncClient(timeout=http.Timeout(None, connect=connecting), follow_redirects=False, mounts=mounts)


class _Opened:
    """The connections of one exchange: the library leaves one open when its TLS handshake is cancelled."""

    def __init__(self) -> None:
        self._streams: list[Any] = []

    async def note(self, event: str, details: Mapping[str, Any]) -> None:
        if event.endswith("connect_tcp.complete"):
            self._streams.append(details["return_value"])

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


async def _refuse_status(response: Any) -> None:
    status = response.status_code
    if status == 429 or status >= 500:
        raise _PassingError(f"status {status}", _read_retry_after(response.headers.get("retry-after")))
    if status in _STATUS_WORDS:
        raise LanguageModelError(f"status {status}: {_STATUS_WORDS[status]}")
    if 300 <= status < 400:
        raise LanguageModelError(
            f"status {status}: redirects are not followed, since they would carry the key elsewhere"
        )
    raise LanguageModelError(f"status {status}: {await _read_error(response)}")


async def _read_error(response: Any) -> str:
    """Return the server's message, which must come within a second."""
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


def find_message(answer: object) -> str:
    """Return the provider's error message as one printable line of up to 200 characters. It may quote anything: redact it."""
    said = answer.get("error", answer) if isinstance(answer, dict) else answer
    if isinstance(said, dict):
        said = said.get("message") or said.get("type") or "no message"
    line = " ".join(str(said)[: 10 * _MOST_OF_MESSAGE].split())[:_MOST_OF_MESSAGE]
    return "".join(character if character.isprintable() else "\ufffd" for character in line)


def _read_retry_after(value: str | None) -> float | None:
    """Return seconds for seconds or for a date (RFC 9110, 10.2.3); None for anything else."""
    text = (value or "").strip()
    with suppress(ValueError):
        seconds = float(text)
        return seconds if seconds >= 0 else None
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, (parsedate_to_datetime(text) - utc_now()).total_seconds())
    return None


class _PassingError(Exception):
    """A failure that may not occur again, and the seconds that the server asks to wait."""

    def __init__(self, reason: str, after_seconds: float | None = None) -> None:
        self.reason = reason
        self.after_seconds = after_seconds
        super().__init__(reason)
