"""A workspace of two golden projects in one folder that read a text, and pass when it says what they want."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import yaml

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.gate.gepa import GoldenAdapter

_PIPELINE = """
import pathlib, sys
text = pathlib.Path(__file__).with_name("query.sql").read_text(encoding="utf-8")
print("the query is", text)
if {wanted!r} not in text:
    sys.exit("ValueError: the query has no {wanted}")
pathlib.Path("out.txt").write_text(text)
"""


class OpenAdapter(Protocol):
    def __call__(self, components: Any = ..., /, **options: Any) -> GoldenAdapter: ...


class Workspace:
    """A workspace whose manifest can be written anew."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / "etl"
        self.folder.mkdir(parents=True)
        (self.folder / "query.sql").write_text("select 1\n")
        self.add_pipeline("totals", "sum")
        self.add_pipeline("counts", "count")
        self.declare({"name": "totals", "path": "etl/totals.py"}, {"name": "counts", "path": "etl/counts.py"})

    @property
    def manifest(self) -> Path:
        return self.root / "golden_projects.yaml"

    def add_pipeline(self, name: str, wanted: str) -> None:
        (self.folder / f"{name}.py").write_text(_PIPELINE.format(wanted=wanted))

    def declare(self, *projects: dict[str, Any]) -> None:
        self.manifest.write_text(yaml.safe_dump({"version": 1, "golden_projects": list(projects)}))
