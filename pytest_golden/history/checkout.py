"""A git checkout: its state with uncommitted edits, what changed between two states, and its commits. Read-only.

People run the gate on edits that are not committed, so files that differ from the commit are known by their content.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.git import BlobNames, find_commit, find_fork, find_top, run_git, run_git_raw, split_paths
from pytest_golden.gateway.write_set import VENV_MARK
from pytest_golden.redaction.redactor import redact
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MOST_FILES = 500
LONGEST_SECONDS = 20
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# With -z all paths are relative to the root. Without renames, a moved file is one removed and one added.
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
_LOG = ("log", "-z", "--no-show-signature", "--no-color")
MOST_SUBJECTS = 5
MOST_COMMITS = 1000
MOST_NAMED = 10
_SHORT = 7
# Neither is a name of content: a path that is as in both commits, and a path that nothing is known of.
_COMMITTED = "as committed"
_UNKNOWN = "unknown"
_MOST_LISTED_COMMITS = 100
_MOST_EXAMINED_COMMITS = 10
_SECONDS = 5
_DIFF_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Checkout(Shape):
    """What a gate ran on. A field is None if it is not known; outside git all are.

    `branch` is None also if no branch is checked out. `dirty_files` maps each path, relative to `root`, that differs from
    the commit or is not in it to a name of its content (None: it is gone), at most 500 of them. `ignored` are the paths
    that git ignores; folders end with a slash. All paths are redacted but those in `ignored`.
    """

    commit: str | None = None
    branch: str | None = None
    dirty: bool | None = None
    dirty_files: Mapping[str, str | None] | None = None
    root: Path | None = field(default=None, metadata=form(hidden=True))
    ignored: tuple[str, ...] | None = field(default=None, metadata=form(hidden=True))


def read_checkout(folder: Path) -> Checkout:
    """Read the state of the checkout that a folder is in; all fields are None outside git, or if git is not installed."""
    try:
        root = find_top(folder, longest_seconds=LONGEST_SECONDS)
        status = run_git_raw(folder, *_STATUS, longest_seconds=LONGEST_SECONDS)
    except GoldenError:
        return Checkout()
    if root is None or status.returncode:
        return Checkout()
    # Source: git-status(1), "Porcelain Format Version 2".
    records = [(record[0], record[2:]) for record in split_paths(status.stdout)]
    headers = dict(record.split(" ", 1) for kind, record in records if kind == "#")
    commit, branch = headers.get("branch.oid", ""), headers.get("branch.head", "")
    entries = [_read_entry(kind, record) for kind, record in records if kind not in "#!"]
    environments = find_environments(entry.path for entry in entries if not entry.is_tracked)
    entries = [entry for entry in entries if entry.is_tracked or not entry.path.startswith(environments)]
    return Checkout(
        commit=commit if is_commit(commit) else None,
        branch=None if branch in {"", "(detached)"} else redact(branch),
        dirty=bool(entries),
        dirty_files=_name_contents(entries, root, "sha256" if len(commit) == 64 else "sha1"),
        root=root,
        ignored=tuple(path for kind, path in records if kind == "!"),
    )


def read_parents(folder: Path) -> tuple[str, ...]:
    """Return the parents of the commit that is checked out; none outside git, or if git is not installed."""
    try:
        told = run_git(folder, "rev-parse", "HEAD^@")
    except GoldenError:
        return ()
    return tuple(told.stdout.split()) if not told.returncode else ()


class _Entry(NamedTuple):
    """A path that differs from the commit. If it is tracked: its committed blob, and its modes there and here."""

    path: str
    is_tracked: bool = False
    submodule: str = "N..."
    committed_mode: str = ""
    mode: str = ""
    committed_blob: str = ""


def _read_entry(kind: str, record: str) -> _Entry:
    if kind == "1":
        _, submodule, committed_mode, _, mode, committed_blob, _, path = record.split(" ", 7)
        return _Entry(path, True, submodule, committed_mode, mode, committed_blob)
    if kind == "u":
        return _Entry(record.split(" ", 9)[9], True)
    return _Entry(record)


def find_environments(untracked: Iterable[str]) -> tuple[str, ...]:
    """Find virtual environments that git does not ignore, each with a slash at its end: thousands of files, and no edits."""
    return tuple(path.removesuffix(VENV_MARK) for path in untracked if path.endswith(f"/{VENV_MARK}"))


def _name_contents(entries: list[_Entry], root: Path, algorithm: str) -> dict[str, str | None]:
    names = BlobNames(root, algorithm)
    # If there are too many, tracked files come first; the sort is stable.
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
    """Redact many paths; fast if there is nothing to redact."""
    together = "\0".join(paths)
    return list(paths) if redact(together) == together else [redact(path) for path in paths]


def is_commit(text: str) -> bool:
    """Tell whether a text is a full commit id."""
    return _COMMIT.fullmatch(text) is not None


@dataclass(frozen=True, slots=True)
class CheckoutChanges(Shape):
    """What changed between two states of a checkout.

    `commit_range` is `1a2b3c4..9f8e7d6`, None if both are at one commit. `commit_count` counts the commits that were
    added, up to 1,000, `lost_count` those that are gone (another branch, an older commit); they are None if that is not
    known, and `note` says why. `subjects` are of the newest commits. `files` are the first few changed files, those of
    the project first.
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
        """Tell whether git could tell everything that changed."""
        return self.note is None


