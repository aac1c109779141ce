"""Find the line in a pipeline's output that most likely says why it failed. Pure; a guess that is shown beside the facts.

Engines end their output with a line that only repeats that something failed ("Plan application failed."), so the end of
a text is read upwards from there to the nearest line that says why. There are no rules for single engines: only the
wording and the indentation of lines count.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.redaction.rule import compile_late
from pytest_golden.regression.wording import is_note_of_harness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.trajectory.step import Step

# A long message often begins with where it was noticed and ends with why.
_MOST_OF_HEAD, _MOST_OF_TAIL = 130, 65
# Only so much of the end of a text is read, and only so much of the beginning of each line.
_MOST_OF_TEXT, _MOST_LINES_READ, _MOST_OF_LINE = 128 << 10, 1_000, 2_000
# A line without a cause is short, and the search takes quadratic time in the length of a line.
_MOST_OF_GENERIC = 400
# More lines than this below an exception are not part of its message; below a traceback in a box, a long one is wrapped.
_MOST_LINES, _MOST_LINES_BELOW_BOX = 8, 30
_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = "The above exception was the direct cause of the following exception:"
# As dbt begins its errors.
_HEADLINE = compile_late(r"(?:[A-Z]\w* (?:Error|Failure)|Failure)(?: in \w+ \S+ \(.*\))?")
# A timestamp before a line changes with every run and says nothing.
_STAMP = compile_late(
    r"\[?(?:(?:\d{4}-\d\d-\d\d|\d\d/\d\d/\d\d)[T ]?)?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?\s+"
)
_LEVEL = compile_late(
    r"(?:\[\s*(debug|info|warning|error|critical)\s*\]|(DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b)\s*[:|-]?\s*"
)
_QUIET_LEVELS = frozenset({"debug", "info"})
_WARNINGS = frozenset({"warn", "warning"})
_DECORATION = compile_late(
    r"[\W_]*|[=*#-]{3,}.*[=*#-]{3,}|[│╭╰❱].*|at [\w$.<>]+\(.*\)|\.{3} \d+ more|LINE \d+:.*|\d+ [│|] .*"
)
_FRAME = compile_late(r"File \"[^\"]+\", line \d+")
_EXCEPTION_NAME = r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Failure|Fault|Exit|Interrupt)"
_CAUSED_BY = "Caused by: "
_EXCEPTION = compile_late(rf"(?:{_CAUSED_BY})?{_EXCEPTION_NAME}:\s+\S")
# Such as Snakemake's `TypeError in file "Snakefile", line 7:`, whose message is the next line.
_PLACED_EXCEPTION = compile_late(rf"({_EXCEPTION_NAME})(?: in .*)?:")
_VAGUE = compile_late(r"failed (?:while|when|to)|(?:error|exception|problem)s? (?:has )?occurred", re.IGNORECASE)
_LABEL = compile_late(
    r"\W*(?:errors?|causes?|caused by|reason|message|failures?|exception)\s*:\s*(?:\[\w\]\s*)?", re.IGNORECASE
)
_TYPE = compile_late(rf"Type:\s+({_EXCEPTION_NAME})")
_BARE_NAME = compile_late(r"['\"]?[\w.-]+['\"]?")
_BULLET = compile_late(r"[-*•]\s+")
# No colon with a cause behind it.
_BARE = r"(?:(?!:\s).)*"
_FAILED = r"(?:failed|aborted|unsuccessful|did not (?:complete|succeed|finish)(?: successfully)?|was cancelled)"
_UNITS = r"(?:tasks?|jobs?|nodes?|models?|steps?|rules?|tests?|checks?|assets?|pipelines?|dependenc(?:y|ies))"
# What says no more than that something failed, how often, or where to read on.
_GENERIC = compile_late(
    rf"{_BARE}\b{_FAILED}[.!:]*"
    rf"|{_BARE}\b{_FAILED}{_BARE}:\s+\S+"
    rf"|{_BARE}\b(?:failed|failing|missing|errored) (?:\w+ )?{_UNITS}\b{_BARE}"
    rf"|{_BARE}\b\d+ (?:\w+ )?(?:failed|errors?)\b{_BARE}"
    r"|.*\bnon-?zero exit\b.*|.*\b(?:exited|returned|ended|finished|exit) (?:with )?(?:a )?(?:exit )?(?:code|status)\b.*"
    r"|.*\b(?:see|check|look|view|refer to|details)\b.*\b(?:logs?|above|below|details?|messages?)\b.*"
    r"|.*\berrors?(?:=| )\d+"
    r"|.*\berror=\d.*"
    rf"|errors? (?:in|while|during|executing|running)\b{_BARE}"
    r"|(?:shutting down|exiting|aborting|aborted|execution halted)\b.*|(?:note|hint|help): .*"
    r"|(?:for (?:more|further)|having|learn more|read more|visit)\b.*\bhttps?://\S+.*"
    rf"|{_EXCEPTION_NAME}:?",
    re.IGNORECASE,
)
_TELLING = compile_late(
    r"(?:error|exception|failure)\b\s?(?:\[[^\]]*\]|\([^)]*\))?:\s*\S|fatal|no module named|not found|no such|not exist"
    r"|denied|refused|cannot|can't|could not|couldn't|did not find|unable to|invalid|unknown|undefined|unexpected|unrecogni[sz]ed"
    r"|missing|timed out|out of memory|already exists|\bfailed\b|\[type=\w+, input_value=",
    re.IGNORECASE,
)
_SOUNDS_LIKE_AN_ERROR = compile_late("error|exception|failed|fatal|traceback|not found|denied|invalid", re.IGNORECASE)
_NOTHING = frozenset({"None", "null", "-"})


class _Line(NamedTuple):
    """One line without its timestamp, and its indentation.

    `is_exception`: it is the last line of a traceback; `is_boxed`: of one in a box, as Rich draws it. `is_warning`: a log
    calls it one.
    """

    indent: int
    text: str
    is_exception: bool = False
    is_boxed: bool = False
    is_warning: bool = False

    @property
    def is_lead(self) -> bool:
        """Tell whether it introduces the lines below it."""
        return self.text.endswith(":")

    @property
    def names_exception(self) -> bool:
        """Tell whether it is an exception with its message."""
        return self.is_exception or _EXCEPTION.match(self.text) is not None

    @property
    def is_telling(self) -> bool:
        """Tell whether it says why something failed."""
        return self.names_exception or (not _is_generic(self.text) and _TELLING.search(self.text) is not None)


def find_cause(outcome: PipelineOutcome) -> str | None:
    """Return the failed step's error, else one line of standard error, else one of standard output, else None.

    It is the innermost cause: in a chain of exceptions, the original one; in a report that ends with "... failed", the
    nearest line above that says why. Otherwise it is the last line of standard error, unless that is a warning. In
    standard output it is the last line that sounds like an error, since many tools print a summary below it.
    """
    steps = outcome.trajectory.steps if outcome.trajectory is not None else ()
    for step in reversed(steps):
        line = _error_of(step)
        if line:
            return _cut(f"{step.content}: {line}")
    stderr, stdout = _read_lines(outcome.stderr), _read_lines(outcome.stdout)
    ends_with_warning = any("warning" in line.text.lower() for line in stderr[-2:])
    if stderr and stderr[-1].is_warning and stdout and stdout[-1].names_exception:
        # Spark prints what a program in Python prints, its exception too, on standard output.
        stderr = []
    line = (
        _find_telling(stderr)
        or ("" if ends_with_warning else _last_text(stderr))
        or _find_telling(stdout)
        or _last_error(stdout)
        or _last_text(stderr)
        or _last_text(stdout)
        or _last_text_as_it_is(outcome.stderr, outcome.stdout)
    )
    return _cut(line) if line else None


def _error_of(step: Step) -> str:
    """Return the line of a step's error that names the cause: the first one, unless that is only a headline."""
    error = step.metadata.get("error")
    if not isinstance(error, str) or is_note_of_harness(step.type, step.content, error):
        return ""
    lines = [line.strip() for line in error[:_MOST_OF_TEXT].splitlines()[:_MOST_LINES_READ] if line.strip()]
    if not lines or not (_is_generic(lines[0]) or _TRACEBACK in error or _HEADLINE.fullmatch(lines[0])):
        return lines[0] if lines else ""
    if _HEADLINE.fullmatch(lines[0]):
        return " ".join(lines[:2])
    told = "" if _TRACEBACK in error else _find_labelled(lines)
    return told or _find_telling(_read_lines(error)) or lines[0]


