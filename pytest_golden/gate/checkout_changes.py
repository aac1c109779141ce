"""What changed between two states of a checkout: commits, and files by their content. It asks git and writes nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gate.checkout import LONGEST_SECONDS, MOST_FILES, is_commit, redact_paths
from pytest_golden.gate.git import run_git_raw
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from pytest_golden.gate.checkout import Checkout

MOST_SUBJECTS = 5
MOST_COMMITS = 1000
MOST_NAMED = 10
_SHORT = 7
# Neither is a content: a path as both commits have it, and one of which nothing is known.
_COMMITTED = "as committed"
_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CheckoutChanges:
    """What changed between two states of a checkout.

    `commit_range` is `1a2b3c4..9f8e7d6`, None when both are at one commit. `commit_count` counts the commits that came,
    1,000 at most, `lost_count` those that went (another branch, an older commit); None when they are not known, and
    then `note` says why. `subjects` are the newest. `files` are the first few changed ones, those of the project first.
    """

    commit_range: str | None = None
    commit_count: int | None = None
    lost_count: int | None = None
    subjects: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    inside_count: int = 0
    outside_count: int = 0
    note: str | None = None

    @property
    def is_known(self) -> bool:
        """Tell whether all that changed in git was found."""
        return self.note is None

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values."""
        plain = {name: getattr(self, name) for name in self.__slots__}
        return {**plain, "subjects": list(self.subjects), "files": list(self.files)}


def changes_between(folder: Path, before: Checkout, now: Checkout, within: Path | None = None) -> CheckoutChanges:
    """Find what changed in the checkout of a folder from an earlier state to the present one.

    Args:
        folder: lies in the checkout.
        before: the earlier state.
        now: what `read_checkout(folder)` gave.
        within: the project's own folder, absolute; its files are named first.
    """
    if before.commit == now.commit:
        note = _tell_unknown(before, now)
        return _with_files(CheckoutChanges(note=note), _compare_dirty(before, now, {}), now.root, within)
    if before.commit is None or now.commit is None:
        return CheckoutChanges(note=f"the commit {'then' if before.commit is None else 'now'} is not known")
    commit_range = f"{before.commit[:_SHORT]}..{now.commit[:_SHORT]}"
    try:
        committed, came, went = _read_range(folder, before.commit, now.commit)
    except GoldenError as error:
        return CheckoutChanges(commit_range, note=str(error))
    changes = CheckoutChanges(commit_range, len(came), len(went), redact(came[:MOST_SUBJECTS]))
    return _with_files(changes, _compare_dirty(before, now, committed), now.root, within)


def list_changed_files(
    folder: Path, before: Checkout, now: Checkout, *, longest_seconds: float = LONGEST_SECONDS
) -> tuple[str, ...]:
    """Give all paths whose content is another one, sorted, whether it came by a commit or without.

    Raises:
        GoldenError: it is not known: no git, a commit that is not in this clone, or edits that were not all kept.
    """
    unknown = _tell_unknown(before, now)
    if unknown is not None or before.commit is None or now.commit is None:
        message = unknown or "a commit is not known"
        raise GoldenError(message)
    if before.commit == now.commit:
        return tuple(sorted(_compare_dirty(before, now, {})))
    committed = _list_committed(folder, before.commit, now.commit, longest_seconds)
    return tuple(sorted(_compare_dirty(before, now, committed)))


def count_commits(folder: Path, before: str, now: str) -> int | None:
    """Count the commits that came from one commit to another, 1,000 at most; None when that is not known."""
    try:
        came, _ = _list_commits(folder, before, now)
    except GoldenError:
        return None
    return len(came)


class _Range(NamedTuple):
    """What two commits have between them: the contents then and now of each path, and the subjects, newest first."""

    committed: Mapping[str, tuple[str | None, str | None]]
    came: tuple[str, ...]
    went: tuple[str, ...]


@lru_cache(maxsize=4)
def _read_range(folder: Path, before: str, now: str) -> _Range:
    return _Range(_list_committed(folder, before, now), *_list_commits(folder, before, now))


