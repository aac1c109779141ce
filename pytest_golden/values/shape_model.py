"""The pydantic model of a shape, which JSON Schema and OpenAPI are made of. Imported by what validates or publishes.

A model has every key of the form and tolerates further ones. Enumerations are text with the words listed, so that a
reader of recorded values does not refuse a newer program's word.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import is_dataclass
from datetime import date, datetime
from enum import StrEnum
from functools import cache, reduce
from inspect import getdoc
from operator import or_
from pathlib import PurePath
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema, create_model
from pydantic.json_schema import GenerateJsonSchema

from pytest_golden.values.shape import Part, Shape, hints_of, list_parts

_TEXT_FORMATS = {datetime: "date-time", date: "date"}
_NOT_NEGATIVE = Field(ge=0)


class _Brief(GenerateJsonSchema):
    """Leaves out the titles of fields, which repeat their names, and that further keys are allowed, which is the rule."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False

    def model_schema(self, schema: Any) -> dict[str, Any]:
        told = super().model_schema(schema)
        told.pop("additionalProperties", None)
        return told


@cache
def model_of(kind: Any, *keys: str, name: str | None = None, **more: Any) -> type[BaseModel]:
    """Return the pydantic model of a shape's JSON form.

    Args:
        kind: a dataclass with a form.
        keys: which of its keys the model has, without a description then; default: all.
        name: the model's name; default: the class's.
        more: types of further keys, or of keys whose type is to be another.
    """
    fields = {**_list_fields(kind), **{key: (hint, ...) for key, hint in more.items()}}
    model: type[BaseModel] = create_model(  # type: ignore[call-overload]
        name or kind.__name__,
        __config__=ConfigDict(extra="allow"),
        __doc__=None if keys else (getdoc(kind) or "").partition("\n\n")[0],
        __module__=kind.__module__,
        **{key: fields[key] for key in ((*keys, *more) if keys else fields)},
    )
    return model


def list_of(item: type[BaseModel]) -> Any:
    """Return the type of a list of what a model describes."""
    return list[item]  # type: ignore[valid-type]


def schema_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON Schema of what a model describes."""
    return model.model_json_schema(mode="serialization", schema_generator=_Brief)


@cache
def _list_fields(kind: Any) -> dict[str, tuple[Any, Any]]:
    found: dict[str, tuple[Any, Any]] = {}
    for part in list_parts(kind):
        hint = _find_hint(kind, part)
        if part.rule.merged:
            found |= _list_fields(hint)
        else:
            found[part.key] = _describe_part(hint, part)
    return found


def _find_hint(kind: Any, part: Part) -> Any:
    if part.rule.as_type is not None:
        return part.rule.as_type
    return (
        hints_of(kind)[part.name] if part.is_field else typing.get_type_hints(getattr(kind, part.name).fget)["return"]
    )


def _describe_part(hint: Any, part: Part) -> tuple[Any, Any]:
    about, extra = part.rule.about or None, dict(part.rule.schema or {})
    if not part.rule.unless_none:
        return _json_type(hint), Field(..., description=about, json_schema_extra=extra or None)
    there = tuple(one for one in typing.get_args(hint) if one is not types.NoneType)
    return _join(there), Field(None, description=about, json_schema_extra=lambda schema: _drop_default(schema, extra))


def _drop_default(schema: dict[str, Any], extra: Mapping[str, Any]) -> None:
    schema.pop("default", None)
    schema.update(extra)


def _json_type(hint: Any) -> Any:
    """Return the type that the JSON form of a value of this type has."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        return Annotated[_json_type(arguments[0]), _NOT_NEGATIVE]
    if origin in {types.UnionType, typing.Union}:
        return _join(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[str, _json_type(arguments[1])]  # type: ignore[misc]
    if isinstance(origin, type) and issubclass(origin, Collection):
        return list[_json_type(arguments[0])]  # type: ignore[misc]
    return _json_class(hint) if isinstance(hint, type) else hint


def _join(hints: tuple[Any, ...]) -> Any:
    return reduce(or_, map(_json_type, hints))


def _json_class(kind: type[Any]) -> Any:
    if issubclass(kind, StrEnum):
        return Annotated[str, WithJsonSchema({"type": "string", "enum": [word.value for word in kind]})]
    if kind in _TEXT_FORMATS:
        return Annotated[str, WithJsonSchema({"type": "string", "format": _TEXT_FORMATS[kind]})]
    if issubclass(kind, PurePath):
        return str
    if not is_dataclass(kind):
        return kind
    # A class that writes its form by hand is not described by its fields.
    shape: Any = kind
    return model_of(shape) if issubclass(kind, Shape) or not hasattr(kind, "to_dict") else dict[str, Any]