def _find_labelled(lines: Sequence[str]) -> str:
    """Return the first cause that follows a label such as `Error:`, on its line or on the next one."""
    for line, below in pairwise((*lines[1:], "")):
        label = _LABEL.match(line)
        told = "" if label is None else line[label.end() :] or _BULLET.sub("", below, count=1)
        if told and not _is_generic(told):
            # A bare name, as of KeyError, says nothing without its class.
            kind = next(filter(None, map(_TYPE.fullmatch, lines)), None) if _BARE_NAME.fullmatch(told) else None
            return told if kind is None else f"{kind[1]}: {told}"
    return next((line for line in lines[1:] if _EXCEPTION.match(line)), "")


def _read_lines(text: str) -> list[_Line]:
    """Return the last lines of a text that may name a cause: no frames, no decoration, no quiet log lines."""
    lines: list[_Line] = []
    margin: int | None = None
    ends_traceback = ends_box = False
    for raw in text[-_MOST_OF_TEXT:].splitlines()[-_MOST_LINES_READ:]:
        # The lines of an exception group begin with `|`.
        plain = raw[:_MOST_OF_LINE].strip().removeprefix("| ").lstrip()
        indent = len(raw) - len(raw.lstrip())
        if not plain or (margin is not None and indent > margin):
            continue
        is_exception, is_boxed, margin = ends_traceback, ends_box, None
        ends_box = plain.startswith("╰")
        ends_traceback = ends_box or plain.startswith(_TRACEBACK)
        if plain.startswith(_TRACEBACK) or _FRAME.match(plain):
            margin = indent
            continue
        told, level = _without_prefix(plain)
        if told and not _DECORATION.fullmatch(told):
            is_exception = is_exception or told.startswith(_CAUSED_BY)
            lines.append(_Line(indent, told.removeprefix(_CAUSED_BY), is_exception, is_boxed, level in _WARNINGS))
    return lines


