"""The dict form of the learner's frozen values: fields under their own names, moments in ISO-8601. Pure."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.learning.limits import SCHEMA_VERSION, check_known_version, thaw
from pytest_golden.trajectory.vocabulary import parse_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_MOMENTS = frozenset({"timestamp", "created_at", "updated_at", "last_used", "judged_at"})


def write_fields(value: Any, *, with_version: bool = False) -> dict[str, Any]:
    """Give all fields of a frozen value, JSON-safe, and `schema_version` where that is wanted."""
    plain: dict[str, Any] = {"schema_version": SCHEMA_VERSION} if with_version else {}
    for name in (one.name for one in fields(value)):
        held = getattr(value, name)
        plain[name] = iso_utc(held) if isinstance(held, datetime) else thaw(held)
    return plain


def read_fields(kind: type[Any], mapping: Mapping[str, Any], *, required: Sequence[str]) -> dict[str, Any]:
    """Give the arguments for a value of this kind: what is unknown is left out, moments are read.

    Raises:
        ValueError: a required key is missing, a moment is none, or the form is that of a newer program.
    """
    check_known_version(mapping)
    known = {one.name: mapping[one.name] for one in fields(kind) if one.name in mapping}
    for name in _MOMENTS & known.keys():
        if known[name] is not None:
            known[name] = parse_time(name, known[name])
    missing = [name for name in required if name not in known]
    if missing:
        raise ValueError(f"{missing[0]} is missing")
    return known
