"""Finds what moves in a text between two runs of the same files, and the fewest masks that make it stable."""

from __future__ import annotations

import re
from collections import Counter
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.opening import Movement, UnreadableError, read_chunks
from pytest_golden.compare.showing import cut, show
from pytest_golden.compare.text.compare_texts import decode
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pytest_golden.compare.opening import Content
    from pytest_golden.compare.showing import Redact
    from pytest_golden.manifest.model import DeclaredOutput

_DAY = r"\d{4}-\d{2}-\d{2}"
_TIME = r"\d{2}:\d{2}:\d{2}([.,]\d+)?"
_ZONE = r"( ?(Z|UTC|[+-]\d{2}:?\d{2}))?"
#: What moves in most logs and reports: the kind, in words, and its pattern; the narrowest first.
KINDS = {
    "a date and time": rf"{_DAY}[T ]{_TIME}{_ZONE}",
    "a UUID": r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
    "a time": rf"\b{_TIME}\b",
    "a date": rf"\b{_DAY}\b",
    "a duration": r"\b\d+(\.\d+)? ?([num]?s|secs?|seconds?|min|minutes?)\b",
    "an address in memory": r"\b0x[0-9a-f]{6,16}\b",
    "a path of a temporary folder": r"/(tmp|var/tmp|var/folders)/[^\s'\":,;)\]]+",
    "a long number": r"\b\d{9,20}\b",
    "a long hexadecimal id": r"\b[0-9a-f]{8,64}\b",
    "the number of a process": r"\b(pid|PID|process)[ =:]+\d+\b",
    "a number with a fraction": r"\b\d+\.\d+\b",
}
_MOST_BYTES = 64 << 20
_MOST_LINES_LOOKED_AT = 10_000
_SHORTEST_BEGINNING = 6
_LONGEST_EXAMPLE = 80


def find_moving_lines(declared: DeclaredOutput, one: Content, other: Content, redact: Redact) -> Movement:
    """Find what moves between two texts, and the rules for it.

    Raises:
        UnreadableError: one of them cannot be read.
    """
    texts = [_read_lines(content, declared) for content in (one, other)]
    if len(texts[0]) != len(texts[1]):
        lengths = f"{count_of(len(texts[0]), 'line')} in one run and {len(texts[1]):,} in another"
        return Movement(unsolved=(f"it has {lengths}",))
    if Counter(texts[0]) == Counter(texts[1]):
        return Movement({"unordered": True}, ("the lines are the same in another order",))
    pairs = [pair for pair in zip(*texts, strict=True) if pair[0] != pair[1]]
    masks = _choose_masks(list(islice(pairs, _MOST_LINES_LOOKED_AT)))
    rules: dict[str, Any] = {"masks": tuple(KINDS[kind] for kind in masks)} if masks else {}
    seen = [_describe(kind, pairs, redact) for kind in masks]
    left = [(mine, its) for mine, its in pairs if _mask(mine, masks) != _mask(its, masks)]
    if not left:
        return Movement(rules, tuple(seen))
    masked = [[_mask(line, masks) for line in text] for text in texts]
    if Counter(masked[0]) == Counter(masked[1]):
        return Movement({**rules, "unordered": True}, (*seen, "the lines are the same in another order"))
    return _ignore_lines(left, texts[0], rules, seen, redact)


def _read_lines(content: Content, declared: DeclaredOutput) -> list[str]:
    parts, size = [], 0
    for chunk in read_chunks(content):
        parts.append(chunk)
        size += len(chunk)
        if size > _MOST_BYTES:
            raise UnreadableError(content.side, "is too long to look for what moves in it")
    lines = [decode(line) for line in b"".join(parts).splitlines()]
    patterns = [re.compile(pattern) for pattern in declared.ignore_lines]
    lines = [line for line in lines if not any(pattern.search(line) for pattern in patterns)]
    for mask in declared.masks:
        lines = [re.sub(mask, "", line) for line in lines]
    return lines


def _choose_masks(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Choose kinds one after another: each time the one that makes most of the remaining lines equal."""
    chosen: list[str] = []
    left = list(pairs)
    while left:
        gains = {kind: sum(_helps(pair, kind, chosen) for pair in left) for kind in KINDS if kind not in chosen}
        best = max(gains, key=lambda kind: gains[kind], default="")
        if not best or not gains[best]:
            break
        chosen.append(best)
        left = [pair for pair in left if _mask(pair[0], chosen) != _mask(pair[1], chosen)]
    return [kind for kind in KINDS if kind in chosen]


def _helps(pair: tuple[str, str], kind: str, chosen: Sequence[str]) -> bool:
    """Tell whether a kind makes two lines equal, or equal but for what other kinds match."""
    tried = [*chosen, kind]
    if _mask(pair[0], tried) == _mask(pair[1], tried):
        return True
    others = [name for name in KINDS if name != kind]
    with_it, without = [*others, kind], others
    return _equal(pair, with_it) and not _equal(pair, without)


def _equal(pair: tuple[str, str], kinds: Iterable[str]) -> bool:
    return _mask(pair[0], kinds) == _mask(pair[1], kinds)


def _mask(line: str, kinds: Iterable[str]) -> str:
    wanted = set(kinds)
    for kind, pattern in KINDS.items():
        if kind in wanted:
            line = re.sub(pattern, "\N{SYMBOL FOR SUBSTITUTE}", line)
    return line


def _ignore_lines(
    left: Sequence[tuple[str, str]], lines: Sequence[str], rules: dict[str, Any], seen: list[str], redact: Redact
) -> Movement:
    """Ignore the remaining lines by how they begin, where that tells them from all other lines."""
    ignored: dict[str, None] = {}
    unsolved = []
    moving = {mine for mine, _ in left}
    for mine, its in left:
        beginning = _find_beginning(mine, its)
        is_own = all(line in moving for line in lines if line.startswith(beginning))
        if len(beginning.strip()) < _SHORTEST_BEGINNING or not is_own:
            unsolved.append(f"the line {_show(mine, redact)} is {_show(its, redact)} in another run")
            continue
        if f"^{re.escape(beginning)}" not in ignored:
            seen.append(f"lines that begin with {_show(beginning, redact)} move")
        ignored[f"^{re.escape(beginning)}"] = None
    rules = {**rules, "ignore_lines": tuple(ignored)} if ignored else rules
    return Movement(rules, tuple(seen), tuple(unsolved[:_MOST_UNSOLVED]))


_MOST_UNSOLVED = 5


def _find_beginning(one: str, other: str) -> str:
    """Return what two lines begin with, up to the end of a word."""
    length = next((at for at, (mine, its) in enumerate(zip(one, other, strict=False)) if mine != its), 0)
    words = re.match(r".*[\s:=]", one[:length])
    return words[0] if words else ""


def _describe(kind: str, pairs: Sequence[tuple[str, str]], redact: Redact) -> str:
    pattern = re.compile(KINDS[kind])
    found = [[[match[0] for match in pattern.finditer(line)] for line in pair] for pair in pairs]
    moved = [(mine, its) for mine, its in found if mine != its]
    one, other = next(
        (one, other) for mine, its in moved for one, other in zip_longest(mine, its, fillvalue="") if one != other
    )
    return f"{kind} moves in {count_of(len(moved), 'line')}, such as {_show(one, redact)} and {_show(other, redact)}"


def _show(text: str, redact: Redact) -> str:
    return repr(show(cut(redact(text), _LONGEST_EXAMPLE)))
