"""The plan of shards as a JSON file, so that every machine parts the projects alike."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, TypeGuard

from pytest_golden.errors import SettingsError
from pytest_golden.gate.sharding.model import MOST_SHARDS, ShardPlan

if TYPE_CHECKING:
    from pathlib import Path

#: Beside the manifest.
PLAN_NAME = "golden_shards.json"
_VERSION = 1
_MOST_BYTES = 64 * 1024 * 1024


def write_plan(plan: ShardPlan) -> str:
    """Give a plan as the text of its file, a project a line, so that a person can read what changed in it."""
    lines = [
        f"    {json.dumps(name)}: {json.dumps({'shard': shard, 'seconds': _round(plan.seconds.get(name))})}"
        for name, shard in plan.shards.items()
    ]
    told = ",\n".join(lines)
    projects = f"{{\n{told}\n  }}" if lines else "{}"
    return f'{{\n  "schema_version": {_VERSION},\n  "shards": {plan.count},\n  "projects": {projects}\n}}\n'


def read_plan(path: Path) -> ShardPlan:
    """Read a plan from its file.

    Raises:
        SettingsError: it is not there, cannot be read, or is no plan.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_BYTES + 1)
        plain = json.loads(text) if len(text) <= _MOST_BYTES else None
    except OSError as error:
        raise SettingsError(
            f"the plan of shards {path}: {error.strerror or error}; write one with `golden shards plan --shards N`."
        ) from None
    except (ValueError, RecursionError):
        plain = None
    plan = _parse(plain)
    if plan is None:
        raise SettingsError(f"{path} is no plan of shards: write one anew with `golden shards plan --shards N`.")
    return plan


def _round(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)


def _parse(plain: Any) -> ShardPlan | None:
    if not isinstance(plain, dict) or plain.get("schema_version") != _VERSION:
        return None
    count, projects = plain.get("shards"), plain.get("projects")
    if not _is_whole(count, MOST_SHARDS) or not isinstance(projects, dict):
        return None
    shards: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for name, told in projects.items():
        if not isinstance(told, dict) or not _is_whole(told.get("shard"), count):
            return None
        shards[name] = told["shard"]
        if (known := told.get("seconds")) is not None:
            if not _is_duration(known):
                return None
            seconds[name] = float(known)
    return ShardPlan(count, shards, seconds)


def _is_whole(value: Any, most: int) -> TypeGuard[int]:
    return type(value) is int and 1 <= value <= most


def _is_duration(value: Any) -> bool:
    return type(value) in {int, float} and math.isfinite(value) and value >= 0
