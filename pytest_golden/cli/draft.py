"""The text of a first manifest, with comments for somebody who sees one for the first time. Writes no file."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import yaml

from pytest_golden.manifest.model import slug, stem_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pytest_golden.cli.discovery import FoundPipeline

_HEAD = """\
# Golden projects: pipelines that must always work. `pytest --golden` runs them in this order, sealed off from
# the real files, and fails when one of them does. `golden check` shows what would be run.
version: 1
"""
_EXAMPLE = """\
  # - name: sales_daily            # what it is called: letters, digits, _ . -
  #   path: sales/pipeline.yaml    # Odibi's YAML, dbt_project.yml, a notebook, a .py or a .sh; relative to this file
"""
_FURTHER = """
# A project may say more; `golden schema manifest` describes every key. Often used:
#     description: Daily sales, must never break
#     expected_outcome: "specific_error:negative amount"   # it must fail, and with this; default: success
#     timeout: 30m                                         # default: 10m
#     command: ["python", "{path}", "--day", "2026-01-01"] # instead of what its kind of file is run by
#     project_dir: .                                       # the folder it sees and works in; default: that of path
#     pass_env: [DATABASE_URL]                             # variables that it gets; none by itself
#     writes: ["out/**"]                                   # what it may write...
#     unexpected_files: fail                               # ...and that nothing else may be
"""
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/-]*(\.[A-Za-z0-9_/-]+)*")


@dataclass(frozen=True, slots=True)
class DraftedProject:
    """One project of the draft; `comment` stands above it."""

    name: str
    path: str
    runner: str
    comment: str
    command: tuple[str, ...] = ()
    project_dir: str | None = None
    writes: tuple[str, ...] = ()


def draft_found(found: Sequence[FoundPipeline]) -> tuple[DraftedProject, ...]:
    """Draft one project for each pipeline, each with a name of its own."""
    taken: set[str] = set()
    drafted = []
    for pipeline in found:
        name = _choose_name(pipeline.path, taken)
        taken.add(name)
        drafted.append(DraftedProject(name, pipeline.path, pipeline.runner, f"run by {pipeline.runner}"))
    return tuple(drafted)


def write_draft(projects: Iterable[DraftedProject]) -> str:
    """Give the manifest's text."""
    drafted = tuple(projects)
    body = [_write_project(project) for project in drafted] or [_EXAMPLE]
    return f"{_HEAD}\ngolden_projects:\n" + "\n".join(body) + _FURTHER


def quote(text: str) -> str:
    """Write a text as a YAML scalar, quoted unless it is plain beyond doubt."""
    readable = "".join("?" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
    is_plain = _PLAIN.fullmatch(readable) is not None and yaml.safe_load(readable) == readable
    if is_plain:
        return readable
    quoted: str = yaml.safe_dump(readable, default_style='"', allow_unicode=True, width=sys.maxsize)
    return quoted.rstrip("\n")


def _choose_name(path: str, taken: set[str]) -> str:
    """Name a project by its file, dbt's by its folder, and by the whole path where that is taken."""
    pure = PurePosixPath(path)
    is_dbt = pure.stem == "dbt_project"
    name = slug(pure.parent.name) or "dbt" if is_dbt else stem_name(path) or "project"
    if name in taken:
        name = slug(str(pure.with_suffix("")).replace("/", "_")) or "project"
    number, wanted = 2, name
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _write_project(project: DraftedProject) -> str:
    return "".join(f"  {line}\n" for line in _project_lines(project))


def _project_lines(project: DraftedProject) -> Iterator[str]:
    yield f"# {project.comment}"
    yield f"- name: {quote(project.name)}"
    yield f"  path: {quote(project.path)}"
    if project.command:
        yield f"  command: [{', '.join(quote(word) for word in project.command)}]"
    if project.project_dir is not None:
        yield f"  project_dir: {quote(project.project_dir)}"
    if project.writes:
        yield "  writes: # seen in one run; a file that no pattern names gives a warning"
        yield from (f"    - {quote(pattern)}" for pattern in project.writes)
        yield "  unexpected_files: warn # or fail"
