"""The words under which a memory is found: the texts and numbers in its value, its key and its tags. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pytest_golden.storage.words import find_words, fold

_MOST_CHARACTERS = 100_000
_MOST_TYPED_WORDS = 6


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
        elif isinstance(one, (int, float)):
            if not isinstance(one, bool):
                found.append(str(one))
        elif isinstance(one, (list, tuple)):
            waiting.extend(reversed(one))
        elif isinstance(one, Mapping):
            waiting.extend(reversed(list(one.values())))
    return " ".join(filter(None, found))


def add_words(known: str, text: str, most_characters: int) -> str:
    """Give the known words and those of a text that are not among them, as long as there is room."""
    seen = set(known.split())
    new = [word for word in dict.fromkeys(text.split()) if word not in seen]
    added = " ".join([known, *new]) if new else known
    return known if len(added) > most_characters else added


def list_telling(text: str) -> list[str]:
    """List the words of a query that say something: neither stop words nor numbers."""
    return [word for word in find_words(text) if not word.isdecimal()]


def is_typed(text: str) -> bool:
    """Tell whether a text is what a person types to ask: one line of six telling words or fewer; more is a failure's text."""
    return "\n" not in text.strip() and len(list_telling(text)) <= _MOST_TYPED_WORDS


def measure_coverage(asked: Collection[str], text: str) -> float:
    """Measure how many of these words, from 0 for none to 1 for all, stand in a text, whatever their case and accents."""
    there = set(map(fold, find_words(text, keep_all=True)))
    return sum(fold(word) in there for word in asked) / len(asked) if asked else 0.0
