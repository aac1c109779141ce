"""What values a key of the manifest may have: each kind is a check and the JSON Schema that says the same.

A check takes a value from YAML or from a Python caller. It returns the clean value, takes that unchanged when it is checked
again, and raises `ValueError` for a wrong one. `model.py` says which key is of which kind.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import date, datetime
from functools import lru_cache, partial
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, Final, NamedTuple

from pytest_golden.manifest import units
from pytest_golden.manifest.units import Unquoted, bare, show

Step = str | int
Check = Callable[[Any], Any]

# Stands where a value was refused and reported before the checks began; they pass over it.
UNREADABLE: Final = object()


class Finding(NamedTuple):
    """One mistake: the way to it from the value that was checked, and whether it is the last key itself that is wrong."""

    path: tuple[Step, ...]
    message: str
    at_key: bool = False

    def __str__(self) -> str:
        """Return `mounts[0].mode: message`."""
        shown = self.path[:-1] if self.at_key else self.path
        way = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in shown).lstrip(".")
        return f"{way}: {self.message}" if way else self.message


class WrongValueError(ValueError):
    """A value with several mistakes, or with one that lies inside it."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("; ".join(str(finding) for finding in self.findings))


def wrong(message: str) -> WrongValueError:
    """Make the error for a value that is wrong as a whole; of a wrong type too, since all refusals are `ValueError`."""
    return WrongValueError([Finding((), message)])


def findings_below(step: Step, error: ValueError) -> list[Finding]:
    """Return the mistakes of a part as mistakes of the whole that holds it at `step`."""
    inner = error.findings if isinstance(error, WrongValueError) else (Finding((), str(error)),)
    return [finding._replace(path=(step, *finding.path)) for finding in inner]


def check_each(items: Iterable[Any], check: Check) -> tuple[Any, ...]:
    """Check every item of a list.

    Raises:
        WrongValueError: all mistakes of all items.
    """
    clean: list[Any] = []
    findings: list[Finding] = []
    for index, item in enumerate(items):
        if item is UNREADABLE:
            continue
        try:
            clean.append(check(item))
        except ValueError as error:
            findings += findings_below(index, error)
    if findings:
        raise WrongValueError(findings)
    return tuple(clean)


VERSION_NUMBER = 1
NAME_FORM = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
LONGEST_NAME = 200
# YAML 1.1 reads `1e-6` as a text, since it has no decimal point.
NUMBER_FORM = r"^[-+]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][-+]?[0-9]{1,3})?$"
RESERVED_TAGS = frozenset({"filterwarnings", "parametrize", "skip", "skipif", "usefixtures", "xfail"})