def changes_between(folder: Path, before: Checkout, now: Checkout, within: Path | None = None) -> CheckoutChanges:
    """Return what changed in a checkout from an earlier state to the present one.

    Args:
        folder: a folder in the checkout.
        before: the earlier state.
        now: what `read_checkout(folder)` returned.
        within: the project's own folder, absolute; its files are named first.
    """
    if before.commit == now.commit:
        note = _tell_unknown(before, now)
        return _with_files(CheckoutChanges(note=note), _compare_dirty(before, now, {}), now.root, within)
    if before.commit is None or now.commit is None:
        return CheckoutChanges(note=f"the commit {'then' if before.commit is None else 'now'} is not known")
    commit_range = f"{before.commit[:_SHORT]}..{now.commit[:_SHORT]}"
    try:
        committed = _list_committed(folder, before.commit, now.commit)
        came, went = _list_subjects(folder, before.commit, now.commit)
    except GoldenError as error:
        return CheckoutChanges(commit_range, note=str(error))
    changes = CheckoutChanges(commit_range, len(came), len(went), redact(came[:MOST_SUBJECTS]))
    return _with_files(changes, _compare_dirty(before, now, committed), now.root, within)


def list_changed_files(
    folder: Path, before: Checkout, now: Checkout, *, longest_seconds: float = LONGEST_SECONDS
) -> tuple[str, ...]:
    """Return all paths whose content changed, by a commit or by an edit, sorted.

    Raises:
        GoldenError: that is not known: no git, a commit that is not in this clone, or edits that were not all kept.
    """
    unknown = _tell_unknown(before, now)
    if unknown is not None or before.commit is None or now.commit is None:
        raise GoldenError(unknown or "a commit is not known")
    if before.commit == now.commit:
        return tuple(sorted(_compare_dirty(before, now, {})))
    committed = _list_committed(folder, before.commit, now.commit, longest_seconds)
    return tuple(sorted(_compare_dirty(before, now, committed)))


def count_commits(folder: Path, before: str, now: str) -> int | None:
    """Count the commits that were added from one commit to another, up to 1,000; None if that is not known."""
    try:
        return len(_list_subjects(folder, before, now)[0])
    except GoldenError:
        return None


def _tell_unknown(before: Checkout, now: Checkout) -> str | None:
    if before.dirty_files is None or now.dirty_files is None:
        told = "what changed in the files is not known"
        return told if now.root is not None else f"no checkout here, so {told}"
    if max(len(before.dirty_files), len(now.dirty_files)) >= MOST_FILES:
        return f"{MOST_FILES} files or more are not committed, and not all of them were compared; commit or ignore them"
    return None


# Commits never change, and projects that fail together often passed together.
@lru_cache(maxsize=4)
def _list_committed(
    folder: Path, before: str, now: str, longest_seconds: float = LONGEST_SECONDS
) -> Mapping[str, tuple[str | None, str | None]]:
    asked = ("diff-tree", "-r", "-z", "--no-renames", before, now)
    fields = _ask(folder, *asked, since=before, longest_seconds=longest_seconds).split("\0")
    paths = redact_paths(fields[1::2])
    return {path: _read_contents(raw) for raw, path in zip(fields[::2], paths, strict=False)}


def _read_contents(raw: str) -> tuple[str | None, str | None]:
    """Read one line of raw output. Source: git-diff-tree(1), "Raw output format"."""
    old_mode, mode, old_blob, blob, status = raw[1:].split(" ")
    if status == "A":
        return None, blob
    if status == "D":
        return old_blob, None
    return (old_blob, blob) if old_mode == mode else (f"{old_blob} {old_mode}", f"{blob} {mode}")


