"""A schema as pydantic takes it, with its JSON Schema as text for the prompt."""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError


def describe_schema(schema: Any) -> tuple[TypeAdapter[Any], str]:
    """Give what validates values of the schema, and its JSON Schema.

    Raises:
        ValueError: the schema is no type that can be described as JSON Schema.
    """
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(schema)
        described = json.dumps(adapter.json_schema(), separators=(",", ":"))
    except (PydanticUserError, TypeError, NameError) as error:
        raise ValueError(f"schema {schema!r:.100} cannot be described as JSON Schema: {error}") from None
    return adapter, described
