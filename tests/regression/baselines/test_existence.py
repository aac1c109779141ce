"""The comparison that needs no baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.compare.comparing import compare_files
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from tests.regression.baselines.files import Files


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({}, None),
        ({"min_bytes": 5, "max_bytes": 5}, None),
        ({"min_bytes": 6}, "out/a.png has 5 bytes, less than min_bytes: 6"),
        ({"max_bytes": 4}, "out/a.png has 5 bytes, more than max_bytes: 4"),
        ({"max_bytes": 0}, "out/a.png has 5 bytes, more than max_bytes: 0"),
    ],
)
def test_a_size_lies_within_its_bounds_or_not(files: Files, rules: dict[str, int], told: str | None) -> None:
    declared = DeclaredOutput(path="*.png", compare="exists", **rules)  # type: ignore[arg-type]
    found = compare_files(declared, files.write("view", "a.png", b"12345"), None, shown_as="out/a.png")
    assert (None if found is None else (found.kind, found.message)) == (
        None if told is None else (ReasonKind.OUTPUT_DIFFERS, told)
    )
