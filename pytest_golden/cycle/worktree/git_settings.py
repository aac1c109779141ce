"""What git's settings make of a checkout: a filter of somebody's could give the guard other files than those proposed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.cycle.worktree.edits import make_edit
from pytest_golden.errors import GoldenError
from pytest_golden.gate.git import last_line, run_git, run_git_raw

if TYPE_CHECKING:
    from collections.abc import Mapping

_SECTIONS = ("filter.", "include.", "includeif.", "extensions.", "core.sparsecheckout")
_KEYS = frozenset({"core.attributesfile", "core.autocrlf", "core.bare", "core.eol", "core.symlinks", "core.worktree"})
_FILES = ("info/attributes", "info/sparse-checkout")


def read_git_settings(checkout: Path) -> dict[str, str]:
    """Give a fingerprint of each setting that decides which bytes a checkout has.

    Raises:
        GoldenError: git does not tell.
    """
    listed = run_git_raw(checkout, "config", "--list", "-z")
    if listed.returncode:
        raise GoldenError(f"git does not tell its settings: {last_line(listed.stderr.decode(errors='replace'))}")
    told: dict[str, bytes] = {}
    for entry in listed.stdout.split(b"\0"):
        name, _, value = entry.decode("utf-8", "replace").partition("\n")
        if name.startswith(_SECTIONS) or name in _KEYS:
            told[name] = told.get(name, b"") + value.encode() + b"\0"
    folder = run_git(checkout, "rev-parse", "--path-format=absolute", "--git-common-dir").stdout.removesuffix("\n")
    files = {f".git/{name}": Path(folder, name) for name in _FILES}
    told |= {name: file.read_bytes() for name, file in files.items() if file.is_file()}
    return {name: hashlib.sha256(value).hexdigest() for name, value in told.items()}


def read_own_files(checkout: Path) -> dict[str, str]:
    """Give a fingerprint of each file of the repository that git itself acts upon: its settings and its hooks."""
    told = run_git(checkout, "rev-parse", "--path-format=absolute", "--git-common-dir").stdout.removesuffix("\n")
    hooks = Path(told, "hooks")
    try:
        files = [Path(told, "config"), *(file for file in sorted(hooks.iterdir()) if file.suffix != ".sample")]
        return {f".git/{file.relative_to(told)}": _fingerprint(file) for file in files if file.is_file()}
    except OSError:
        return {}


def _fingerprint(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def list_changed_settings(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[Mapping[str, Any], ...]:
    """Give an entry of the weakened floor for each setting that is another one than before, in a fixed order."""
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    return tuple(
        make_edit(None, "gate_configuration", f"git's setting {name}, which decides what a checkout holds, was changed")
        for name in names
    )
