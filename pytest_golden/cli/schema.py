"""`golden schema`: prints a JSON Schema. The schemas themselves belong to the manifest and to the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.cli.screen import print_json
from pytest_golden.manifest.model import manifest_schema
from pytest_golden.report.gate_report import report_schema

if TYPE_CHECKING:
    import argparse


_SCHEMAS = {"manifest": manifest_schema, "report": report_schema}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden schema`."""
    parser.add_argument(
        "subject",
        choices=tuple(_SCHEMAS),
        metavar="manifest|report",
        help="manifest: golden_projects.yaml. report: the file of `pytest --golden --golden-json`.",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the schema."""
    print_json(_SCHEMAS[arguments.subject]())
    return 0
