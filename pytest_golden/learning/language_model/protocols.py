"""The two protocols that models are spoken to by: what is posted, and where in the answer the reply stands. Pure.

Sources: OpenAI's chat completions, https://platform.openai.com/docs/api-reference/chat, which many servers speak, and
Anthropic's messages, https://docs.anthropic.com/en/api/messages. Answers are read by their form, whoever they are from.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import LanguageModelError
from pytest_golden.learning.language_model.endpoint import Provider

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pytest_golden.learning.language_model.endpoint import Endpoint

_ANTHROPIC_VERSION = "2023-06-01"
# Anthropic wants a limit; it is far above what a reply under the cap of bytes in 5 s has.
_MOST_TOKENS = 4_096
_CUT_OFF = frozenset({"length", "max_tokens", "max_output_tokens", "model_context_window_exceeded"})
_REFUSED = frozenset({"content_filter", "refusal"})
_MOST_OF_MESSAGE = 200


@dataclass(frozen=True, slots=True)
class Request:
    """What is posted; the headers hold the key, so no representation shows them."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    body: bytes


def write_request(endpoint: Endpoint, instructions: str, prompt: str) -> Request:
    """Put instructions and prompt into the form that the endpoint wants. Only what every server knows is in it."""
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


def list_replies(answer: object) -> tuple[object, ...]:
    """Give what the model said, text or values, in the order in which it is to be looked at.

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
    """Give what the provider says is wrong, in one printable line of 200 characters at most. It may quote anything: redact it."""
    said = answer.get("error", answer) if isinstance(answer, dict) else answer
    if isinstance(said, dict):
        said = said.get("message") or said.get("type") or "no message"
    line = " ".join(str(said)[: 10 * _MOST_OF_MESSAGE].split())[:_MOST_OF_MESSAGE]
    return "".join(character if character.isprintable() else "\ufffd" for character in line)


def _replies_in(choice: Mapping[str, Any]) -> Iterator[object]:
    """Give arguments of calls first: who calls a function has put the answer there, and talk beside it."""
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
    """Give the text of a part; what a model thought before it answered is none."""
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def _whole(text: str) -> str:
    """Give the text with half characters replaced, which no server takes."""
    return text.encode("utf-8", "replace").decode()
