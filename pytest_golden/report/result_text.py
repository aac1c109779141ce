"""What a person reads about a result: a failure in full, accepted baselines, one line, and text that XML can carry.

Plain text without colours.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.regression.model import LACKING_KINDS, OUTPUT_KINDS, OutputChange, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.wording import find_failing_step, name_some, shorten_patterns, show_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pytest_golden.regression.model import AcceptedOutput, GoldenProjectResult


LAST_LINES = 15
_MOST_REASONS, _MOST_DIFFERENCES = 100, 3
# A missing baseline has no difference to show; its sentence says how to accept all.
_SHOWN_IN_FULL = OUTPUT_KINDS - {ReasonKind.BASELINE_MISSING}
_NEVER_RAN = frozenset({ReasonKind.NEED_NOT_PASSED, ReasonKind.SKIP_IF_MISSING, ReasonKind.NOTHING_TO_VERIFY})
# C0 and C1 controls, the marks that reorder text on screen, line ends of other alphabets, and signs without a width.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff\U000e0000-\U000e007f]"
)
_MOST_DIFFERENCES_ACCEPTED, _MOST_NAMED, _FEW_NAMED = 10, 50, 2
_WIDTH = max(len(change) for change in OutputChange)
_MOST_NEEDS_NAMED = 5
_MOST_REASONS_IN_LINE = 50
# What XML 1.0 forbids or discourages, and what junit-xml would drop silently.
_UNFIT = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0x10000, 0x110000, 0x10000))
    + "]"
)


def explain_failure(
    result: GoldenProjectResult, *, shell_command: str | None, shows_output: bool = True, is_short: bool = False
) -> str:
    """Return the whole text about a failure; its first line is the first reason.

    Args:
        result: the result of a project that is not as expected.
        shell_command: opens a shell in the project's view; None if no command does.
        shows_output: include the last lines of the pipeline's output.
        is_short: stop after the reasons and the failing step.
    """
    told = list(_explain_reasons(result))
    if not is_short:
        told += _list_output(result) if shows_output else ()
        told += (make_visible(str(line)) for known in result.known for line in known.get("lines", ()))
        told += (f"note: {make_visible(warning)}" for warning in result.warnings)
        told += _next_moves(result, shell_command)
    return "\n".join(told)


def _explain_reasons(result: GoldenProjectResult) -> Iterator[str]:
    first, *rest = result.reasons or (Reason("", result.error_message or "no reason was given"),)
    yield f"{result.status}: {make_visible(first.headline)}"
    yield from _difference(first)
    for position, reason in enumerate(rest[:_MOST_REASONS], 1):
        yield f"also: {make_visible(reason.headline)}"
        yield from _difference(reason) if position < _MOST_DIFFERENCES else ()
    if len(rest) > _MOST_REASONS:
        yield f"also: {len(rest) - _MOST_REASONS} more reasons"
    if result.attempts > 1:
        yield f"tried {result.attempts} times, each time without a pass"
    step = find_failing_step(result.steps)
    if step is not None:
        told = [make_visible(reason.message) for reason in (first, *rest)]
        yield f"failing step: {describe_step(step, told=told)}"


def _list_output(result: GoldenProjectResult) -> Iterator[str]:
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


def last_output(result: GoldenProjectResult, *, in_full: bool = False) -> list[str]:
    """Return the last lines of the pipeline's output, after a line that counts those left out."""
    lines = make_visible(result.output_summary).rstrip().splitlines()
    left_out = 0 if in_full else len(lines) - LAST_LINES
    return lines if left_out <= 0 else [f"({left_out} more lines before it)", *lines[-LAST_LINES:]]


def first_difference(result: GoldenProjectResult) -> list[str]:
    """Return the lines of the first difference of an output, or an empty list."""
    return next((lines for reason in result.reasons if (lines := list(_difference(reason)))), [])


def _difference(reason: Reason) -> Iterator[str]:
    yield from show_difference(reason.message) if reason.kind in _SHOWN_IN_FULL else ()


def show_difference(message: str) -> Iterator[str]:
    """Yield the indented lines that follow the first sentence of an output's message."""
    yield from (f"  {make_visible(line)}" for line in message.splitlines()[1:])


def describe_step(step: Mapping[str, Any], *, told: Sequence[str] = ()) -> str:
    """Return a step's name, its duration and its error, unless `told` already says the error."""
    error = (step.get("metadata") or {}).get("error")
    shown = "" if error is None or isinstance(error, bool) else make_visible(str(error)).strip()
    name = make_visible(str(step.get("content", "?")))
    took = read_duration_ms(step)
    timed = name if took is None else f"{name} ({took / 1000:.1f}s)"
    is_told = shown in {"", name} or any(f"{name}: {shown}" in reason for reason in told)
    return timed if is_told else f"{timed}: {shown}"


def read_error(step: Mapping[str, Any]) -> str:
    """Return the error of a step; `failed` if it says no more, empty if it has none."""
    metadata = step.get("metadata") or {}
    error = metadata.get("error") or metadata.get("failed")
    return "failed" if error is True else str(error or "")


def read_duration_ms(step: Mapping[str, Any]) -> float | None:
    """Return how long a step took, None if that is not known."""
    took = step.get("duration_ms")
    return float(took) if isinstance(took, int | float) else None


