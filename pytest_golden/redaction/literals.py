"""Known secret values: those under a secret name in the environment, in a command line or in a credentials file.

Values that are too short or too common are not used: hiding `postgres` would hide the log. A credentials file may be YAML,
TOML, JSON, INI, .env, .netrc or .pgpass; a file that is none of these is read line by line, and none is refused.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import yaml

from pytest_golden.redaction import rule
from pytest_golden.redaction.command_secrets import find_url_password
from pytest_golden.redaction.rule import MARK, compile_late
from pytest_golden.values.checking import word_set

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


_LARGEST_TREE = 1 << 20
_MOST_NODES = 20_000
LINE = compile_late(
    r"^[ \t]*(?:-[ \t]+)?(?:export[ \t]+|set[ \t]+)?[\"']?(?P<name>[\w.\-]{1,128})[\"']?[ \t]*[=:][ \t]*(?P<value>[^\n]*)$",
    re.MULTILINE,
)
"""A name and its value on a line of INI, YAML, .env or JSON."""
_NETRC = compile_late(r"\bpassword[ \t]+(?P<value>\S+)")
_PGPASS = compile_late(
    r"^(?:[^:\n\\]|\\.){1,256}:(?:\d+|\*):(?:[^:\n\\]|\\.){1,256}:(?:[^:\n\\]|\\.){1,256}:(?P<value>[^\n]+)$",
    re.MULTILINE,
)
_COMMENT = compile_late(r"[ \t][#;][^\n]*$")


def list_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Return every name with its value as text; a value may come more than once, in more than one spelling."""
    yield from _tree_pairs(text)
    for line in LINE.finditer(text):
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
    loaders: list[Callable[[str], Any]] = [json.loads, *([_load_toml] if "=" in text else []), yaml.safe_load]
    for load in loaders:
        try:
            tree = load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        yield from walk_tree(tree)
        return


def _load_toml(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


def walk_tree(tree: Any) -> Iterator[tuple[str, str]]:
    """Return each text and whole number of nested mappings and lists, with the nearest key above it."""
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
SHORTEST_NUMBER = 8
_COMMON = word_set("""
    access account anonymous changeme client database default development disabled enabled example golden hidden
    localhost master minioadmin mysql nobody optional password postgres postgresql private production public python
    redacted required secret secrets server staging success system testing unknown undefined username
""")


def is_worth_hiding(value: str) -> bool:
    """Tell whether a value differs from ordinary text: 6 characters at least (8 digits), no common word, no reference."""
    stripped = value.strip()
    if len(stripped) < (SHORTEST_NUMBER if stripped.isdigit() else _SHORTEST):
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


def _values_of(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, value in pairs:
        if rule.is_secret_name(name) or (rule.is_weak_name(name) and rule.looks_random(value)):
            yield value
        elif (password := find_url_password(value)) is not None:
            yield password
            yield unquote(password)


def _distinct(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if is_worth_hiding(value)))
