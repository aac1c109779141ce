"""The redactor: text and nested values in, the same without their secrets out. Pure; it reads no file and no environment."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.redaction.assignments import ASSIGNMENT_KEYWORDS, find_secret_part, holds_secret, redact_assignments
from pytest_golden.redaction.literals import redact_spellings, spellings
from pytest_golden.redaction.references import MARK
from pytest_golden.redaction.tokens import TOKEN_KEYWORDS, redact_tokens
from pytest_golden.redaction.urls import URL_KEYWORDS, redact_urls

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_Value = TypeVar("_Value")
_MOST_ROUNDS = 6
_DEEPEST = 200
# One look for all keywords pays while asking for each would cost more than the whole look.
_SHORT = 400
_ANY_KEYWORD = re.compile("|".join(map(re.escape, sorted(TOKEN_KEYWORDS | ASSIGNMENT_KEYWORDS | URL_KEYWORDS))))


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes secrets out of everything that is kept or shown.

    `literals` are known secret values; those too short or too common to be told from ordinary text are not taken
    (see `literals.is_worth_hiding`). `extra` are further rules, text to text, applied before the built-in ones.
    """

    literals: tuple[str, ...] = field(default=(), repr=False)
    extra: tuple[Callable[[str], str], ...] = ()
    _spellings: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_spellings", spellings(self.literals))

    def text(self, text: str) -> str:
        """Give the text without its secrets; JSON text stays valid JSON."""
        redacted = text
        for rule in self.extra:
            redacted = rule(redacted)
        # What one rule leaves can complete what another looks for, so the rules run until nothing changes.
        for _ in range(_MOST_ROUNDS):
            before = redacted
            redacted = self._redact_once(before)
            if redacted == before:
                break
        return text if redacted == text else _keep_json_valid(text, redacted, self)

    def value(self, value: _Value) -> _Value:
        """Give the value without its secrets, of the same type: text, bytes, mappings, sequences and sets, nested.

        Anything else comes back as it is. What is nested deeper than 200 levels, or in itself, becomes the mark.
        """
        return self._redact_value(value, 0)  # type: ignore[no-any-return]

    def _redact_once(self, text: str) -> str:
        redacted = redact_spellings(text, self._spellings)
        if len(redacted) < _SHORT and _ANY_KEYWORD.search(_lowered(redacted)) is None:
            return redacted
        redacted = redact_urls(redacted)
        lowered = _lowered(redacted)
        assigned = redact_assignments(redacted, lowered)
        return redact_tokens(assigned, lowered if assigned is redacted else _lowered(assigned))

    def _redact_value(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return value if type(value) is not str and hasattr(value, "value") else self.text(value)
        if isinstance(value, bytes | bytearray):
            return self._redact_bytes(value)
        if not isinstance(value, dict | list | tuple | set | frozenset):
            return value
        if depth > _DEEPEST:
            return MARK
        if isinstance(value, dict):
            return _same_mapping(value, self._redact_mapping(value, depth + 1))
        return _same_sequence(value, self._redact_items(value, depth + 1))

    def _redact_bytes(self, value: bytes | bytearray) -> bytes | bytearray:
        text = value.decode("utf-8", "surrogateescape")
        redacted = self.text(text)
        return value if redacted == text else type(value)(redacted.encode("utf-8", "surrogateescape"))

    def _redact_mapping(self, mapping: Mapping[Any, Any], depth: int) -> dict[Any, Any]:
        redacted: dict[Any, Any] = {}
        named = mapping.get("name", mapping.get("key"))
        for key, value in mapping.items():
            name = named if key == "value" and isinstance(named, str) else key
            new_key = self._redact_value(key, depth) if isinstance(key, str | bytes) else key
            while new_key != key and (new_key in redacted or new_key in mapping):
                new_key += "_" if isinstance(new_key, str) else b"_"
            redacted[new_key] = self._redact_named(name, value, depth)
        return redacted

    def _redact_named(self, name: Any, value: Any, depth: int) -> Any:
        if not isinstance(name, str) or not holds_secret(name):
            return self._redact_value(value, depth)
        if isinstance(value, list | tuple) and depth <= _DEEPEST:
            return _same_sequence(value, [self._redact_named(name, item, depth + 1) for item in value])
        if isinstance(value, str):
            return self._redact_secret(name, value)
        if isinstance(value, bytes):
            return self._redact_secret(name, value.decode("utf-8", "surrogateescape")).encode(
                "utf-8", "surrogateescape"
            )
        return self._redact_value(value, depth)

    def _redact_secret(self, name: str, value: str) -> str:
        part = find_secret_part(name, value)
        return self.text(value) if part is None else value[: part[0]] + MARK + value[part[1] :]

    def _redact_items(self, items: Any, depth: int) -> list[Any]:
        """Redact each item; one that follows an option with a secret name (`["--password", "x"]`) is its value."""
        redacted = []
        option: Any = None
        for item in items:
            is_value = isinstance(option, str) and option.startswith("-") and isinstance(item, str) and item[:1] != "-"
            name = option if is_value else None
            redacted.append(self._redact_named(name, item, depth))
            option = item
        return redacted


def redact(value: _Value) -> _Value:
    """Give the value without the secrets that show themselves by form or name; known values want a `Redactor`."""
    return _DEFAULT.value(value)


def _lowered(text: str) -> str:
    """Give the text in lower case and of the same length; U+0130 is the one character that would grow."""
    return text.lower() if text.isascii() else text.replace("\u0130", "I").lower()


def _same_mapping(value: dict[Any, Any], redacted: dict[Any, Any]) -> Any:
    if type(value) is dict:
        return redacted
    copy = value.copy()
    if type(copy) is not type(value):
        return type(value)(redacted)
    # A defaultdict keeps its factory only when it is copied.
    copy.clear()
    copy.update(redacted)
    return copy


def _same_sequence(value: Any, redacted: list[Any]) -> Any:
    if hasattr(value, "_fields"):
        return type(value)(*redacted)
    return type(value)(redacted)


def _keep_json_valid(before: str, after: str, redactor: Redactor) -> str:
    """Give `after`, or where that is no JSON any more and `before` was, the same redacted value by value.

    JSON Lines are looked at line by line.
    """
    if before.lstrip()[:1] not in {"{", "[", '"'}:
        return after
    if _is_json(before):
        if _is_json(after):
            return after
        return json.dumps(redactor.value(json.loads(before)), ensure_ascii=before.isascii())
    old_lines, new_lines = before.split("\n"), after.split("\n")
    if len(old_lines) < 2 or len(old_lines) != len(new_lines):
        return after
    return "\n".join(
        new if new == old else _keep_json_valid(old, new, redactor)
        for old, new in zip(old_lines, new_lines, strict=True)
    )


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


_DEFAULT = Redactor()
