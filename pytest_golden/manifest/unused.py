"""Which declared keys nothing uses yet, said in one sentence: a key is accepted or refused, never ignored in silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_golden.manifest.model import Manifest


def describe_unused(manifest: Manifest) -> str | None:
    """Name the keys that are declared and that nothing in this version uses; None when there are none."""
    declared = {
        "depends_on": any(project.depends_on for project in manifest.projects),
        "setup": manifest.setup is not None,
    }
    keys = [f"`{key}`" for key, is_declared in declared.items() if is_declared]
    if not keys:
        return None
    verb, them = ("is", "it") if len(keys) == 1 else ("are", "them")
    return f"{', '.join(keys)} {verb} declared, and nothing in this version uses {them}"
