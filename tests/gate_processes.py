"""How a gate that a test starts as a process of its own is kept short."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

#: The plug-ins of others that no gate needs: they import hypothesis and NumPy at every start.
WITHOUT_PLUGINS = ("-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:anyio")


def shorten_gates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gates that are started from here load no plug-in of others, and leave them unmeasured.

    What a gate does is measured where tests run one inside their own process.
    """
    monkeypatch.setenv("PYTEST_ADDOPTS", " ".join(WITHOUT_PLUGINS))
    for name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
        monkeypatch.delenv(name, raising=False)
