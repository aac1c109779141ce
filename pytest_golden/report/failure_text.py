"""What a person reads about a failure: the reason, the failing step, the last output, what to try next. Pure text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.regression.failing_step import find_failing_step
from pytest_golden.regression.model import OUTPUT_KINDS, Reason, ReasonKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pytest_golden.regression.model import GoldenProjectResult

LAST_LINES = 15
_MOST_REASONS, _MOST_DIFFERENCES = 100, 3
# The first one that is missing says in its sentence how all are accepted.
_SHOWN_IN_FULL = OUTPUT_KINDS - {ReasonKind.BASELINE_MISSING}
_NEVER_RAN = frozenset({ReasonKind.NEED_NOT_PASSED, ReasonKind.SKIP_IF_MISSING, ReasonKind.NOTHING_TO_VERIFY})
# C0 and C1 controls, the marks that reorder text on screen, line ends of other alphabets, and signs without a width.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def make_visible(text: str) -> str:
    """Take colours and cursor movements out, and write other unseen signs as escapes; newlines and tabs stay."""
    plain = strip_escapes(text.replace("\r\n", "\n"))
    return _UNSEEN.sub(_escape, plain)


def explain_failure(result: GoldenProjectResult, *, shell_command: str | None) -> str:
    """Give the whole text; its first line is the first reason.

    `shell_command` is what opens a shell in its view; None where nothing does.
    """
    return "\n".join(_explain(result, shell_command))


def _explain(result: GoldenProjectResult, shell_command: str | None) -> Iterator[str]:
    first, *rest = result.reasons or (Reason("", result.error_message or "no reason was given"),)
    yield f"{result.status}: {make_visible(first.headline)}"
    yield from _difference(first)
    for position, reason in enumerate(rest[:_MOST_REASONS], 1):
        yield f"also: {make_visible(reason.headline)}"
        yield from _difference(reason) if position < _MOST_DIFFERENCES else ()
    if len(rest) > _MOST_REASONS:
        yield f"also: {len(rest) - _MOST_REASONS} more reasons"
    yield from _attempts(result)
    step = find_failing_step(result.steps)
    if step is not None:
        told = [make_visible(reason.message) for reason in (first, *rest)]
        yield f"failing step: {describe_step(step, told=told)}"
    yield from _last_output(result)
    yield from (make_visible(str(line)) for known in result.known for line in known.get("lines", ()))
    yield from (f"note: {make_visible(warning)}" for warning in result.warnings)
    yield from _next_moves(result, shell_command)


def show_difference(message: str) -> Iterator[str]:
    """Give the lines that follow the sentence in the message of an output, each further in."""
    yield from (f"  {make_visible(line)}" for line in message.splitlines()[1:])


def first_difference(result: GoldenProjectResult) -> list[str]:
    """Give the lines of the first difference of an output; empty where there is none."""
    return next((lines for reason in result.reasons if (lines := list(_difference(reason)))), [])


def _difference(reason: Reason) -> Iterator[str]:
    yield from show_difference(reason.message) if reason.kind in _SHOWN_IN_FULL else ()


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def describe_step(step: Mapping[str, Any], *, told: Sequence[str] = ()) -> str:
    """Give its name, how long it took and its error, unless the reasons have told that."""
    error = (step.get("metadata") or {}).get("error")
    shown = "" if error in {None, True} else make_visible(str(error)).strip()
    name = make_visible(str(step.get("content", "?")))
    took = step.get("duration_ms")
    timed = f"{name} ({took / 1000:.1f}s)" if isinstance(took, int | float) else name
    is_told = not shown or any(f"{name}: {shown}" in reason for reason in told)
    return timed if is_told else f"{timed}: {shown}"


def _attempts(result: GoldenProjectResult) -> Iterator[str]:
    if result.attempts > 1:
        yield f"tried {result.attempts} times, each time without a pass"


def _last_output(result: GoldenProjectResult) -> Iterator[str]:
    lines = make_visible(result.output_summary).rstrip().splitlines()
    if not lines:
        return
    left_out = len(lines) - LAST_LINES
    yield "last output:" if left_out <= 0 else f"last output ({left_out} more lines before it):"
    yield from (f"  {line}" for line in lines[-LAST_LINES:])


def _next_moves(result: GoldenProjectResult, shell_command: str | None) -> Iterator[str]:
    if any(reason.kind in _NEVER_RAN for reason in result.reasons):
        return
    if result.exit_code is not None and shell_command is not None:
        yield f"try next: {shell_command}   (a shell in its view, nothing real is touched)"
    if result.log_path:
        yield f"full log: {result.log_path}"
    if result.kept_view:
        yield f"kept view: {result.kept_view}"
