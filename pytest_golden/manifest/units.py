"""The notations inside a manifest's values: words without quotes, durations, sizes, JSON paths and expected outcomes."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, NamedTuple

from yaml.resolver import Resolver

# For the JSON Schema: the same forms, without their bounds.
DURATION_FORM = r"^\s*[0-9]+(\.[0-9]+)?\s*(ms|s|m|h|d)?\s*$"
SIZE_FORM = r"^\s*[0-9]+(\.[0-9]+)?\s*(([kKmMgGtT][iI]?)?[bB])?\s*$"
LONGEST_PATH: Final = 1000

# What YAML 1.1 makes of a word without quotes, by the last word of PyYAML's tags.
_KINDS = {"null": "null", "bool": "boolean", "int": "number", "float": "number", "timestamp": "date"}
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = re.compile(r"[-+]?[0-9]{1,18}\.[0-9]*(?:[eE][-+][0-9]+)?|\.[0-9]+(?:[eE][-+][0-9]+)?")

_LONGEST_SECONDS = 366 * 24 * 3600
_LARGEST_BYTES = 2**63 - 1
_SECONDS = {"ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600), "d": Fraction(86400)}
_BYTES = {"b": 1} | {
    f"{prefix}{end}": base**power
    for power, prefix in enumerate("kmgt", start=1)
    for end, base in (("b", 1000), ("ib", 1024))
}
_AMOUNT = re.compile(r"([-+]?[0-9]{1,30}(?:\.[0-9]{1,30})?)\s*([A-Za-z]*)")
_DURATIONS = "a number of seconds, or a duration such as 500ms, 90s, 10m or 1.5h"
_SIZES = "a number of bytes, or a size such as 500MB (10^6) or 2GiB (2^30)"

_PATH_STEP = re.compile(
    r"""\.\.(?P<anywhere>[^\s.\[\]*'"]+)
    |\.(?P<member>[^\s.\[\]*'"]+)
    |\[(?P<index>[0-9]{1,15})\]
    |(?P<every>\[\*\]|\.\*)
    |\['(?P<single>(?:[^'\\]|\\.)+)'\]
    |\["(?P<double>(?:[^"\\]|\\.)+)"\]""",
    re.VERBOSE,
)
_PATH_FORMS = "write $ and then .name, ['a name'], [0], [*] or ..name, such as $.rows[*].updated_at"

_FORMS = "success, specific_error:<regular expression> or exit_code:<n>"


@dataclass(frozen=True, slots=True)
class Unquoted:
    """A word without quotes that YAML does not read as text: null, or a boolean, number or date that may be meant as text.

    `text` is the word as written; `kind` is `null`, `boolean`, `number` or `date`. `value` is the Python value. It is None
    also for a number that people read differently from YAML 1.1 (`0x10`, `010`, `1:30`, `1_000`), for a date with a time,
    and for a date that no calendar has.
    """

    text: str
    kind: str
    value: Any = None


def read_unquoted(text: str) -> str | Unquoted:
    """Return a word without quotes as text, or as what YAML 1.1 makes of it.

    The rules are PyYAML's, so that editors and other programs that read the file agree with it.
    """
    if not text:
        return Unquoted(text, "null")
    forms = Resolver.yaml_implicit_resolvers.get(text[0], ())
    tag = next((tag for tag, form in forms if form.match(text)), "")
    kind = _KINDS.get(tag.rpartition(":")[2])
    return text if kind is None else Unquoted(text, kind, _read_value(text, kind))


def _read_value(text: str, kind: str) -> Any:
    if kind == "boolean":
        return text.lower() in {"yes", "true", "on"}
    if kind == "number":
        return _read_number(text)
    try:
        return date.fromisoformat(text) if kind == "date" and len(text) == len("2026-12-31") else None
    except ValueError:
        return None


def _read_number(text: str) -> float | None:
    if _DECIMAL.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "")) if text.lower().endswith(("inf", "nan")) else None


def bare(value: Any) -> Any:
    """Return the Python value of a word without quotes, and anything else as it is."""
    return value.value if isinstance(value, Unquoted) else value


def show(value: Any) -> str:
    """Return a value as it is shown in a message, never long."""
    if isinstance(value, Unquoted):
        return value.text or "nothing"
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    if value is None or isinstance(value, bool | int | float):
        told = repr(value)
        return told if len(told) <= 60 else f"{told[:57]}..."
    return f"a value of type {type(value).__name__}"


def parse_duration(value: Any) -> float:
    """Read a duration in seconds: a number, or text with the unit ms, s, m, h or d (none means seconds).

    Raises:
        ValueError: it is not a duration, not above 0, or longer than 366 days.
    """
    amount = _read_amount(value, _SECONDS, default="s")
    if amount is None:
        raise ValueError(f"{show(value)} is not a duration; write {_DURATIONS}")
    if not 0 < amount <= _LONGEST_SECONDS or not float(amount):
        raise ValueError(f"{show(value)} is not above 0 and at most 366 days; write {_DURATIONS}")
    return float(amount)


def parse_size(value: Any) -> int:
    """Read a size in bytes: a whole number, or text with B, kB, MB, GB, TB (1000) or KiB, MiB, GiB, TiB (1024).

    Raises:
        ValueError: it is not a size, less than one byte, or above 2^63 - 1.
    """
    amount = _read_amount(value, _BYTES, default="b")
    if amount is None or (amount.denominator != 1 and not isinstance(value, str)):
        raise ValueError(f"{show(value)} is not a size; write {_SIZES}")
    if not 1 <= amount <= _LARGEST_BYTES:
        raise ValueError(f"{show(value)} is not above 0 and below 2^63 bytes; write {_SIZES}")
    return int(amount)