_NAME = re.compile(NAME_FORM)
_VARIABLE = re.compile(r"[^=\s]+")
_NUMBER = re.compile(NUMBER_FORM)
# Path beginnings that a shell would expand to a folder outside project_dir.
_ELSEWHERE_FORM = r"~[^/]*/|~$|\$\{?[A-Za-z_][A-Za-z0-9_]*\}?/|%[A-Za-z_][A-Za-z0-9_]*%/"
_ELSEWHERE = re.compile(_ELSEWHERE_FORM)
_LARGEST_COUNT = 2**63 - 1
_LONGEST_GUESS = 60


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that are allowed: a check of them, and its JSON Schema."""

    check: Check
    schema: Mapping[str, Any] = field(default_factory=dict)


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
    """The keys of a record.

    `refusals` are messages for keys that it does not have but users might expect. `find_conflicts` finds good values that
    contradict each other. `needs_one_of` are keys of which at least one is required.
    """

    keys: Mapping[str, Key]
    refusals: Mapping[str, str] = field(default_factory=dict)
    find_conflicts: Callable[[Mapping[str, Any]], Sequence[Finding]] | None = None
    needs_one_of: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        keys: Iterable[Key],
        refusals: Mapping[str, str] | None = None,
        *,
        find_conflicts: Callable[[Mapping[str, Any]], Sequence[Finding]] | None = None,
        needs_one_of: tuple[str, ...] = (),
    ) -> Table:
        """Make a table from its keys."""
        return cls({key.name: key for key in keys}, refusals or {}, find_conflicts, needs_one_of)

    def without(self, refusals: Mapping[str, str]) -> Table:
        """Return this table without the keys that `refusals` names, and with no key required."""
        kept = (key for name, key in self.keys.items() if name not in refusals)
        return Table.of(kept, {**self.refusals, **refusals})


def as_key(kind: Kind, description: str) -> Mapping[str, Any]:
    """Return the `metadata` of a dataclass field that is a key of a record."""
    return {"key": (kind, description)}


def declared(default: Any, kind: Kind, description: str) -> Any:
    """Return a dataclass field that is a key of a record. A default of None means that null may be written."""
    return field(default=default, metadata=as_key(kind, description))


def table_of(
    record: Any,
    *,
    optional: str = "",
    find_conflicts: Callable[[Mapping[str, Any]], Sequence[Finding]] | None = None,
    needs_one_of: tuple[str, ...] = (),
) -> Table:
    """Make the table of a dataclass. Fields without a default are required, but for the one that is `optional`."""
    keys = []
    for one in fields(record):
        kind, description = one.metadata["key"]
        lacks_default = one.default is MISSING and one.default_factory is MISSING
        keys.append(Key(one.name, kind, description, lacks_default and one.name != optional, one.default is None))
    return Table.of(keys, find_conflicts=find_conflicts, needs_one_of=needs_one_of)


def collect(record: Mapping[str, Any], table: Table) -> tuple[dict[str, Any], list[Finding]]:
    """Check a record; return its good values, clean, and all mistakes of the others."""
    clean: dict[str, Any] = {}
    findings: list[Finding] = []
    for name, value in record.items():
        key = table.keys.get(name)
        if key is None:
            findings.append(
                Finding((name,), table.refusals.get(name) or _refuse_unknown(name, tuple(table.keys)), at_key=True)
            )
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
    if table.needs_one_of and not any(record.get(name) for name in table.needs_one_of):
        first, *others = table.needs_one_of
        findings.append(Finding((), f"the key {first} is missing; write it, or {' or '.join(others)}"))
    if table.find_conflicts is not None:
        findings += table.find_conflicts(clean)
    return clean, findings


def record_of(table: Table) -> Kind:
    """Make the kind of a record. A value of the model stands for the mapping of its fields."""

    def check(value: Any) -> dict[str, Any]:
        record = vars(value) if is_dataclass(value) and not isinstance(value, Unquoted) else value
        if not isinstance(record, Mapping):
            raise wrong(f"this must be a mapping, not {show(value)}; its keys are {', '.join(table.keys)}")
        clean, findings = collect(record, table)
        if findings:
            raise WrongValueError(findings)
        return clean

    return Kind(check, record_schema(table))


def record_schema(table: Table) -> dict[str, Any]:
    """Return the JSON Schema of a record."""
    properties = {name: key_schema(key) for name, key in table.keys.items()}
    required = [key.name for key in table.keys.values() if key.required]
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if table.needs_one_of:
        schema["anyOf"] = [{"required": [name]} for name in table.needs_one_of]
    return {**schema, "required": required} if required else schema


def key_schema(key: Key) -> dict[str, Any]:
    """Return the JSON Schema of a key's value."""
    allowed = {"anyOf": [dict(key.kind.schema), {"type": "null"}]} if key.nullable else dict(key.kind.schema)
    return {"description": key.description, **allowed}


def one_of(*words: str) -> Kind:
    """Make the kind of a text that is one of a few words."""

    def check(value: Any) -> str:
        text = check_text(value)
        if text not in words:
            raise wrong(f"{show(text)} is not known here; write {', '.join(words[:-1])} or {words[-1]}")
        return text

    return Kind(check, {"enum": list(words)})


def list_of(item: Kind, *, one_alone: bool = False) -> Kind:
    """Make the kind of a list; with `one_alone` a single text may be written instead of a list."""

    def check(value: Any) -> tuple[Any, ...]:
        items = (value,) if one_alone and isinstance(value, str) else _check_list(value)
        return check_each(items, item.check)

    schema = {"type": "array", "items": dict(item.schema)}
    return Kind(check, {"anyOf": [dict(item.schema), schema]} if one_alone else schema)


def suggest(word: object, known: Iterable[str]) -> str | None:
    """Find the known word that is nearest to this one; None when none is near."""
    # A mapping from a Python caller may have keys that are not texts.
    if not isinstance(word, str) or len(word) > _LONGEST_GUESS:
        return None
    import difflib

    known = tuple(known)
    near = difflib.get_close_matches(word, known, n=1) or difflib.get_close_matches(word.lower(), known, n=1)
    return near[0] if near else None


