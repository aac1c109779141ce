"""A project's inputs that git does not hold: reading them within a budget, and comparing those of two runs.

Also the names of the files that git ignored when a run began, without what tools leave and no pipeline reads.

Inputs are plain values: `{"holds", "folder", "is_all", "files", "passed", "variables"}`. `files` maps a path to `[size, digest
of the content]`; the digest is None if the content was not read. A path that ends with a slash is a folder of many files,
with their count as a third value. `passed` is the same for `pass_files`. `variables` maps each name in `pass_env` to whether
it is set.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.gateway.write_set import CACHE_FOLDERS, VENV_MARK, WITHHELD_FOLDERS, is_environment
from pytest_golden.history.checkout import redact_paths
from pytest_golden.redaction.rule import is_secret_name
from pytest_golden.regression.wording import format_size
from pytest_golden.values.checking import as_mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from pytest_golden.history.checkout import Checkout
    from pytest_golden.manifest.model import GoldenProjectConfig

#: A folder with more files than this directly in it is one input.
MOST_IN_FOLDER = 40
_MOST_INPUTS, _MOST_LOOKED_AT = 100, 5_000
_MOST_BYTES, _MOST_OF_A_FILE = 4 << 20, 256 << 10
_BLOCK, _BLOCKS = 4096, 8
_MOST_NAMES = 5000
_MOST_READ = 200
_BEGINNING_BYTES = 1024
_REPORTS = {
    ".xml": re.compile(rb"<(?:testsuites?|coverage)\b"),
    ".json": re.compile(rb'\A\{\s*"schema_version": \d+,\s*"final_status": '),
    ".html": re.compile(rb"\A\s*<!doctype html", re.IGNORECASE),
}
_BY_PRODUCTS = frozenset({*CACHE_FOLDERS, *WITHHELD_FOLDERS, "htmlcov", ".idea", ".vscode", ".eggs"})
# Like caches, these come and go by themselves.
_PASSING = _BY_PRODUCTS | {"node_modules", "build", "dist", "logs"}
_PASSING_FILES = re.compile(r"\.DS_Store|\.coverage.*|.*\.(?:log|py[cod]|sw[op]|tmp|pid)|.*~")
_CREDENTIALS = re.compile(
    r"\.env(?:\..*)?|\.?pgpass(?:\.conf)?|\.?netrc|id_[a-z0-9]+|.*\.(?:env|pem|key|pfx|p12|jks|kdbx|gpg|asc)|profiles\.ya?ml"
    r"|.*(?:credential|secret|passw|token).*",
    re.IGNORECASE,
)


class InputReader:
    """Reads the inputs of a session's projects: ignored data, mounts, passed files, passed variables.

    The content is read so that an input is equal in two checkouts, within a budget, and only once if two projects share a file.
    What may be a secret is never read, since a digest of it could be guessed: of a passed file only the size is recorded, of
    a variable only whether it is set.

    Args:
        workspace_root: the folder that the manifest's paths resolve against.
        checkout: what `read_checkout(workspace_root)` returned; it knows what git does not hold.
        projects: all declared projects: a folder that one may write to is not an input of another.
        reports: files that the session itself writes.
        environ: the values of `pass_env`; by default the environment of this process.
    """

    def __init__(
        self,
        workspace_root: Path,
        checkout: Checkout,
        projects: Iterable[GoldenProjectConfig],
        reports: Iterable[Path | None] = (),
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._workspace = os.path.realpath(workspace_root)
        self._root = None if checkout.root is None else os.path.realpath(checkout.root)
        self._ignored = tuple(checkout.ignored or ())
        self._is_known = checkout.root is None or checkout.ignored is not None
        self._environ = os.environ if environ is None else environ
        mounts = (mount for project in projects for mount in project.mounts if mount.mode == "write")
        written = [*(mount.path for mount in mounts), *(str(report) for report in reports if report is not None)]
        self._products = tuple(map(self._resolve, written))
        self._names: dict[tuple[Any, ...], str] = {}

    def read(self, project: GoldenProjectConfig) -> dict[str, Any]:
        """Return a project's inputs as JSON-safe values, in the form that `compare_inputs` takes; paths are redacted."""
        folder = self._resolve(project.project_dir or project.path)
        if project.project_dir is None and not Path(folder).is_dir():
            folder = str(Path(folder).parent)
        search = _Search(self._names, self._products)
        places = list(self._list_places(folder, self._show(folder))) if self._is_known else []
        for mount in project.mounts:
            if mount.mode != "write":
                places += self._list_places(self._resolve(mount.path), mount.path.rstrip("/"))
        for place in places:
            if not _is_any_below(place.path, self._products):
                search.read(place)
        shown = redact_paths(list(search.files))
        inside = self._show(folder)
        return {
            "holds": self._root is not None,
            "folder": f"{inside}/" if inside else "",
            "is_all": search.is_all,
            "files": dict(zip(shown, search.files.values(), strict=True)),
            "passed": dict(self._look_at_passed(project)),
            "variables": {name: name in self._environ for name in project.pass_env},
        }

    def _resolve(self, path: str) -> str:
        # An unknown user is not an error.
        return os.path.realpath(Path(self._workspace, os.path.expanduser(path)))  # noqa: PTH111

    def _show(self, path: str) -> str:
        """Return a path relative to the checkout's root, or if it is outside git, relative to the workspace."""
        relative = os.path.relpath(path, self._root or self._workspace).replace(os.sep, "/")
        return "" if relative == "." else relative

    def _list_places(self, path: str, shown: str) -> Iterator[_Place]:
        """Yield the paths at or below a path that git does not hold: all of them outside the checkout, otherwise the ignored ones."""
        if self._root is None or not _is_at_or_below(path, self._root):
            yield _Place(path, shown)
            return
        for relative in self._ignored:
            ignored = str(Path(self._root, relative))
            if _is_at_or_below(path, ignored):
                yield _Place(path, shown)
            elif _is_at_or_below(ignored, path):
                below = os.path.relpath(ignored, path).replace(os.sep, "/")
                if not any(map(is_left_out, below.split("/"))):
                    yield _Place(ignored, f"{shown}/{below}" if shown else below)

    def _look_at_passed(self, project: GoldenProjectConfig) -> Iterator[tuple[str, list[Any]]]:
        for declared in project.pass_files:
            with suppress(OSError, ValueError):
                yield declared, [Path(self._resolve(declared)).stat().st_size, None]