def _read_amount(value: Any, units: dict[str, Fraction] | dict[str, int], *, default: str) -> Fraction | None:
    value = bare(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Fraction(value) if math.isfinite(value) else None
    match = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    unit = match[2] or default
    scale = units.get(unit if default == "s" else unit.lower())
    return None if scale is None else Fraction(match[1]) * scale


class JsonStepKind(StrEnum):
    """What one step of a JSON path selects."""

    MEMBER = "member"
    INDEX = "index"
    EVERY = "every"
    ANYWHERE = "anywhere"


class JsonStep(NamedTuple):
    """One step: the member `name`, the item at `position` from 0, every member or item, or members `name` at any depth."""

    kind: JsonStepKind
    name: str = ""
    position: int = -1


@lru_cache(maxsize=1024)
def parse_json_path(text: str) -> tuple[JsonStep, ...]:
    """Split a JSON path such as `$.a.b`, `$.rows[0]`, `$.rows[*].at` or `$..generated_at` into its steps, at least one.

    `..name` finds members of that name in what the steps before it find, and at any depth below that.

    Raises:
        ValueError: it is not a JSON path, or names the whole document.
    """
    if not text.startswith("$"):
        raise _wrong_path(text, f"does not begin with $; {_PATH_FORMS}")
    if text == "$":
        raise _wrong_path(text, "names the whole document; name a part of it, or write compare: exists")
    if len(text) > LONGEST_PATH:
        raise _wrong_path(text, f"is longer than {LONGEST_PATH} characters; shorten it")
    steps: list[JsonStep] = []
    place = 1
    while place < len(text):
        match = _PATH_STEP.match(text, place)
        if match is None:
            raise _wrong_path(
                text, f"cannot be read from character {place + 1} on ({text[place : place + 20]!r}); {_PATH_FORMS}"
            )
        steps.append(_make_step(match))
        place = match.end()
    return tuple(steps)


def _make_step(match: re.Match[str]) -> JsonStep:
    kind, text = str(match.lastgroup), str(match[str(match.lastgroup)])
    if kind == "index":
        return JsonStep(JsonStepKind.INDEX, position=int(text))
    if kind == "every":
        return JsonStep(JsonStepKind.EVERY)
    if kind == "anywhere":
        return JsonStep(JsonStepKind.ANYWHERE, text)
    return JsonStep(JsonStepKind.MEMBER, text if kind == "member" else re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL))


def _wrong_path(text: str, what: str) -> ValueError:
    return ValueError(f"the JSON path {show(text)} {what}")


class ExpectedKind(StrEnum):
    """The three ways in which a golden project may be expected to end."""

    SUCCESS = "success"
    SPECIFIC_ERROR = "specific_error"
    EXIT_CODE = "exit_code"


@dataclass(frozen=True, slots=True)
class ExpectedOutcome:
    """`success`, `specific_error:<regular expression>` or `exit_code:<n>`, taken apart."""

    kind: ExpectedKind
    pattern: str | None = None
    exit_code: int | None = None

    @classmethod
    def parse(cls, text: str) -> ExpectedOutcome:
        """Take the manifest's text apart. Blanks right after the colon do not count.

        Raises:
            ValueError: the text is none of the three forms, the pattern is empty or no regular expression, or the
                exit code is not a whole number from 0 to 255.
        """
        return _parse(str(text))

    def __str__(self) -> str:
        """Return the manifest's text back."""
        if self.kind is ExpectedKind.SPECIFIC_ERROR:
            return f"{self.kind}:{self.pattern}"
        return f"{self.kind}:{self.exit_code}" if self.kind is ExpectedKind.EXIT_CODE else str(self.kind)


@lru_cache(maxsize=1024)
def _parse(text: str) -> ExpectedOutcome:
    kind, colon, rest = text.partition(":")
    if text == ExpectedKind.SUCCESS:
        return ExpectedOutcome(ExpectedKind.SUCCESS)
    if colon and kind == ExpectedKind.SPECIFIC_ERROR:
        return ExpectedOutcome(ExpectedKind.SPECIFIC_ERROR, pattern=_check_pattern(rest.lstrip()))
    if colon and kind == ExpectedKind.EXIT_CODE:
        return ExpectedOutcome(ExpectedKind.EXIT_CODE, exit_code=_read_exit_code(rest.strip()))
    raise ValueError(f"{text[:60]!r} is not an expected outcome; write {_FORMS}")


def _check_pattern(pattern: str) -> str:
    if not pattern:
        raise ValueError("specific_error: has no pattern; write a regular expression that the error must match")
    check_regex(pattern, re.MULTILINE)
    return pattern


def check_regex(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> None:
    """Check a regular expression.

    Raises:
        ValueError: it is none; the message says why.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        advice = "put a backslash before characters that are meant literally"
        raise ValueError(f"{show(pattern)} is not a regular expression: {error}; {advice}") from None


def _read_exit_code(digits: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", digits) or int(digits) > 255:
        raise ValueError(f"exit_code:{digits[:20]} is not an exit code; write a whole number from 0 to 255")
    return int(digits)
