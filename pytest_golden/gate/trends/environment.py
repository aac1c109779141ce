"""What makes two durations comparable: interpreter, platform, processor, view and seal, and how many run side by side.

Installed packages are no part of it: an upgrade that makes a pipeline twice as slow is what `max_slowdown` is for.
"""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.gate.surroundings import find_venv_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.gateway.model import GatewayAbilities
    from pytest_golden.manifest.model import GoldenProjectConfig

_VENVS = "venvs"


def describe_run_environment(
    projects: Iterable[GoldenProjectConfig],
    workspace_root: Path,
    abilities: GatewayAbilities | None,
    *,
    workers: int = 1,
) -> dict[str, Any]:
    """Give JSON-safe facts that a run keeps: of this process and machine, and of each `venv:` its Python.

    `abilities` is what the gateway says of itself; one that says nothing has an unknown view and seal. `workers` is how
    many processes run at the same time: each waits for the others.
    """
    venvs = sorted({project.venv for project in projects if project.venv is not None})
    return {
        "python": _shorten(platform.python_version()),
        "implementation": platform.python_implementation(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cpu_count": _count_processors(),
        "cpu_model": _find_processor(),
        "view": None if abilities is None else abilities.view,
        "seal": None if abilities is None else abilities.seal,
        _VENVS: {venv: _shorten(find_venv_python(venv, workspace_root)) for venv in venvs},
        **({"workers": workers} if workers > 1 else {}),
    }


def describe_environment(facts: Mapping[str, Any], venv: str | None) -> dict[str, Any]:
    """Give what of a run's facts concerns one project; equal ones make durations comparable."""
    own = {key: fact for key, fact in facts.items() if key != _VENVS}
    if venv is None:
        return own
    pythons = facts.get(_VENVS)
    return {**own, "python": pythons.get(venv) if isinstance(pythons, dict) else None, "venv": True}


def _shorten(version: str | None) -> str | None:
    """Leave out the patch level, which no one waits for to become slower."""
    return None if version is None else ".".join(version.split(".")[:2])


def _count_processors() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


@cache
def _find_processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    named = (line.partition(":")[2] for line in text.splitlines() if line.startswith("model name"))
    return " ".join(next(named, platform.processor()).split())