@lru_cache(maxsize=256)
def _refuse_unknown(name: str, known: tuple[str, ...]) -> str:
    nearest = suggest(name, known)
    return f"unknown key {show(name)}; " + (
        f"did you mean {nearest!r}?" if nearest else f"the keys here are {', '.join(known)}"
    )


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
    """Check a tag: it becomes a pytest marker, and must not be one that pytest itself acts on."""
    tag = check_name(value)
    if tag in RESERVED_TAGS:
        raise wrong(f"the tag {tag!r} already has a meaning in pytest; choose another word")
    return tag


def check_variable(value: Any) -> str:
    """Check the name of an environment variable."""
    text = check_text(value)
    if not _VARIABLE.fullmatch(text):
        raise wrong(f"{show(text)} cannot name an environment variable; write the name alone, such as DATABASE_URL")
    return text


def _say_not_text(value: Any) -> str:
    if isinstance(value, Unquoted) and not value.text:
        return "has no value; write a text or remove the key"
    if isinstance(value, Unquoted):
        return f'YAML reads {value.text} as a {value.kind}, but a text is required; quote it: "{value.text}"'
    if isinstance(value, Mapping) and len(value) == 1:
        return 'this must be a text, not a mapping; quote a text that contains ": " or is in braces'
    return f"this must be a text, not {show(value)}"


def _check_flag(value: Any) -> bool:
    plain = bare(value)
    if not isinstance(plain, bool):
        raise wrong(f"{show(value)} is neither true nor false; write one of them, without quotes")
    return plain


def _check_network(value: Any) -> bool | str:
    plain = bare(value)
    if isinstance(plain, bool):
        return plain
    if plain == "loopback":
        return False
    if plain != "host":
        raise wrong(f"{show(value)} is not true, false, loopback or host; write one of them, without quotes")
    return "host"


def _check_count(value: Any) -> int:
    plain = bare(value)
    if isinstance(plain, bool) or not isinstance(plain, int) or not 0 <= plain <= _LARGEST_COUNT:
        raise wrong(
            f"{show(value)} is not a whole number from 0 to 2^63 - 1; write one in plain digits, without quotes"
        )
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
    return _check_readable(units.ExpectedOutcome.parse, value)


def _check_readable(read: Callable[[str], object], value: Any) -> str:
    """Check a text that `read` understands, and return it as it is."""
    text = check_text(value)
    read(text)
    return text


