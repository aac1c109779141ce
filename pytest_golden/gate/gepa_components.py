"""The texts that are optimised: where they are in each golden project, what they say, and what replaces them.

Everything that would make GEPA go round in circles without a word is refused here: a text that no pipeline would see, that
is another in each project, or that must not be sent to a model.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.content import find_regular_file
from pytest_golden.gateway.resolution import ProjectUnusableError, resolve_project
from pytest_golden.gateway.write_set import take_fingerprint
from pytest_golden.learning.training import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pytest_golden.gateway.resolution import ResolvedProject
    from pytest_golden.manifest.model import GoldenProjectConfig

    Redact = Callable[[GoldenProjectConfig, str], str]

_MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where the components are in one project: its folder, and the path of each below it, with links resolved."""

    project_dir: Path
    paths: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Components:
    """All components: their declared paths, their texts now, and their places in each project."""

    declared: Mapping[str, str]
    texts: Mapping[str, str]
    places: Mapping[str, Place]

    def check_candidate(self, candidate: object) -> Mapping[str, str]:
        """Return the candidate's texts.

        Raises:
            GoldenError: it is no mapping, lacks a component, has one too many, or one that is no text.
        """
        if not isinstance(candidate, Mapping):
            raise GoldenError(f"a candidate must be a mapping of names to texts, not {candidate!r:.100}")
        missing = [name for name in self.declared if name not in candidate]
        unknown = [str(name) for name in candidate if name not in self.declared]
        if missing or unknown:
            wrong = f"lacks {', '.join(missing)}" if missing else f"has {', '.join(unknown)}, which is no component"
            raise GoldenError(f"the candidate {wrong}; start from `adapter.seed_candidate()`")
        for name, text in candidate.items():
            if not isinstance(text, str):
                raise GoldenError(f"the candidate's {name} must be text, not {text!r:.100}")
        return candidate

    def stand_ins(self, project: GoldenProjectConfig, candidate: Mapping[str, str]) -> dict[str, bytes]:
        """Return the candidate's texts by the paths that they stand in for.

        Raises:
            GoldenError: a file is gone since the adapter was made.
            UnicodeEncodeError: a text holds what no file can.
        """
        place = self.places[project.name]
        for name, path in place.paths.items():
            if find_regular_file(str(place.project_dir), path) is None:
                raise GoldenError(f"component {name}: {place.project_dir / path} is gone; put it back, or leave it out")
        return {path: candidate[name].encode() for name, path in place.paths.items()}


def find_components(
    declared: object, projects: Iterable[GoldenProjectConfig], workspace_root: Path, redact: Redact
) -> Components:
    """Find each component in each project's folder and read it.

    Raises:
        GoldenError: one is missing, lies outside, is not seen by a pipeline, is no text, differs, or holds a secret.
    """
    paths = _check_paths(declared)
    places: dict[str, Place] = {}
    texts: dict[str, tuple[str, Path]] = {}
    for project in projects:
        try:
            resolved = resolve_project(project, workspace_root)
        except ProjectUnusableError as error:
            raise GoldenError(f"golden project {project.name}: {error}") from error
        seen = take_fingerprint(str(resolved.project_dir)).marks.keys()
        found = {name: _find(resolved, name, path, seen) for name, path in paths.items()}
        if len(set(found.values())) < len(found):
            raise GoldenError(f"two components are one file in {resolved.project_dir}: {', '.join(paths.values())}")
        places[project.name] = Place(resolved.project_dir, found)
        for name, path in found.items():
            file = resolved.project_dir / path
            text = _read(file, name)
            if redact(project, text) != text:
                raise GoldenError(
                    f"component {name}: {file} holds a secret, and GEPA sends the text to a model;"
                    " move it into a variable of `pass_env` or `set_env`"
                )
            known, where = texts.setdefault(name, (text, file))
            if known != text:
                raise GoldenError(
                    f"component {name}: {where} and {file} differ, and a candidate has one text for both;"
                    " make them equal, or give `projects=` those that share it"
                )
    return Components(paths, {name: text for name, (text, _) in texts.items()}, places)


def _check_paths(declared: object) -> dict[str, str]:
    names = check_names(declared)
    if not isinstance(declared, Mapping):
        raise GoldenError("components must be a mapping of names to paths in the project's folder")
    for name in names:
        path = declared[name]
        if not isinstance(path, (str, PurePath)) or not str(path).strip() or "\0" in str(path):
            raise GoldenError(f"component {name}: {path!r:.100} is no path of a file in the project's folder")
    return {name: str(declared[name]) for name in names}


def _find(project: ResolvedProject, name: str, path: str, seen: Collection[str]) -> str:
    folder = project.project_dir
    of = f"of golden project {project.config.name}"
    try:
        real = Path(os.path.realpath(folder / path, strict=True))
    except OSError as error:
        raise GoldenError(
            f"component {name}: {path} is not in {folder}, the folder {of} ({error.strerror or error});"
            " give a path relative to that folder"
        ) from error
    if not real.is_relative_to(folder):
        raise GoldenError(f"component {name}: {path} leads to {real}, outside {folder}, the folder {of}")
    relative = real.relative_to(folder).as_posix()
    if find_regular_file(str(folder), relative) is None:
        raise GoldenError(f"component {name}: {real} is no regular file")
    mounted = any(real.is_relative_to(mount.path) for mount in project.mounts)
    if relative not in seen or mounted:
        why = "`mounts:` puts the original there" if mounted else "it lies in a cache, a virtual environment or .git"
        raise GoldenError(f"component {name}: the pipeline {of} would not see another {relative}, since {why}")
    return relative


def _read(file: Path, name: str) -> str:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise GoldenError(f"component {name}: {file} cannot be read: {error.strerror or error}") from error
    if len(content) > _MOST_BYTES:
        raise GoldenError(f"component {name}: {file} has {len(content):,} bytes; a text of 1 MiB is the longest")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise GoldenError(f"component {name}: {file} is no text in UTF-8: {error.reason} at {error.start}") from error
