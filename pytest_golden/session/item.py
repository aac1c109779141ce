"""A golden project as a pytest item. It holds the project and, once run, its result; running is in `execution.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

_GOLDEN_MARKER = "golden"


class GoldenItem(pytest.Item):
    """One golden project, declared in the manifest's `line`. `run` is set by the execution before the item runs."""

    def __init__(self, *, project: GoldenProjectConfig, line: int | None, **more: Any) -> None:
        super().__init__(name=project.name, **more)
        self.project = project
        self._line = line
        self.result: GoldenProjectResult | None = None
        self.run: Callable[[GoldenProjectConfig], GoldenProjectResult] | None = None
        for word in dict.fromkeys((_GOLDEN_MARKER, *project.tags)):
            self.add_marker(_marker(word))

    def runtest(self) -> None:
        """Run and judge the project. A failure is a value: the report is made from `result`."""
        if self.run is None:
            message = "a golden item was started outside its session"
            raise RuntimeError(message)
        self.result = self.run(self.project)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Give the manifest, the line from 0 where the project is declared, and its name."""
        return self.path, None if self._line is None else self._line - 1, self.name


def _marker(word: str) -> pytest.MarkDecorator:
    # Not pytest.mark.<word>: that refuses words with a leading underscore, which a tag may have.
    return pytest.MarkDecorator(pytest.Mark(word, (), {}, _ispytest=True), _ispytest=True)
