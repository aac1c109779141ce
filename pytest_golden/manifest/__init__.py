"""DECLARED: `golden_projects.yaml` and the inline forms to frozen values, with line and column for every mistake.

Nothing here asks whether a declared path exists or a program can be run: that is seen when the project is executed.
"""

from __future__ import annotations

from pytest_golden.manifest.expected import ExpectedKind, ExpectedOutcome
from pytest_golden.manifest.inline import parse_golden_projects_input, parse_inline_manifest
from pytest_golden.manifest.model import (
    DeclaredOutput,
    GoldenProjectConfig,
    Manifest,
    Mount,
    Quarantine,
    RetiredProject,
    is_absolute_path,
)
from pytest_golden.manifest.reader import MANIFEST_NAME, load_manifest, parse_manifest
from pytest_golden.manifest.schema import manifest_schema

__all__ = [
    "MANIFEST_NAME",
    "DeclaredOutput",
    "ExpectedKind",
    "ExpectedOutcome",
    "GoldenProjectConfig",
    "Manifest",
    "Mount",
    "Quarantine",
    "RetiredProject",
    "is_absolute_path",
    "load_manifest",
    "manifest_schema",
    "parse_golden_projects_input",
    "parse_inline_manifest",
    "parse_manifest",
]
