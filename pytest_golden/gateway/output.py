"""What is kept of a pipeline's output: head and tail, escaped where it is not UTF-8, redacted before anything else.

The raw output stays in scratch; nothing here reads more of it than what is kept.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pytest_golden.redaction.colours import find_coloured_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

#: A quarter of the 10 MiB that a log may have: head and tail of standard output and of standard error.
LOG_SHARE_BYTES = (10 << 20) // 4 - 512
#: Head and tail of each stream in a `PipelineOutcome`.
OUTCOME_SHARE_BYTES = 256 << 10
# Read beyond a cut, so that a secret lying across it is seen whole by the redaction.
_MARGIN_BYTES = 8 << 10


@dataclass(frozen=True, slots=True)
class KeptOutput:
    """Head and tail of one stream, already redacted; `left_out_bytes` lie between them.

    `coloured_lines` are those of its lines that were printed in colours, by what they are without.
    """

    head: str
    tail: str
    left_out_bytes: int
    total_bytes: int
    coloured_lines: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Join head and tail with a line that says how much is missing."""
        if not self.left_out_bytes:
            return self.head + self.tail
        return f"{self.head}\n[... {self.left_out_bytes:,} bytes left out ...]\n{self.tail}"


def keep_output(path: Path, share_bytes: int, redact: Callable[[str], str]) -> KeptOutput:
    """Keep `share_bytes` of a stream's head and as many of its tail; a missing file counts as empty."""
    try:
        total = path.stat().st_size
    except OSError:
        return KeptOutput("", "", 0, 0)
    with path.open("rb") as file:
        if total <= 2 * share_bytes:
            raw = decode(file.read())
            shown = redact(raw)
            return KeptOutput(shown, "", 0, total, find_coloured_lines(raw, shown))
        head = file.read(share_bytes + _MARGIN_BYTES)
        file.seek(-(share_bytes + _MARGIN_BYTES), os.SEEK_END)
        tail = file.read()
    shown_head = _cut_head(redact(decode(head)), share_bytes)
    shown_tail = _cut_tail(redact(decode(tail)), share_bytes)
    coloured = find_coloured_lines(decode(head), shown_head) | find_coloured_lines(decode(tail), shown_tail)
    return KeptOutput(shown_head, shown_tail, total - 2 * share_bytes, total, coloured)


def _cut_head(text: str, share_bytes: int) -> str:
    """Cut the margin off, at the end of a line where there is one in it."""
    cut = min(len(text), share_bytes)
    line_end = text.rfind("\n", cut - _MARGIN_BYTES, cut)
    return text[: line_end + 1] if line_end >= 0 else text[: max(cut - _MARGIN_BYTES, 0)]


def _cut_tail(text: str, share_bytes: int) -> str:
    cut = max(len(text) - share_bytes, 0)
    line_end = text.find("\n", cut, cut + _MARGIN_BYTES)
    return text[line_end + 1 :] if line_end >= 0 else text[cut + _MARGIN_BYTES :]


def decode(raw: bytes) -> str:
    """Read bytes as UTF-8 and show those that are not as escapes."""
    return raw.decode("utf-8", "backslashreplace")


def write_log(path: Path, streams: dict[str, KeptOutput]) -> bool:
    """Write the log of a run with one section a stream; gives False, and writes nothing, when nothing was printed."""
    if not any(kept.total_bytes for kept in streams.values()):
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        for name, kept in streams.items():
            file.write(f"--- {name}: {kept.total_bytes:,} bytes ---\n{kept.text()}\n")
    return True


def last_lines(text: str, count: int = 10) -> str:
    """Give the last lines of a text that hold anything."""
    return "\n".join([line for line in text.splitlines() if line.strip()][-count:])
