"""The words under which a memory is found: the texts and numbers in its value, its key and its tags. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pytest_golden.storage.words import find_words, fold

_MOST_CHARACTERS = 100_000


def words_of(value: Any, key: str = "", tags: Iterable[str] = ()) -> str:
    """Give the words of a value as one text; the names of its fields are no words, so that each hit means something."""
    found = [key, *tags]
    room = _MOST_CHARACTERS
    waiting = [value]
    while waiting and room > 0:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one[:room])
            room -= len(one)
        elif isinstance(one, Mapping):
            waiting.extend(reversed(list(one.values())))
        elif isinstance(one, (list, tuple)):
            waiting.extend(reversed(one))
        elif isinstance(one, (int, float)) and not isinstance(one, bool):
            found.append(str(one))
    return " ".join(filter(None, found))


def add_words(known: str, text: str, most_characters: int) -> str:
    """Give the known words and those of a text that are not among them, as long as there is room."""
    seen = set(known.split())
    new = [word for word in dict.fromkeys(text.split()) if word not in seen]
    added = " ".join([known, *new]) if new else known
    return known if len(added) > most_characters else added


def measure_coverage(asked: Collection[str], text: str) -> float:
    """Measure how many of these words, from 0 for none to 1 for all, stand in a text, whatever their case and accents."""
    there = set(map(fold, find_words(text, keep_all=True)))
    return sum(fold(word) in there for word in asked) / len(asked) if asked else 0.0