def _without_prefix(line: str) -> tuple[str, str]:
    """Return a log line without timestamp and level, and its level; nothing for a line of a quiet level."""
    stamp = _STAMP.match(line)
    rest = line if stamp is None else line[stamp.end() :]
    level = _LEVEL.match(rest)
    if level is None:
        return rest, ""
    name = (level[1] or level[2]).lower()
    if name in _QUIET_LEVELS:
        return "", name
    return (rest if stamp is None else rest[level.end() :]), name


def _find_telling(lines: Sequence[_Line]) -> str:
    """Return the cause that the end of a text names; empty if it names none."""
    if not lines:
        return ""
    end = len(lines)
    near = next((at for at in range(end - 1, max(-1, end - 2 - _MOST_LINES), -1) if lines[at].names_exception), None)
    if near is not None:
        return _innermost(lines, near)
    if lines[-1].is_telling and not lines[-1].is_lead:
        return _with_headline(lines, end - 1)
    boxed = next(
        (at for at in range(end - 1, max(-1, end - 2 - _MOST_LINES_BELOW_BOX), -1) if lines[at].is_boxed), None
    )
    if boxed is not None:
        return _innermost(lines, boxed)
    return _find_above(lines) if _is_generic(lines[-1].text) else _find_announced(lines)


def _find_above(lines: Sequence[_Line]) -> str:
    """Return the nearest cause above the last line, which names none."""
    for at in range(len(lines) - 2, -1, -1):
        if lines[at].names_exception:
            return _innermost(lines, at)
        if lines[at].is_telling:
            return _with_headline(lines, at)
        below = lines[at + 1].text
        says_nothing = _is_generic(below) or _PLACED_EXCEPTION.fullmatch(below) is not None
        if _PLACED_EXCEPTION.fullmatch(lines[at].text) and not says_nothing:
            return _with_headline(lines, at + 1)
    return ""


def _innermost(lines: Sequence[_Line], at: int) -> str:
    """Return the original exception in the chain of the one at `at`; both if there is room."""
    outer = inner = _with_message(lines, at)
    while (chained := _find_cause_of(lines, at)) is not None:
        at = chained
        inner = _with_message(lines, at)
    if inner == outer:
        return inner
    room = _MOST_OF_HEAD + _MOST_OF_TAIL
    if inner.partition(": ")[2] in outer and len(outer) <= room:
        return outer
    both = f"{inner}, raised as {outer}"
    return both if len(both) <= room else inner


def _find_cause_of(lines: Sequence[_Line], at: int) -> int | None:
    """Find the exception above that, as Python says, this one was raised from."""
    for above in range(at - 1, max(-1, at - 2 - _MOST_LINES), -1):
        if lines[above].text == _CHAINED:
            first = range(above - 1, max(-1, above - 2 - _MOST_LINES), -1)
            return next((one for one in first if lines[one].is_exception), None)
        if lines[above].is_exception:
            break
    return None


