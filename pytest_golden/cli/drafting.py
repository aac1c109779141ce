"""What `golden init` writes: one golden project for each pipeline, and the text of the manifest."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass, field, fields, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import yaml

from pytest_golden.cli.finding_pipelines import find_venv, list_asked, list_neighbours
from pytest_golden.manifest.amending import write_value
from pytest_golden.manifest.model import DeclaredOutput, slug, stem_name

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.cli.finding_pipelines import FoundPipeline

# What is written when nothing is found; what is found stands in the place of its example.
_FIRST_MANIFEST = Path(__file__).with_name("first_manifest.yaml")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/-]*(\.[A-Za-z0-9_/-]+)*")
_NAMED_BY_FILE = frozenset({"odibi", "notebook"})
# Names of files that say nothing of what they hold.
_NO_NAMES = frozenset({"config", "dag", "definitions", "flow", "flows", "main", "odibi", "pipeline", "tasks"})
# What a pipeline that was found needs to run.
_FOUND_KEYS = frozenset({"runner", "args", "mounts", "pass_env", "set_env", "clock"})
_NO_RULES = DeclaredOutput("*")


@dataclass(frozen=True, slots=True)
class DraftedProject:
    """One project of the draft; `comment` stands above it. `told` is what else is said of its outputs.

    `code` are the programs of the repository that its trial read, with their sizes in bytes; None if that is not known.
    """

    name: str
    path: str
    runner: str
    comment: str
    command: tuple[str, ...] = ()
    project_dir: str | None = None
    writes: tuple[str, ...] = ()
    outputs: tuple[DeclaredOutput, ...] = ()
    told: tuple[str, ...] = ()
    venv: str | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)
    code: Mapping[str, int] | None = None


def draft_found(
    found: Sequence[FoundPipeline], folder: Path | None = None, taken: Collection[str] = ()
) -> tuple[DraftedProject, ...]:
    """Draft one project for each pipeline, each with a name that is not `taken`, and with its environment if `folder` has one."""
    drafted: list[DraftedProject] = []
    for pipeline in found:
        name = _choose_name(pipeline, folder, {*taken, *(project.name for project in drafted)})
        asked = () if folder is None else list_asked(folder / pipeline.path)
        mounts = () if folder is None else list_neighbours(folder, pipeline)
        drafted.append(
            DraftedProject(
                name,
                pipeline.path,
                pipeline.runner,
                f"run by {pipeline.runner}",
                project_dir=pipeline.project_dir,
                told=(
                    f"it asks for {', '.join(asked)}: the gate passes that, once you have looked at it; it is tried without",
                )
                if asked
                else (),
                venv=None if folder is None else find_venv(folder, pipeline.path),
                keys={
                    **pipeline.keys,
                    **({"mounts": [{"path": path} for path in mounts]} if mounts else {}),
                    **({"pass_env": list(asked)} if asked else {}),
                },
            )
        )
    return tuple(drafted)


def _choose_name(pipeline: FoundPipeline, folder: Path | None, taken: Collection[str]) -> str:
    """Return a project's name: its file's, or its folder's if the file's name says nothing; the path's if that is taken."""
    pure = PurePosixPath(pipeline.path)
    stem = stem_name(pipeline.path)
    is_script = pipeline.runner in _NAMED_BY_FILE or pipeline.args is not None
    place = PurePosixPath(pipeline.project_dir) if pipeline.project_dir is not None and not is_script else pure.parent
    of_folder = slug(place.name or ("" if folder is None else folder.resolve().name))
    name = stem if is_script and stem not in _NO_NAMES else of_folder
    name = name or of_folder or pipeline.runner
    if name in taken:
        name = slug(str(pure.parent if name == of_folder else pure.with_suffix("")).replace("/", "_")) or name
    return _choose_free(name, taken)


def name_apart(drafted: Iterable[DraftedProject], taken: Collection[str]) -> tuple[DraftedProject, ...]:
    """Give each project a name that is not taken, its own if possible."""
    named: list[DraftedProject] = []
    for project in drafted:
        name = _choose_free(project.name, {*taken, *(other.name for other in named)})
        named.append(replace(project, name=name))
    return tuple(named)


def _choose_free(wanted: str, taken: Collection[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def write_draft(projects: Iterable[DraftedProject]) -> str:
    """Return the manifest's text."""
    head, heading, rest = _FIRST_MANIFEST.read_text(encoding="utf-8").partition("golden_projects:\n")
    example, _, further = rest.partition("\n\n")
    body = ["".join(f"  {line}\n" for line in write_project(project)) for project in projects] or [f"{example}\n"]
    return "".join([head, heading, "\n".join(body), "\n", further])


def write_project(project: DraftedProject) -> Iterator[str]:
    """Yield the lines of one project's entry."""
    yield f"# {''.join(sign if sign.isprintable() else ' ' for sign in project.comment)}"
    yield f"- name: {quote(project.name)}"
    yield f"  path: {quote(project.path)}"
    if project.command:
        yield f"  command: [{', '.join(quote(word) for word in project.command)}]"
    yield from _write_keys(project, lambda key: key in _FOUND_KEYS)
    if project.venv is not None:
        yield f"  venv: {quote(project.venv)}"
    if project.project_dir is not None:
        yield f"  project_dir: {quote(project.project_dir)}"
    if project.outputs:
        yield "  outputs:"
        yield from (f"    - {{{', '.join(_list_rules(output))}}}" for output in project.outputs)
    yield from _write_writes(project.writes)
    if project.writes or (project.outputs and project.keys.keys() <= _FOUND_KEYS):
        yield "  unexpected_files: warn # or fail"
    yield from _write_keys(project, lambda key: key not in _FOUND_KEYS)


def _write_writes(patterns: Sequence[str]) -> Iterator[str]:
    why = "# seen in one run; a file that no pattern names gives a warning"
    if len(patterns) == 1:
        yield f"  writes: [{quote(patterns[0])}] {why}"
    elif patterns:
        yield f"  writes: {why}"
        yield from (f"    - {quote(pattern)}" for pattern in patterns)


def _write_keys(project: DraftedProject, is_wanted: Callable[[str], bool]) -> Iterator[str]:
    yield from (f"  {key}: {write_value(value)}" for key, value in project.keys.items() if is_wanted(key))


def _list_rules(output: DeclaredOutput) -> Iterator[str]:
    if output.path:
        yield f"path: {quote(output.path)}"
    given = {field.name: getattr(output, field.name) for field in fields(output)}
    plain = vars(_NO_RULES)
    yield from (
        f"{name}: {write_value(value)}" for name, value in given.items() if name != "path" and value != plain[name]
    )


def quote(text: str) -> str:
    """Return a text as a YAML scalar, quoted unless it is certainly plain."""
    readable = "".join("?" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
    if _PLAIN.fullmatch(readable) and yaml.safe_load(readable) == readable:
        return readable
    quoted: str = yaml.safe_dump(readable, default_style='"', allow_unicode=True, width=sys.maxsize)
    return quoted.rstrip("\n")


def choose_path(command: Sequence[str], folder: Path) -> str:
    """Return the first file that a command names, relative to the folder; `.` if it names none."""
    for word in command:
        path = os.path.relpath(folder / word, folder)
        if not path.startswith(os.pardir) and (folder / path).is_file():
            return Path(path).as_posix()
    return "."
