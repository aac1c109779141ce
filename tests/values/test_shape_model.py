"""The model and the JSON Schema that follow from a shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from pytest_golden.values.shape_model import list_of, model_of, schema_of
from tests.values.test_shape import FULL, WRITTEN, Listed, Part, Whole


def test_form_is_valid_and_comes_through_the_model_as_it_is() -> None:
    told = FULL.to_dict()
    schema = schema_of(model_of(Whole))
    Draft202012Validator(schema).validate(told)
    assert set(schema["properties"]) == set(WRITTEN)
    model = model_of(Whole).model_validate({**told, "further": 1})
    assert json.dumps(model.model_dump(exclude_unset=True)) == json.dumps({**told, "further": 1})


def test_schema_says_what_the_fields_say() -> None:
    schema = schema_of(model_of(Whole))
    has: dict[str, Any] = schema["properties"]
    assert has["count"] == {"type": "integer", "minimum": 0}
    assert has["seconds"] == {"anyOf": [{"type": "number", "minimum": 0}, {"type": "null"}]}
    assert has["at"] == {"type": "string", "format": "date-time"}
    assert has["words"] == {"type": "array", "items": {"type": "string"}}
    assert has["data"] == {"type": "object", "additionalProperties": True}
    assert has["is_closed"] == {"type": "boolean"}
    assert has["path"] == {"type": "string", "description": "Where it is."}
    assert sorted(set(has) - set(schema["required"])) == ["path"]
    assert schema["$defs"]["Part"]["properties"]["colour"] == {"type": "string", "enum": ["red", "blue"]}
    assert schema["description"] == "Everything at once."


def test_merged_keys_stand_in_the_model_too() -> None:
    assert list(schema_of(model_of(Listed))["properties"]) == ["name", "colour", "agent"]


def test_a_view_has_the_chosen_keys_in_their_order() -> None:
    part = model_of(Part, "name")
    view = schema_of(model_of(Whole, "number", "id", "parts", number=int, parts=list_of(part)))
    assert view["required"] == list(view["properties"]) == ["number", "id", "parts"]
    assert view["$defs"]["Part"]["required"] == ["name"]
    assert "description" not in view


def test_model_refuses_a_wrong_value() -> None:
    with pytest.raises(ValidationError):
        model_of(Part).model_validate({"name": 5, "colour": "red"})
    assert model_of(Part).model_validate({"name": "p", "colour": "a newer program's word"})
