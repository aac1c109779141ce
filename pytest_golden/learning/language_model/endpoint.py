"""The address of a language model, the forms in which it is asked and answers (OpenAI's or Anthropic's), and sending JSON to it.

`exchange` is the one way in which this room speaks HTTP. Redirects are not followed: they would carry the key elsewhere. Failures
are `LanguageModelError`s whose text holds neither the key nor what was sent.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pytest_golden.clock import utc_now
from pytest_golden.errors import LanguageModelError, SettingsError
from pytest_golden.redaction.redactor import Redactor
from pytest_golden.settings import MODEL_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from urllib.parse import SplitResult


BASE_URL_VARIABLE, KEY_VARIABLE = "GOLDEN_LLM_BASE_URL", "GOLDEN_LLM_API_KEY"
_VARIABLES = (MODEL_VARIABLE, BASE_URL_VARIABLE, KEY_VARIABLE)
_ANTHROPIC_VERSION = "2023-06-01"
# Anthropic requires a limit; this one is far above what a reply has that comes within 5 s.
_MOST_TOKENS = 4_096
_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})
_REFUSED = frozenset({"content_filter", "refusal"})


class Provider(StrEnum):
    """Whose protocol a model speaks."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


_DEFAULT_URLS = {Provider.OPENAI: "https://api.openai.com/v1", Provider.ANTHROPIC: "https://api.anthropic.com"}
_PATHS = {Provider.OPENAI: "/chat/completions", Provider.ANTHROPIC: "/v1/messages"}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at an address, and the key for it, which no representation shows."""

    provider: Provider
    name: str
    base_url: str
    api_key: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Return the address that prompts are posted to."""
        return self.base_url + _PATHS[self.provider]

    @property
    def is_default(self) -> bool:
        """Return whether it is the provider's own service, which requires a key."""
        return self.base_url == _DEFAULT_URLS[self.provider]

    @property
    def bares_its_key(self) -> bool:
        """Return whether the key goes over a network unencrypted."""
        return self.api_key is not None and self.base_url.startswith("http:") and find_loopback(self.base_url) is None

    def make_redactor(self, given: Redactor | None) -> Redactor:
        """Return a redactor that also hides the key."""
        known = given or Redactor()
        return known if self.api_key is None else Redactor((self.api_key, *known.literals), known.extra, known.passed)

    def __str__(self) -> str:
        """Return `provider:name at address`, safe to show."""
        return f"{self.provider}:{self.name} at {self.base_url}"


def make_endpoint(
    model: str, base_url: str | None = None, api_key: str | None = None, *, names: tuple[str, str, str] = _VARIABLES
) -> Endpoint:
    """Return the endpoint that the arguments of `LanguageModel(...)` describe; messages call these by their `names`.

    Raises:
        SettingsError: the model is not `openai:NAME` or `anthropic:NAME`, or address or key cannot be used; the message does
            not show the key.
    """
    word, _, name = model.strip().partition(":")
    if word.lower() not in list(Provider) or not name.strip() or not name.isprintable():
        raise SettingsError(f"{names[0]} {model!r:.100} names no language model: write openai:NAME or anthropic:NAME.")
    provider = Provider(word.lower())
    url = _read_base_url(base_url, provider, names) if base_url and base_url.strip() else _DEFAULT_URLS[provider]
    key = (api_key or "").strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise SettingsError(f"{names[2]} holds a character that no key has: copy it again.")
    return Endpoint(provider, name.strip(), url, key or None)


def find_endpoint(environ: Mapping[str, str]) -> Endpoint | None:
    """Read the three variables; None when GOLDEN_LLM_MODEL is not set or empty.

    Raises:
        SettingsError: as `make_endpoint`; or the provider's own service is meant and no key is set.
    """
    model = environ.get(MODEL_VARIABLE, "").strip()
    if not model:
        return None
    endpoint = make_endpoint(model, environ.get(BASE_URL_VARIABLE), environ.get(KEY_VARIABLE))
    if endpoint.is_default and endpoint.api_key is None:
        message = (
            f"{MODEL_VARIABLE} is {model!r}, and {endpoint.base_url} needs a key: set {KEY_VARIABLE}, "
            f"or {BASE_URL_VARIABLE} for a model elsewhere."
        )
        raise SettingsError(message)
    return endpoint


