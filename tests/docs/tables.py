"""The tables of the reference as the code has them, to be compared with those that the pages show."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from pytest_golden.manifest.model import (
    MOUNT_KEYS,
    OUTPUT_KEYS,
    PROJECT_KEYS,
    QUARANTINE_KEYS,
    DeclaredOutput,
    GoldenProjectConfig,
    Mount,
    Quarantine,
)
from pytest_golden.regression.wording import format_duration
from pytest_golden.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_golden.manifest.kinds import Key, Table
    from pytest_golden.settings import Setting

_SPECIAL_TYPES = {
    "expected_outcome": "outcome",
    "timeout": "duration",
    "cpu_limit": "duration",
    "disk_limit": "size",
    "memory_limit": "size",
    "network": "true, false, loopback or host",
    "until": "day",
    "clock": "day or time",
    "command": "command",
    "before": "list of commands",
    "after": "list of commands",
    "set_env": "mapping of texts",
    "mounts": "list of mounts",
    "quarantine": "mapping",
    "steps": "name or list of names",
    "tags": "name or list of names",
    "outputs": "list of outputs",
    "max_slowdown": "number",
    "absolute_tolerance": "number",
    "relative_tolerance": "number",
    "min_bytes": "size",
    "max_bytes": "size",
    **dict.fromkeys(("ignore_lines", "tables", "exclude", "dbt"), "text or list of texts"),
    "masks": "text or list of texts",
    "ignore_paths": "text or list of texts",
    "key": "text or list of texts",
    "ignore_columns": "text or list of texts",
    **dict.fromkeys(("not_null", "unique", "contains", "not_contains"), "text or list of texts"),
    **dict.fromkeys(("between", "accepted", "newest", "stdout", "stderr"), "mapping"),
    "row_count_change": "percent",
    "profile_above": "size",
}
_PLAIN_TYPES = {"string": "text", "boolean": "true or false", "integer": "whole number"}


def list_rows(page: Path, heading: str) -> tuple[str, ...]:
    """Return the rows of the first table below a heading, without its head."""
    text = page.read_text(encoding="utf-8")
    after = re.split(rf"^#+ {re.escape(heading)}$", text, maxsplit=1, flags=re.MULTILINE)[1]
    table = re.search(r"(?:^\|.*\n)+", after, flags=re.MULTILINE)
    assert table is not None, f"{page} has no table below {heading!r}"
    return tuple(table[0].splitlines()[2:])


def option_rows() -> Iterator[str]:
    """Return flag, default, ini key, environment variable and meaning of every option."""
    for setting in SETTINGS:
        ini = _code(setting.key) if setting.has_ini else ""
        environment = _code(setting.environment) if setting.has_environment else ""
        yield _row(_flag(setting), _option_default(setting), ini, environment, setting.help)


def short_option_rows() -> Iterator[str]:
    """Return flag, default and meaning of every option."""
    for setting in SETTINGS:
        yield _row(_flag(setting), _option_default(setting), setting.help)


def project_rows() -> Iterator[str]:
    return _key_rows(PROJECT_KEYS, GoldenProjectConfig)


def mount_rows() -> Iterator[str]:
    return _key_rows(MOUNT_KEYS, Mount)


def output_rows() -> Iterator[str]:
    return _key_rows(OUTPUT_KEYS, DeclaredOutput)


def quarantine_rows() -> Iterator[str]:
    return _key_rows(QUARANTINE_KEYS, Quarantine)


def first_cells(rows: Iterable[str]) -> tuple[str, ...]:
    """Return the first cell of each row without its backquotes."""
    return tuple(row.split("|")[1].strip().strip("`") for row in rows)


def _key_rows(table: Table, model: Any) -> Iterator[str]:
    fields = {field.name: field for field in dataclasses.fields(model)}
    for key in table.keys.values():
        yield _row(_code(key.name), _type_of(key), _default_of(key, fields[key.name]), key.description)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|').replace('<', '&lt;') for cell in cells)} |"


def _flag(setting: Setting) -> str:
    value = "|".join(setting.choices) or setting.metavar
    return _code(f"{setting.flag} {value}" if value else setting.flag)


def _option_default(setting: Setting) -> str:
    return _code(setting.default) if isinstance(setting.default, str) else ""


def _code(text: str) -> str:
    return f"`{text}`"


def _type_of(key: Key) -> str:
    if key.name in _SPECIAL_TYPES:
        return _SPECIAL_TYPES[key.name]
    return _plain_type(key.kind.schema)


def _plain_type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        *others, last = schema["enum"]
        return f"{', '.join(others)} or {last}"
    if schema["type"] == "array":
        return "list of texts" if _plain_type(schema["items"]) == "text" else "list of names"
    if "pattern" in schema:
        return "text" if "minLength" in schema else "name"
    return _PLAIN_TYPES[schema["type"]]


def _default_of(key: Key, field: dataclasses.Field[Any]) -> str:
    if key.required:
        return "required"
    value = getattr(field.default, "default", field.default)
    if value is None or value is dataclasses.MISSING or value in ((), ""):
        return ""
    if isinstance(value, bool):
        return _code(str(value).lower())
    return _code(format_duration(value) if key.name == "timeout" else str(value))
