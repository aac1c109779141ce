"""Check, redact and freeze a memory before it is stored, and find its words; and the checks of all values of this room. Pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from pytest_golden.redaction.redactor import redact
from pytest_golden.storage.columns import find_words, fold, storable, storable_json, write_namespace
from pytest_golden.trajectory.vocabulary import freeze, freeze_mapping
from pytest_golden.values.checking import check_any_text, check_mapping, check_text, find_amount, show

MOST_TASK_CHARACTERS = 10_000
MOST_STEPS = 1_000
MOST_BYTES = 1024 * 1024
# Made once: `json.dumps` with arguments makes one for each call.
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_MOST_CHARACTERS = 100_000
_MOST_TYPED_WORDS = 6
# An index row of PostgreSQL has 2,704 bytes, which a version shares.
_LONGEST_PLACE_BYTES = 2600


class MemoryDraft(NamedTuple):
    """A value to store under a namespace and a key. A search finds it by `words`."""

    namespace: tuple[str, ...]
    key: str
    value: Mapping[str, Any]
    tags: tuple[str, ...] = ()
    provenance: Mapping[str, Any] | None = None
    words: str = ""


def draft_memory(
    namespace: Iterable[str],
    key: str,
    value: Mapping[str, Any],
    tags: Iterable[str] = (),
    provenance: Mapping[str, Any] | None = None,
    words: str = "",
) -> MemoryDraft:
    """Check the parts of a memory, redact and freeze them, and return the draft.

    A search finds it by the words in it, and by further `words`.

    Raises:
        ValueError: a part has an invalid value; the message names it.
    """
    checked_namespace = check_namespace(namespace)
    if not checked_namespace:
        raise ValueError('namespace must have at least one element, such as ("plans", "global")')
    size = len(write_namespace(checked_namespace)) + len(check_key(key).encode())
    if size > _LONGEST_PLACE_BYTES:
        raise ValueError(
            f"namespace and key have {size:,} bytes together, percent-encoded as a URL, and at most {_LONGEST_PLACE_BYTES:,} are "
            "looked up; give shorter ones"
        )
    kept = redact(freeze_json_mapping("value", value))
    checked_tags = tuple(redact(storable(tag)) for tag in check_texts("tags", tags))
    return MemoryDraft(
        checked_namespace,
        key,
        freeze_mapping("value", kept),
        checked_tags,
        None if provenance is None else redact(freeze_json_mapping("provenance", provenance)),
        storable(words_of([redact(words), kept] if words else kept, key, checked_tags)),
    )


def check_namespace(namespace: Iterable[str]) -> tuple[str, ...]:
    """Return the namespace as a tuple, the form in which it is stored. Raise `ValueError` for a single text or a blank element."""
    elements = check_texts("namespace", namespace)
    for element in elements:
        check_text("each element of namespace", element)
    return tuple(map(storable, elements))


def check_key(key: str) -> str:
    """Return the key. Raise a `ValueError` for a blank one, and for one that a database cannot store."""
    check_text("key", key)
    if storable(key) != key:
        raise ValueError(f"key {key!r} holds NUL or a lone surrogate, which cannot be kept; give plain text")
    return key


def words_of(value: Any, key: str = "", tags: Iterable[str] = ()) -> str:
    """Return the words of a value as one text, without the names of its fields, which would match every memory."""
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
    """Return the known words and the new ones of a text; only the known words when the result would be too long."""
    seen = set(known.split())
    new = [word for word in dict.fromkeys(text.split()) if word not in seen]
    added = " ".join([known, *new]) if new else known
    return known if len(added) > most_characters else added


def list_telling(text: str) -> list[str]:
    """List the words of a query without stop words and numbers."""
    return [word for word in find_words(text) if not word.isdecimal()]


def is_typed(text: str) -> bool:
    """Return whether a person typed this text to ask: one line of up to six telling words. More is a failure's text."""
    return "\n" not in text.strip() and len(list_telling(text)) <= _MOST_TYPED_WORDS


def measure_coverage(asked: Collection[str], text: str) -> float:
    """Return which share of these words, from 0 to 1, a text contains; case and accents do not count."""
    there = set(map(fold, find_words(text, keep_all=True)))
    return sum(fold(word) in there for word in asked) / len(asked) if asked else 0.0


def write_json(field: str, value: Any) -> str:
    """Return the value as ASCII JSON, the form in which it is stored.

    Raises:
        ValueError: it is not JSON content (nor is NaN), or is more than 1 MiB; the message names the field.
    """
    try:
        text = storable_json(_ENCODER.encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{field} cannot be written as JSON: {error}") from None
    if len(text) > MOST_BYTES:
        raise ValueError(f"{field} is {len(text):,} bytes as JSON; at most {MOST_BYTES:,} are kept: give less of it")
    return text


def freeze_json(field: str, value: Any) -> Any:
    """Return a frozen copy of JSON content, tuples as lists. Raise as `write_json` does."""
    return freeze(field, json.loads(write_json(field, value)))


def freeze_json_mapping(field: str, value: Any) -> Mapping[str, Any]:
    """Return a frozen copy of a mapping of JSON content. Raise a `ValueError` that names the field for anything else."""
    frozen: Mapping[str, Any] = freeze_json(field, dict(check_mapping(field, value)))
    return frozen


def check_texts(field: str, texts: Any, most: int | None = None) -> tuple[str, ...]:
    """Return a tuple of texts. Raise a `ValueError` for a single text, for other items and for more than `most` of them."""
    if isinstance(texts, (str, bytes)) or not isinstance(texts, Iterable):
        raise ValueError(f"{field} must be a sequence of texts, not {show(texts)}")  # noqa: TRY004 - one kind of refusal
    items = tuple(texts)
    foreign = [item for item in items if not isinstance(item, str)]
    if foreign:
        raise ValueError(f"{field} must hold texts only, not {show(foreign[0])}")
    if most is not None and len(items) > most:
        raise ValueError(f"{field} has {len(items):,} items; at most {most:,} are kept")
    return items


def check_task(field: str, task: object) -> str:
    """Return a text of up to 10,000 characters, which may be blank. Raise a `ValueError` for anything else."""
    checked = check_any_text(field, task)
    if len(checked) > MOST_TASK_CHARACTERS:
        raise ValueError(f"{field} has {len(checked):,} characters; at most {MOST_TASK_CHARACTERS:,} are kept")
    return checked


def check_steps(field: str, steps: Any) -> tuple[str, ...]:
    """Return a tuple of up to 1,000 texts. Raise a `ValueError` for anything else."""
    return check_texts(field, steps, MOST_STEPS)


def check_confidence(field: str, confidence: object) -> float:
    """Return a number from 0 to 1 as a float. Raise a `ValueError` for anything else."""
    amount = find_amount(confidence)
    if amount is None or amount > 1:
        raise ValueError(f"{field} must be a number from 0 to 1, not {show(confidence)}")
    return amount
