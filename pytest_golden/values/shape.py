"""One definition of a value's JSON form: the fields of its frozen dataclass.

A class that derives from `Shape` gets `to_dict` and `from_dict`. Enumerations become their values, times become ISO-8601 text,
tuples become lists, sets become sorted lists, and nested values use their own form. If the form differs from the field, the field says
so: `field(metadata=form(...))`. A property that belongs to the form has `@in_form()` below its `@property`. The model
for JSON Schema and OpenAPI is built from the same fields: `shape_model.py`.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime
from enum import Enum, StrEnum
from functools import cache, partial
from operator import attrgetter
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NamedTuple, TypeVar

from pytest_golden.clock import iso_utc
from pytest_golden.values.checking import Missing, check_mapping, check_word, list_items, parse_time, show

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

_Function = TypeVar("_Function", bound="Callable[..., Any]")
_Kind = TypeVar("_Kind")
#: A non-negative integer.
Count = Annotated[int, "not negative"]
#: A non-negative number, such as a duration.
Amount = Annotated[float, "not negative"]
# Checked by their exact class: most values have one of these.
_PLAIN_KINDS = frozenset({type(None), bool, str, int, float})
_RULE = "form"
_MISSING = Missing.MISSING
_KIND_WORDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


class Rule(NamedTuple):
    """How one field appears in the form.

    Args:
        key: its name in the form; default: the field's name.
        about: its description in JSON Schema and OpenAPI.
        write: makes its form, for example `json_form` for content of any kind, and `list` or `dict` for JSON values.
        unless_none: leave it out if it is None.
        merged: put its own keys beside those of the value that holds it.
        hidden: leave it out.
        first: put it before the fields that are not `first`.
        schema: further keywords of its JSON Schema.
        as_type: the type of what `write` makes, if it is not the field's.
    """

    key: str | None = None
    about: str = ""
    write: Callable[[Any], Any] | None = None
    unless_none: bool = False
    merged: bool = False
    hidden: bool = False
    first: bool = False
    schema: Mapping[str, Any] | None = None
    as_type: Any = None


class Part(NamedTuple):
    """One field or property in the form of a class."""

    name: str
    key: str
    rule: Rule
    is_field: bool


def form(**rule: Any) -> Mapping[str, Rule]:
    """Return the `metadata` of a dataclass field whose form differs from the field; the arguments are those of `Rule`."""
    return {_RULE: Rule(**rule)}


def in_form(**rule: Any) -> Callable[[_Function], _Function]:
    """Mark a property's function as part of the form, after the fields unless it is `first`."""

    def mark(function: _Function) -> _Function:
        vars(function)[_RULE] = Rule(**rule)
        return function

    return mark


class Shape:
    """Base class of frozen dataclasses that have a JSON form."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return write_shape(self)

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Self:
        """Return the value with this form. Unknown keys are ignored.

        Raises:
            ValueError: a key is missing or has a value that is not allowed; the message names it.
        """
        return read_shape(cls, mapping)


class VersionedShape(Shape):
    """A shape whose form begins with `schema_version`, so that an older program refuses what it does not understand."""

    __slots__ = ()
    SCHEMA_VERSION: ClassVar[int] = 1

    @property
    @in_form(first=True)
    def schema_version(self) -> int:
        """The version of the form."""
        return self.SCHEMA_VERSION

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Self:
        """Return the value with this form, as `Shape.from_dict` does; refuse the form of a newer program."""
        cls.check_version(mapping)
        return super().from_dict(mapping)

    @classmethod
    def check_version(cls, mapping: Mapping[str, Any]) -> None:
        """Raise ValueError for the form of a newer program, and for a value that is not a mapping."""
        version = _check_form(cls, mapping).get("schema_version", cls.SCHEMA_VERSION)
        if isinstance(version, bool) or not isinstance(version, int) or version > cls.SCHEMA_VERSION:
            known = f"at most {cls.SCHEMA_VERSION}; upgrade pytest-golden-projects"
            raise ValueError(f"schema_version {show(version)} is not known here: {known}")


@cache
def list_parts(kind: Any) -> tuple[Part, ...]:
    """List the parts of a dataclass's form in order: fields, then properties; those that are `first` come first."""
    found = [(one.name, one.metadata.get(_RULE, Rule()), True) for one in fields(kind) if one.name[0] != "_"]
    for owner in reversed(kind.__mro__):
        for name, member in vars(owner).items():
            rule = getattr(member.fget, _RULE, None) if isinstance(member, property) else None
            if rule is not None:
                found.append((name, rule, False))
    parts = [Part(name, rule.key or name, rule, is_field) for name, rule, is_field in found if not rule.hidden]
    return tuple(sorted(parts, key=lambda part: not part.rule.first))


