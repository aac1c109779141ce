"""The reference shows the differences as they are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.manifest.comparisons import COMPARISONS
from tests.compare.test_comparing import png

if TYPE_CHECKING:
    from tests.compare.files import Files

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "comparing.md"
SALES = "Sales of 2026-03-04\nnorth     120\nsouth      80\nwest       75\ntotal     275\n"


@pytest.mark.parametrize(
    ("name", "output", "baseline", "rules"),
    [
        ("report.txt", SALES.replace("75\n", "57\n", 1), SALES, {}),
        ("customers.txt", "eve\nbob\nzoe\neve\n", "bob\nann\nzoe\n", {"unordered": True}),
        (
            "summary.json",
            {"rows": [{"id": 1, "price": 10.7}, {"id": 2, "price": 8}, {"id": 3, "price": 8}], "total": 26.7},
            {"rows": [{"id": 1, "price": 10.5}, {"id": 2, "price": 8}], "total": "18.5", "day": "2026-03-04"},
            {},
        ),
        ("model.bin", bytes(range(20)) + b"AB" + bytes(range(22, 48)), bytes(range(48)), {}),
        ("plot.png", png(640, 400), png(640, 480), {"compare": "image_size"}),
        ("plot.png", b"", b"", {"compare": "exists", "min_bytes": 1000}),
    ],
)
def test_a_difference_on_the_page_is_what_is_told(
    files: Files, name: str, output: object, baseline: object, rules: dict[str, object]
) -> None:
    assert f"```text\n{files.tell(name, output, baseline, **rules)}\n```" in PAGE.read_text("utf-8")


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_every_comparison_has_its_place_on_the_page(comparison: str) -> None:
    assert f"\n## {comparison}\n" in PAGE.read_text("utf-8")
