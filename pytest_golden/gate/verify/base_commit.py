"""Which commit the head is compared with: where it left the ref. It asks git, read-only."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gate.git import describe_commit, find_commit, run_git


class HeadCommit(NamedTuple):
    """What is checked out; `commit` is None where nothing is committed or there is no git."""

    commit: str | None
    dirty: bool | None


class BaseCommit(NamedTuple):
    """The ref as it was given, the commit that it means, and the one that the head is compared with."""

    ref: str
    ref_commit: str
    commit: str


def read_head(folder: Path) -> HeadCommit:
    """Read what is checked out."""
    told = describe_commit(folder)
    return HeadCommit(told["commit"], told["dirty"])


def find_base(manifest: Path, ref: str, head: HeadCommit) -> BaseCommit:
    """Find the commit to compare with: the one at which the head left `ref`, so that nobody answers for others' changes.

    It is the ref's own commit where the two have no common one that this clone knows, and where the head is in the past
    of the ref without an edit: then it would be compared with itself.

    Raises:
        GoldenError: no git, not a repository, a ref that is not there (the message says what to fetch), or no manifest
            at that commit.
    """
    folder = manifest.parent
    meant = find_commit(folder, ref)
    found = run_git(folder, "merge-base", meant, "HEAD")
    left = found.stdout.strip()
    is_apart = found.returncode != 0 or (left == head.commit and not head.dirty)
    base = BaseCommit(ref, meant, meant if is_apart else left)
    if run_git(folder, "cat-file", "-t", f"{base.commit}:./{manifest.name}").stdout.strip() != "blob":
        message = f"the base {base.commit[:12]} has no {manifest.name}, so nothing of it can be run."
        raise GoldenError(message)
    return base


def find_checkout(folder: Path) -> Path:
    """Give the root of the checkout that a folder is in.

    Raises:
        GoldenError: it is in none.
    """
    found = run_git(folder, "rev-parse", "--show-toplevel")
    if found.returncode:
        message = f"{folder} is in no git repository."
        raise GoldenError(message)
    return Path(found.stdout.removesuffix("\n"))
