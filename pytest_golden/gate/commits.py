"""The commits of a checkout: which came between two, whether one descends from another, what a ref means. It asks git, read-only."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gate.checkout import find_environments, is_commit, redact_paths
from pytest_golden.gate.git import find_commit, run_git, run_git_raw
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_MOST_COMMITS = 100
_MOST_LOOKED_INTO = 10
_SECONDS = 5
_DIFF_SECONDS = 60


class Commit(NamedTuple):
    """A commit and the first line of its message, redacted."""

    id: str
    subject: str


# Commits never change, and projects that fail together are fixed together.
@lru_cache(maxsize=64)
def list_commits(
    folder: Path, before: str, now: str, *, within: str | None = None, longest_seconds: float = _SECONDS
) -> tuple[Commit, ...]:
    """Give the commits that came from one commit to another, newest first, 100 at most; without merges, where there are others.

    Args:
        folder: lies in the checkout.
        before: the whole id of a commit.
        now: that of a later one.
        within: only those that touch something below this path, relative to the checkout's root.
        longest_seconds: how long git may take each time that it is asked.

    Raises:
        GoldenError: there is no git, it does not answer, or one of the commits is not in this clone.
    """
    for merges in ("--no-merges", "--merges"):
        arguments = ["--format=%H %s", "-z", "--no-show-signature", "--no-color", f"--max-count={_MOST_COMMITS}"]
        place = [] if within is None else [f":(top,literal){within}"]
        told = _ask(folder, ["log", *arguments, merges, f"{before}..{now}", "--", *place], longest_seconds)
        lines = [line.partition(" ") for line in told.split("\0") if line]
        if lines:
            return tuple(Commit(identity, redact(subject)) for identity, _, subject in lines)
    return ()


def find_commit_of(
    folder: Path, after: str, blobs: Mapping[str, str | None], *, longest_seconds: float = _SECONDS
) -> Commit | None:
    """Give the first commit after one in which files, relative to the checkout's root, have these contents (None: are not there).

    It must be in the past of what is checked out; None where there is none, or nothing is known.
    """
    if not (blobs and is_commit(after)):
        return None
    arguments = [
        "log",
        "--reverse",
        "-z",
        "--format=%H %s",
        "--no-show-signature",
        "--no-color",
        f"{after}..HEAD",
        "--",
    ]
    places = [f":(top,literal){path}" for path in blobs]
    try:
        told = _ask(folder, [*arguments, *places], longest_seconds)
        for line in [line for line in told.split("\0") if line][:_MOST_LOOKED_INTO]:
            commit, _, subject = line.partition(" ")
            if all(_read_blob(folder, commit, path) == blob for path, blob in blobs.items()):
                return Commit(commit, redact(subject))
    except GoldenError:
        return None
    return None


def _read_blob(folder: Path, commit: str, path: str) -> str | None:
    found = run_git(folder, "rev-parse", "--verify", "--quiet", f"{commit}:{path}", longest_seconds=_SECONDS)
    return None if found.returncode else found.stdout.strip()


def descends(folder: Path, commit: str, ancestor: str, *, longest_seconds: float = _SECONDS) -> bool:
    """Tell whether a commit has another in its past, or is it; False also where that is not known."""
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
    """Give the files, relative to the checkout's root, that differ from where this branch left a ref: edits and new files too.

    Virtual environments are no edits.

    Raises:
        GoldenError: no git, not a repository, or a ref that is not there; the message says what to fetch.
    """
    commit = find_commit(folder, ref)
    base = run_git(folder, "merge-base", commit, "HEAD")
    # Without a common commit, as in a shallow clone, it is compared with the ref itself.
    left = commit if base.returncode else base.stdout.strip()
    changed = _ask(folder, ["diff", "--name-only", "-z", "--no-renames", "--no-ext-diff", left], _DIFF_SECONDS)
    new = _ask(folder, ["ls-files", "-z", "--others", "--exclude-standard", "--full-name", ":/"], _DIFF_SECONDS)
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


def _ask(folder: Path, arguments: Sequence[str], longest_seconds: float) -> str:
    done = run_git_raw(folder, *arguments, longest_seconds=longest_seconds)
    if done.returncode:
        raise GoldenError("a commit is not in this clone (it is shallow, or history was rewritten)")
    return os.fsdecode(done.stdout)
