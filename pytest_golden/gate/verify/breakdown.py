"""What broke down in a child of a verification: the cause in one line, out of what it printed, which is kept in a file."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.gate.lock import prepare_state_folder
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_INTERNAL = "INTERNALERROR>"
_PACKAGES = "site-packages"
_MOST_KEPT = 1_048_576
_MOST_TOLD = 500
# A name that ends as exceptions do, with what it says.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Failed|Warning)\b(?:: |$)")
# As pytest, pip and git begin their last word; the usage before it tells nothing.
_REFUSAL = re.compile(r"(?:[\w.-]+: )?(?:error|fatal): (?!usage:)", re.IGNORECASE)
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
# As pytest shortens the frames of a conftest that cannot be imported.
_SHORT_FRAME = re.compile(r"(?P<file>[^\s:]+\.py):(?P<line>\d+): in ")


class BrokenDownError(GoldenError):
    """A gate or the setup did not end as it should; `log` holds what it printed."""

    def __init__(self, told: str, log: Path) -> None:
        super().__init__(told)
        self.log = log

    def keep(self, workspace_root: Path, name: str, advice: str) -> str:
        """Copy the log to the workspace's state folder, and say what broke down, what to do and where the log is."""
        try:
            kept = prepare_state_folder(workspace_root) / name
            _write(kept, redact(_read_end(self.log)))
        except OSError as error:
            return f"{self}. {advice}. What it printed cannot be kept: {error.strerror or error}"
        return f"{self}. {advice}. All that it printed is in {kept}"


def find_cause(log: Path, folder: Path) -> str:
    """Give the line of an output that tells why it ended, and the last place in the checkout of a folder that it names."""
    checkout = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)
    lines = [line.strip() for line in _read_end(log).splitlines() if line.strip()]
    internal = [line.removeprefix(_INTERNAL).strip() for line in lines if line.startswith(_INTERNAL)]
    shown = [line.removeprefix("E ").strip() for line in lines if line.startswith("E ")]
    refused = [line for line in lines if _REFUSAL.match(line)]
    told = _choose(internal) or _choose(shown) or (refused or lines or ["it printed nothing"])[-1]
    told = told.replace(f"{checkout}{os.sep}", "")
    place = _find_place(internal or lines, folder, checkout)
    return redact(told[:_MOST_TOLD]).rstrip(".") + (f" ({place})" if place and place not in told else "")


def _choose(lines: Sequence[str]) -> str | None:
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    return (exceptions or lines)[-1] if lines else None


def _find_place(lines: Iterable[str], folder: Path, checkout: Path) -> str | None:
    """Give the innermost frame in the checkout's own files."""
    place = None
    for line in lines:
        found = _FRAME.search(line) or _SHORT_FRAME.match(line)
        file = None if found is None else folder / found["file"]
        if found is not None and file is not None and file.is_relative_to(checkout) and _PACKAGES not in file.parts:
            place = f"{file.relative_to(checkout)}:{found['line']}"
    return place


def _read_end(log: Path) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - _MOST_KEPT))
        return stream.read().decode("utf-8", "replace")


def _write(path: Path, text: str) -> None:
    # A new file in the place of an old one: what lies there may be a link that a change brought.
    number, name = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
