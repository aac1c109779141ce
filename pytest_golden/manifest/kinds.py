"""What values a key of the manifest may have: each kind is a check and the JSON Schema that says the same.

A check takes what YAML or a Python caller gives and returns the clean value; it takes its own result back unchanged.
It raises `ValueError`. Which key is of which kind stands in `keys.py`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from pytest_golden.manifest.expected import ExpectedOutcome
from pytest_golden.manifest.findings import (
    UNREADABLE,
    Check,
    Finding,
    WrongValueError,
    check_each,
    findings_below,
    wrong,
)
from pytest_golden.manifest.units import DURATION_FORM, SIZE_FORM, parse_duration, parse_size
from pytest_golden.manifest.unquoted import Unquoted, bare, show

VERSION_NUMBER = 1
NAME_FORM = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
LONGEST_NAME = 200
_NAME = re.compile(NAME_FORM)
RESERVED_TAGS = frozenset({"filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"})
_VARIABLE = re.compile(r"[^=\s]+")


@dataclass(frozen=True, slots=True)
class Kind:
    """What values are allowed."""

    check: Check
    schema: Mapping[str, Any] = field(default_factory=dict)


def check_argument(value: Any) -> str:
    """Check a text that may be empty."""
    if not isinstance(value, str):
        raise wrong(_say_not_text(value))
    if "\0" in value:
        raise wrong("holds a NUL character; remove it")
    return str(value)


def check_text(value: Any) -> str:
    """Check a text that is not blank."""
    text = check_argument(value)
    if not text.strip():
        raise wrong("is empty; write a text")
    return text


def check_name(value: Any) -> str:
    """Check a name: it becomes a node id, a folder and a marker."""
    text = check_text(value)
    if not _NAME.fullmatch(text):
        raise wrong(f"{show(text)} is not a name; use letters, digits, _ . - and begin with a letter, digit or _")
    if len(text) > LONGEST_NAME:
        raise wrong(f"{show(text)} is longer than {LONGEST_NAME} characters; shorten it")
    return text


def check_tag(value: Any) -> str:
    """Check a tag: it becomes a pytest marker, and must not be one that pytest acts upon."""
    tag = check_name(value)
    if tag in RESERVED_TAGS:
        raise wrong(f"the tag {tag!r} has a meaning of its own in pytest; choose another word")
    return tag


def _say_not_text(value: Any) -> str:
    if isinstance(value, Unquoted) and not value.text:
        return "has no value; write a text or remove the key"
    if isinstance(value, Unquoted):
        return f'YAML reads {value.text} as a {value.kind}, and a text is wanted; quote it: "{value.text}"'
    if isinstance(value, Mapping) and len(value) == 1:
        return 'a text is wanted, not a mapping; quote a text that holds ": " or stands in braces'
    return f"a text is wanted, not {show(value)}"


def _check_flag(value: Any) -> bool:
    plain = bare(value)
    if not isinstance(plain, bool):
        raise wrong(f"{show(value)} is neither true nor false; write one of them, without quotes")
    return plain


def _check_count(value: Any) -> int:
    plain = bare(value)
    if not isinstance(plain, int) or isinstance(plain, bool) or plain < 0:
        raise wrong(f"{show(value)} is not a whole number from 0 up; write one in plain digits, without quotes")
    return plain


def _check_version(value: Any) -> int:
    plain = bare(value)
    if isinstance(plain, bool) or not isinstance(plain, int):
        raise wrong(f"{show(value)} is not a version; write {VERSION_NUMBER}, without quotes")
    if plain != VERSION_NUMBER:
        raise wrong(
            f"version {plain} of the manifest is not known here; write {VERSION_NUMBER}, or upgrade pytest-golden-projects"
        )
    return plain


def _check_date(value: Any) -> date:
    plain = bare(value)
    if isinstance(plain, str):
        try:
            plain = date.fromisoformat(plain) if len(plain) == len("2026-12-31") else None
        except ValueError:
            plain = None
    if not isinstance(plain, date) or isinstance(plain, datetime):
        raise wrong(f"{show(value)} is not a day; write it as 2026-12-31")
    return plain


def _check_outcome(value: Any) -> str:
    if isinstance(value, Mapping):
        raise wrong('an expected outcome is one text; write it in quotes: "specific_error:<regular expression>"')
    text = check_text(value)
    ExpectedOutcome.parse(text)
    return text


def _check_list(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        hint = f"write it in brackets: [{show(value)}]" if isinstance(value, str) else "write [] for none"
        raise wrong(f"a list is wanted, not {show(value)}; {hint}")
    return tuple(value)


def _check_command(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        text = check_text(value)
        try:
            value = shlex.split(text)
        except ValueError as error:
            raise wrong(
                f"cannot be split as a shell would: {error}; close the quote, or write the command as a list"
            ) from None
    elif not isinstance(value, list | tuple):
        raise wrong(f"a command is wanted, not {show(value)}; write a list of texts, or one text")
    words = check_each(value, check_argument)
    if not value or (words and not words[0].strip()):
        raise wrong("is empty; write the program and its arguments")
    return words


def _check_steps(value: Any) -> str | tuple[str, ...]:
    names = check_each(value, check_name) if isinstance(value, list | tuple) else (check_name(value),)
    if names == ("auto",):
        return "auto"
    if "auto" in names:
        raise wrong("auto stands alone; remove it from the list, or the others")
    return names


def check_variable(value: Any) -> str:
    """Check the name of an environment variable."""
    text = check_text(value)
    if not _VARIABLE.fullmatch(text):
        raise wrong(f"{show(text)} cannot name an environment variable; write the name alone, such as DATABASE_URL")
    return text


def _check_variable_value(value: Any) -> str:
    # The value may be a secret: no message shows it.
    if isinstance(value, Unquoted) and value.kind in {"number", "date"}:
        return value.text
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise wrong("the value of an environment variable is a text or a number; write it in quotes")
    return check_argument(value)


def _check_environment(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise wrong(f"a mapping is wanted, not {show(value)}; write it as {{TZ: UTC}}")
    clean: dict[str, str] = {}
    findings: list[Finding] = []
    for name, text in value.items():
        try:
            check_variable(name)
        except ValueError as error:
            findings.append(Finding((name,), str(error), at_key=True))
        try:
            clean[name] = "" if text is UNREADABLE else _check_variable_value(text)
        except ValueError as error:
            findings += findings_below(name, error)
    if findings:
        raise WrongValueError(findings)
    return clean


def one_of(*words: str) -> Kind:
    """Make the kind of a text that is one of a few words."""

    def check(value: Any) -> str:
        text = check_text(value)
        if text not in words:
            raise wrong(f"{show(text)} is not known here; write {', '.join(words[:-1])} or {words[-1]}")
        return text

    return Kind(check, {"enum": list(words)})


def list_of(item: Kind, *, one_alone: bool = False) -> Kind:
    """Make the kind of a list; with `one_alone` a single text may stand without one."""

    def check(value: Any) -> tuple[Any, ...]:
        items = (value,) if one_alone and isinstance(value, str) else _check_list(value)
        return check_each(items, item.check)

    schema = {"type": "array", "items": dict(item.schema)}
    return Kind(check, {"anyOf": [dict(item.schema), schema]} if one_alone else schema)


ARGUMENT = Kind(check_argument, {"type": "string"})
TEXT = Kind(check_text, {"type": "string", "minLength": 1})
NAME = Kind(check_name, {"type": "string", "pattern": f"^{NAME_FORM}$", "maxLength": LONGEST_NAME})
TAG = Kind(check_tag, {**NAME.schema, "not": {"enum": sorted(RESERVED_TAGS)}})
VARIABLE = Kind(check_variable, {"type": "string", "pattern": r"^[^=\s]+$"})
FLAG = Kind(_check_flag, {"type": "boolean"})
COUNT = Kind(_check_count, {"type": "integer", "minimum": 0})
VERSION = Kind(_check_version, {"const": VERSION_NUMBER})
DAY = Kind(_check_date, {"type": "string", "format": "date"})
DURATION = Kind(
    parse_duration, {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": DURATION_FORM}]}
)
SIZE = Kind(parse_size, {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": SIZE_FORM}]})
OUTCOME = Kind(
    _check_outcome, {"type": "string", "pattern": r"^(success|specific_error:\s*\S[\s\S]*|exit_code:\s*[0-9]{1,3}\s*)$"}
)
COMMAND = Kind(
    _check_command,
    {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]},
)
STEPS = Kind(_check_steps, {"anyOf": [NAME.schema, {"type": "array", "items": NAME.schema}]})
ENVIRONMENT = Kind(_check_environment, {"type": "object", "additionalProperties": {"type": ["string", "number"]}})
