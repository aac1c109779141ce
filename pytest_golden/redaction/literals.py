"""Known secret values: from the environment, from a credentials file, or given by the caller.

A known value is hidden wherever it occurs, also URL-encoded, in base64 and with JSON's escapes. Values that are too short
or too common are not used: hiding `postgres` would hide the log. A credentials file may be YAML, JSON, INI, .env, .netrc or
.pgpass; a file that is none of these is read line by line, and none is refused.
"""

from __future__ import annotations

import base64
import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus, unquote

import yaml

from pytest_golden.redaction import rule
from pytest_golden.redaction.command_secrets import find_url_password
from pytest_golden.redaction.rule import MARK, compile_late
from pytest_golden.values.checking import word_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


_LARGEST_TREE = 1 << 20
_MOST_NODES = 20_000
_LINE = compile_late(
    r"^[ \t]*(?:-[ \t]+)?(?:export[ \t]+|set[ \t]+)?[\"']?(?P<name>[\w.\-]{1,128})[\"']?[ \t]*[=:][ \t]*(?P<value>[^\n]*)$",
    re.MULTILINE,
)
_NETRC = compile_late(r"\bpassword[ \t]+(?P<value>\S+)")
_PGPASS = compile_late(
    r"^(?:[^:\n\\]|\\.){1,256}:(?:\d+|\*):(?:[^:\n\\]|\\.){1,256}:(?:[^:\n\\]|\\.){1,256}:(?P<value>[^\n]+)$",
    re.MULTILINE,
)
_COMMENT = compile_late(r"[ \t][#;][^\n]*$")


def list_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Return every name with its value as text; a value may come more than once, in more than one spelling."""
    yield from _tree_pairs(text)
    for line in _LINE.finditer(text):
        value = line["value"].strip()
        yield line["name"], _without_quotes(value)
        if (shorter := _COMMENT.sub("", value).strip()) != value:
            yield line["name"], _without_quotes(shorter)
    if "machine " in text or "default " in text:
        yield from (("password", found["value"]) for found in _NETRC.finditer(text))
    for found in _PGPASS.finditer(text):
        yield "password", re.sub(r"\\(.)", r"\1", found["value"].strip())


def _tree_pairs(text: str) -> Iterator[tuple[str, str]]:
    if len(text) > _LARGEST_TREE or ("&" in text and "*" in text):
        return
    try:
        tree = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    yield from _walk(tree)


def _walk(tree: Any) -> Iterator[tuple[str, str]]:
    waiting: list[tuple[str, Any]] = [("", tree)]
    for _ in range(_MOST_NODES):
        if not waiting:
            return
        name, node = waiting.pop()
        if isinstance(node, dict):
            waiting += [(str(key), value) for key, value in node.items()]
        elif isinstance(node, list):
            waiting += [(name, value) for value in node]
        elif isinstance(node, str | int) and not isinstance(node, bool):
            yield name, str(node)


def _without_quotes(value: str) -> str:
    value = value.rstrip(",") if value[:1] in {'"', "'"} else value
    return value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value


_SHORTEST = 6
_SHORTEST_NUMBER = 8
_SHORTEST_LINE = 16
_SHORTEST_CORE = 12
_COMMON = word_set("""
    access account anonymous changeme client database default development disabled enabled example golden hidden
    localhost master minioadmin mysql nobody optional password postgres postgresql private production public python
    redacted required secret secrets server staging success system testing unknown undefined username
""")


def is_worth_hiding(value: str) -> bool:
    """Tell whether a value differs from ordinary text: 6 characters at least (8 digits), no common word, no reference."""
    stripped = value.strip()
    if len(stripped) < (_SHORTEST_NUMBER if stripped.isdigit() else _SHORTEST):
        return False
    if stripped.lower() in _COMMON or stripped in MARK or len(set(stripped)) == 1:
        return False
    return not (rule.is_nothing(stripped) or rule.is_reference(stripped))


def secret_literals(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the values of secret-named variables, and the passwords in variables that hold a URL, in their order."""
    return _distinct(_values_of(environment.items()))


def secret_arguments(arguments: Iterable[str]) -> tuple[str, ...]:
    """Return the values of secret-named options, `--name=value` or `--name value`, and passwords in URLs, in their order."""
    words = list(arguments)
    pairs = [word.partition("=")[::2] for word in words if "=" in word]
    pairs += [(name, value) for name, value in pairwise(words) if _is_option(name) and not _is_option(value)]
    pairs += [("", word) for word in words]
    return _distinct(_values_of((name.lstrip("-"), value) for name, value in pairs))


def _is_option(word: str) -> bool:
    return word.startswith("-") and "=" not in word


def literals_in_file(text: str) -> tuple[str, ...]:
    """Return the values worth hiding in a credentials file: YAML, INI, JSON, .env, .netrc or .pgpass."""
    return _distinct(_values_of(list_pairs(text)))


def spellings(literals: Iterable[str]) -> tuple[str, ...]:
    """Return every form in which the literals may occur, the longest first."""
    forms = {form for literal in literals if is_worth_hiding(literal) for form in _forms(literal)}
    return tuple(sorted(forms, key=lambda form: (-len(form), form)))


def redact_spellings(text: str, forms: tuple[str, ...]) -> str:
    """Replace every given form with the mark."""
    for form in forms:
        if form in text:
            text = text.replace(form, MARK)
    return text


def _values_of(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in pairs:
        if rule.is_secret_name(name) or (rule.is_weak_name(name) and rule.looks_random(value)):
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
    """Return the base64 of the value alone, and the part of it that stays the same inside a longer text."""
    for alphabet in (base64.b64encode, base64.urlsafe_b64encode):
        yield alphabet(encoded).decode().rstrip("=")
        for shift in range(3):
            text = alphabet(b"\0" * shift + encoded).decode().rstrip("=")
            core = text[(0, 2, 3)[shift] : len(text) - (1 if (shift + len(encoded)) % 3 else 0)]
            if len(core) >= _SHORTEST_CORE:
                yield core
