"""Which parts of a text tell why something failed: the exception of a traceback, the error of a log. Pure; a guess.

What in them differs from run to run is taken out by `learning.signature`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pytest_golden.redaction.escapes import strip_escapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# A failure is at the end.
_MOST_OF_HEAD, _MOST_OF_TAIL = 5_000, 15_000
_MOST_OF_LINE = 2_000
_MOST_LINES_OF_CAUSE, _MOST_OF_CAUSE, _MOST_CAUSES = 8, 1_000, 12
# A look for each costs less than one for what they stand in. The others count where there is none of these.
_ERROR_WORDS = ("Error", "Exception", "Failure", "ERROR", "FATAL", "error:", "fatal:", "panic:")
_OTHER_ERROR_WORDS = ("ailed", "ot found", "enied", "ould not", "annot ", "o such ", "efused", "nvalid")
_TRACEBACK = "Traceback (most recent call last)"
# It says that something was raised, but not what.
_BARE_HEAD = re.compile(r"\W*(?:Exception Group )?Traceback \(most recent call last\)\W*")
_GROUP_MARGIN = re.compile(r"^\s*[|+] ?-*[ ]?")
_CAUSE = "The above exception was the direct cause of the following exception"
_CONTEXT = "During handling of the above exception, another exception occurred"
_CLASS_NAME = re.compile(r"^\s*(?:[A-Za-z_]\w*\.)*_?[A-Za-z]\w*(?::| *$)")
_FRAME = re.compile(r"^\s*File \"([^\"]*)\", line \d+")
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]([^\\/.]+)")
_STANDARD = re.compile(
    r"[\\/]lib(?:64)?[\\/]python3(?:\.\d+)?t?[\\/]([^\\/.]+)|[\\/]Python3\d+[\\/][Ll]ib[\\/]([^\\/.]+)|^<frozen ([\w.]+)>$"
)
_LOG_PREFIX = re.compile(
    r"^\s*(?:\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\]?)?[\s|-]*"
    r"(?:\[?(?:ERROR|CRITICAL|FATAL|WARN(?:ING)?|INFO|DEBUG)\]?[\s:|-]+)*"
)
_NEW_LOG_LINE = re.compile(
    r"^\s*\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d|^\s*\[?(?:ERROR|CRITICAL|FATAL|WARNING|INFO|DEBUG)\b"
)
# What follows a headline after a blank line.
_REASON = re.compile(r"\s+(?:Error|Reason|Caused by|Cause): ")
_CLASSED_ERROR = re.compile(r"\b_?[A-Z]\w*(?:Error|Exception): ")
_NAMED_ERROR = re.compile(r"\b_?[A-Z]\w*(?:Error|Exception): |\b(?:Error|Failure) in \w+ |\b[A-Z]\w* Error\b")


@dataclass(frozen=True, slots=True)
class _Raised:
    """An exception of a traceback. `is_linked`: one before it caused it, or was being handled."""

    text: str
    headline: str
    origin: str | None
    is_linked: bool


def find_main_cause(text: str) -> str:
    """Return the part that tells most; the whole text when no part stands out."""
    return next(iter(find_causes(text)), "")


def find_causes(text: str) -> tuple[str, ...]:
    """Return the parts of a text that tell why something failed, the most telling first, twelve at most.

    For a text of one line it is that line. The exceptions of one chain are told together first: the root says why, the
    last one where. Empty for a blank text, and for the first line of a traceback alone.
    """
    lines = _read_lines(text)
    raised = list(_find_raised(lines))
    lines = [line for line in lines if not _BARE_HEAD.fullmatch(line)]
    if not any(lines):
        return ()
    if len(lines) == 1 and not raised:
        return tuple(lines)
    causes = list(_tell_chains(raised)) if raised else [*_find_blocks(lines), "\n".join(lines)]
    return tuple(dict.fromkeys(causes))[:_MOST_CAUSES]


def find_origin(text: str) -> str | None:
    """Return the package or the standard module that raised the last exception of a text's tracebacks; `""` for own code.

    None when there is no traceback.
    """
    raised = list(_find_raised(_read_lines(text)))
    return raised[-1].origin if raised else None


def cut_failure(text: str) -> str:
    """Return of a long text the head and the tail: what is looked at."""
    if len(text) <= _MOST_OF_HEAD + _MOST_OF_TAIL:
        return text
    return f"{text[:_MOST_OF_HEAD]}\n{text[-_MOST_OF_TAIL:]}"


def _read_lines(text: str) -> list[str]:
    lines = [line[:_MOST_OF_LINE].rstrip() for line in strip_escapes(cut_failure(text)).strip().splitlines()]
    if any("Exception Group Traceback" in line for line in lines):
        lines = [_GROUP_MARGIN.sub("", line) for line in lines]
    return lines


def _find_raised(lines: Sequence[str]) -> Iterator[_Raised]:
    is_linked = False
    position = 0
    while position < len(lines):
        line = lines[position]
        if _CAUSE in line or _CONTEXT in line:
            is_linked = True
        if _TRACEBACK in line:
            position, found = _read_traceback(lines, position + 1, is_linked=is_linked)
            is_linked = False
            if found is not None:
                yield found
            continue
        position += 1


def _read_traceback(lines: Sequence[str], position: int, *, is_linked: bool) -> tuple[int, _Raised | None]:
    """Read frames, and the exception after them: the first line that is indented no more than the frames' head was."""
    origin = None
    margin = len(lines[position - 1]) - len(lines[position - 1].lstrip()) if position else 0
    while position < len(lines):
        line = lines[position]
        frame = _FRAME.match(line)
        if frame:
            origin = _name_origin(frame[1])
        elif _TRACEBACK in line or (line.strip() and _indent(line) <= margin):
            break
        position += 1
    if position == len(lines) or origin is None or not _CLASS_NAME.match(lines[position].split(": ")[0] + ":"):
        return position, None
    end = position + 1
    while (
        end < len(lines)
        and end - position < _MOST_LINES_OF_CAUSE
        and lines[end].strip()
        and _TRACEBACK not in lines[end]
    ):
        end += 1
    return end, _Raised(_join(lines[position:end]), _join(lines[position : position + 1]), origin, is_linked)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _name_origin(path: str) -> str:
    installed = _INSTALLED.search(path)
    if installed:
        return installed[1]
    standard = _STANDARD.search(path)
    return next(filter(None, standard.groups()), "") if standard else ""


