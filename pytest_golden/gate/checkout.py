"""The state of a git checkout, uncommitted changes included. Read-only; what changed since is `checkout_changes.py`.

A person on a laptop edits and runs the gate without a commit: so files that differ from the commit are known by the
content they had.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gate.blobs import BlobNames
from pytest_golden.gate.git import run_git_raw
from pytest_golden.gateway.fingerprint import VENV_MARK
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MOST_FILES = 500
LONGEST_SECONDS = 20
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Checkout:
    """What a gate ran on: each field is None when it is not known, as outside git.

    `branch` is None also when none is checked out. `dirty_files` names the content of each path, relative to `root`,
    that differs from the commit or is not in it (None: it is gone); at most 500 of them. Paths are redacted, but for those
    that are `ignored`, folders with a slash at the end.
    """

    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None
    dirty_files: Mapping[str, str | None] | None = None
    root: Path | None = None
    ignored: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values, without the root and what is ignored."""
        files = self.dirty_files
        return {
            "commit": self.commit,
            "branch": self.branch,
            "dirty": self.dirty,
            "dirty_files": None if files is None else dict(files),
        }


def read_checkout(folder: Path) -> Checkout:
    """Read the state of the checkout that a folder is in; nothing is known outside git and without it."""
    try:
        top = run_git_raw(folder, "rev-parse", "--show-toplevel", longest_seconds=LONGEST_SECONDS)
        status = run_git_raw(folder, *_STATUS, longest_seconds=LONGEST_SECONDS)
    except GoldenError:
        return Checkout()
    if top.returncode or status.returncode:
        return Checkout()
    root = Path(os.fsdecode(top.stdout.removesuffix(b"\n")))
    records = _read_records(os.fsdecode(status.stdout))
    headers = dict(record.split(" ", 1) for kind, record in records if kind == "#")
    commit, branch = headers.get("branch.oid", ""), headers.get("branch.head", "")
    entries = _without_environments([_read_entry(kind, record) for kind, record in records if kind not in "#!"])
    return Checkout(
        commit=commit if is_commit(commit) else None,
        branch=None if branch in {"", "(detached)"} else redact(branch),
        dirty=bool(entries),
        dirty_files=_name_contents(entries, root, "sha256" if len(commit) == 64 else "sha1"),
        root=root,
        ignored=tuple(path for kind, path in records if kind == "!"),
    )


# With -z all paths are relative to the root; without renames, one is a file that went and one that came.
_STATUS = (
    "status",
    "--porcelain=v2",
    "-z",
    "--branch",
    "--no-ahead-behind",
    "--untracked-files=all",
    "--no-renames",
    "--ignored=matching",
)


class _Entry(NamedTuple):
    """A path that differs from the commit: its blob and modes there and here, as far as it is tracked."""

    path: str
    is_tracked: bool = False
    submodule: str = "N..."
    committed_mode: str = ""
    mode: str = ""
    committed_blob: str = ""


def _read_records(text: str) -> list[tuple[str, str]]:
    """Take apart what `git status` wrote: the kind and the rest of each record.

    Source: git-status(1), "Porcelain Format Version 2".
    """
    return [(record[0], record[2:]) for record in text.split("\0") if record]


def _read_entry(kind: str, record: str) -> _Entry:
    if kind == "1":
        _, submodule, committed_mode, _, mode, committed_blob, _, path = record.split(" ", 7)
        return _Entry(path, True, submodule, committed_mode, mode, committed_blob)
    if kind == "u":
        return _Entry(record.split(" ", 9)[9], True)
    return _Entry(record)


def _without_environments(entries: list[_Entry]) -> list[_Entry]:
    folders = find_environments(entry.path for entry in entries if not entry.is_tracked)
    return (
        [entry for entry in entries if entry.is_tracked or not entry.path.startswith(folders)] if folders else entries
    )


def find_environments(untracked: Iterable[str]) -> tuple[str, ...]:
    """Find the virtual environments that git was not told to ignore, each with a slash: no edits, and thousands of files."""
    return tuple(path.removesuffix(VENV_MARK) for path in untracked if path.endswith(f"/{VENV_MARK}"))


def _name_contents(entries: list[_Entry], root: Path, algorithm: str) -> dict[str, str | None]:
    names = BlobNames(root, algorithm)
    # A stable sort: when there are too many, those that git knows come first.
    kept = sorted(entries, key=lambda entry: not entry.is_tracked)[:MOST_FILES]
    contents = [_name_content(entry, names) for entry in kept]
    shown = redact_paths([entry.path for entry in kept])
    pairs = zip(shown, kept, contents, strict=True)
    return {path: content for path, entry, content in pairs if content != entry.committed_blob}


def _name_content(entry: _Entry, names: BlobNames) -> str | None:
    content = names.find(entry.path)
    if content is None:
        return None
    if entry.submodule[0] == "S" and not entry.submodule.endswith(".."):
        return f"{content} with changes of its own"
    is_same_mode = "000000" in {entry.committed_mode, entry.mode} or entry.committed_mode == entry.mode
    return content if is_same_mode else f"{content} {entry.mode}"


def redact_paths(paths: Sequence[str]) -> list[str]:
    """Redact many paths, quickly where there is nothing to redact."""
    together = "\0".join(paths)
    return list(paths) if redact(together) == together else [redact(path) for path in paths]


def is_commit(text: str) -> bool:
    """Tell whether a text is the whole id of a commit."""
    return _COMMIT.fullmatch(text) is not None
