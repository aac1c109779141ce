"""Who runs after whom: declaration order, what needs what, and what may run beside others. Pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.regression.model import ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pytest_golden.manifest.model import GoldenProjectConfig


def find_independent(projects: Iterable[GoldenProjectConfig]) -> frozenset[str]:
    """Name the projects that may run beside others: declared `independent`, which needs nothing, and needed by none."""
    everyone = tuple(projects)
    needed = {name for project in everyone for name in project.needs}
    return frozenset(project.name for project in everyone if project.independent and project.name not in needed)


def find_unmet_need(project: GoldenProjectConfig, statuses: Mapping[str, ResultStatus | None]) -> str | None:
    """Say which needed project did not pass, or None when all did.

    `statuses` holds what ran so far in this session, None for one that began and never ended. A needed project that
    is not in it was not asked for and is taken as it is.
    """
    for name in project.needs:
        if name in statuses and statuses[name] is not ResultStatus.PASSED:
            ended = statuses[name] or "never finished"
            return f"{project.name} needs {name}, which did not pass ({ended}): make {name} pass first."
    return None
