"""How a gate that a test starts as a process of its own is kept short."""

from __future__ import annotations

#: The plug-ins of others that no gate needs: they import hypothesis and NumPy at every start. A gate that inherits the
#: environment of a test gets them from tests/conftest.py; one that a test of pytester starts has to name them.
WITHOUT_PLUGINS = ("-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:anyio")
