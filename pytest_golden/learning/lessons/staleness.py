"""Tell what a lesson rests on and has changed since: the lines that an edit left in a file, and the versions of packages.

A lesson whose ground has moved may still be right; so it is marked and comes after all others, and is not hidden.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# It begins where a path may begin, so that a long text is searched once.
_PATH_SIGN = r"[^\s\"'`:()\[\]<>]"
_INSTALLED = re.compile(
    rf"(?<!{_PATH_SIGN})(?P<folder>{_PATH_SIGN}{{0,500}}[\\/](?:site|dist)-packages)[\\/](?P<name>\w+)(?:[\\/]|\.py\b)"
)
_RAISED = re.compile(r"^(?:E +)?(?P<name>[a-z_]\w*)(?:\.\w+)*\.[A-Z]\w*(?::|$)", re.MULTILINE)
_OF_A_PACKAGE = re.compile(r"(?P<name>.+?)-(?P<version>[^-]+)\.(?:dist|egg)-info$")
_MOST_OF_FILE = 4 << 20
_MOST_OF_ERROR, _MOST_PACKAGES = 20_000, 5


def find_packages(error: str, root: Path) -> dict[str, dict[str, str]]:
    """Return the installed packages that an error names, by name: `{version, folder}` each, five at most.

    A traceback names the folder that a package lies in; paths in it may be relative to `root`. A package that only the class of the
    error names is looked up in the environment of this process, and has no folder.
    """
    return dict(islice(_find_packages(error[-_MOST_OF_ERROR:], root), _MOST_PACKAGES))


def find_moved(evidence: Mapping[str, Any], root: Path, error: str = "") -> str:
    """Tell what has changed since a lesson was learned; empty if nothing is seen to have.

    Args:
        evidence: that of the lesson.
        root: the folder that is worked in. Files and folders count for a lesson that was learned there.
        error: a failure that the lesson may help with: the versions of packages that it names count for every lesson.
    """
    is_from_here = evidence.get("workspace") == str(root)
    moved = find_moved_edit(evidence.get("edits") or (), root) if is_from_here else ""
    return moved or _find_other_version(evidence.get("packages"), root, error, is_from_here=is_from_here)


def find_moved_edit(edits: Iterable[Mapping[str, Any]], root: Path) -> str:
    """Tell which edited file is gone, or does not have the lines of the edit any more; empty if all do.

    An agent has named the files: one that does not lie below `root`, or is not a regular file of a reasonable size, counts as gone.
    """
    for edit in edits:
        lines = [line[1:].strip() for line in str(edit.get("diff", "")).splitlines() if line[:1] == "+"]
        told = [line for line in lines if line and not line.endswith(" ...")]
        file = str(edit.get("file", ""))
        if not file or not told:
            continue
        text = _read_below(root, file)
        if text is None:
            return f"{file} is gone since"
        if not any(line in text for line in told):
            return f"{file} has changed there since"
    return ""


def _read_below(root: Path, file: str) -> str | None:
    try:
        place = (root / file).resolve()
        found = place.stat()
        is_read = (
            place.is_relative_to(root.resolve()) and stat.S_ISREG(found.st_mode) and found.st_size <= _MOST_OF_FILE
        )
        return place.read_text(encoding="utf-8", errors="replace") if is_read else None
    except (OSError, ValueError, RuntimeError):  # it is gone, its name is none, or its links form a ring
        return None


def _find_packages(error: str, root: Path) -> Iterator[tuple[str, dict[str, str]]]:
    # The last frames are nearest to the error.
    frames = [(found["name"], found["folder"]) for found in _INSTALLED.finditer(error)]
    for name, folder in dict.fromkeys(reversed(frames)):
        installed = _read_version(name, root, folder)
        if installed:
            yield name, {"version": installed, "folder": folder}
    for found in _RAISED.finditer(error):
        installed = _read_version(found["name"])
        if installed:
            yield found["name"], {"version": installed}


def _read_version(name: str, root: Path | None = None, folder: str | None = None) -> str:
    """Return a package's version in a folder of packages, else in this process; empty if it is not there."""
    try:
        if root is None or folder is None:
            return version(name)
        wanted = name.casefold()
        names = (_OF_A_PACKAGE.fullmatch(entry.name) for entry in (root / folder).iterdir())
        return next(
            (found["version"] for found in names if found and found["name"].replace("-", "_").casefold() == wanted), ""
        )
    except (OSError, ValueError, PackageNotFoundError):
        return ""


def _find_other_version(packages: Any, root: Path, error: str, *, is_from_here: bool) -> str:
    known = (
        {name: kept for name, kept in packages.items() if isinstance(kept, Mapping)}
        if isinstance(packages, Mapping)
        else {}
    )
    named = find_packages(error, root) if error and known else {}
    for name, kept in known.items():
        folder = kept.get("folder")
        if name in named:
            now = named[name]["version"]
        elif folder is None or is_from_here:
            now = _read_version(name, *(() if folder is None else (root, folder)))
        else:
            continue
        if now and now != kept.get("version"):
            return f"it was learned with {name} {kept.get('version')}, and here it is {now}"
    return ""
