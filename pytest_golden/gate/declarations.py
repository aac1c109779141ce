"""What changed in the manifest about one project, as short lines. Pure; whether it lowers the floor is `regression/floor.py`."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_golden.redaction import redact
from pytest_golden.regression.wording import format_duration, format_size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# These are for people and change nothing of a run.
_FOR_PEOPLE = frozenset({"title", "description"})
_DURATIONS = frozenset({"timeout", "cpu_limit"})
_SIZES = frozenset({"memory_limit"})
_LONGEST_VALUE = 60


def compare_declarations(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, ...]:
    """Give lines such as `timeout 10m -> 60s` from two `GoldenProjectConfig.to_dict()`; secret values never appear.

    A key that only one of the two programs knew is left out.
    """
    return tuple(_list_changes(redact(dict(before)), redact(dict(now))))


def _list_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for key, value in now.items():
        if key in _FOR_PEOPLE or key not in before or before[key] == value:
            continue
        if key == "set_env":
            yield from _list_variables(before[key] or {}, value or {})
        elif key == "outputs":
            yield from _list_outputs(_by_path(before[key]), _by_path(value))
        else:
            yield f"{key} {_show_value(key, before[key])} -> {_show_value(key, value)}"


def _list_variables(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*now, *before]):
        if name not in before:
            yield f"set_env.{name} added: {_show(now[name])}"
        elif name not in now:
            yield f"set_env.{name} removed"
        elif before[name] != now[name]:
            yield f"set_env.{name} {_show(before[name])} -> {_show(now[name])}"


def _list_outputs(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for path in dict.fromkeys([*now, *before]):
        if path not in before or path not in now:
            yield f"outputs.{path} {'added' if path in now else 'removed'}"
            continue
        then, present = before[path], now[path]
        for key, value in present.items():
            if key in then and then[key] != value:
                yield f"outputs.{path}.{key} {_show(then[key])} -> {_show(value)}"


def _by_path(outputs: Any) -> dict[str, Mapping[str, Any]]:
    """Give the entries by their paths; those that have one path by their number too."""
    entries: dict[str, Mapping[str, Any]] = {}
    count: Counter[str] = Counter()
    for output in outputs or ():
        path = str(output["path"])
        count[path] += 1
        entries[f"{path} ({count[path]})" if count[path] > 1 else path] = output
    return entries


def _show_value(key: str, value: Any) -> str:
    is_amount = isinstance(value, int | float) and not isinstance(value, bool)
    if is_amount and key in _DURATIONS:
        return format_duration(value)
    return format_size(int(value)) if is_amount and key in _SIZES else _show(value)


def _show(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    told = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return told if len(told) <= _LONGEST_VALUE else f"{told[: _LONGEST_VALUE - 3]}..."
