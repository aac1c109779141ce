"""What the head's checkout has beside git and the base's worktree lacks: a project may fail there for that alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.gate.checkout import read_checkout
from pytest_golden.gate.input_changes import RunInputs, compare_inputs
from pytest_golden.gate.inputs import InputReader
from pytest_golden.regression.unexpected import is_named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult

_MOST_NAMED = 3


class Workspaces(NamedTuple):
    """The workspace roots of both sides."""

    head: Path
    base: Path


def find_missing_inputs(
    workspaces: Workspaces, projects: Iterable[GoldenProjectConfig], results: Iterable[GoldenProjectResult]
) -> dict[str, str]:
    """Give, for each of these results whose project lacks an ignored file on the base, a sentence that names it.

    What the project writes by itself is no input. `projects` are those of the base.
    """
    declared = {project.name: project for project in projects}
    head, base = (InputReader(root, read_checkout(root), declared.values()) for root in workspaces)
    missing: dict[str, str] = {}
    for result in results:
        project = declared.get(result.name)
        if project is not None:
            there = base.read(project)
            paths = list(_list_missing(project, result, there, head.read(project)))
            if paths:
                missing[result.name] = _tell(paths)
    return missing


def _list_missing(
    project: GoldenProjectConfig, result: GoldenProjectResult, base: Mapping[str, object], head: Mapping[str, object]
) -> Iterator[str]:
    # Where not all of the head's were looked at, those that were are missed all the same.
    here = RunInputs.read({**head, "is_all": True}, None)
    folder = str(head["folder"])
    products = [*project.writes, *(output.path for output in project.outputs)]
    for change in compare_inputs(RunInputs.read(base, result.write_set.to_dict()), here):
        inside = change.name.removeprefix(folder)
        is_lacked = change.kind == "file" and change.how == "added"
        if is_lacked and not any(is_named(inside.rstrip("/"), pattern) for pattern in products):
            yield change.name


def _tell(paths: list[str]) -> str:
    more = len(paths) - _MOST_NAMED
    named = ", ".join(paths[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"what git ignores is not there ({named}): let `setup:` copy it from $GOLDEN_HEAD"
