"""Read the manifest as it stands at another git ref, so that a weakened floor is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gate.git import find_commit, last_line, run_git

if TYPE_CHECKING:
    from pathlib import Path


class BaseManifest(NamedTuple):
    """What the base holds: its commit, and the manifest's text or None when it has no manifest there."""

    ref: str
    commit: str
    text: str | None


def read_base_manifest(manifest: Path, ref: str) -> BaseManifest:
    """Read the manifest's text at `ref`.

    Raises:
        GoldenError: no git, not a repository, or a ref that is not there; the message says what to fetch.
    """
    if not ref or ref.startswith("-"):
        message = f"--golden-base {ref!r} is no git ref: give a branch, a tag or a commit."
        raise GoldenError(message)
    try:
        return _read(manifest, ref)
    except GoldenError as error:
        message = f"--golden-base {ref}: {error}"
        raise GoldenError(message) from None


def _read(manifest: Path, ref: str) -> BaseManifest:
    folder, name = manifest.parent, f"./{manifest.name}"
    commit = find_commit(folder, ref)
    if run_git(folder, "cat-file", "-t", f"{commit}:{name}").stdout.strip() != "blob":
        return BaseManifest(ref, commit, None)
    shown = run_git(folder, "cat-file", "blob", f"{commit}:{name}")
    if shown.returncode:
        message = f"{manifest.name} cannot be read at {commit[:12]} ({last_line(shown.stderr)})."
        raise GoldenError(message)
    return BaseManifest(ref, commit, shown.stdout)