class _Place(NamedTuple):
    """A file or folder to read, and its path as it is shown."""

    path: str
    shown: str


class _Search:
    """A search through all places of a project: the files found so far, and whether they are all."""

    def __init__(self, names: dict[tuple[Any, ...], str], products: tuple[str, ...]) -> None:
        self.files: dict[str, list[Any]] = {}
        self.is_all = True
        self._names = names
        self._products = products
        self._left = _MOST_LOOKED_AT
        self._bytes_left = _MOST_BYTES

    def read(self, place: _Place) -> None:
        """Read a place and everything below it, without following symlinks."""
        try:
            status = os.lstat(place.path)
        except (OSError, ValueError):
            return
        if stat.S_ISDIR(status.st_mode):
            self._read_folders(place)
        else:
            self._keep(place, status)

    def _read_folders(self, place: _Place) -> None:
        waiting = [place]
        while waiting:
            folder = waiting.pop(0)
            if self._left <= 0 or len(self.files) >= _MOST_INPUTS:
                self.is_all = False
                return
            waiting += self._list_folder(folder)

    def _list_folder(self, folder: _Place) -> Iterator[_Place]:
        """Keep the files of a folder, and yield the folders in it."""
        entries = self._read_folder(folder.path)
        if is_environment({entry.name for entry in entries}):
            return
        prefix = f"{folder.shown}/" if folder.shown else ""
        files: list[tuple[os.DirEntry[str], os.stat_result]] = []
        for entry in entries:
            if is_left_out(entry.name) or _is_any_below(entry.path, self._products):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield _Place(entry.path, prefix + entry.name)
                continue
            with suppress(OSError):
                files.append((entry, entry.stat(follow_symlinks=False)))
        if len(files) > MOST_IN_FOLDER:
            self.files[prefix or "./"] = fold_files({entry.name: status.st_size for entry, status in files})
            return
        for entry, status in files:
            self._keep(_Place(entry.path, prefix + entry.name), status)

    def _read_folder(self, path: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(path) as listing:
                entries = list(islice(listing, self._left))
        except OSError:
            return []
        self._left -= len(entries)
        self.is_all = self.is_all and self._left > 0
        return sorted(entries, key=lambda entry: entry.name)

    def _keep(self, place: _Place, status: os.stat_result) -> None:
        if len(self.files) >= _MOST_INPUTS:
            self.is_all = False
        elif stat.S_ISLNK(status.st_mode):
            self.files[place.shown] = [status.st_size, self._name_link(place.path)]
        elif stat.S_ISREG(status.st_mode):
            self.files[place.shown] = [status.st_size, self._name(place, status)]

    def _name(self, place: _Place, status: os.stat_result) -> str | None:
        """Return `w` and a digest of a file, or `p` and a digest of its size and parts; None if it was not read."""
        file = Path(place.path)
        if _CREDENTIALS.fullmatch(file.name) or is_secret_name(file.stem):
            return None
        known = (place.path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        if known not in self._names:
            is_whole = status.st_size <= min(_MOST_OF_A_FILE, self._bytes_left)
            self._bytes_left -= status.st_size if is_whole else _BLOCK * _BLOCKS
            with suppress(OSError):
                self._names[known] = _read_name(place.path, status.st_size, is_whole=is_whole)
        return self._names.get(known)

    def _name_link(self, path: str) -> str | None:
        with suppress(OSError):
            return f"l{_digest([os.fsencode(Path(path).readlink())])}"
        return None


def _read_name(path: str, size: int, *, is_whole: bool) -> str:
    with Path(path).open("rb", buffering=0) as file:
        if is_whole:
            return f"w{_digest([file.read(size)])}"
        parts = [str(size).encode()]
        for number in range(_BLOCKS):
            file.seek(max(0, size - _BLOCK) * number // (_BLOCKS - 1))
            parts.append(file.read(_BLOCK))
        return f"p{_digest(parts)}"


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def fold_files(sizes: Mapping[str, int]) -> list[Any]:
    """Return the value that stands for a folder of many files, made from their names and sizes."""
    told = "\0".join(f"{name}\0{sizes[name]}" for name in sorted(sizes))
    return [sum(sizes.values()), _digest([told.encode("utf-8", "surrogatepass")]), len(sizes)]


def is_by_product(name: str) -> bool:
    """Tell by its name whether a file or folder belongs to a tool, so that no pipeline reads it."""
    return name in _BY_PRODUCTS or _PASSING_FILES.fullmatch(name) is not None


def is_left_out(name: str) -> bool:
    """Tell by its name whether a file or folder comes and goes by itself, such as builds and logs."""
    return name in _PASSING or _PASSING_FILES.fullmatch(name) is not None


def _is_any_below(path: str, folders: Iterable[str]) -> bool:
    return any(_is_at_or_below(path, folder) for folder in folders)


def _is_at_or_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip(os.sep)}{os.sep}")


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The inputs of a run, None if they are not known, and the paths that it wrote, relative to its folder."""

    found: Mapping[str, Any] | None = None
    written: tuple[str, ...] = ()

    @classmethod
    def read(cls, found: Any, write_set: Any) -> RunInputs:
        """Read it from a store's values, which may be damaged. `write_set` is what `WriteSet.to_dict()` returned."""
        written = as_mapping(write_set)
        paths = tuple(str(path) for how in ("created", "changed", "removed") for path in written.get(how) or ())
        return cls(found if isinstance(found, dict) else None, paths)

    @property
    def is_known(self) -> bool:
        """Tell whether the inputs were read."""
        return bool(self.found)

    def list_products(self) -> frozenset[str]:
        """Return the paths that the run wrote, as paths of inputs, and their folders."""
        folder = str((self.found or {}).get("folder") or "")
        paths = [f"{folder}{path}" for path in self.written]
        return frozenset([*paths, *map(_name_folder, paths)])


@dataclass(frozen=True, slots=True)
class InputChange:
    """An input that differs. `kind` is file, passed or variable; `how` is changed, added or removed.

    `detail` describes the sizes for people.
    """

    kind: str
    name: str
    how: str
    detail: str = ""

    def __str__(self) -> str:
        if self.kind == "variable":
            return f"{self.name} is {'set now' if self.how == 'added' else 'not set any more'}"
        verb = {"changed": "changed", "added": "is new", "removed": "is gone"}[self.how]
        return f"{self.name} {verb} ({self.detail})"


def compare_inputs(before: RunInputs, now: RunInputs, told: Collection[str] = ()) -> tuple[InputChange, ...]:
    """Return the inputs that differ; nothing if those of one run are not known.

    Files that either run wrote are not inputs. Paths in `told` are left out, since they are reported elsewhere.
    """
    then, present = before.found, now.found
    if not then or not present or then.get("holds") != present.get("holds"):
        return ()
    passed_over = before.list_products() | now.list_products() | set(told)
    is_all = bool(then.get("is_all") and present.get("is_all"))
    files, passed, variables = (
        (as_mapping(then.get(key)), as_mapping(present.get(key))) for key in ("files", "passed", "variables")
    )
    changed = _compare(*_fold_alike(*files))
    changes = [
        InputChange("file", *one) for one in changed if one[0] not in passed_over and (is_all or one[1] == "changed")
    ]
    changes += [InputChange("passed", *one) for one in _compare(*passed)]
    return (*changes, *_compare_variables(*variables))


def _compare(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for path in sorted(before.keys() | now.keys()):
        if path not in before:
            yield path, "added", _describe(now[path])
        elif path not in now:
            yield path, "removed", _describe(before[path])
        elif _differ(before[path], now[path]):
            yield path, "changed", _describe_change(before[path], now[path])


def _differ(before: list[Any], now: list[Any]) -> bool:
    if before[0] != now[0] or before[2:] != now[2:]:
        return True
    # A file that was read in part cannot be compared with one that was read as a whole or not at all.
    is_comparable = None not in {before[1], now[1]} and before[1][:1] == now[1][:1]
    return before[1] != now[1] and (is_comparable or len(now) > 2)


def _describe(mark: list[Any]) -> str:
    return f"{mark[2]} files, {format_size(mark[0])}" if len(mark) > 2 else format_size(mark[0])


def _describe_change(before: list[Any], now: list[Any]) -> str:
    then, present = _describe(before), _describe(now)
    if then != present:
        return f"{then} -> {present}"
    if before[0] != now[0]:
        return f"{before[0]:,} -> {now[0]:,} bytes"
    return f"{present}, other {'files' if len(now) > 2 else 'content'}"


def _compare_variables(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[InputChange]:
    for name, is_set in now.items():
        if before.get(name, is_set) != is_set:
            yield InputChange("variable", name, "added" if is_set else "removed")


def _fold_alike(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Count the files of a folder as one input if they are one input on the other side only."""
    folders = {path for path in before.keys() | now.keys() if path.endswith("/")}
    return (_fold(before, folders - before.keys()), _fold(now, folders - now.keys())) if folders else (before, now)


def _fold(files: Mapping[str, Any], folders: Iterable[str]) -> Mapping[str, Any]:
    folded = dict(files)
    for folder in folders:
        inside = [path for path in files if _name_folder(path) == folder]
        if inside:
            folded[folder] = fold_files({path.rpartition("/")[2]: files[path][0] for path in inside})
        for path in inside:
            del folded[path]
    return folded


def _name_folder(path: str) -> str:
    return f"{path.rpartition('/')[0] or '.'}/"


@dataclass(frozen=True, slots=True)
class IgnoredThen:
    """Files and folders that git ignored when a run began; folders end with a slash. Without `is_all` there were too many."""

    names: tuple[str, ...]
    is_all: bool = True

    @classmethod
    def read(cls, plain: Any) -> IgnoredThen | None:
        """Read back what `describe_ignored` returned; None for any other value."""
        names = plain.get("names") if isinstance(plain, dict) else None
        return cls(tuple(map(str, names)), plain.get("is_all") is True) if isinstance(names, list) else None


def describe_ignored(
    checkout: Checkout, hide: Callable[[Sequence[str]], Sequence[str] | None]
) -> dict[str, Any] | None:
    """Return the names of what git ignores in a checkout and may be an input; None if that is not known.

    The values are JSON-safe. `hide` removes what the store does not keep from the names.
    """
    root = checkout.root
    if root is None or checkout.ignored is None:
        return None
    found = [name for name in checkout.ignored if not is_no_input(root, name)]
    reports = frozenset(list_reports(root, found))
    names = [name for name in found if name not in reports]
    hidden = hide(names[:_MOST_NAMES])
    return None if hidden is None else {"names": list(hidden), "is_all": len(names) <= _MOST_NAMES}


def is_no_input(root: Path, ignored: str) -> bool:
    """Tell whether an ignored path is a cache, a by-product of tools, or a virtual environment, which is compared by its versions."""
    return any(map(is_by_product, ignored.rstrip("/").split("/"))) or is_ignored_environment(root, ignored)


def is_ignored_environment(root: Path, ignored: str) -> bool:
    """Tell whether an ignored path is the folder of a virtual environment."""
    return ignored.endswith("/") and (root / ignored / VENV_MARK).exists()


def list_reports(root: Path, untracked: Iterable[str]) -> tuple[str, ...]:
    """Return the untracked paths that are reports of earlier runs or by-products of tools, which are not inputs.

    They are recognised by their names, or by their first bytes; no more is read of them.
    """
    found, left = [], _MOST_READ
    for path in untracked:
        if any(map(is_by_product, path.split("/"))):
            found.append(path)
        elif path.endswith(tuple(_REPORTS)) and left:
            left -= 1
            found += [path] if _is_report(root / path) else []
    return tuple(found)


def _is_report(file: Path) -> bool:
    try:
        # Reading a pipe could wait for ever.
        if not file.is_file():
            return False
        with file.open("rb") as opened:
            beginning = opened.read(_BEGINNING_BYTES)
    except OSError:
        return False
    return _REPORTS[file.suffix].search(beginning) is not None
