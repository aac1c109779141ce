"""Names of a room that are resolved on first use (PEP 562): for rooms of which a gate's start needs little."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def resolve_lazily(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Give a room's `__getattr__`; `homes` names the module in which each of its names lives."""

    def resolve(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return resolve
