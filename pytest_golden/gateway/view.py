"""Copy-on-write views of a project's folder, and the folders of this machine that a seal hides or shows.

A view says how the seal mounts it, finds what the pipeline left at a path, and builds the write set. This module mounts
and starts nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from fcntl import ioctl
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from pytest_golden.gateway import write_set
from pytest_golden.gateway.content import find_data, find_regular_file, lstat_or_none, may_have_holes, read_shebang
from pytest_golden.gateway.resolution import NO_STAND_INS, put_into_copy
from pytest_golden.gateway.write_set import Fingerprint, UpperLayer, take_fingerprint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pytest_golden.gateway.model import WriteSet
    from pytest_golden.gateway.resolution import StandIns


_FICLONE = 0x40049409
_CHUNK_BYTES = 1 << 20

_QUOTED_ABSOLUTE = re.compile(r"""['"](/[^'"\n]+)['"]""")
_BARE_ABSOLUTE = re.compile(r"""(?<![\w./])/[^\s'"`:,;()<>|]+""")
_SAYS_MISSING = re.compile(
    r"no such file|not found|not exist|cannot (?:open|find|access)|ENOENT|NoSuchFile", re.IGNORECASE
)
# Only the end of a pipeline's output is searched for paths, and only a few paths are checked.
_MOST_OF_TEXT, _MOST_PATHS, _MOST_TOLD = 16 << 10, 50, 3
# As many links as Linux follows. Longer chains are left to `os.path.realpath`, which detects loops.
_MOST_LINKS = 40
_NO_NAMES = frozenset({"", ".", ".."})


class OverlayView:
    """The original below, an empty upper layer above. Only what the pipeline writes costs time and space.

    Stand-ins are a layer between the two, so the upper layer holds only what the pipeline wrote.
    `source` is a copy of a part of the original, and is then the lower layer.
    """

    @property
    def is_copied(self) -> bool:
        """Tell whether the pipeline reads copies of the project's files."""
        return self.untouched_copy is not None

    @property
    def untouched_copy(self) -> Path | None:
        """Return the folder with the copies that the pipeline reads and does not change; None if it reads the project's own."""
        return None if self._source == self.project_dir else self._source

    def __init__(
        self, project_dir: Path, folder: Path, stand_ins: StandIns = NO_STAND_INS, *, source: Path | None = None
    ) -> None:
        self.project_dir = project_dir
        self._source = source or project_dir
        self._stand_ins = stand_ins
        self.seen_at = str(project_dir)
        self.upper, self.work = folder / "upper", folder / "work"
        self._layer: UpperLayer | None = None
        self.upper.mkdir()
        self.work.mkdir()
        os.chmod(self.upper, stat.S_IMODE(os.stat(project_dir).st_mode) | stat.S_IRWXU)

    def mount_arguments(self) -> list[str]:
        """Return the sandbox's arguments that mount the overlay over the original."""
        lower = [str(self._source), *([self._stand_ins.root] if self._stand_ins.paths else [])]
        sources = [argument for layer in lower for argument in ("--overlay-src", layer)]
        return [*sources, "--overlay", str(self.upper), str(self.work), self.seen_at]

    def find_file(self, relative: str) -> Path | None:
        """Return a host path with the content that the pipeline saw last; None if there was no regular file.

        The upper layer comes first. The lower layer counts only where the upper one hides nothing.
        """
        above = find_regular_file(str(self.upper), relative)
        if above is not None:
            return Path(above)
        if self._is_hidden(relative):
            return None
        below = find_regular_file(self._stand_ins.root_of(relative, str(self._source)), relative)
        return None if below is None else Path(below)

    def _is_hidden(self, relative: str) -> bool:
        path = str(self.upper)
        for part in relative.split("/"):
            path = os.path.join(path, part)
            found = lstat_or_none(path)
            if found is None:
                return False
            if write_set.is_whiteout(found) or not stat.S_ISDIR(found.st_mode) or write_set.is_opaque(path):
                return True
        return True

    def take_write_set(self) -> WriteSet:
        """Read the upper layer: it holds exactly what was written."""
        self._layer = layer = UpperLayer(str(self._source), str(self.upper))
        return write_set.take_write_set(
            str(self._source), str(self.upper), layer.written, layer.removed, self._stand_ins
        )

    def find_written(self) -> tuple[Path, tuple[str, ...]]:
        """Return the upper layer and the sorted paths in it: everything that the pipeline wrote, also if the bytes are equal.

        They are those of the last write set, if one was taken: by then the pipeline has ended.
        """
        layer = self._layer or UpperLayer(str(self._source), str(self.upper))
        return self.upper, tuple(sorted(layer.written))


class CopyView:
    """A private copy of the original, cloned by the file system where it can do that. `source` is as for an overlay."""

    is_copied = True
    # The pipeline itself changes its copy.
    untouched_copy = None

    def __init__(
        self,
        project_dir: Path,
        folder: Path,
        fingerprint: Fingerprint,
        *,
        sealed: bool,
        stand_ins: StandIns = NO_STAND_INS,
        source: Path | None = None,
    ) -> None:
        self.project_dir = project_dir
        self._source = source or project_dir
        self._stand_ins = stand_ins
        self.copy = folder / "view"
        self.seen_at = str(project_dir if sealed else self.copy)
        copy_tree(self._source, self.copy, fingerprint)
        put_into_copy(stand_ins, self.copy)
        self._before = take_fingerprint(str(self.copy))

    def mount_arguments(self) -> list[str]:
        """Return the sandbox's arguments that mount the copy over the original."""
        return ["--bind", str(self.copy), str(self.project_dir)]

    def find_file(self, relative: str) -> Path | None:
        """Return a host path with the content that the pipeline saw last; None if there was no regular file."""
        found = find_regular_file(str(self.copy), relative)
        return None if found is None else Path(found)

    def take_write_set(self) -> WriteSet:
        """Compare the copy's files with their state when the copy was made."""
        written, removed = self._differences()
        return write_set.take_write_set(str(self._source), str(self.copy), written, removed, self._stand_ins)

    def find_written(self) -> tuple[Path, tuple[str, ...]]:
        """Return the copy, and the sorted paths in it that are new, or whose times changed since the copy was made."""
        founds = ((path, lstat_or_none(os.path.join(self.copy, path))) for path in self._differences()[0])
        files = (path for path, found in founds if found is not None and not stat.S_ISDIR(found.st_mode))
        return self.copy, tuple(sorted(files))

    def _differences(self) -> tuple[list[str], list[str]]:
        after = take_fingerprint(str(self.copy), is_ours=True, known=self._before.marks.keys())
        differing = tuple(write_set.find_differences(self._before, after))
        written = [path for path in differing if path in after.marks]
        return written, [path for path in differing if path not in after.marks]


#: What a pipeline sees: `project_dir` is the original's path, `seen_at` the one in the pipeline.
View: TypeAlias = OverlayView | CopyView


def copy_tree(source: Path, target: Path, fingerprint: Fingerprint) -> None:
    """Copy the files of a source's fingerprint: files with mode and times, symlinks as symlinks, no special files."""
    target.mkdir(mode=0o700)
    folders: list[tuple[str, int]] = []
    for relative, mark in fingerprint.marks.items():
        origin, copy = os.path.join(source, relative), os.path.join(target, relative)
        mode = mark[1] if len(mark) == 2 else mark[2] if len(mark) > 2 else 0
        if stat.S_ISDIR(mode):
            os.mkdir(copy, 0o700)
            folders.append((copy, mode))
        elif stat.S_ISLNK(mode):
            os.symlink(os.readlink(origin), copy)
        elif stat.S_ISREG(mode):
            copy_file(origin, copy)
    for folder, mode in reversed(folders):
        os.chmod(folder, stat.S_IMODE(mode))
    os.chmod(target, stat.S_IMODE(os.stat(source).st_mode) | stat.S_IRWXU)


def copy_file(origin: str, copy: str) -> None:
    """Copy one file with mode and times, sharing its blocks where the file system can."""
    copy_content(origin, copy)
    shutil.copystat(origin, copy, follow_symlinks=False)


def copy_content(origin: str, copy: str) -> None:
    """Copy a file's content, sharing its blocks where the file system can; holes stay holes."""
    if _clone(origin, copy):
        return
    found = os.lstat(origin)
    if may_have_holes(found):
        _copy_data(origin, copy, found.st_size)
    else:
        shutil.copyfile(origin, copy, follow_symlinks=False)


def _clone(origin: str, copy: str) -> bool:
    with open(origin, "rb") as source, open(copy, "wb") as target, suppress(OSError):
        ioctl(target.fileno(), _FICLONE, source.fileno())
        return True
    return False


def _copy_data(origin: str, copy: str, size_bytes: int) -> None:
    """Copy a file with holes without filling them: with zeros it could be larger than the disk."""
    with open(origin, "rb") as source, open(copy, "wb") as target:
        target.truncate(size_bytes)
        for start, end in find_data(source.fileno(), size_bytes):
            source.seek(start)
            target.seek(start)
            target.writelines(source.read(min(left, _CHUNK_BYTES)) for left in range(end - start, 0, -_CHUNK_BYTES))


def write_kept(view: View, folder: Path) -> None:
    """Copy the files that the pipeline wrote to a folder where a person can look at them."""
    source = view.upper if isinstance(view, OverlayView) else view.copy
    for relative, file in view.take_write_set().files.items():
        if file.sha256 == write_set.UNREAD:
            continue
        copy = folder / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        origin = source / relative
        if origin.is_symlink():
            copy.symlink_to(os.readlink(origin))
        else:
            copy_file(str(origin), str(copy))
            # A kept file must not run with its owner's rights.
            copy.chmod(stat.S_IMODE(copy.stat().st_mode) & 0o777)


@dataclass(frozen=True, slots=True)
class HiddenPlaces:
    """What a seal hides: the folders of this machine that it replaces, except the paths below them that it still shows."""

    masked: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()

    def hides(self, path: str) -> bool:
        """Tell whether an absolute path exists on this machine but not in the view."""
        mask = self._find_mask(path)
        return mask is not None and os.path.lexists(path)

    def explain(self, path: str) -> str:
        """Say why a hidden path is missing from the view, and how to show it."""
        folder = os.path.dirname(path)
        prefix = next((str(above) for above in Path(path).parents if (above / "pyvenv.cfg").is_file()), None)
        is_program = os.path.isfile(path) and os.access(path, os.X_OK)
        shown = prefix or (folder if is_program and folder not in self.masked else path)
        ways = [f"`venv: {prefix}`" if prefix else "`venv:`"] if is_program or prefix else []
        ways.append(f"`mounts: [{{path: {shown}, mode: read}}]`")
        return f"{path} is on this machine, but a pipeline sees a private {self._find_mask(path)}: declare {' or '.join(ways)}"

    def explain_missing_program(self, name: str, path_variable: str) -> str | None:
        """Say why a program of this machine cannot be started in the view; None if the seal is not the reason."""
        if not self.masked:
            return None
        program = shutil.which(name, path=path_variable) or name
        asked = [program]
        with suppress(OSError):
            asked += read_shebang(Path(program))[:1]
        hidden = next((path for path in asked if os.path.isabs(path) and self.hides(path)), None)
        return None if hidden is None else self.explain(hidden)

    def explain_missing_files(self, *texts: str) -> tuple[str, ...]:
        """Explain up to three hidden paths that these texts report as missing. Only the end of each text is read."""
        if not self.masked:
            return ()
        lines = [line for text in texts for line in text[-_MOST_OF_TEXT:].splitlines() if _SAYS_MISSING.search(line)]
        named = [path for line in lines for path in (*_QUOTED_ABSOLUTE.findall(line), *_BARE_ABSOLUTE.findall(line))]
        paths = dict.fromkeys(os.path.normpath(path.rstrip(".")) for path in named)
        hidden = [path for path in list(paths)[-_MOST_PATHS:] if "\0" not in path and self.hides(path)]
        return tuple(map(self.explain, hidden[-_MOST_TOLD:]))

    def _find_mask(self, path: str) -> str | None:
        masks = [mask for mask in self.masked if path != mask and is_below(path, mask)]
        mask = max(masks, key=len, default=None)
        is_shown = mask is None or any(is_below(path, shown) and is_below(shown, mask) for shown in self.shown)
        return None if is_shown else mask


def find_interpreter_folders() -> Iterator[str]:
    """Yield the folders that the gate's own interpreter needs: prefixes, `sys.path`, and the folders that its `.pth` files name."""
    yield sys.prefix
    yield sys.base_prefix
    for entry in sys.path:
        if os.path.isabs(entry):
            yield entry
            yield from find_linked_sources(Path(entry))


def find_environment_folders(prefix: Path, *, linked: bool = True) -> Iterator[str]:
    """Yield a virtual environment's folder, the interpreter that it was made from, and with `linked` its editable installs."""
    yield str(prefix)
    for name in ("python", "python3"):
        program = prefix / "bin" / name
        if program.is_symlink():
            yield str(Path(os.path.realpath(program)).parent.parent)
    for packages in prefix.glob("lib*/python3*/site-packages") if linked else ():
        yield from find_linked_sources(packages)


def find_linked_sources(packages: Path) -> Iterator[str]:
    """Yield the folders outside a site-packages folder that its `.pth` and editable-install files point to."""
    try:
        names = os.listdir(packages)
    except OSError:
        return
    for name in names:
        if name.endswith(".pth"):
            lines = _read_text(packages / name).splitlines()
            yield from (line.strip() for line in lines if os.path.isabs(line.strip()))
        elif name.startswith("__editable__") and name.endswith(".py"):
            yield from _QUOTED_ABSOLUTE.findall(_read_text(packages / name))


def find_program_folders(path_variable: str) -> Iterator[str]:
    """Yield every folder on PATH, and the environments that the symlinks in them lead to; each is read once."""
    folders = dict.fromkeys(folder for folder in path_variable.split(os.pathsep) if os.path.isdir(folder))
    yield from folders
    targets = [target for folder in dict.fromkeys(map(os.path.realpath, folders)) for target in _link_targets(folder)]
    yield from targets
    for programs in dict.fromkeys((*folders, *map(os.path.dirname, targets))):
        yield from _environment_around(Path(programs))


def _link_targets(folder: str) -> list[str]:
    with os.scandir(folder) as entries:
        links = [entry.path for entry in entries if entry.is_symlink()]
    return [target for target in _resolve_all(links) if os.path.exists(target)]


def _environment_around(programs: Path) -> Iterator[str]:
    """Yield the environment whose `bin` this is. A folder like ~/.local, which holds more than programs, is not one."""
    prefix = programs.parent
    if (prefix / "pyvenv.cfg").exists():
        yield from find_environment_folders(prefix)
    elif programs.name == "shims" or (programs.name == "bin" and any(prefix.glob("lib/python3*/os.py"))):
        yield str(prefix)


def find_git_folders(root: Path) -> Iterator[str]:
    """Yield the folders of the repository that a worktree belongs to; nothing for an ordinary checkout."""
    mark = root / ".git"
    text = _read_text(mark) if mark.is_file() else ""
    if text.startswith("gitdir:"):
        own = (root / text.partition(":")[2].strip()).resolve()
        yield str(own)
        common = _read_text(own / "commondir").strip()
        if common:
            yield str((own / common).resolve())


def select_hidden(folders: Iterable[str], masked: Iterable[str]) -> tuple[str, ...]:
    """Return the existing paths (links resolved) that are below a masked folder and not below each other.

    A masked folder itself is never returned: a user with HOME on PATH does not want to show all of HOME.
    """
    masked = frozenset(masked)
    chosen: list[str] = []
    for path in sorted(set(_resolve_all(folders))):
        hidden = path not in masked and any(is_below(path, mask) for mask in masked)
        if hidden and os.path.exists(path) and not (chosen and is_below(path, chosen[-1])):
            chosen.append(path)
    return tuple(chosen)


def is_below(path: str, folder: str) -> bool:
    """Tell whether a path lies inside a folder or is it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _resolve_all(paths: Iterable[str]) -> Iterator[str]:
    """Yield the real path of each path. Each folder is resolved once, because hundreds of programs share a few folders."""
    folders: dict[str, str] = {}
    for path in paths:
        yield _resolve_once(path, folders)


def _resolve_once(given: str, folders: dict[str, str]) -> str:
    path = given
    for _ in range(_MOST_LINKS):
        folder, name = os.path.split(path)
        if name in _NO_NAMES:
            break
        if folder not in folders:
            folders[folder] = os.path.realpath(folder)
        path = os.path.join(folders[folder], name)
        try:
            path = os.path.join(folders[folder], os.readlink(path))
        except OSError:  # It is not a link.
            return path
    return os.path.realpath(given)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
