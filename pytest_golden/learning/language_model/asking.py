"""The one way in which learning asks a model: any client, any form of reply, never longer than it may take.

A client is whatever has a coroutine `complete(prompt, schema)`: `LanguageModel`, or somebody's own, which may give text.
"""

from __future__ import annotations

import asyncio
import logging
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from pytest_golden.errors import LanguageModelError
from pytest_golden.learning.language_model.protocols import list_replies
from pytest_golden.learning.language_model.replies import read_value
from pytest_golden.learning.language_model.schema_form import describe_schema
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from pytest_golden.learning.language_model.port import CompletesPrompts

_log = logging.getLogger(__name__)
_Value = TypeVar("_Value")
CALL_SECONDS = 5.0


@overload
async def ask(
    llm_client: CompletesPrompts, prompt: str, schema: type[_Value], *, seconds: float = CALL_SECONDS
) -> _Value | None: ...


@overload
async def ask(llm_client: CompletesPrompts, prompt: str, schema: object, *, seconds: float = CALL_SECONDS) -> Any: ...


async def ask(llm_client: CompletesPrompts, prompt: str, schema: Any, *, seconds: float = CALL_SECONDS) -> Any:
    """Give a validated value of the schema; None, and a warning in the log, for anything else, an exception included.

    The prompt is redacted here, whatever the client does.

    Raises:
        ValueError: the schema is no type that can be described as JSON Schema.
    """
    adapter, _ = describe_schema(schema)
    try:
        # The client keeps its own deadline; this one is for those that keep none.
        async with asyncio.timeout(seconds + 0.1):
            reply = llm_client.complete(redact(prompt), schema)
            if isawaitable(reply):
                reply = await reply
        return None if reply is None else read_value(_unwrap(reply), adapter)
    except TimeoutError:
        _log.warning("language model: no answer within %g s", seconds)
    except LanguageModelError as error:
        _log.warning("language model: %s", error)
    except Exception as error:
        # Somebody's client may raise anything, and nothing that is learned is worth an agent's run.
        _log.warning("language model: %s: %s", type(error).__name__, redact(str(error)))
    return None


def _unwrap(reply: object) -> tuple[object, ...]:
    """Give the reply, or what the answer of a provider's API holds, when a client hands on all of that."""
    if isinstance(reply, dict) and ("choices" in reply or "stop_reason" in reply):
        return list_replies(reply)
    return (reply,)
