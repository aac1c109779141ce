"""Which folders must stay readable in a seal although /tmp, HOME and /run are replaced there.

Programs are found through symlinks into environments, environments through `pyvenv.cfg` into other interpreters,
modules through `.pth` files into working copies. All of that is followed here; nothing is mounted.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_QUOTED_ABSOLUTE = re.compile(r"""['"](/[^'"\n]+)['"]""")


def find_interpreter_folders() -> Iterator[str]:
    """Give what the gate's own interpreter is made of: prefixes, `sys.path`, and where its `.pth` files lead."""
    yield sys.prefix
    yield sys.base_prefix
    for entry in sys.path:
        if os.path.isabs(entry):
            yield entry
            yield from find_linked_sources(Path(entry))


def find_environment_folders(prefix: Path) -> Iterator[str]:
    """Give a virtual environment's folder, the interpreter it was made from, and its editable installs."""
    yield str(prefix)
    for name in ("python", "python3"):
        program = prefix / "bin" / name
        if program.is_symlink():
            yield str(Path(os.path.realpath(program)).parent.parent)
    for packages in prefix.glob("lib*/python3*/site-packages"):
        yield from find_linked_sources(packages)


def find_linked_sources(packages: Path) -> Iterator[str]:
    """Give the folders outside a site-packages folder that its `.pth` and editable-install files point to."""
    try:
        names = os.listdir(packages)
    except OSError:
        return
    for name in names:
        if name.endswith(".pth"):
            lines = _read(packages / name).splitlines()
            yield from (line.strip() for line in lines if os.path.isabs(line.strip()))
        elif name.startswith("__editable__") and name.endswith(".py"):
            yield from _QUOTED_ABSOLUTE.findall(_read(packages / name))


def find_program_folders(path_variable: str) -> Iterator[str]:
    """Give every folder on PATH, and the environments that the symlinks in them resolve to; looks into each once."""
    folders = dict.fromkeys(folder for folder in path_variable.split(os.pathsep) if os.path.isdir(folder))
    yield from folders
    targets = [target for folder in dict.fromkeys(map(os.path.realpath, folders)) for target in _link_targets(folder)]
    yield from targets
    for programs in dict.fromkeys((*folders, *map(os.path.dirname, targets))):
        yield from _environment_around(Path(programs))


def _link_targets(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        links = [entry.path for entry in entries if entry.is_symlink()]
    return [target for target in map(os.path.realpath, links) if os.path.exists(target)]


def _environment_around(programs: Path) -> Iterator[str]:
    """Give the environment whose `bin` this is; a folder like ~/.local, which holds more than programs, is none."""
    prefix = programs.parent
    if (prefix / "pyvenv.cfg").exists():
        yield from find_environment_folders(prefix)
    elif programs.name == "shims" or (programs.name == "bin" and any(prefix.glob("lib/python3*/os.py"))):
        yield str(prefix)


def select_hidden(folders: Iterable[str], masked: Iterable[str]) -> tuple[str, ...]:
    """Give those existing paths, links resolved, that lie below a masked folder and not below each other.

    A masked folder as a whole is never given: somebody who has HOME on PATH does not mean to show all of it.
    """
    masked = frozenset(masked)
    chosen: list[str] = []
    for path in sorted({os.path.realpath(folder) for folder in folders}):
        hidden = path not in masked and any(is_below(path, mask) for mask in masked)
        if hidden and os.path.exists(path) and not (chosen and is_below(path, chosen[-1])):
            chosen.append(path)
    return tuple(chosen)


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path lies inside a folder or is it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def find_git_folders(root: Path) -> Iterator[str]:
    """Give the folders of the repository that a worktree belongs to; nothing for an ordinary checkout."""
    mark = root / ".git"
    text = _read(mark) if mark.is_file() else ""
    if text.startswith("gitdir:"):
        own = (root / text.partition(":")[2].strip()).resolve()
        yield str(own)
        common = _read(own / "commondir").strip()
        if common:
            yield str((own / common).resolve())