@lru_cache(maxsize=4)
def _list_subjects(folder: Path, before: str, now: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the subjects of the commits that were added and of those that are gone, newest first."""
    sides = ("--left-right", f"--max-count={MOST_COMMITS}", f"{before}...{now}")
    marked = _ask(folder, *_LOG, "--format=%m%s", *sides, since=before).split("\0")
    came, went = (tuple(line[1:] for line in marked if line.startswith(sign)) for sign in "><")
    return came, went


def _ask(folder: Path, *arguments: str, since: str | None = None, longest_seconds: float = LONGEST_SECONDS) -> str:
    is_askable = since is None or is_commit(since)
    done = run_git_raw(folder, *arguments, longest_seconds=longest_seconds) if is_askable else None
    if done is None or done.returncode:
        named = "a commit" if since is None else f"commit {since[:_SHORT]}"
        raise GoldenError(f"{named} is not in this clone (it is shallow, or history was rewritten)")
    return os.fsdecode(done.stdout)


def _compare_dirty(
    before: Checkout, now: Checkout, committed: Mapping[str, tuple[str | None, str | None]]
) -> Iterator[str]:
    """Yield the paths whose content changed, by a commit or by an edit."""
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
    """Return what the paths below `within` begin with: empty if that is the whole checkout, None if it is outside."""
    if root is None or within is None:
        return ""
    real = within.resolve()
    return f"{real.relative_to(root).as_posix()}/".removeprefix("./") if real.is_relative_to(root) else None


class Commit(NamedTuple):
    """A commit and the first line of its message, redacted."""

    id: str
    subject: str


# Commits never change, and projects that fail together are often fixed together.
@lru_cache(maxsize=64)
def list_commits(
    folder: Path, before: str, now: str, *, within: str | None = None, longest_seconds: float = _SECONDS
) -> tuple[Commit, ...]:
    """Return the commits that were added from one commit to another, newest first, at most 100.

    Merges are returned only if there are no other commits.

    Args:
        folder: a folder in the checkout.
        before: a full commit id.
        now: the full id of a later commit.
        within: return only commits that touch something below this path, relative to the checkout's root.
        longest_seconds: how long each call of git may take.

    Raises:
        GoldenError: git is not installed or does not answer, or one of the commits is not in this clone.
    """
    places = () if within is None else (within,)
    for merges in ("--no-merges", "--merges"):
        wanted = (f"--max-count={_MOST_LISTED_COMMITS}", merges, f"{before}..{now}")
        found = tuple(_read_log(folder, *wanted, places=places, longest_seconds=longest_seconds))
        if found:
            return found
    return ()


def _read_log(folder: Path, *wanted: str, places: Iterable[str], longest_seconds: float) -> Iterator[Commit]:
    within = (f":(top,literal){place}" for place in places)
    told = _ask(folder, *_LOG, "--format=%H %s", *wanted, "--", *within, longest_seconds=longest_seconds)
    for identity, _, subject in (line.partition(" ") for line in told.split("\0") if line):
        yield Commit(identity, redact(subject))


def find_commit_of(
    folder: Path, after: str, blobs: Mapping[str, str | None], *, longest_seconds: float = _SECONDS
) -> Commit | None:
    """Return the first commit after another one in which files have given contents.

    `blobs` maps paths relative to the checkout's root to blob ids, None for a file that is not there. The commit must be
    an ancestor of HEAD. None if there is none, or git cannot tell.
    """
    if not (blobs and is_commit(after)):
        return None
    with suppress(GoldenError):
        later = _read_log(folder, "--reverse", f"{after}..HEAD", places=blobs, longest_seconds=longest_seconds)
        for commit in islice(later, _MOST_EXAMINED_COMMITS):
            if all(_read_blob(folder, commit.id, path) == blob for path, blob in blobs.items()):
                return commit
    return None


def _read_blob(folder: Path, commit: str, path: str) -> str | None:
    found = run_git(folder, "rev-parse", "--verify", "--quiet", f"{commit}:{path}", longest_seconds=_SECONDS)
    return None if found.returncode else found.stdout.strip()


def descends(folder: Path, commit: str, ancestor: str, *, longest_seconds: float = _SECONDS) -> bool:
    """Tell whether a commit is a descendant of another, or the same; False also if that is not known."""
    if commit == ancestor:
        return True
    if not (is_commit(commit) and is_commit(ancestor)):
        return False
    try:
        done = run_git_raw(folder, "merge-base", "--is-ancestor", ancestor, commit, longest_seconds=longest_seconds)
    except GoldenError:
        return False
    return done.returncode == 0


def list_files_since(folder: Path, ref: str) -> tuple[str, ...]:
    """Return the files that differ from where this branch left a ref, with edits and new files.

    They are relative to the checkout's root. Virtual environments are left out.

    Raises:
        GoldenError: no git, not a repository, or an unknown ref; the message says what to fetch.
    """
    left = find_fork(folder, find_commit(folder, ref))
    diff = ("diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", left)
    others = ("ls-files", "-z", "--others", "--exclude-standard", "--full-name", ":/")
    changed, new = (_ask(folder, *asked, longest_seconds=_DIFF_SECONDS) for asked in (diff, others))
    untracked = list(filter(None, new.split("\0")))
    environments = find_environments(untracked)
    edits = (path for path in untracked if not path.startswith(environments))
    return tuple(redact_paths(sorted({*filter(None, changed.split("\0")), *edits})))


def has_commit(folder: Path, commit: str) -> bool:
    """Tell whether a commit is in this clone."""
    try:
        return is_commit(commit) and not run_git_raw(folder, "cat-file", "-e", f"{commit}^{{commit}}").returncode
    except GoldenError:
        return False