def _tell_chains(raised: Sequence[_Raised]) -> Iterator[str]:
    """Tell each chain, the last one first: root and end together, then the end, then the root."""
    chains: list[list[_Raised]] = []
    for one in raised:
        if one.is_linked and chains:
            chains[-1].append(one)
        else:
            chains.append([one])
    for chain in reversed(chains):
        root, end = chain[0].text, chain[-1].text
        told = root.partition(": ")[2] or root
        if told[:200] in end:
            yield end
        else:
            yield from (f"{root} > {end}", end, root)
    yield from (chain[-1].headline for chain in reversed(chains))


def _find_blocks(lines: Sequence[str]) -> Iterator[str]:
    """Return the errors of a log: those with a class first, then those with a name, and the last first."""
    blocks = list(_list_blocks(lines, _ERROR_WORDS)) or list(_list_blocks(lines, _OTHER_ERROR_WORDS))
    blocks.reverse()
    yield from (block for block in blocks if _CLASSED_ERROR.search(block))
    yield from (block for block in blocks if _NAMED_ERROR.search(block))
    yield from blocks


def _list_blocks(lines: Sequence[str], words: Sequence[str]) -> Iterator[str]:
    end = 0
    for position, line in enumerate(lines):
        if position >= end and any(word in line for word in words):
            end = _find_end(lines, position)
            yield _join(_LOG_PREFIX.sub("", one, count=1) for one in lines[position:end])


def _find_end(lines: Sequence[str], start: int) -> int:
    """Find the end of an error: a blank line, or a new line of the log, unless that one names what failed."""
    end = start + 1
    last = min(len(lines), start + _MOST_LINES_OF_CAUSE)
    while end < last:
        told = _LOG_PREFIX.sub("", lines[end], count=1)
        if not told.strip() and end + 1 < last and _REASON.match(lines[end + 1]):
            end += 2
            continue
        is_new = _NEW_LOG_LINE.match(lines[end]) is not None
        if not told.strip() or (is_new and (end > start + 1 or _NAMED_ERROR.search(told) is None)):
            break
        end += 1
    return end


def _join(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())[:_MOST_OF_CAUSE].rstrip()
