"""The search for an expected error over everything a pipeline printed, in a process that can be killed."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.model import PatternVerdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SEARCH_SECONDS = 10.0
_SCRIPT = Path(__file__).with_name("pattern_search_child.py")


def search_files(pattern: str, files: Sequence[Path], *, timeout_seconds: float = SEARCH_SECONDS) -> PatternVerdict:
    """Search whole files with `re.search` and `re.MULTILINE`; the time limit is for all of them together.

    Raises:
        GatewayError: the search itself broke down.
    """
    command = [sys.executable, "-I", "-S", str(_SCRIPT), pattern, *map(str, files)]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_seconds, check=False, cwd="/"
        )
    except subprocess.TimeoutExpired:
        return PatternVerdict.TIMED_OUT
    except (OSError, ValueError) as error:
        raise GatewayError(f"the search for {pattern!r} could not be run: {error}") from error
    if done.returncode not in {0, 1} or done.stderr:
        raise GatewayError(
            f"the search for {pattern!r} broke down: {done.stderr.decode(errors='replace').strip()[-400:]}"
        )
    return PatternVerdict.FOUND if done.returncode == 0 else PatternVerdict.ABSENT


def search_texts(pattern: str, texts: Iterable[str], *, timeout_seconds: float = SEARCH_SECONDS) -> PatternVerdict:
    """Search texts as `search_files` does files."""
    with tempfile.TemporaryDirectory(prefix="pytest-golden-search-") as folder:
        return search_files(pattern, write_texts(Path(folder), texts), timeout_seconds=timeout_seconds)


def write_texts(folder: Path, texts: Iterable[str]) -> tuple[Path, ...]:
    """Write each text that is not empty to a file of its own."""
    files = []
    for number, text in enumerate(texts):
        if text:
            file = folder / f"text-{number}"
            file.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
            files.append(file)
    return tuple(files)