def _with_message(lines: Sequence[_Line], at: int) -> str:
    """Return an exception: with the next line if it ends with a colon, or only the next line if it is vague."""
    line = lines[at]
    if at + 1 == len(lines):
        return line.text
    below = lines[at + 1]
    if _VAGUE.search(line.text) and below.is_telling and not below.is_exception:
        return below.text
    if _is_generic(line.text.partition(": ")[2]):
        # For example pydantic's "1 validation error for Order"; the field and its error follow.
        return " ".join(one.text for one in lines[at : at + 3] if one is line or not one.names_exception)
    return f"{line.text} {below.text}" if line.is_lead else line.text


def _with_headline(lines: Sequence[_Line], at: int) -> str:
    """Return a line after the lines that introduce it: an exception without a message, or a sentence before a list."""
    told, indent = [lines[at].text], lines[at].indent
    while at:
        at -= 1
        placed = _PLACED_EXCEPTION.fullmatch(lines[at].text)
        if placed is not None:
            return " ".join([f"{placed[1]}:", *told])
        if not lines[at].is_lead or lines[at].indent != indent or _is_generic(lines[at].text):
            break
        told.insert(0, lines[at].text)
    return " ".join(told)


def _find_announced(lines: Sequence[_Line]) -> str:
    """Return what the last line ending with a colon introduces, after the lines that lead to it, if it is an error."""
    end = len(lines)
    lead = next((at for at in range(end - 1, max(-1, end - 2 - _MOST_LINES), -1) if lines[at].is_lead), None)
    if lead is None:
        return ""
    leads = [*_leads_above(lines, lead), lines[lead].text]
    if not any(_TELLING.search(text) or _SOUNDS_LIKE_AN_ERROR.search(text) for text in leads):
        return ""
    below = [line for line in lines[lead + 1 :] if line.text not in _NOTHING]
    best = next(
        (line for line in below if line.is_telling and not _VAGUE.search(line.text)), below[0] if below else None
    )
    told = [] if best is None else [_BULLET.sub("", best.text, count=1)]
    # In a list of names, the others are counted.
    more = 0 if any(" " in _BULLET.sub("", line.text, count=1) for line in below) else len(below) - 1
    shown = [_PLACED_EXCEPTION.sub(r"\1:", text) if _PLACED_EXCEPTION.fullmatch(text) else text for text in leads]
    return " ".join([*shown, *told]).rstrip(":") + (f" (and {more} more)" if more > 0 else "")


def _leads_above(lines: Sequence[_Line], lead: int) -> list[str]:
    """Return the lines ending with a colon that a line belongs to or directly follows, the outermost first."""
    found: list[str] = []
    last = lead
    for at in range(lead - 1, max(-1, lead - 2 - _MOST_LINES), -1):
        line, indent = lines[at], lines[last].indent
        is_outer = line.indent < indent
        if line.is_lead and (is_outer or (line.indent == indent and last == at + 1)):
            found.insert(0, line.text)
            last = at
        elif is_outer or not indent:
            break
    return found


def _is_generic(text: str) -> bool:
    """Tell whether a line only says that something failed."""
    label = _LABEL.match(text)
    told = text if label is None else text[label.end() :]
    return _GENERIC.fullmatch(told[:_MOST_OF_GENERIC]) is not None


def _last_text(lines: Sequence[_Line]) -> str:
    return lines[-1].text if lines else ""


def _last_error(lines: Sequence[_Line]) -> str:
    telling = (line.text for line in reversed(lines) if line.is_telling)
    return next(telling, "") or next(
        (line.text for line in reversed(lines) if _SOUNDS_LIKE_AN_ERROR.search(line.text)), ""
    )


def _last_text_as_it_is(*texts: str) -> str:
    """Return the last line of the first text that is not empty: even a frame says more than nothing."""
    lines = (text[-_MOST_OF_TEXT:].rstrip().rpartition("\n")[2].strip() for text in texts)
    return next(filter(None, lines), "")


def _cut(line: str) -> str:
    if len(line) <= _MOST_OF_HEAD + _MOST_OF_TAIL:
        return line
    return f"{line[:_MOST_OF_HEAD]} ... {line[-_MOST_OF_TAIL:]}"
