"""What changed among a project's inputs that git does not hold, as short lines. Pure; `inputs.py` looks at them.

Inputs are plain values: `{"holds", "folder", "is_all", "files", "passed", "variables"}`. `files` maps a path to `[size,
name of the content]`, the name None where it was not read; a path that ends with a slash is a folder of many files, with
the count as a third. `passed` is alike for `pass_files`, `variables` tells of each name in `pass_env` whether it is set.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.wording import format_size

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

#: A folder with more files directly in it is one input.
MOST_IN_FOLDER = 40


@dataclass(frozen=True, slots=True)
class InputChange:
    """One input that differs. `kind` is file, passed or variable; `how` is changed, added or removed.

    `detail` tells more of it to people: sizes.
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


@dataclass(frozen=True, slots=True)
class RunInputs:
    """The inputs of one run, None where they are not known, and what the run wrote, by paths below its folder."""

    found: Mapping[str, Any] | None = None
    written: tuple[str, ...] = ()

    @classmethod
    def read(cls, found: Any, write_set: Any) -> RunInputs:
        """Make it of plain values, whatever a store may hold in their place; `write_set` is `WriteSet.to_dict()`."""
        written = write_set if isinstance(write_set, dict) else {}
        paths = tuple(str(path) for how in ("created", "changed", "removed") for path in written.get(how) or ())
        return cls(found if isinstance(found, dict) else None, paths)

    @property
    def is_known(self) -> bool:
        """Tell whether somebody has looked."""
        return bool(self.found)

    def list_products(self) -> frozenset[str]:
        """Give the paths of what the run wrote in the form of its inputs, with the folders in which it lies."""
        folder = str((self.found or {}).get("folder") or "")
        paths = [f"{folder}{path}" for path in self.written]
        return frozenset([*paths, *map(_name_folder, paths)])


def compare_inputs(before: RunInputs, now: RunInputs, told: Collection[str] = ()) -> tuple[InputChange, ...]:
    """Give what differs; nothing where one of the two is not known.

    What either run wrote by itself is no input, and paths that are `told` otherwise are not told twice.
    """
    then, present = before.found, now.found
    if not then or not present or then.get("holds") != present.get("holds"):
        return ()
    passed_over = before.list_products() | now.list_products() | set(told)
    is_all = bool(then.get("is_all") and present.get("is_all"))
    files = _compare(*_fold_alike(_member(then, "files"), _member(present, "files")))
    changes = [
        InputChange("file", *one) for one in files if one[0] not in passed_over and (is_all or one[1] == "changed")
    ]
    changes += [InputChange("passed", *one) for one in _compare(_member(then, "passed"), _member(present, "passed"))]
    return (*changes, *_compare_variables(_member(then, "variables"), _member(present, "variables")))


def fold_files(sizes: Mapping[str, int]) -> list[Any]:
    """Give the value of a folder of many files from their names and sizes."""
    told = "\0".join(f"{name}\0{sizes[name]}" for name in sorted(sizes))
    name = hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return [sum(sizes.values()), name, len(sizes)]


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
    # Read in part and read as a whole, or not read at all, cannot be compared.
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
    """Fold the files of a folder that is one input on the other side alone."""
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


def _member(inputs: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = inputs.get(key)
    return value if isinstance(value, dict) else {}
