"""The comparison of two JSON documents by value, and how they differ, by path."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.json_documents.differences import find_differences
from pytest_golden.regression.baselines.json_documents.equality import Equality
from pytest_golden.regression.baselines.json_documents.parsing import parse_json
from pytest_golden.regression.baselines.json_documents.thinning import mask_document, take_out
from pytest_golden.regression.baselines.json_documents.writing import write_difference
from pytest_golden.regression.baselines.model import Mismatch, Side, UnreadableError
from pytest_golden.regression.baselines.opening import read_chunks
from pytest_golden.regression.baselines.patterns import PatternProcess
from pytest_golden.regression.baselines.showing import compose
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from pytest_golden.manifest.model import DeclaredOutput
    from pytest_golden.regression.baselines.json_documents.values import Json
    from pytest_golden.regression.baselines.model import Content
    from pytest_golden.regression.baselines.showing import Redact

#: A document is held whole, as values that take ten times its size.
MOST_BYTES = 128 << 20
_MOST_SHOWN = 20
_MOST_COUNTED = 100_000


def compare_json(
    declared: DeclaredOutput, actual: Content, baseline: Content, *, shown_as: str, redact: Redact
) -> Mismatch | None:
    """Compare two JSON documents by `ignore_paths`, `masks`, `unordered` and the tolerances.

    Raises:
        UnreadableError: one of them cannot be read, or is no JSON.
        PatternTimedOutError: a mask backtracks without end.
    """
    with PatternProcess(masks=declared.masks) as patterns:
        ours, theirs = (_read(content, declared, patterns) for content in (actual, baseline))
    try:
        message = _describe(ours, theirs, _make_equality(declared), shown_as, redact)
    except RecursionError:
        raise UnreadableError(Side.OUTPUT, "nests too deep to be compared with `unordered` and a tolerance") from None
    return None if message is None else Mismatch(ReasonKind.OUTPUT_DIFFERS, message)


def _read(content: Content, declared: DeclaredOutput, patterns: PatternProcess) -> Json:
    parts, size = [], 0
    for chunk in read_chunks(content):
        parts.append(chunk)
        size += len(chunk)
        if size > MOST_BYTES:
            raise UnreadableError(content.side, "is more than 128 MiB of JSON, too much to be compared by value")
    try:
        document = parse_json(b"".join(parts))
    except ValueError as error:
        raise UnreadableError(content.side, f"is no JSON: {error}") from None
    document = take_out(document, declared.ignore_paths)
    return mask_document(document, patterns) if declared.masks else document


def _make_equality(declared: DeclaredOutput) -> Equality:
    # The shortest text of a float is what the manifest says.
    absolute, relative = (Decimal(str(part)) for part in (declared.absolute_tolerance, declared.relative_tolerance))
    return Equality(unordered=declared.unordered, absolute=absolute, relative=relative)


def _describe(ours: Json, theirs: Json, equality: Equality, shown_as: str, redact: Redact) -> str | None:
    lines: list[str] = []
    count = 0
    for found in find_differences(ours, theirs, equality):
        count += 1
        if count <= _MOST_SHOWN:
            lines.append(write_difference(found, equality, redact))
        elif count > _MOST_COUNTED:
            break
    if not count:
        return None
    if count > _MOST_SHOWN:
        lines.append(f"[... {_count(count - _MOST_SHOWN)} more ...]")
    return compose(
        f"{shown_as} differs from its baseline in {_count(count)} {'place' if count == 1 else 'places'} (baseline -> output)",
        lines,
    )


def _count(number: int) -> str:
    return f"{number:,}" if number <= _MOST_COUNTED - _MOST_SHOWN else f"more than {_MOST_COUNTED - _MOST_SHOWN:,}"
