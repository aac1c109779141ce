"""Which versions this process has of what a gate and its workers must have alike."""

from __future__ import annotations

import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from pytest_golden.gate.fleet.model import Versions

PACKAGES = ("pytest-golden-projects", "distributed")


@cache
def find_versions() -> Versions:
    """Give the versions of this process."""
    return Versions(name_python(".".join(map(str, sys.version_info[:3]))), {name: _find(name) for name in PACKAGES})


def name_python(told: str) -> str:
    """Leave of a version, such as `3.12.1.final.0`, what must be the same."""
    return ".".join(told.split(".")[:2])


def _find(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
