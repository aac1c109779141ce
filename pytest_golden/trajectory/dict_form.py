"""The dict form of a trajectory that was written before: read back without making each step anew."""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pytest_golden.trajectory.model import Trajectory
from pytest_golden.trajectory.sequence import FrozenSequence
from pytest_golden.trajectory.vocabulary import Importance, StepType

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_FIELDS = frozenset(
    {"id", "type", "content", "timestamp", "duration_ms", "metadata", "context", "importance", "parent_step_id"}
)
_TYPES, _IMPORTANCES = frozenset(map(str, StepType)), frozenset(map(str, Importance))
# As `iso_utc` writes it: texts of this form stand in the order of their times.
_TIME = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d{6}Z", re.ASCII)


def settle_dict_form(body: Mapping[str, Any]) -> dict[str, Any]:
    """Give what `Trajectory.from_dict(body).to_dict()` gives, many times faster where the steps are as `to_dict` wrote them.

    Raises:
        ValueError: a key is missing or has a value that is not allowed, or a newer program wrote it.
    """
    steps = body.get("steps")
    if body.get("state_snapshots") or type(steps) is not list or not _are_as_written(steps):
        return Trajectory.from_dict(body).to_dict()
    about = Trajectory.from_parts(body, FrozenSequence(), FrozenSequence()).to_dict()
    return about | {"steps": steps}


def _are_as_written(steps: Iterable[Any]) -> bool:
    """Tell whether nothing is missing, of another type, or out of order."""
    last, known = "", set()
    for step in steps:
        if type(step) is not dict or step.keys() != _FIELDS or not _has_own_types(step):
            return False
        own, parent, moment = step["id"], step["parent_step_id"], step["timestamp"]
        if moment < last or own in known or (parent is not None and parent not in known):
            return False
        last = moment
        known.add(own)
    return True


def _has_own_types(step: Mapping[str, Any]) -> bool:
    own, took, parent = step["id"], step["duration_ms"], step["parent_step_id"]
    return (
        type(own) is str
        and bool(own.strip())
        and _is_word(step["type"], _TYPES)
        and _is_word(step["importance"], _IMPORTANCES)
        and type(step["metadata"]) is dict
        and (took is None or (type(took) is float and 0 <= took < math.inf))
        and (parent is None or type(parent) is str)
        and _is_moment(step["timestamp"])
    )


def _is_word(value: Any, words: frozenset[str]) -> bool:
    return type(value) is str and value in words


def _is_moment(value: Any) -> bool:
    if type(value) is not str or _TIME.fullmatch(value) is None:
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