def write_shape(value: Any) -> dict[str, Any]:
    """Return the JSON form of a dataclass value."""
    kind: Any = type(value)
    told: dict[str, Any] = _make_write(kind)(value)
    return told


@cache
def _make_write(kind: Any) -> Callable[[Any], dict[str, Any]]:
    # As `dataclass` does with its methods: one expression costs a third less than a loop, and a trajectory has many steps.
    known: dict[str, Any] = {"plain": plain, "kinds": _PLAIN_KINDS}
    pieces: list[str] = []
    for number, part in enumerate(list_parts(kind)):
        name, key, rule = f"value.{part.name}", repr(part.key), part.rule
        known[f"write{number}"] = rule.write
        written = "plain(item)" if rule.write is None else f"write{number}(item)"
        if rule.merged:
            pieces.append(f"**plain({name})")
        elif rule.unless_none:
            pieces.append(f"**({{}} if (item := {name}) is None else {{{key}: {written}}})")
        elif rule.write is None:
            pieces.append(f"{key}: item if type(item := {name}) in kinds else {written}")
        else:
            pieces.append(f"{key}: None if (item := {name}) is None else {written}")
    write: Callable[[Any], dict[str, Any]] = eval(f"lambda value: {{{', '.join(pieces)}}}", known)
    return write


def plain(value: Any) -> Any:
    """Return the JSON form of a value of ours: dataclasses, enumerations, times and containers of them."""
    kind: Any = type(value)
    return value if kind in _PLAIN_KINDS else _find_writer(kind)(value)


@cache
def _find_writer(kind: Any) -> Callable[[Any], Any]:
    write: Callable[[Any], Any] | None = getattr(kind, "to_dict", None)
    if is_dataclass(kind) and write in {None, Shape.to_dict}:
        write = _make_write(kind)  # type: ignore[arg-type]  # a class is hashable
    return write or next((write for base, write in _WRITERS.items() if issubclass(kind, base)), _keep)


def _keep(value: Any) -> Any:
    return value


def _write_mapping(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {
        key if type(key) is str else plain(key): item if type(item) in _PLAIN_KINDS else plain(item)
        for key, item in value.items()
    }


def _write_items(value: Collection[Any]) -> list[Any]:
    return [item if type(item) in _PLAIN_KINDS else plain(item) for item in value]


# Text comes before the other collections. An enumeration's own value is in `_value_`; `value` is five times slower.
_WRITERS: Mapping[type[Any], Callable[[Any], Any]] = {
    Enum: attrgetter("_value_"),
    datetime: iso_utc,
    date: date.isoformat,
    PurePath: str,
    str: str.__str__,
    bytes: _keep,
    Mapping: _write_mapping,
    AbstractSet: lambda value: sorted(map(plain, value)),
    Collection: _write_items,
}


def read_shape(kind: Callable[..., _Kind], mapping: Mapping[str, Any], /, **known: Any) -> _Kind:
    """Return the dataclass value with this JSON form, as `Shape.from_dict` does. `known` are fields that the form does not have."""
    _check_form(kind, mapping)
    given = known
    for name, key, (kinds, read), is_required in _plan_reading(kind):
        item = mapping if key is None else mapping.get(key, _MISSING)
        if item is _MISSING:
            if is_required:
                raise ValueError(f"{key} is missing")
        else:
            given[name] = item if type(item) in kinds else read(key or name, item)
    return kind(**given)


def _check_form(kind: Any, mapping: Mapping[str, Any]) -> Mapping[str, Any]:
    if type(mapping) is dict:
        return mapping
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__).lower()
    return check_mapping(f"{'an' if words[0] in 'aeiou' else 'a'} {words}", mapping)