def _read_base_url(given: str, provider: Provider, names: tuple[str, str, str]) -> str:
    url = given.strip().rstrip("/")
    address = _split(url)
    if address is None or address.scheme not in {"http", "https"} or not address.hostname:
        raise SettingsError(f"{names[1]} must be an address like https://HOST/v1.")
    if address.username is not None or address.query or address.fragment:
        # The address is not shown: these parts may hold a secret.
        raise SettingsError(f"{names[1]} must have no user, query or fragment: a key goes into {names[2]}.")
    url = url.removesuffix(_PATHS[provider])
    return url.removesuffix("/v1") if provider is Provider.ANTHROPIC else url


def _split(url: str) -> SplitResult | None:
    try:
        address = urlsplit(url)
        _ = address.port
    except ValueError:
        return None
    return address if url.isascii() and url.isprintable() and " " not in url else None


def write_request(endpoint: Endpoint, instructions: str, prompt: str) -> Request:
    """Return a request in the endpoint's form, with only those fields that every server knows.

    Sources: OpenAI's chat completions, https://platform.openai.com/docs/api-reference/chat, which many servers speak, and
    Anthropic's messages, https://docs.anthropic.com/en/api/messages.
    """
    key = endpoint.api_key
    said = {"role": "user", "content": write_whole(prompt)}
    if endpoint.provider is Provider.ANTHROPIC:
        body = {"max_tokens": _MOST_TOKENS, "system": write_whole(instructions), "messages": [said]}
        headers = {"anthropic-version": _ANTHROPIC_VERSION} | ({} if key is None else {"x-api-key": key})
    else:
        body = {"messages": [{"role": "system", "content": write_whole(instructions)}, said]}
        headers = write_bearer(key)
    return Request.of_json(endpoint.url, {"model": endpoint.name, **body}, headers)


def write_bearer(key: str | None) -> dict[str, str]:
    """Return the header of a key as OpenAI's protocol has it; none without a key."""
    return {} if key is None else {"authorization": f"Bearer {key}"}


def write_whole(text: str) -> str:
    """Return the text with lone surrogates replaced, which no server accepts."""
    return text.encode("utf-8", "replace").decode()


def list_replies(answer: object) -> tuple[object, ...]:
    """Return the model's replies, text or values, in the order to try them. The form decides, whichever provider answered.

    Raises:
        LanguageModelError: the answer has no reply, or it is an error, cut off, or refused.
    """
    if not isinstance(answer, dict):
        raise LanguageModelError("the answer is not a JSON object")
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


def _replies_in(choice: Mapping[str, Any]) -> Iterator[object]:
    """Yield the arguments of function calls first: a model that calls one puts its answer there, and comments beside it."""
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
        # A thought that came before the answer has no text.
        texts = [part.get("text") if isinstance(part, dict) else part for part in content]
        if said := "".join(text for text in texts if isinstance(text, str)):
            yield said


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
        message = f"{who} needs httpx2, which is not installed: `pip install 'pytest-golden-projects[{extra}]'`"
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
                pause = _PAUSE_SECONDS if failure.after_seconds is None else failure.after_seconds
                if asyncio.get_running_loop().time() + pause >= deadline:
                    late = f"{failure}; another try in {pause:.3g} s would be too late"
                    raise LanguageModelError(late) from None
                await asyncio.sleep(pause)
            return await _post(httpx2, request, deadline, most_bytes)
    except TimeoutError:
        raise LanguageModelError(f"no answer within {seconds:g} s") from None
    except _PassingError as failure:
        raise LanguageModelError(f"{failure}, twice") from None


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
    await _read_up_to(response, most_bytes, body)
    if len(body) > most_bytes:
        raise LanguageModelError(f"the answer has more than {most_bytes:,} bytes")
    return bytes(body)


async def _read_up_to(response: Any, most_bytes: int, body: bytearray) -> None:
    """Add what comes to the body, until it has more bytes than these."""
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > most_bytes:
            break


def _read_json(body: bytes) -> Any:
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise LanguageModelError("the answer is not JSON") from None


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


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
            await _read_up_to(response, _MOST_OF_ERROR_BYTES, body)
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
        super().__init__(reason)
        self.after_seconds = after_seconds
