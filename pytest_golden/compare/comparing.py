"""Compares an output with its baseline: chooses the comparison, and makes every trouble a mismatch. Reads files only."""

from __future__ import annotations

import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from pytest_golden.compare.baselines import EXISTS, describe_kind
from pytest_golden.compare.compare_files import (
    check_existence,
    compare_bytes,
    compare_image_sizes,
    has_equal_bytes,
    has_equal_content,
)
from pytest_golden.compare.documents.compare_documents import compare_json
from pytest_golden.compare.model import (
    Content,
    Mismatch,
    PatternTimedOutError,
    Side,
    UnreadableError,
    choose_comparison,
)
from pytest_golden.compare.opening import is_archive
from pytest_golden.compare.showing import compose
from pytest_golden.compare.tables.compare_tables import compare_tables
from pytest_golden.compare.text.compare_texts import compare_text
from pytest_golden.errors import GoldenError
from pytest_golden.gateway.content import lstat_below
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pytest_golden.compare.baselines import ExpectedFile, ProjectBaselines
    from pytest_golden.compare.showing import Redact
    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.manifest.model import DeclaredOutput

_MOST_NAMED = 3


def compare_files(
    declared: DeclaredOutput, actual: Path, baseline: Path | None, *, shown_as: str, redact: Redact = str
) -> Mismatch | None:
    """Compare an output with its baseline as declared; None when it holds.

    Reads both files and changes nothing. Nothing in the files, nor that they are gone, is raised: it becomes a mismatch.

    Args:
        declared: the entry of `outputs:`.
        actual: the output; a symbolic link is not followed.
        baseline: its accepted form, to be looked at by the caller when it may be a link; None where none is needed
            (`exists`) or only the rows of a table are to be counted.
        shown_as: the name that messages give the output.
        redact: takes what is secret out of texts, bytes, JSON and cells of tables before they are cut.

    Raises:
        GoldenError: the harness could not do its job.
    """
    shown_as = show_path(shown_as)
    output = Content(actual, Side.OUTPUT)
    accepted = None if baseline is None else Content(baseline, Side.BASELINE)
    try:
        return _compare(declared, output, accepted, shown_as, redact)
    except UnreadableError as error:
        is_output = error.side is Side.OUTPUT
        kind = ReasonKind.OUTPUT_UNREADABLE if is_output else ReasonKind.BASELINE_UNREADABLE
        # An error can quote what is in the file.
        return Mismatch(kind, compose(redact(f"{'' if is_output else 'the baseline of '}{shown_as} {error}")))
    except PatternTimedOutError as error:
        return Mismatch(ReasonKind.PATTERN_TIMED_OUT, f"{shown_as} could not be compared: {error}")
    except MemoryError:
        rule = f"`compare: {choose_comparison(actual, declared)}`"
        raise GoldenError(f"{shown_as} could not be compared: too little memory is free here for {rule}") from None


def _compare(
    declared: DeclaredOutput, actual: Content, baseline: Content | None, shown_as: str, redact: Redact
) -> Mismatch | None:
    comparison = choose_comparison(actual.path, declared)
    if comparison == "exists":
        return check_existence(declared, actual, shown_as=shown_as)
    if comparison == "table":
        return compare_tables(declared, actual, baseline, shown_as=shown_as, redact=redact)
    if baseline is None:
        raise UnreadableError(Side.BASELINE, "is missing")
    if has_equal_bytes(actual, baseline) or (is_archive(actual) and has_equal_content(actual, baseline)):
        return None
    if comparison == "text":
        return compare_text(declared, actual, baseline, shown_as=shown_as, redact=redact)
    if comparison == "json":
        return compare_json(declared, actual, baseline, shown_as=shown_as, redact=redact)
    if comparison == "image_size":
        return compare_image_sizes(actual, baseline, shown_as=shown_as)
    return compare_bytes(actual, baseline, shown_as=shown_as, redact=redact)


#: What tells whether a file is still the same one with the same content; None where there is none to be read.
Mark = tuple[int, ...] | None


def look_at(file: ExpectedFile, written: WrittenFiles) -> Mark:
    """Return the mark of an output; a change that is undone, or that restores the old times, changes it too."""
    try:
        found = find_actual(written, file.path).lstat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def explain_change(file: ExpectedFile, written: WrittenFiles, mark: Mark) -> Mismatch | None:
    """Return a mismatch if an output changed since the first look at it, so that it is unknown what was compared."""
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