def summarize_reasons(result: GoldenProjectResult) -> str:
    """Return the reasons in one line; long patterns are cut, so that the text after them stays visible."""
    named = [reason.headline for reason in result.reasons[:_MOST_REASONS_IN_LINE]]
    more = len(result.reasons) - len(named)
    told = (
        "; ".join([*named, *([f"and {more} more reasons"] if more else [])])
        or result.error_message
        or str(result.status)
    )
    return shorten_patterns(" ".join(make_visible(told).split()))


def short_reason(result: GoldenProjectResult) -> str:
    """Return in a few words what a reader needs beside the status."""
    if result.quarantined is not None:
        return f"quarantined, {result.quarantined}"
    if result.status is not ResultStatus.PASSED:
        return summarize_reasons(result)
    flaky = f"flaky: passed on attempt {result.attempts}" if result.is_flaky else ""
    left_out = f"only a part was run, without {name_some(result.left_out, _FEW_NAMED)}" if result.left_out else ""
    return "; ".join(filter(None, (flaky, left_out)))


def note_unchecked_needs(unchecked: Mapping[str, Sequence[str]]) -> str | None:
    """Name the needs that were deselected and the projects that ran without them; return None if there are none."""
    if not unchecked:
        return None
    told = [
        f"{need} was deselected: {name_some(users, _MOST_NEEDS_NAMED)} ran without it having been checked"
        for need, users in unchecked.items()
    ]
    more = len(told) - _MOST_NEEDS_NAMED
    return "; ".join(told[:_MOST_NEEDS_NAMED]) + (f"; and {more} more such needs" if more > 0 else "")


def describe_accepted(results: Iterable[GoldenProjectResult], *, in_full: bool = False) -> list[str]:
    """Return lines about all accepted outputs; with `in_full`, cut nothing and include unchanged outputs."""
    return list(_describe_all(results, in_full=in_full))


def _describe_all(results: Iterable[GoldenProjectResult], *, in_full: bool) -> Iterator[str]:
    left = _MOST_DIFFERENCES_ACCEPTED
    for result in results:
        if result.accepted is None:
            yield from _explain_nothing(result)
            continue
        yield f"{result.name}: {count_changes(result.accepted)}"
        told = [one for one in result.accepted if in_full or one.change is not OutputChange.UNCHANGED]
        for output in told if in_full else told[:_MOST_NAMED]:
            lines, difference = describe_output(output)
            yield from lines
            yield from difference if left > 0 or in_full else ()
            left -= bool(difference)
        if not in_full and len(told) > _MOST_NAMED:
            yield f"  and {len(told) - _MOST_NAMED} more: -v names them"


def _explain_nothing(result: GoldenProjectResult) -> Iterator[str]:
    """Say why nothing was accepted although the project ran as expected."""
    lacking = [reason for reason in result.reasons if reason.kind in LACKING_KINDS]
    if lacking and all(reason.kind in OUTPUT_KINDS for reason in result.reasons):
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        yield f"{result.name}: nothing is accepted, because {make_visible(lacking[0].headline.partition(';')[0])}{more}"


def count_changes(accepted: Iterable[AcceptedOutput]) -> str:
    """Say how many outputs are new, changed and so on."""
    counts = Counter(output.change for output in accepted)
    told = ", ".join(f"{counts[change]} {change}" for change in OutputChange if counts[change])
    return told or "no output to keep; its duration history starts anew"


def describe_output(output: AcceptedOutput) -> tuple[list[str], list[str]]:
    """Return the lines that name an output, and those of its difference."""
    headline, *difference = _explain_output(output)
    lines = [f"  {output.change:<{_WIDTH}}  {show_path(output.path)}{headline}"]
    if output.allowed is not None:
        lines.append(f"    {make_visible(output.allowed)}")
    return lines, [f"    {line}" for line in difference]


def _explain_output(output: AcceptedOutput) -> list[str]:
    """Return the text after the path, and the lines below it."""
    headline, _, _ = output.message.partition("\n")
    if not headline:
        return [""]
    if output.change is OutputChange.CHANGED:
        return ["", f"  {make_visible(headline)}", *show_difference(output.message)]
    told = make_visible(" ".join(output.message.split()))
    return [f" ({told})"] if output.change in {OutputChange.NEW, OutputChange.REMOVED} else [f": {told}"]


def cut(text: str, most: int) -> str:
    """Return the beginning of a text, and say how much is left out."""
    return text if len(text) <= most else f"{text[:most]} [... {len(text) - most:,} more signs]"


def make_visible(text: str) -> str:
    """Remove colours and cursor movements, and write other unseen characters as escapes; newlines and tabs stay.

    A lone surrogate becomes an escape too: neither a terminal nor an xdist worker can send it.
    """
    plain = strip_escapes(text.replace("\r\n", "\n"))
    return _UNSEEN.sub(escape_character, plain)


def escape_character(found: re.Match[str]) -> str:
    """Return a character that was found as a backslash escape."""
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def clean_xml_text(text: str) -> str:
    """Remove colours, and write what XML 1.0 cannot carry as backslash escapes."""
    return re.sub(_UNFIT, escape_character, strip_escapes(text).replace("\r\n", "\n"))


def clean_xml_line(text: str) -> str:
    """Return a text as one line that XML can carry, for an attribute."""
    return " ".join(clean_xml_text(text).split())
