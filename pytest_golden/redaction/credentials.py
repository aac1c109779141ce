"""Read a credentials file into pairs of name and value, whatever its format: YAML, JSON, INI, .env, .netrc, .pgpass.

Nothing is refused: a file that one format cannot explain is read line by line.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from pytest_golden.redaction.late import compile_late

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    """Give every name with its value as text; a value may come more than once, in more than one spelling."""
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