def _tell_unknown(before: Checkout, now: Checkout) -> str | None:
    if before.dirty_files is None or now.dirty_files is None:
        told = "what changed in the files is not known"
        return told if now.root is not None else f"no checkout here, so {told}"
    if max(len(before.dirty_files), len(now.dirty_files)) >= MOST_FILES:
        return f"{MOST_FILES} files or more are not committed, and not all of them were compared; commit or ignore them"
    return None


# Commits never change, and the projects that fail together passed together.
@lru_cache(maxsize=4)
def _list_committed(
    folder: Path, before: str, now: str, longest_seconds: float = LONGEST_SECONDS
) -> Mapping[str, tuple[str | None, str | None]]:
    asked = ("diff-tree", "-r", "-z", "--no-renames", before, now)
    fields = _ask(folder, before, *asked, longest_seconds=longest_seconds).split("\0")
    paths = redact_paths(fields[1::2])
    return {path: _read_raw(raw) for raw, path in zip(fields[::2], paths, strict=False)}


def _read_raw(raw: str) -> tuple[str | None, str | None]:
    """Read one line of raw output. Source: git-diff-tree(1), "Raw output format"."""
    old_mode, mode, old_blob, blob, status = raw[1:].split(" ")
    if status == "A":
        return None, blob
    if status == "D":
        return old_blob, None
    return (old_blob, blob) if old_mode == mode else (f"{old_blob} {old_mode}", f"{blob} {mode}")


def _list_commits(folder: Path, before: str, now: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    form = ("-z", "--format=%m%s", "--no-show-signature", "--no-color")
    sides = ("--left-right", f"--max-count={MOST_COMMITS}", f"{before}...{now}")
    told = _ask(folder, before, "log", *form, *sides)
    marked = told.split("\0")
    came, went = (tuple(line[1:] for line in marked if line.startswith(sign)) for sign in "><")
    return came, went


def _ask(folder: Path, before: str, *arguments: str, longest_seconds: float = LONGEST_SECONDS) -> str:
    done = run_git_raw(folder, *arguments, longest_seconds=longest_seconds) if is_commit(before) else None
    if done is None or done.returncode:
        message = f"commit {before[:_SHORT]} is not in this clone (it is shallow, or history was rewritten)"
        raise GoldenError(message)
    return os.fsdecode(done.stdout)


def _compare_dirty(
    before: Checkout, now: Checkout, committed: Mapping[str, tuple[str | None, str | None]]
) -> Iterator[str]:
    """Give the paths whose content is another one, whether it came by a commit or without."""
    then_files, now_files = before.dirty_files, now.dirty_files
    for path in dict.fromkeys([*committed, *(now_files or ()), *(then_files or ())]):
        then_content, now_content = committed.get(path, (_COMMITTED, _COMMITTED))
        then_content = _look_up(then_files, path, then_content)
        now_content = _look_up(now_files, path, now_content)
        if then_content != now_content and _UNKNOWN not in {then_content, now_content}:
            yield path


def _look_up(files: Mapping[str, str | None] | None, path: str, committed: str | None) -> str | None:
    if files is None:
        return _UNKNOWN if committed == _COMMITTED else committed
    if path not in files and len(files) >= MOST_FILES and committed == _COMMITTED:
        return _UNKNOWN
    return files.get(path, committed)


def _with_files(
    changes: CheckoutChanges, changed: Iterable[str], root: Path | None, within: Path | None
) -> CheckoutChanges:
    folder = _find_prefix(root, within)
    inside: list[str] = []
    outside: list[str] = []
    for path in sorted(changed):
        (outside if folder is None or not path.startswith(folder) else inside).append(path)
    named = tuple([*inside, *outside][:MOST_NAMED])
    return replace(changes, files=named, inside_count=len(inside), outside_count=len(outside))


def _find_prefix(root: Path | None, within: Path | None) -> str | None:
    """Give what the paths below `within` begin with: nothing where that is the whole checkout, None outside it."""
    if root is None or within is None:
        return ""
    real = within.resolve()
    return f"{real.relative_to(root).as_posix()}/".removeprefix("./") if real.is_relative_to(root) else None
