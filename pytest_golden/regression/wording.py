"""How reasons put amounts, exit codes, patterns and output into words, and which step failed. Pure text."""

from __future__ import annotations

import re
import signal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

_KEPT_BYTES = 4096
_SEALED_SIGNALS = range(129, 160)
_MOST_OF_PATTERN = 40
_MOST_OF_TEXT = 100
_QUOTED_PATTERN = re.compile(r"(?<=`specific_error:).*?(?=`(?:\W|$))", re.DOTALL)


def format_duration(seconds: float) -> str:
    """Write a duration in the manifest's units: `10m`, `1h 30m`, `90s`, `0.5s`."""
    if seconds < 120 or seconds != int(seconds):
        return f"{seconds:.1f}".removesuffix(".0") + "s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    amounts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return " ".join(f"{amount}{unit}" for amount, unit in amounts if amount)


def format_elapsed(seconds: float) -> str:
    """Write how long something took, briefly: `0.4s`, `12.3s`, `3m 05s`, `1h 02m`."""
    if seconds < 59.95:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s"
    return f"{minutes // 60}h {minutes % 60:02d}m"


def describe_texts(contains: Iterable[str], not_contains: Iterable[str], found: Collection[str]) -> list[str]:
    """Say which texts are missing, and which are there that must not be."""
    missing = [f"`{_cut_text(text)}` is not in it" for text in contains if text not in found]
    return missing + [f"`{_cut_text(text)}` is in it, and must not be" for text in not_contains if text in found]


def _cut_text(text: str) -> str:
    told = " ".join(text.split())
    return told if len(told) <= _MOST_OF_TEXT else f"{told[:_MOST_OF_TEXT]}..."


def format_size(size_bytes: int) -> str:
    """Write a size in the largest unit of 1024 that it reaches: `512B`, `2GiB`, `1.5MiB`."""
    amount = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.1f}".removesuffix(".0") + unit
        amount /= 1024
    return f"{amount:.1f}".removesuffix(".0") + "TiB"


def show_path(path: str) -> str:
    """Write a path in one line, with escapes for line ends, control characters and marks that reorder text."""
    # Nearly all paths need no escapes.
    if path.isprintable():
        return path
    return "".join(
        sign if sign.isprintable() else sign.encode("unicode_escape", "surrogatepass").decode() for sign in path
    )


def count_of(number: int, one: str, many: str = "") -> str:
    """Write an amount: `1 entry`, `1,200 entries`; `many` is the plural if an `s` does not make it."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def name_some(names: Sequence[str], most: int) -> str:
    """Name the first few of many, and count the others: `a, b and 4 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more} more" if more > 0 else "")


def describe_exit(exit_code: int) -> str:
    """Return the exit code and what shells mean by it: `exit code 127 (command not found)`."""
    meaning = {126: " (found, but it may not be executed)", 127: " (command not found)"}.get(exit_code, "")
    return f"exit code {exit_code}{meaning}"


def describe_signal(number: int) -> str:
    """Return `signal 9 (SIGKILL)`."""
    try:
        return f"signal {number} ({signal.Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def find_sealed_signal(exit_code: int) -> int | None:
    """Return the signal that an exit code of a sealed pipeline may stand for (128 + n), or None."""
    return exit_code - 128 if exit_code in _SEALED_SIGNALS else None


def quote_pattern(pattern: str) -> str:
    """Return an expected error as reasons quote it: `specific_error:...`, in backticks."""
    return f"`specific_error:{pattern}`"


def shorten_patterns(text: str) -> str:
    """Cut the middle out of each long pattern that `quote_pattern` quoted."""
    return _QUOTED_PATTERN.sub(lambda found: _cut_middle(found[0]), text)


def summarize_output(stdout: str, stderr: str, *, stdout_bytes: int = 0, stderr_bytes: int = 0) -> str:
    """Return the head and tail of the output, about 4 KiB in all, stderr last. Each cut says how many bytes are left out.

    Args:
        stdout: the part that was kept.
        stderr: the part that was kept.
        stdout_bytes: the size of all of it; ignored if it is less than the part that was kept.
        stderr_bytes: the same for stderr.
    """
    if not stdout.strip():
        return _cut(stderr, stderr_bytes, _KEPT_BYTES)
    if not stderr.strip():
        return _cut(stdout, stdout_bytes, _KEPT_BYTES)
    shown = _cut(stderr, stderr_bytes, _KEPT_BYTES // 2)
    room = _KEPT_BYTES - len(_encode(shown))
    return f"[stdout]\n{_cut(stdout, stdout_bytes, room).rstrip()}\n[stderr]\n{shown}"


def find_failing_step(steps: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the last step that says it failed, or None. Ignore the harness's note about a run without steps."""
    return next((step for step in reversed(steps) if says_it_failed(step)), None)


def says_it_failed(step: Mapping[str, Any]) -> bool:
    """Tell whether a step of the pipeline itself says that it failed."""
    metadata = step.get("metadata") or {}
    error = metadata.get("error")
    has_failed = bool(error or metadata.get("failed"))
    return has_failed and not is_note_of_harness(step.get("type"), step.get("content"), error)


def is_note_of_harness(type_: object, content: object, error: object) -> bool:
    """Tell whether a step is the harness's note about a run without steps: its content is its error.

    A data test is an observation too, but a failed one also says where.
    """
    return type_ == "observation" and content == error


def _cut_middle(text: str) -> str:
    kept = (_MOST_OF_PATTERN - 3) // 2
    return text if len(text) <= _MOST_OF_PATTERN else f"{text[: kept + 1]}...{text[-kept:]}"


def _cut(text: str, total_bytes: int, room: int) -> str:
    """Cut the middle out of a text. A third of the room is for the head, since the end of an output tells more."""
    raw = _encode(text)
    if len(raw) <= room:
        return text
    head = raw[: room // 3].decode("utf-8", "ignore")
    tail = raw[len(raw) - (room - room // 3) :].decode("utf-8", "ignore")
    left_out = max(total_bytes, len(raw)) - len(head.encode()) - len(tail.encode())
    return f"{head}\n[... {left_out:,} bytes left out ...]\n{tail}"


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")
