"""Golden projects named on a command line: `a.yaml, b.yaml` or `name:path, name:path`. The file is read in `reader.py`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import ManifestError, ManifestProblem
from pytest_golden.manifest.kinds import check_name, check_text
from pytest_golden.manifest.model import GoldenProjectConfig, Manifest, is_absolute_path, slug, stem_name
from pytest_golden.manifest.units import show

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

SOURCE = "--golden-projects"
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")


class _Part(NamedTuple):
    """What stands between two commas: the path, and the name where one is given."""

    name: str | None
    path: str


def parse_golden_projects_input(text: str, workspace_root: str | os.PathLike[str]) -> tuple[GoldenProjectConfig, ...]:
    r"""Read the inline forms; both may be mixed, and commas at the end, blanks and new lines do not matter.

    A project without a name gets the stem of its path as a slug; where names collide, the slug of its path below
    `workspace_root`. A leading drive letter (`D:\\...`, `D:/...`) is not a name. For a text without
    projects the tuple is empty.

    Raises:
        ManifestError: a name or path is unusable, or two projects have one name.
    """
    parts = [_split(part) for part in re.split(r"[,\r\n]", text) if part.strip()]
    problems = [problem for part in parts if (problem := _find_problem(part)) is not None]
    if problems:
        raise _error(problems)
    names = _give_names(parts, str(workspace_root))
    problems = [
        f"{show(part.path)} gives no name; write it as name:path"
        for part, name in zip(parts, names, strict=True)
        if not name
    ]
    problems += [
        f"the name {name!r} is given {times} times; give each project a name of its own, as name:path"
        for name, times in Counter(names).items()
        if times > 1 and name
    ]
    if problems:
        raise _error(problems)
    return tuple(GoldenProjectConfig(name, part.path) for name, part in zip(names, parts, strict=True))


def parse_inline_manifest(text: str, workspace_root: str | os.PathLike[str]) -> Manifest:
    """Make a manifest of the inline forms.

    Raises:
        ManifestError: as for `parse_golden_projects_input`.
    """
    root = Path(workspace_root).resolve()
    return Manifest(projects=parse_golden_projects_input(text, root), workspace_root=root)


def _split(text: str) -> _Part:
    text = text.strip()
    name, colon, path = text.partition(":")
    if not colon or _DRIVE.match(text):
        return _Part(None, text)
    return _Part(name.strip(), path.strip())


def _find_problem(part: _Part) -> str | None:
    whole = part.path if part.name is None else f"{part.name}:{part.path}"
    name = "unnamed" if part.name is None else part.name
    for what, check, given in (("path", check_text, part.path), ("name", check_name, name)):
        try:
            check(given)
        except ValueError as error:
            return f"the {what} in {show(whole)}: {error}"
    return None


def _give_names(parts: Sequence[_Part], root: str) -> list[str]:
    """Name every part; one without a name gets the shortest that no other part has: stem, path, path with suffix."""
    names = [part.name or stem_name(part.path) for part in parts]
    for keep_suffix in (False, True):
        count = Counter(names)
        names = [
            name if part.name or count[name] == 1 else _path_name(part.path, root, keep_suffix=keep_suffix)
            for name, part in zip(names, parts, strict=True)
        ]
    return names


def _path_name(path: str, root: str, *, keep_suffix: bool) -> str:
    pure = PureWindowsPath(path) if _DRIVE.match(path) else PurePosixPath(path)
    if is_absolute_path(path) and pure.is_relative_to(root):
        pure = pure.relative_to(root)
    return slug(str(pure if keep_suffix else pure.with_suffix("")))


def _error(messages: Sequence[str]) -> ManifestError:
    return ManifestError(ManifestProblem(SOURCE, 0, 0, message) for message in messages)
