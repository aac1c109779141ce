"""A memory before it is stored: checked, redacted and frozen. No time and no version; the store gives those."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.limits import check_texts, freeze_json_mapping
from pytest_golden.learning.words import words_of
from pytest_golden.redaction import redact
from pytest_golden.storage.namespaces import write_namespace
from pytest_golden.storage.text import storable
from pytest_golden.trajectory.freezing import freeze_mapping
from pytest_golden.trajectory.vocabulary import check_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


# An index row of PostgreSQL has 2,704 bytes, which a version shares.
_LONGEST_PLACE_BYTES = 2600


@dataclass(frozen=True, slots=True)
class MemoryDraft:
    """What is to be stored under a namespace and a key. `words` is what a search finds it by."""

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
    """Check what a caller wants to be kept, take the secrets out, and freeze it.

    It is found by the words in it, and by further `words`.

    Raises:
        ValueError: a part has a value that is not allowed; the message names it.
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
    """Give the namespace as a tuple; refuse a single text and blank elements with a `ValueError`."""
    elements = check_texts("namespace", namespace)
    for element in elements:
        check_text("each element of namespace", element)
    return elements


def check_key(key: str) -> str:
    """Give the key back; refuse a blank one, and one that no database takes, with a `ValueError`."""
    check_text("key", key)
    if storable(key) != key:
        raise ValueError(f"key {key!r} holds NUL or a lone surrogate, which cannot be kept; give plain text")
    return key
