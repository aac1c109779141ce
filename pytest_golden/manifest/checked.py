"""Values that check their own fields by a table of keys. pydantic could do it, and takes longer to import than a manifest to read."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.manifest.findings import WrongValueError
from pytest_golden.manifest.kinds import collect

if TYPE_CHECKING:
    from pytest_golden.manifest.kinds import Table

_Value = TypeVar("_Value")


def refuse_wrong_arguments(value_type: type[_Value]) -> type[_Value]:
    """Make a dataclass raise `ValueError` for unknown and missing arguments too, as for every wrong value."""
    made: Any = value_type
    make = made.__init__

    @wraps(make)
    def make_or_refuse(self: _Value, *args: Any, **kwargs: Any) -> None:
        try:
            make(self, *args, **kwargs)
        except TypeError as error:
            raise ValueError(str(error)) from None

    made.__init__ = make_or_refuse
    return value_type


def check_fields(value: object, table: Table) -> dict[str, Any]:
    """Replace the fields of a new dataclass by what the checks of their keys return, and return these fields.

    Raises:
        WrongValueError: all mistakes of all fields.
    """
    fields = vars(value)
    defaults = vars(type(value))
    given = {name: field for name, field in fields.items() if name not in defaults or field is not defaults[name]}
    clean, findings = collect(given, table)
    if findings:
        raise WrongValueError(findings)
    fields.update(clean)
    return fields


def as_json(value: Any) -> Any:
    """Return the JSON form of such a value: objects, arrays, and days as texts."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, dict):
        return {name: as_json(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [as_json(part) for part in value]
    return value.isoformat()
