from __future__ import annotations

from typing import TYPE_CHECKING

from jsonschema import Draft202012Validator

from pytest_golden.manifest.model import manifest_schema
from pytest_golden.report.gate_report import report_schema

if TYPE_CHECKING:
    from tests.cli.conftest import Golden


def test_both_schemas_are_printed_and_valid(golden: Golden) -> None:
    for subject, schema in (("manifest", manifest_schema()), ("report", report_schema())):
        ran = golden("schema", subject)
        assert ran.code == 0
        assert ran.json == schema
        Draft202012Validator.check_schema(ran.json)
