"""Finds which parts of a JSON document move between two runs of the same files, and the fewest rules that make it stable."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.documents.compare_documents import parse_json, take_out, write_path_step
from pytest_golden.compare.documents.document_values import (
    Equality,
    Json,
    Number,
    Repeated,
    is_number,
    is_same,
    kind_of,
)
from pytest_golden.compare.opening import LAST_DIGITS, Movement, UnreadableError, propose_tolerance, read_chunks
from pytest_golden.compare.showing import cut, show
from pytest_golden.redaction.rule import MARK
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.compare.opening import Content
    from pytest_golden.compare.showing import Redact
    from pytest_golden.manifest.model import DeclaredOutput

_LONGEST_EXAMPLE = 60
# So many members of one name are named together, wherever they stand.
_MANY = 3


@dataclass(slots=True)
class _Differences:
    """What differs, by path with `[*]` for every item; paths that only one document has, and arrays of other lengths."""

    values: dict[str, list[tuple[Json, Json]]] = field(default_factory=lambda: defaultdict(list))
    unsolved: dict[str, str] = field(default_factory=dict)
    moved_items: set[str] = field(default_factory=set)


def find_moving_members(declared: DeclaredOutput, one: Content, other: Content, redact: Redact) -> Movement:
    """Find what moves between two documents, and the rules for it.

    Raises:
        UnreadableError: one of them cannot be read, or is not JSON.
    """
    documents = [_read(content, declared) for content in (one, other)]
    found = _Differences()
    _compare(documents[0], documents[1], "$", found)
    rules: dict[str, Any] = {}
    seen = []
    if found.moved_items and not declared.unordered:
        rules["unordered"] = True
        seen += [f"the items of {path} are the same in another order" for path in sorted(found.moved_items)]
    digits = {path: share for path, pairs in found.values.items() if (share := _find_share(pairs)) is not None}
    if digits:
        most = max(digits.values())
        rules["relative_tolerance"] = propose_tolerance(most)
        named = ", ".join(sorted(digits))
        seen.append(f"numbers at {named} differ in their last digits, by {most:.1e} of the larger at most")
    moving = {path: pairs for path, pairs in found.values.items() if path not in digits}
    if moving:
        rules["ignore_paths"] = tuple(_join_names(sorted(moving)))
        seen += [_describe(path, moving[path], redact) for path in sorted(moving)]
    return Movement(rules, tuple(seen), tuple(found.unsolved.values()))


def _read(content: Content, declared: DeclaredOutput) -> Json:
    try:
        return take_out(parse_json(b"".join(read_chunks(content))), declared.ignore_paths)
    except ValueError as error:
        raise UnreadableError(content.side, f"is not JSON: {error}") from None


def _compare(one: Json, other: Json, path: str, found: _Differences) -> None:
    if is_same(one, other) or (is_number(one) and is_number(other) and Equality().has_equal_numbers(one, other)):
        return
    if isinstance(one, dict) and isinstance(other, dict):
        for key in (*one, *(key for key in other if key not in one)):
            at = path + write_path_step(key)
            if key in one and key in other:
                _compare(one[key], other[key], at, found)
            else:
                found.unsolved[at] = f"{at} is written in one run only"
    elif isinstance(one, list) and isinstance(other, list) and not isinstance(one, Repeated):
        _compare_items(one, other, path, found)
    elif path == "$":
        found.unsolved[path] = "the whole document moves"
    else:
        found.values[path].append((one, other))


def _compare_items(one: list[Json], other: list[Json], path: str, found: _Differences) -> None:
    if len(one) != len(other):
        lengths = f"{count_of(len(one), 'item')} in one run and {len(other):,} in another"
        found.unsolved[path] = f"{path} has {lengths}"
    elif sorted(map(repr, one)) == sorted(map(repr, other)):
        found.moved_items.add(path)
    else:
        for mine, its in zip(one, other, strict=True):
            _compare(mine, its, f"{path}[*]", found)


def _find_share(pairs: list[tuple[Json, Json]]) -> float | None:
    """Return by what share numbers differ at most if they differ in their last digits alone; None for others."""
    most = 0.0
    for one, other in pairs:
        if not (is_number(one) and is_number(other)) or (_is_whole(one) and _is_whole(other)):
            return None
        left, right = float(one), float(other)
        largest = max(abs(left), abs(right))
        share = abs(left - right) / largest if largest else 0.0
        if not 0 <= share <= LAST_DIGITS:
            return None
        most = max(most, share)
    return most or None


def _is_whole(number: Number) -> bool:
    return number.removeprefix(b"-").isdigit()


def _join_names(paths: list[str]) -> Iterator[str]:
    """Yield the paths, and one `$..name` for members of one name that move at many places."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        by_name[path.rpartition(".")[2]].append(path)
    for name, some in by_name.items():
        is_plain = not set(name) & set("[]'\"$")
        yield from [f"$..{name}"] if len(some) >= _MANY and is_plain else some


def _describe(path: str, pairs: list[tuple[Json, Json]], redact: Redact) -> str:
    name = path.rpartition(".")[2]
    one, other = (_write(name, value, redact) for value in pairs[0])
    places = "" if len(pairs) == 1 else f" at {len(pairs):,} places"
    return f"{path} differs{places}, such as {one} and {other}"


def _write(name: str, value: Json, redact: Redact) -> str:
    """Write a value; the name of its member can tell that it is a secret."""
    told = kind_of(value) if isinstance(value, dict | list) else value.decode() if is_number(value) else str(value)
    probe = json.dumps({name: told}, ensure_ascii=False)
    return show(cut(told, _LONGEST_EXAMPLE)) if redact(probe) == probe else MARK
