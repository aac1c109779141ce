"""Mappings with named keys: their keys, what each may hold, and what is wrong with one. Which records there are: `keys.py`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from pytest_golden.manifest.findings import UNREADABLE, Finding, WrongValueError, findings_below, wrong
from pytest_golden.manifest.kinds import Kind
from pytest_golden.manifest.unquoted import Unquoted, show

_LONGEST_GUESS = 60


@dataclass(frozen=True, slots=True)
class Key:
    """One key of a record. `description` is what editors and the documentation show; nullable: null means none."""

    name: str
    kind: Kind
    description: str
    required: bool = False
    nullable: bool = False

    def check(self, value: Any) -> Any:
        """Check a value of this key.

        Raises:
            ValueError: what is wrong with it; a `WrongValueError` when the mistake lies inside it.
        """
        if self.nullable and isinstance(value, Unquoted) and not value.text:
            raise wrong("has no value; write one, or null for none, or remove the key")
        if self.nullable and (value is None or (isinstance(value, Unquoted) and value.kind == "null")):
            return None
        return self.kind.check(value)


@dataclass(frozen=True, slots=True)
class Table:
    """The keys of a record, and what to tell who uses one that it does not have (but might be expected to).

    `find_conflicts` tells what the good values of a record have against each other.
    """

    keys: Mapping[str, Key]
    refusals: Mapping[str, str] = field(default_factory=dict)
    find_conflicts: Callable[[Mapping[str, Any]], Sequence[Finding]] | None = None

    @classmethod
    def of(
        cls,
        keys: Iterable[Key],
        refusals: Mapping[str, str] | None = None,
        *,
        find_conflicts: Callable[[Mapping[str, Any]], Sequence[Finding]] | None = None,
    ) -> Table:
        """Make a table from its keys."""
        return cls({key.name: key for key in keys}, refusals or {}, find_conflicts)

    def without(self, refusals: Mapping[str, str]) -> Table:
        """Give this table without the keys that `refusals` names, and with no key required."""
        kept = (key for name, key in self.keys.items() if name not in refusals)
        return Table.of(kept, {**self.refusals, **refusals})


def collect(record: Mapping[str, Any], table: Table) -> tuple[dict[str, Any], list[Finding]]:
    """Check a record; give its good values, clean, and all mistakes of the others."""
    clean: dict[str, Any] = {}
    findings: list[Finding] = []
    for name, value in record.items():
        key = table.keys.get(name)
        if key is None:
            findings.append(Finding((name,), _refuse(name, table), at_key=True))
        elif value is not UNREADABLE:
            try:
                clean[name] = key.check(value)
            except ValueError as error:
                findings += findings_below(name, error)
    findings += [
        Finding((), f"the key {key.name} is missing; write it")
        for key in table.keys.values()
        if key.required and key.name not in record
    ]
    if table.find_conflicts is not None:
        findings += table.find_conflicts(clean)
    return clean, findings


def record_of(table: Table) -> Kind:
    """Make the kind of a record. A value of the model stands for the mapping of its fields."""

    def check(value: Any) -> dict[str, Any]:
        record = vars(value) if hasattr(value, "__pydantic_fields__") else value
        if not isinstance(record, Mapping):
            raise wrong(f"a mapping is wanted, not {show(value)}; its keys are {', '.join(table.keys)}")
        clean, findings = collect(record, table)
        if findings:
            raise WrongValueError(findings)
        return clean

    return Kind(check, record_schema(table))


def record_schema(table: Table) -> dict[str, Any]:
    """Give the JSON Schema of a record."""
    properties = {name: key_schema(key) for name, key in table.keys.items()}
    required = [key.name for key in table.keys.values() if key.required]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def key_schema(key: Key) -> dict[str, Any]:
    """Give the JSON Schema of a key's value."""
    allowed = {"anyOf": [dict(key.kind.schema), {"type": "null"}]} if key.nullable else dict(key.kind.schema)
    return {"description": key.description, **allowed}


def _refuse(name: str, table: Table) -> str:
    return table.refusals.get(name) or _refuse_unknown(name, tuple(table.keys))


@lru_cache(maxsize=256)
def _refuse_unknown(name: str, known: tuple[str, ...]) -> str:
    nearest = suggest(name, known)
    return f"unknown key {show(name)}; " + (
        f"did you mean {nearest!r}?" if nearest else f"the keys here are {', '.join(known)}"
    )


def suggest(word: object, known: Iterable[str]) -> str | None:
    """Find the nearest of the known words, None when none is near."""
    # A mapping that no file has given may have other keys than texts.
    if not isinstance(word, str) or len(word) > _LONGEST_GUESS:
        return None
    known = tuple(known)
    near = difflib.get_close_matches(word, known, n=1) or difflib.get_close_matches(word.lower(), known, n=1)
    return near[0] if near else None