@cache
def hints_of(kind: Any) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields; its `_import_types` gives those that its module does not import."""
    later = getattr(kind, "_import_types", None)
    return typing.get_type_hints(kind, localns=later() if later else None, include_extras=True)


class _Reader(NamedTuple):
    """How the items of one type are read: items of these exact classes are kept, others are passed to the function."""

    kinds: frozenset[type[Any]]
    read: Callable[[str, Any], Any]


@cache
def _plan_reading(kind: Any) -> tuple[tuple[str, str | None, _Reader, bool], ...]:
    """Return the name, key and reader of each field, and whether it is required. The keys of a merged one are beside the others."""
    hints = hints_of(kind)
    required = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}
    plan: list[tuple[str, str | None, _Reader, bool]] = []
    for name, key, rule, is_field in list_parts(kind):
        if is_field and rule.merged:
            plan.append((name, None, _Reader(frozenset(), partial(_read_merged, _find_nested(hints[name]))), True))
        elif is_field:
            plan.append((name, key, _find_reader(hints[name]), name in required))
    return tuple(plan)


def _find_reader(hint: Any) -> _Reader:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return _find_reader(arguments[0])
    if origin in {types.UnionType, typing.Union}:
        readers = [_find_reader(one) for one in arguments if one is not types.NoneType]
        known = readers[0] if len(readers) == 1 else _AS_IT_IS
        return _Reader(known.kinds | {types.NoneType}, known.read)
    if isinstance(origin, type):
        return _find_container_reader(origin, arguments)
    return _find_class_reader(hint) if isinstance(hint, type) else _AS_IT_IS


def _find_container_reader(origin: type[Any], arguments: tuple[Any, ...]) -> _Reader:
    if issubclass(origin, Mapping):
        item = _find_reader(arguments[1])
        return _Reader(frozenset({dict} if item is _AS_IT_IS else ()), partial(_read_mapping, item))
    make = frozenset if issubclass(origin, AbstractSet) else tuple
    return _Reader(frozenset(), partial(_read_items, make, _find_reader(arguments[0])))


def _find_class_reader(kind: type[Any]) -> _Reader:
    if kind in _KIND_WORDS:
        kinds = (int, float) if kind is float else (kind,)
        return _Reader(frozenset(kinds), partial(_read_kind, kinds, _KIND_WORDS[kind]))
    if kind is datetime:
        return _Reader(frozenset(), parse_time)
    if issubclass(kind, StrEnum):
        return _Reader(frozenset(), partial(_read_word, kind, {str(word): word for word in kind}))
    return _Reader(frozenset(), partial(_read_nested, _find_nested(kind))) if is_dataclass(kind) else _AS_IT_IS


def _read_any(_: str, item: Any) -> Any:
    return item


_AS_IT_IS = _Reader(_PLAIN_KINDS, _read_any)


def _read_kind(kinds: tuple[type[Any], ...], words: str, key: str, item: Any) -> Any:
    """Return an item of a subclass, such as a member of an enumeration; refuse any other."""
    if isinstance(item, bool) or not isinstance(item, kinds):
        raise ValueError(f"{key} must be {words}, not {show(item)}")  # noqa: TRY004 - one kind of refusal
    return item


def _read_items(make: Any, reader: _Reader, key: str, items: Any) -> Any:
    kinds, read = reader
    listed = items if type(items) is list else list_items(key, items)
    if read is _read_any or kinds.issuperset(map(type, listed)):
        return make(listed)
    try:
        return make([item if type(item) in kinds else read(key, item) for item in listed])
    except ValueError:
        for number, item in enumerate(listed):
            if type(item) not in kinds:
                read(f"{key}[{number}]", item)
        raise


def _read_mapping(reader: _Reader, key: str, mapping: Any) -> Any:
    check_mapping(key, mapping)
    kinds, read = reader
    if read is _read_any:
        return mapping
    return {name: item if type(item) in kinds else read(f"{key}.{name}", item) for name, item in mapping.items()}


def _read_word(kind: type[StrEnum], words: Mapping[str, StrEnum], key: str, item: Any) -> StrEnum:
    word = words.get(item) if type(item) is str else None
    return check_word(key, item, kind) if word is None else word


def _read_merged(read: Callable[[Any], Any], _: str, mapping: Any) -> Any:
    return read(mapping)


def _read_nested(read: Callable[[Any], Any], key: str, item: Any) -> Any:
    try:
        return read(item)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


def _find_nested(kind: Any) -> Callable[[Any], Any]:
    return getattr(kind, "from_dict", None) or partial(read_shape, kind)
