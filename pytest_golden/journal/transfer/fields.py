"""The columns that travel, and how each is written into a line and read out of one, where it is taken for a stranger's word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.clock import iso_utc
from pytest_golden.journal.given import clean_actions, clean_external_id, clean_json, clean_name, clean_text
from pytest_golden.journal.hints import LONGEST_KEY, LONGEST_SHAPE, MOST_KEYS, write_shape
from pytest_golden.journal.model import Assessment, ExpectationStatus, ImmediateResult, Polarity, RoutedBy, SignalType
from pytest_golden.manifest.unquoted import show
from pytest_golden.storage.moments import from_ms, to_ms
from pytest_golden.trajectory.vocabulary import check_word, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import StrEnum

    from pytest_golden.journal.transfer.model import Row

_ABSENT = object()


class Field(NamedTuple):
    """One column: how its value is read out of a line, and how it is written into one (None: as it is).

    `default` is what it is where a line does not have it; without one every line must.
    """

    read: Callable[[str, Any], Any]
    write: Callable[[Any], Any] | None = None
    default: Any = None


def _read_note(field: str, value: Any) -> str:
    # Blank ones are kept as they are.
    return value if (isinstance(value, str) and value.isspace()) or value == "" else clean_text(field, value)


def _read_moment(field: str, value: Any) -> int:
    return to_ms(parse_time(field, value))


def _read_flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"{field} must be true or false, not {show(value)}")  # noqa: TRY004 - one kind of refusal
    return value


def _read_list(field: str, value: Any) -> Any:
    if not isinstance(value, list):
        raise ValueError(f"{field} must be a list, not {show(value)}")  # noqa: TRY004 - one kind of refusal
    return list(clean_actions(value))


def _read_mapping(field: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise ValueError(f"{field} must be an object, not {show(value)}")  # noqa: TRY004 - one kind of refusal
    return clean_json(field, value)


def _read_hint(field: str, value: Any) -> Any:
    hint = _read_mapping(field, value)
    if not 0 < len(hint) <= MOST_KEYS or any(len(key) > LONGEST_KEY for key in hint):
        raise ValueError(f"{field} must have 1 to {MOST_KEYS} keys of at most {LONGEST_KEY} characters")
    if any(isinstance(item, dict | list) for item in hint.values()):
        raise ValueError(
            f"{field} must hold texts, numbers, true, false or null alone, since they are compared as text"
        )
    if len(write_shape(hint)) > LONGEST_SHAPE:
        raise ValueError(f"{field} has more than {LONGEST_SHAPE:,} characters of keys and source together")
    return hint


def _read_routing(field: str, value: Any) -> Any:
    """Read what was kept of a routing; whoever explains it later relies on its form."""
    routing = _read_mapping(field, value)
    candidates = routing.get("candidates")
    is_whole = isinstance(candidates, list) and type(routing.get("others")) is int and all(map(_is_verdict, candidates))
    if not is_whole:
        raise ValueError(f"{field} must be {{candidates: [{{expectation_id, rule, taken, reason}}], others}}")
    return routing


def _is_verdict(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("expectation_id"), str)
        and value.get("rule") in list(RoutedBy)
        and isinstance(value.get("taken"), bool)
        and isinstance(value.get("reason"), str)
    )


def _word(words: type[StrEnum], default: Any = None) -> Field:
    return Field(lambda field, value: check_word(field, value, words).value, default=default)


def _write_moment(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else iso_utc(from_ms(milliseconds))


_NAME, _NAME_OR_NONE = Field(clean_name, default=_ABSENT), Field(clean_name)
_TEXT, _NOTE = Field(clean_text, default=_ABSENT), Field(_read_note)
_MOMENT, _MOMENT_OR_NONE = Field(_read_moment, _write_moment, _ABSENT), Field(_read_moment, _write_moment)
_FLAG = Field(_read_flag, default=False)
_MAPPING = Field(_read_mapping)

#: In the order of a line.
ENTRY_FIELDS = {
    "id": _NAME,
    "job_id": _NAME_OR_NONE,
    "agent_id": _NAME,
    "session_key": _NAME_OR_NONE,
    "parent_id": _NAME_OR_NONE,
    "intent": _TEXT,
    "intent_type": _NAME_OR_NONE,
    "actions": Field(_read_list, default=[]),
    "immediate_result": _word(ImmediateResult, _ABSENT),
    "immediate_notes": _NOTE,
    "assessment": _word(Assessment, _ABSENT),
    "assessment_notes": _NOTE,
    "human_word": _word(Assessment),
    "closed_at": _MOMENT_OR_NONE,
    "created_at": _MOMENT,
    "updated_at": _MOMENT,
}
#: `by_hint_only`: no signal concerns it because of its session or time.
EXPECTATION_FIELDS = {
    "id": _NAME,
    "description": _TEXT,
    "polarity": _word(Polarity, Polarity.POSITIVE.value),
    "critical": _FLAG,
    "status": _word(ExpectationStatus, _ABSENT),
    "match_hint": Field(_read_hint),
    "by_hint_only": _FLAG,
    "expires_at": _MOMENT_OR_NONE,
    "check": _MAPPING,
    "resolved_by": _NAME_OR_NONE,
    "created_at": _MOMENT,
    "resolved_at": _MOMENT_OR_NONE,
}
SIGNAL_FIELDS = {
    "id": _NAME,
    "expectation_id": _NAME_OR_NONE,
    "agent_id": _NAME_OR_NONE,
    "session_key": _NAME_OR_NONE,
    "source": _NAME,
    "signal_type": _word(SignalType, _ABSENT),
    "summary": _TEXT,
    "data": _MAPPING,
    "external_id": Field(clean_external_id),
    "content_digest": _NAME_OR_NONE,
    "routed_by": _word(RoutedBy, _ABSENT),
    "routing": Field(_read_routing),
    "is_late": _FLAG,
    "created_at": _MOMENT,
}
HISTORY_FIELDS = {"what": _NAME, "who": _NAME, "changed_at": _MOMENT, "why": _NOTE, "details": _MAPPING}


def write_row(fields: dict[str, Field], row: Row) -> Row:
    """Write columns as the keys of a line, leaving out what it need not say."""
    written = {name: field.write(row[name]) if field.write else row[name] for name, field in fields.items()}
    return {name: value for name, value in written.items() if value != fields[name].default}


def read_row(what: str, fields: dict[str, Field], given: Any) -> Row:
    """Read the columns of a row.

    Raises:
        ValueError: it is no row; the message says which key is wrong, and what is allowed.
    """
    if not isinstance(given, dict):
        raise ValueError(f"{what} must be an object, not {show(given)}")  # noqa: TRY004 - one kind of refusal
    unknown = given.keys() - fields.keys()
    if unknown:
        raise ValueError(f"{what}: there is no key {min(unknown)!r}; there are {', '.join(fields)}")
    return {name: _read_value(what, name, field, given.get(name)) for name, field in fields.items()}


def _read_value(what: str, name: str, field: Field, value: Any) -> Any:
    if value is not None:
        return field.read(f"{what}: {name}", value)
    if field.default is _ABSENT:
        raise ValueError(f"{what}: {name} is missing")
    return field.default
