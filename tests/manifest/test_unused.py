from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.manifest import describe_unused, parse_manifest

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = "golden_projects: [{path: a.py%s}]\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (PROJECT % "", None),
        (PROJECT % ", depends_on: []", None),
        (PROJECT % ", depends_on: [lib]", "`depends_on` is declared, and nothing in this version uses it"),
        ("setup: make\n" + PROJECT % "", "`setup` is declared, and nothing in this version uses it"),
        (
            "setup: make\n" + PROJECT % ", depends_on: [lib]",
            "`depends_on`, `setup` are declared, and nothing in this version uses them",
        ),
    ],
)
def test_keys_that_nothing_uses_are_named(tmp_path: Path, text: str, told: str | None) -> None:
    assert describe_unused(parse_manifest(text, "golden_projects.yaml", tmp_path)) == told
