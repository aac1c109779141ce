"""One output that a run wrote, held against its baseline. Reads files and decides nothing about the project."""

from __future__ import annotations

import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_golden.compare.baselines import EXISTS, describe_kind
from pytest_golden.compare.comparing import compare_files
from pytest_golden.compare.model import Mismatch
from pytest_golden.gateway.content import lstat_below
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_golden.compare.baselines import ExpectedFile, ProjectBaselines
    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.manifest.model import DeclaredOutput

_MOST_NAMED = 3


#: What tells whether a file is still the same one with the same content; None where there is none to be read.
Mark = tuple[int, ...] | None


def look_at(file: ExpectedFile, written: WrittenFiles) -> Mark:
    """Return the mark of an output; also a change that is taken back, or that sets the old times, gives another."""
    try:
        found = find_actual(written, file.path).lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def explain_change(file: ExpectedFile, written: WrittenFiles, mark: Mark) -> Mismatch | None:
    """Say that an output is not as it was when it was looked at first, so that nobody knows what was compared; None when it is."""
    now = look_at(file, written)
    if now == mark:
        return None
    if now is None and lstat_below(str(written.root), file.path) is None:
        return explain_unreadable(file.path, FileNotFoundError())
    told = "changed while it was compared: something that this run started, or someone else, still writes it"
    return Mismatch(ReasonKind.OUTPUT_UNREADABLE, f"{show_path(file.path)} {told}")


def examine_file(
    file: ExpectedFile, written: WrittenFiles, baselines: ProjectBaselines, accept_command: str
) -> Mismatch | None:
    """Compare one file with its baseline by every entry that names it; the first thing found speaks for the file."""
    shown = show_path(file.path)
    baseline = baselines.find(file.path) if file.needs_baseline else None
    if baseline is not None and baseline.trouble:
        place = f"{baselines.folder.name}/{baselines.name}/{shown}"
        return Mismatch(ReasonKind.BASELINE_UNREADABLE, f"{place} is no usable baseline: {baseline.trouble}")
    if not file.is_written:
        link = _find_link(file.path, written)
        why = f": {show_path(link)} is a symlink, and none is followed; declare the file behind it" if link else ""
        return Mismatch(ReasonKind.OUTPUT_MISSING, f"{shown} has a baseline, and this run did not write it{why}")
    try:
        actual = find_actual(written, file.path)
    except OSError as error:
        return explain_unreadable(file.path, error)
    if baseline is not None and baseline.is_missing:
        told = f"{shown} has no baseline\nlook at it, then accept it with `{accept_command}`"
        return Mismatch(ReasonKind.BASELINE_MISSING, told)
    return compare_with(file, actual, None if baseline is None else baseline.file, written.redact)


def compare_with(
    file: ExpectedFile, actual: Path, baseline: Path | None, redact: Callable[[str], str] = str
) -> Mismatch | None:
    """Compare by every entry, those without a baseline first; `baseline` is None where none of them needs one."""
    entries = sorted(file.entries, key=lambda entry: entry.compare != EXISTS)
    mismatches = (
        compare_files(entry, actual, None if entry.compare == EXISTS else baseline, shown_as=file.path, redact=redact)
        for entry in entries
    )
    return next((mismatch for mismatch in mismatches if mismatch is not None), None)


def find_actual(written: WrittenFiles, path: str) -> Path:
    """Return the real file of an output, and never follow a link out of the view.

    Raises:
        OSError: it is gone by now, or no regular file.
    """
    actual = written.locate(path)
    mode = actual.lstat().st_mode
    if not stat.S_ISREG(mode):
        kind = describe_kind(mode)
        message = f"it is {kind}" + ("; declare the file that it leads to" if stat.S_ISLNK(mode) else ", not a file")
        raise OSError(message)
    return actual


def _find_link(path: str, written: WrittenFiles) -> str | None:
    """Return the symlink that this run put in the place of a folder on the way to a path."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        folder = "/".join(parts[:count])
        with suppress(OSError):
            if stat.S_ISLNK(written.locate(folder).lstat().st_mode):
                return folder
    return None


def explain_unreadable(path: str, error: OSError) -> Mismatch:
    """Say of a written path why it cannot be compared."""
    if isinstance(error, FileNotFoundError):
        return Mismatch(ReasonKind.OUTPUT_MISSING, f"{show_path(path)} was written, and is gone by now")
    return Mismatch(ReasonKind.OUTPUT_UNREADABLE, f"{show_path(path)} cannot be compared: {error.strerror or error}")


def explain_unmatched(entry: DeclaredOutput, written: Sequence[str]) -> Mismatch:
    """Say that an entry of `outputs:` names nothing that the run wrote, and what it did write instead."""
    shown = show_path(entry.path)
    is_pattern = any(sign in entry.path for sign in "*?[")
    told = f"nothing that this run wrote matches `{shown}`" if is_pattern else f"this run did not write {shown}"
    named = ", ".join(map(show_path, written[:_MOST_NAMED])) + (", ..." if len(written) > _MOST_NAMED else "")
    return Mismatch(ReasonKind.OUTPUT_MISSING, f"{told}; it wrote {named or 'nothing at all'}")
