"""Find the commit that the head is compared with: where it left the ref. Reads git, changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.history.git import describe_commit, find_commit, last_line, run_git
from pytest_golden.settings import MANIFEST_NAME

# How a manifest declares its projects, in YAML or in JSON.
_DECLARES = "^[[:space:]{\"']*golden_projects[\"']?[[:space:]]*:"
_MANIFEST_PATTERNS = ("*.yaml", "*.yml")
_MOST_NAMED = 3


class HeadCommit(NamedTuple):
    """What is checked out; `commit` is None where there is no commit or no git."""

    commit: str | None
    dirty: bool | None


class BaseCommit(NamedTuple):
    """The given ref, the commit that it names (`ref_commit`), and the commit that the head is compared with.

    `manifest` is the base's manifest, as a path in the head's checkout: its old path if it was moved, None if it is new.
    """

    ref: str
    ref_commit: str
    commit: str
    manifest: Path | None


def read_head(folder: Path) -> HeadCommit:
    """Read what is checked out."""
    told = describe_commit(folder)
    return HeadCommit(told["commit"], told["dirty"])


def find_base(manifest: Path, ref: str, head: HeadCommit) -> BaseCommit:
    """Find the commit at which the head left `ref`, so that nobody answers for the changes of others.

    It is the ref's own commit if this clone knows no common commit, and if the head is an ancestor of the ref without
    edits, since it would then be compared with itself.

    Raises:
        GoldenError: there is no git, no repository or no such ref (the message says what to fetch), or it is not clear
            which of that commit's manifests became this one.
    """
    folder = manifest.parent
    meant = find_commit(folder, ref)
    found = run_git(folder, "merge-base", meant, "HEAD")
    left = found.stdout.strip()
    is_apart = found.returncode != 0 or (left == head.commit and not head.dirty)
    commit = meant if is_apart else left
    return BaseCommit(ref, meant, commit, _find_manifest(manifest, commit))


def find_checkout(folder: Path) -> Path:
    """Return the root of the checkout that a folder is in.

    Raises:
        GoldenError: it is in no checkout.
    """
    found = run_git(folder, "rev-parse", "--show-toplevel")
    if found.returncode:
        message = f"{folder} is in no git repository."
        raise GoldenError(message)
    return Path(found.stdout.removesuffix("\n"))


def _find_manifest(manifest: Path, commit: str) -> Path | None:
    """Find the manifest's version at a commit, also if it was moved since: moving it must not avoid the comparison.

    It is the manifest at the same path, else one with the default name in the same folder, else the one that the change
    removes, if it touches no other. None if the change touches no manifest of the base: then this one is new.
    """
    for place in (manifest, manifest.with_name(MANIFEST_NAME)):
        if _ask(place.parent, commit, "ls-tree", "-z", commit, "--", f"./{place.name}").startswith("100"):
            return place
    root = find_checkout(manifest.parent)
    listed = _ask(root, commit, "grep", "-l", "-z", "-E", _DECLARES, commit, "--", *_MANIFEST_PATTERNS)
    declaring = {path.removeprefix(f"{commit}:") for path in _split(listed)}
    changed = _ask(
        root, commit, "diff", "--name-only", "--no-renames", "--no-relative", "-z", commit, "--", *_MANIFEST_PATTERNS
    )
    touched = [path for path in _split(changed) if path in declaring]
    if not touched:
        return None
    if len(touched) == 1 and not (root / touched[0]).exists():
        return root / touched[0]
    named = ", ".join(touched[:_MOST_NAMED]) + (", ..." if len(touched) > _MOST_NAMED else "")
    message = (
        f"the base {commit[:12]} has no {manifest.name}, and it is not clear which of its manifests became this one, "
        f"since the change edits or removes {named}: make a change that only moves one manifest, or only adds this one."
    )
    raise GoldenError(message)


def _ask(folder: Path, commit: str, *question: str) -> str:
    """Ask git about a commit. Raise if objects are missing, as in a partial clone: that is not an empty answer."""
    found = run_git(folder, *question)
    if found.returncode not in {0, 1} or found.stderr:
        message = f"git cannot read the base {commit[:12]} ({last_line(found.stderr)}): fetch what is missing, as a full clone has it."
        raise GoldenError(message)
    return found.stdout


def _split(listed: str) -> list[str]:
    return [path for path in listed.split("\0") if path]
