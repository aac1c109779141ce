"""Secret values that are known: from the environment, from a credentials file, or handed in.

A known value is hidden wherever it turns up, also URL-encoded, in base64 and with JSON's escapes. Values that are too
short or too common to be told from ordinary text are not taken: hiding `postgres` would hide the log.
"""

from __future__ import annotations

import base64
import json
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, unquote

from pytest_golden.redaction.credentials import list_pairs
from pytest_golden.redaction.names import is_secret_name, is_weak_name
from pytest_golden.redaction.references import MARK, is_nothing, is_reference, looks_random
from pytest_golden.redaction.urls import find_url_password

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SHORTEST = 6
_SHORTEST_NUMBER = 8
_SHORTEST_LINE = 16
_SHORTEST_CORE = 12
_COMMON = frozenset(
    [
        "access",
        "account",
        "anonymous",
        "changeme",
        "client",
        "database",
        "default",
        "development",
        "disabled",
        "enabled",
        "example",
        "golden",
        "hidden",
        "localhost",
        "master",
        "minioadmin",
        "mysql",
        "nobody",
        "optional",
        "password",
        "postgres",
        "postgresql",
        "private",
        "production",
        "public",
        "python",
        "redacted",
        "required",
        "secret",
        "secrets",
        "server",
        "staging",
        "success",
        "system",
        "testing",
        "unknown",
        "undefined",
        "username",
    ]
)


def is_worth_hiding(value: str) -> bool:
    """Tell whether a value can be told from ordinary text: 6 characters at least (8 digits), no common word, no reference."""
    stripped = value.strip()
    if len(stripped) < (_SHORTEST_NUMBER if stripped.isdigit() else _SHORTEST):
        return False
    if stripped.lower() in _COMMON or stripped in MARK or len(set(stripped)) == 1:
        return False
    return not (is_nothing(stripped) or is_reference(stripped))


def secret_literals(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Give the values of secret-named variables, and the passwords in variables that hold a URL, in their order."""
    return _distinct(_values_of(environment.items()))


def secret_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """Give the values of secret-named options, `--name=value` or `--name value`, and passwords in URLs, in their order."""
    words = list(arguments)
    pairs = [word.partition("=")[::2] for word in words if "=" in word]
    pairs += [(name, value) for name, value in pairwise(words) if _is_option(name) and not _is_option(value)]
    pairs += [("", word) for word in words]
    return _distinct(_values_of((name.lstrip("-"), value) for name, value in pairs))


def _is_option(word: str) -> bool:
    return word.startswith("-") and "=" not in word


def literals_in_file(text: str) -> tuple[str, ...]:
    """Give the values worth hiding in a credentials file: YAML, INI, JSON, .env, .netrc or .pgpass."""
    return _distinct(_values_of(list_pairs(text)))


def spellings(literals: Iterable[str]) -> tuple[str, ...]:
    """Give every form in which the literals are looked for, the longest first."""
    forms = {form for literal in literals if is_worth_hiding(literal) for form in _forms(literal)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def redact_spellings(text: str, forms: tuple[str, ...]) -> str:
    """Replace every given form by the mark."""
    for form in forms:
        if form in text:
            text = text.replace(form, MARK)
    return text


def _values_of(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in pairs:
        if is_secret_name(name) or (is_weak_name(name) and looks_random(value)):
            yield value
        elif (password := find_url_password(value)) is not None:
            yield password
            yield unquote(password)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if is_worth_hiding(value)))


def _forms(literal: str) -> Iterator[str]:
    lines = [line.strip() for line in literal.splitlines()] if "\n" in literal else []
    for plain in (literal, literal.strip(), *(line for line in lines if len(line) >= _SHORTEST_LINE)):
        yield plain
        yield json.dumps(plain)[1:-1]
        yield json.dumps(plain, ensure_ascii=False)[1:-1]
        yield repr(plain)[1:-1]
        encoded = plain.encode("utf-8", "surrogatepass")
        yield from {quote(encoded, safe=""), quote(encoded, safe="/"), quote_plus(encoded)}
        yield from _base64_forms(encoded)


def _base64_forms(encoded: bytes) -> Iterator[str]:
    """Give the base64 of the value alone, and the part of it that stays the same inside a longer text."""
    for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
        yield alphabet(encoded).decode().rstrip("=")
        for shift in range(3):
            text = alphabet(b"\0" * shift + encoded).decode().rstrip("=")
            core = text[(0, 2, 3)[shift] : len(text) - (1 if (shift + len(encoded)) % 3 else 0)]
            if len(core) >= _SHORTEST_CORE:
                yield core
