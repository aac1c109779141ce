"""An output and its baseline as real files, compared as the gate does it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.compare.comparing import compare_files
from pytest_golden.compare.opening import Content, Side
from pytest_golden.manifest.model import DeclaredOutput

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.compare.opening import Mismatch


@dataclass(frozen=True)
class Files:
    """Writes pairs of files and compares them. Texts are written as UTF-8, what is neither text nor bytes as JSON."""

    root: Path

    def write(self, folder: str, name: str, content: object) -> Path:
        place = self.root / folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        place.write_bytes(text.encode() if isinstance(text, str) else text)
        return place

    def compare(self, name: str, output: object, baseline: object, **rules: Any) -> Mismatch | None:
        actual, accepted = self.write("view", name, output), self.write("baselines", name, baseline)
        return compare_files(DeclaredOutput(path=name, **rules), actual, accepted, shown_as=f"out/{name}")

    def tell(self, name: str, output: object, baseline: object, **rules: Any) -> str:
        """Return the message of a mismatch, empty when there is none."""
        found = self.compare(name, output, baseline, **rules)
        return "" if found is None else found.message

    def output(self, name: str, content: object) -> Content:
        return Content(self.write("view", name, content), Side.OUTPUT)

    def baseline(self, name: str, content: object) -> Content:
        return Content(self.write("baselines", name, content), Side.BASELINE)
