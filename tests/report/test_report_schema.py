"""The published schema of the gate report: nothing that a report says is missing in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.verdict import Weakening, WeakeningKind
from pytest_golden.report.gate_report import gate_report, report_schema
from tests.docs.documents import DOCS
from tests.report.samples import every_kind_of_result

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def list_undeclared(value: Any, schema: Mapping[str, Any], whole: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """Return where a value has a member of which the schema does not say that it may be there."""
    schema = next((one for one in schema.get("anyOf", ()) if one != {"type": "null"}), schema)
    schema = whole["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if isinstance(value, list):
        for item in value:
            yield from list_undeclared(item, schema.get("items", {}), whole, f"{place}[]")
    if not isinstance(value, dict) or not schema:
        return
    for name, member in value.items():
        declared = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
        if declared is None:
            yield f"{place}.{name}"
        elif isinstance(declared, dict):
            yield from list_undeclared(member, declared, whole, f"{place}.{name}")


def test_no_member_of_a_report_is_missing_in_the_schema() -> None:
    floor = (Weakening("sales", WeakeningKind.LIMIT, "timeout was raised", "10m", "20m"),)
    report = gate_report(every_kind_of_result(), gate={"entry_id": None}, weakened_floor=floor)
    assert list(list_undeclared(report, report_schema(), report_schema())) == []


def test_a_missing_member_would_be_found() -> None:
    report = {"results": [{"name": "a", "news": 1}], "more": {}}
    assert list(list_undeclared(report, report_schema(), report_schema())) == [".results[].news", ".more"]


def test_the_documentation_has_the_schema_as_it_is() -> None:
    published = json.loads((DOCS / "reference" / "report.schema.json").read_text(encoding="utf-8"))
    assert published == report_schema(), "golden schema report > docs/reference/report.schema.json"
