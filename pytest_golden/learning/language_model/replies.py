"""Find the value of a schema in a model's replies. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from pytest_golden.errors import LanguageModelError
from pytest_golden.trajectory.insight.reply_json import find_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic import TypeAdapter

_MOST_ITEMS = 20


def read_value(replies: Iterable[object], adapter: TypeAdapter[Any]) -> Any:
    """Return the first value in the replies that the schema accepts.

    Raises:
        LanguageModelError: the schema accepts none; the message says what is wrong with the first value, without quoting it.
    """
    trouble: str | None = None
    for candidate in (one for reply in replies for one in find_candidates(reply)):
        try:
            return adapter.validate_python(candidate)
        except ValidationError as error:
            trouble = trouble or _describe(error)
        except Exception as error:  # a validator of a caller's type may raise anything
            trouble = trouble or f"{type(error).__name__} in a validator"
    raise LanguageModelError(f"the reply does not fit the schema: {trouble or 'it is empty'}")


def find_candidates(reply: object) -> Iterator[Any]:
    """Return the values that the reply may mean, the likeliest first: its JSON, and at last the text itself."""
    if not isinstance(reply, str):
        yield from _with_inner(reply)
        return
    text, found = find_json(reply)
    for one in found:
        yield from _with_inner(one.value)
    if text:
        yield text


def _with_inner(value: Any, depth: int = 3) -> Iterator[Any]:
    """Return the value, and what is inside it when it may be a wrapper: JSON as text, a list, an object of one key."""
    yield value
    inner: list[Any] = []
    if isinstance(value, str):
        first = next(find_json(value)[1], None)
        inner = [first.value] if first is not None and isinstance(first.value, (dict, list)) else []
    elif isinstance(value, list):
        inner = value[:_MOST_ITEMS]
    elif isinstance(value, dict) and len(value) == 1:
        inner = list(value.values())
    for one in inner if depth else ():
        yield from _with_inner(one, depth - 1)


def _describe(error: ValidationError) -> str:
    """Name the fields that are wrong, without their values."""
    told = (
        f"{'.'.join(map(str, one['loc'])) or 'value'}: {one['type']}"
        for one in error.errors(include_url=False, include_context=False, include_input=False)[:3]
    )
    return "; ".join(told)[:300]
