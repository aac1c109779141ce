"""What the keys of an output may hold, and of `max_slowdown`: checks with their JSON Schema, as in `kinds.py`."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from pytest_golden.manifest.findings import wrong
from pytest_golden.manifest.json_paths import parse_json_path
from pytest_golden.manifest.kinds import Kind, check_text
from pytest_golden.manifest.units import SIZE_FORM, parse_size
from pytest_golden.manifest.unquoted import bare, show

# YAML 1.1 reads `1e-6` as a text, since it has no point.
NUMBER_FORM = r"^[-+]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?$"
_NUMBER = re.compile(NUMBER_FORM)
_LARGEST_COUNT = 2**63 - 1


def _check_glob(value: Any) -> str:
    text = check_text(value)
    if PurePosixPath(text).is_absolute() or PureWindowsPath(text).drive:
        raise wrong(f"{show(text)} is absolute; write it relative to project_dir")
    if "\\" in text:
        raise wrong(f"{show(text)} holds a backslash; write / between folders")
    parts = [part for part in text.split("/") if part not in {"", "."}]
    if ".." in parts:
        raise wrong(f"{show(text)} leads out of project_dir; remove the '..'")
    if not parts:
        raise wrong(f"{show(text)} names no file; write a pattern such as out/*.csv")
    return "/".join(parts)


def _check_pattern(value: Any) -> str:
    text = check_text(value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        message = f"{show(text)} is not a regular expression: {error}; put a backslash before what is meant literally"
        raise wrong(message) from None
    return text


def _check_json_path(value: Any) -> str:
    text = check_text(value)
    parse_json_path(text)
    return text


def _check_tolerance(value: Any) -> float:
    number = _read_number(value)
    if number is None:
        raise wrong(f"{show(value)} is not a number; write one from 0 up, such as 0.01 or 1e-6")
    if number < 0:
        raise wrong(f"{show(value)} is below 0; write a tolerance from 0 up")
    return number


def _check_factor(value: Any) -> float:
    number = _read_number(value)
    if number is None:
        raise wrong(f"{show(value)} is not a number; write a factor above 1, such as 2.0")
    if number <= 1:
        raise wrong(f"{show(value)} is not above 1; write how many times as long it may take, such as 2.0")
    return number


def _read_number(value: Any) -> float | None:
    plain = bare(value)
    if isinstance(plain, str) and _NUMBER.fullmatch(plain):
        plain = float(plain)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        return None
    try:
        number = float(plain)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _check_rows(value: Any) -> int:
    plain = bare(value)
    if isinstance(plain, bool) or not isinstance(plain, int) or not 0 <= plain <= _LARGEST_COUNT:
        raise wrong(f"{show(value)} is not a number of rows; write a whole number from 0 up, without quotes")
    return plain


def _check_bytes(value: Any) -> int:
    plain = bare(value)
    return 0 if plain == 0 and not isinstance(plain, bool | float) else parse_size(value)


GLOB = Kind(_check_glob, {"type": "string", "minLength": 1, "pattern": r"^(?!/)(?!.*\\)(?!(.*/)?\.\.(/|$))"})
PATTERN = Kind(_check_pattern, {"type": "string", "minLength": 1, "format": "regex"})
JSON_PATH = Kind(_check_json_path, {"type": "string", "pattern": r"^\$[.\[]"})
TOLERANCE = Kind(
    _check_tolerance, {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": NUMBER_FORM}]}
)
FACTOR = Kind(
    _check_factor, {"anyOf": [{"type": "number", "exclusiveMinimum": 1}, {"type": "string", "pattern": NUMBER_FORM}]}
)
ROWS = Kind(_check_rows, {"type": "integer", "minimum": 0})
BYTES = Kind(_check_bytes, {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": SIZE_FORM}]})