def _check_list(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        hint = f"write it in brackets: [{show(value)}]" if isinstance(value, str) else "write [] for none"
        raise wrong(f"this must be a list, not {show(value)}; {hint}")
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
        raise wrong(f"this must be a command, not {show(value)}; write a list of texts, or one text")
    words = check_each(value, check_argument)
    if not value or (words and not words[0].strip()):
        raise wrong("is empty; write the program and its arguments")
    return words


def _check_steps(value: Any) -> str | tuple[str, ...]:
    names = check_each(value, check_name) if isinstance(value, list | tuple) else (check_name(value),)
    if names == ("auto",):
        return "auto"
    if "auto" in names:
        raise wrong("auto cannot be combined with others; remove it from the list, or remove the others")
    return names


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
        raise wrong(f"this must be a mapping, not {show(value)}; write it as {{TZ: UTC}}")
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
    return _check_pattern_below("/".join(parts))


def _check_pattern_below(value: Any) -> str:
    """Check a pattern below project_dir. `~` and variables are refused: they are not expanded, so they would match nothing."""
    text = check_text(value)
    found = _ELSEWHERE.match(text)
    if found is not None:
        named, sign = show(found[0].rstrip("/")), text[0]
        message = (
            f"{show(text)} would mean a folder named {named}, because nothing is expanded here; write a path below "
            f"project_dir, or [{sign}] instead of {sign} if a folder really has that name"
        )
        raise wrong(message)
    return text


def _check_number(value: Any) -> int:
    number = _check_count(value)
    if not number:
        raise wrong(f"{show(value)} is not above 0; write a whole number such as 64")
    return number


def _check_percent(value: Any) -> int:
    number = _check_number(value)
    if number > 100:
        raise wrong(f"{show(value)} is above 100; write a whole number from 1 to 100, such as 80")
    return number


def _check_tolerance(value: Any) -> float:
    number = _read_number(value, "one from 0 up, such as 0.01 or 1e-6")
    if number < 0:
        raise wrong(f"{show(value)} is below 0; write a tolerance from 0 up")
    return number


def _check_factor(value: Any) -> float:
    number = _read_number(value, "a factor above 1, such as 2.0")
    if number <= 1:
        raise wrong(f"{show(value)} is not above 1; write how many times as long it may take, such as 2.0")
    return number


def _read_number(value: Any, advice: str) -> float:
    plain = bare(value)
    if isinstance(plain, str) and _NUMBER.fullmatch(plain):
        plain = float(plain)
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        with suppress(OverflowError):
            if math.isfinite(number := float(plain)):
                return number
    raise wrong(f"{show(value)} is not a number; write {advice}")


def _check_bytes(value: Any) -> int:
    plain = bare(value)
    return 0 if plain == 0 and not isinstance(plain, bool | float) else units.parse_size(value)


def _or_text(pattern: str, **number: Any) -> dict[str, Any]:
    return {"anyOf": [number, {"type": "string", "pattern": pattern}]}


ARGUMENT = Kind(check_argument, {"type": "string"})
TEXT = Kind(check_text, {"type": "string", "minLength": 1})
NAME = Kind(check_name, {"type": "string", "pattern": f"^{NAME_FORM}$", "maxLength": LONGEST_NAME})
TAG = Kind(check_tag, {**NAME.schema, "not": {"enum": sorted(RESERVED_TAGS)}})
VARIABLE = Kind(check_variable, {"type": "string", "pattern": r"^[^=\s]+$"})
FLAG = Kind(_check_flag, {"type": "boolean"})
NETWORK = Kind(_check_network, {"anyOf": [{"type": "boolean"}, {"enum": ["loopback", "host"]}]})
COUNT = Kind(_check_count, {"type": "integer", "minimum": 0})
NUMBER = Kind(_check_number, {"type": "integer", "minimum": 1})
PERCENT = Kind(_check_percent, {"type": "integer", "minimum": 1, "maximum": 100})
VERSION = Kind(_check_version, {"const": VERSION_NUMBER})
DAY = Kind(_check_date, {"type": "string", "format": "date"})
DURATION = Kind(units.parse_duration, _or_text(units.DURATION_FORM, type="number", exclusiveMinimum=0))
SIZE = Kind(units.parse_size, _or_text(units.SIZE_FORM, type="integer", minimum=1))
OUTCOME = Kind(
    _check_outcome, {"type": "string", "pattern": r"^(success|specific_error:\s*\S[\s\S]*|exit_code:\s*[0-9]{1,3}\s*)$"}
)
COMMAND = Kind(_check_command, {"anyOf": [TEXT.schema, {"type": "array", "items": ARGUMENT.schema, "minItems": 1}]})
STEPS = Kind(_check_steps, {"anyOf": [NAME.schema, {"type": "array", "items": NAME.schema}]})
ENVIRONMENT = Kind(_check_environment, {"type": "object", "additionalProperties": {"type": ["string", "number"]}})
GLOB = Kind(_check_glob, {**TEXT.schema, "pattern": rf"^(?!/)(?!{_ELSEWHERE_FORM})(?!.*\\)(?!(.*/)?\.\.(/|$))"})
# Empty for an entry that names tables of `database` or `dbt`; that every entry names something is a rule of its own.
OUTPUT_PATH = Kind(lambda value: "" if value == "" else _check_glob(value), GLOB.schema)
_VARIABLE_REFERENCE = r"^\$\{[A-Za-z_][A-Za-z0-9_]*\}$"


def _check_database(value: Any) -> str:
    text = check_text(value)
    if not re.match(_VARIABLE_REFERENCE, text):
        raise wrong(
            f"{show(text)} is not a variable; write the one of pass_env that holds the URL, such as ${{DATABASE_URL}}"
        )
    return text


DATABASE = Kind(_check_database, {**TEXT.schema, "pattern": _VARIABLE_REFERENCE})
PATTERN_BELOW = Kind(_check_pattern_below, {**TEXT.schema, "pattern": rf"^(?!{_ELSEWHERE_FORM})"})
PATTERN = Kind(partial(_check_readable, units.check_regex), {**TEXT.schema, "format": "regex"})
JSON_PATH = Kind(partial(_check_readable, units.parse_json_path), {"type": "string", "pattern": r"^\$[.\[]"})
TOLERANCE = Kind(_check_tolerance, _or_text(NUMBER_FORM, type="number", minimum=0))
FACTOR = Kind(_check_factor, _or_text(NUMBER_FORM, type="number", exclusiveMinimum=1))
BYTES = Kind(_check_bytes, _or_text(units.SIZE_FORM, type="integer", minimum=0))
