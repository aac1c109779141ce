"""Paths, and the patterns of `writes:` and `outputs:` that name them. Pure text over paths; no file is read."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.manifest.model import DeclaredOutput

#: In a pattern of an output: the part of its paths that is another one in each run.
RUN = "{run}"
# Interpreters and tools leave these beside any program that they run.
_NEVER_UNEXPECTED = (
    "**/__pycache__/**",
    "**/*.pyc",
    "**/.pytest_cache/**",
    "**/.mypy_cache/**",
    "**/.ruff_cache/**",
    "**/.ipynb_checkpoints/**",
    "**/.coverage*",
    "**/.DS_Store",
    "**/.user.yml",
)
# The pieces of a pattern over paths, and the wildcards as regular expressions.
_PIECE = re.compile(r"\{run\}|\*\*/|/\*\*$|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|.", re.DOTALL)
_MEANINGS = {"{run}": "[^/]+", "**/": "(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def find_unexpected(written: Iterable[str], patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the written paths that no pattern of `writes:` or `outputs:` names, in their order.

    `*` stays within one folder, `**` crosses folders; a pattern that names a folder includes everything in it.
    """
    matchers = [_matcher(pattern) for pattern in (*_NEVER_UNEXPECTED, *patterns)]
    return tuple(path for path in written if not any(matches.fullmatch(path) for matches in matchers))


def is_named(path: str, pattern: str) -> bool:
    """Tell whether a pattern names a path, by the rules of `find_unexpected`. No file is read."""
    return path == pattern or _matcher(pattern).fullmatch(path) is not None


def find_run(path: str, pattern: str) -> tuple[str, str] | None:
    """Return what `{run}` of a pattern stands for in a path, and the path with `{run}` in its place.

    None if the pattern has no `{run}`, or does not name the path, or `{run}` stands for different things.
    """
    if RUN not in pattern:
        return None
    found = _run_matcher(pattern).fullmatch(path)
    if found is None:
        return None
    spans = [found.span(name) for name in found.groupdict()]
    values = {path[start:end] for start, end in spans}
    if len(values) > 1:
        return None
    stable = path
    for start, end in reversed(spans):
        stable = f"{stable[:start]}{RUN}{stable[end:]}"
    return values.pop(), stable


def put_run(path: str, other: str) -> str | None:
    """Return a path with `{run}` for the one folder that differs in the other path; None if anything else differs, or nothing."""
    parts, others = path.split("/"), other.split("/")
    changed = {pair for pair in zip(parts, others, strict=False) if pair[0] != pair[1]}
    if len(parts) != len(others) or len(changed) != 1 or parts[-1] != others[-1]:
        return None
    stamp = changed.pop()[0]
    return "/".join(RUN if part == stamp else part for part in parts)


def names_output(output: DeclaredOutput, path: str) -> bool:
    """Tell whether an entry of `outputs:` names a file, or a table by the path that its baseline has."""
    if not output.is_of_tables:
        # The baseline of a file with a stamp has `{run}` in its place.
        return find_run(path, output.path) == (RUN, path) if RUN in output.path else is_named(path, output.path)
    place = f"{output.database[2:-1]}" if output.database else "dbt" if output.dbt else output.path
    folder, _, file = path.rpartition("/")
    table = file.removesuffix(".parquet")
    if table == file or not is_named(folder, place):
        return False
    # Which models a pattern of dbt names, dbt alone knows.
    return bool(output.dbt) or is_table_named(unquote(table), output)


def is_table_named(table: str, output: DeclaredOutput) -> bool:
    """Tell whether an entry names a table, given as `schema.table`; letters count as equal in both cases, as in SQL."""
    patterns = (output.table,) if output.table else output.tables
    return _is_any(table, patterns, exactly=output.table is not None) and not _is_any(table, output.exclude)


def _is_any(table: str, patterns: Iterable[str], *, exactly: bool = False) -> bool:
    name = table.lower()
    alone = name.partition(".")[2]
    for pattern in map(str.lower, patterns):
        if name == pattern or alone == pattern:
            return True
        if not exactly and (fnmatchcase(name, pattern) or ("." not in pattern and fnmatchcase(alone, pattern))):
            return True
    return False


@lru_cache(maxsize=512)
def _run_matcher(pattern: str) -> re.Pattern[str]:
    plain = pattern.removeprefix("./").rstrip("/")
    pieces = [
        f"(?P<run{at}>[^/]+?)" if piece == RUN else _translate(piece) for at, piece in enumerate(_PIECE.findall(plain))
    ]
    return re.compile(f"{''.join(pieces)}(?:/.*)?", re.DOTALL)


@lru_cache(maxsize=512)
def _matcher(pattern: str) -> re.Pattern[str]:
    plain = pattern.removeprefix("./").rstrip("/")
    pieces = "".join(_translate(piece) for piece in _PIECE.findall(plain))
    return re.compile(f"{pieces}(?:/.*)?", re.DOTALL)


def _translate(piece: str) -> str:
    if piece in _MEANINGS:
        return _MEANINGS[piece]
    if len(piece) > 1:
        inside = piece[1:-1].replace("\\", "\\\\").replace("[", "\\[")
        return f"[^/{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
    return re.escape(piece)
