"""The one way to compare an output with its baseline: chooses the comparison and makes of every trouble a mismatch."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
from pytest_golden.compare.opening import is_archive, read_size
from pytest_golden.compare.tables.compare_tables import compare_tables
from pytest_golden.compare.text.compare_texts import compare_text
from pytest_golden.errors import GoldenError
from pytest_golden.regression.model import ReasonKind
from pytest_golden.regression.wording import show_path

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_golden.compare.showing import Redact
    from pytest_golden.manifest.model import DeclaredOutput


def compare_files(
    declared: DeclaredOutput, actual: Path, baseline: Path | None, *, shown_as: str, redact: Redact = str
) -> Mismatch | None:
    """Compare an output with its baseline as declared; None when it holds.

    Reads both files and changes nothing. What is in them, or that they are gone, is never raised, only told.

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
        if error.side is Side.OUTPUT:
            return Mismatch(ReasonKind.OUTPUT_UNREADABLE, f"{shown_as} {error}")
        return Mismatch(ReasonKind.BASELINE_UNREADABLE, f"the baseline of {shown_as} {error}")
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
        return _compare_tables(declared, actual, baseline, shown_as, redact)
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


def _compare_tables(
    declared: DeclaredOutput, actual: Content, baseline: Content | None, shown_as: str, redact: Redact
) -> Mismatch | None:
    for content in (actual, baseline):
        if content is not None:
            read_size(content)
    accepted = None if baseline is None else baseline.path
    return compare_tables(declared, actual.path, accepted, shown_as=shown_as, redact=redact)
