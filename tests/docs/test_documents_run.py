from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from tests.docs.documents import DOCS, REPOSITORY, follow, list_typed, read_blocks

if TYPE_CHECKING:
    from pathlib import Path

_NEEDS = {
    "odibi.md": ("odibi", [pytest.mark.odibi]),
    "dbt.md": ("dbt", [pytest.mark.dbt]),
    "notebooks.md": ("nbclient", []),
    "improve-texts.md": ("gepa", []),
    "let-a-model-word-lessons.md": ("httpx2", []),
    "find-memories-by-meaning.md": ("numpy", []),
    "big-manifests.md": ("xdist", [pytest.mark.xdist]),
}


def _pages() -> list[Path]:
    pages = sorted([*DOCS.rglob("*.md"), REPOSITORY / "README.md"])
    return [page for page in pages if any(True for block in read_blocks(page) for _ in list_typed(block))]


def _parameter(page: Path) -> object:
    module, marks = _NEEDS.get(page.name, ("pytest", []))
    is_absent = pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")
    return pytest.param(page, marks=[is_absent, *marks], id=str(page.relative_to(REPOSITORY)))


@pytest.mark.parametrize("page", [_parameter(page) for page in _pages()])
def test_page_does_what_it_says(page: Path, tmp_path: Path, warm_starts: Path) -> None:
    follow(page, tmp_path, warm_starts)
