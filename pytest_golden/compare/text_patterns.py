"""Users' patterns over texts, in a process that is killed when one of them backtracks without end.

The time limit is for each block or list, so that a long file may take as long as it needs.
"""

from __future__ import annotations

import marshal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

from pytest_golden.compare.opening import PatternTimedOutError
from pytest_golden.errors import GoldenError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: What stands for whatever a mask matched.
MARK = "<masked>"
BATCH_SECONDS = 10.0
# Before the first batch the process has to start, on a machine that may be busy.
_START_SECONDS = 60.0
_SCRIPT = Path(__file__).with_name("pattern_child.py")


class PatternProcess:
    """Applies patterns to blocks of lines or lists of texts; the process is started at the first of them, and once.

    Without patterns everything stays as it is, and nothing is started.
    """

    def __init__(
        self, ignore_lines: Sequence[str] = (), masks: Sequence[str] = (), *, batch_seconds: float | None = None
    ) -> None:
        self._patterns = [list(ignore_lines), list(masks), MARK]
        self._batch_seconds = BATCH_SECONDS if batch_seconds is None else batch_seconds
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            with suppress(OSError):
                self._process.communicate()

    @property
    def is_idle(self) -> bool:
        """Tell whether there is no pattern at all."""
        return not self._patterns[0] and not self._patterns[1]

    def treat_block(self, block: bytes) -> tuple[bytes, list[int] | None]:
        """Mask a block of whole lines; return those that count and, when some do not, their positions in the block.

        Raises:
            PatternTimedOutError: it took more than the seconds of a batch.
            GoldenError: the process broke down.
        """
        if self.is_idle or not block:
            return block, None
        treated, positions = self._ask(block)
        return treated, positions

    def mask_texts(self, texts: list[str]) -> list[str]:
        """Mask texts; raises as `treat_block` does."""
        masked: list[str] = self._ask(texts) if self._patterns[1] and texts else texts
        return masked

    def _ask(self, value: bytes | list[str]) -> Any:
        process = self._process or self._start()
        return marshal.loads(self._exchange(process, value, self._batch_seconds))

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-I", "-S", str(_SCRIPT)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/"
            )
        except OSError as error:
            raise GoldenError(
                f"the process that applies masks and ignore_lines could not be started: {error}"
            ) from error
        _write(self._process, self._patterns)
        self._exchange(self._process, [], _START_SECONDS)
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], value: bytes | list[str], seconds: float) -> bytes:
        watch = threading.Timer(seconds, process.kill)
        watch.daemon = True
        watch.start()
        try:
            _write(process, value)
            size = int.from_bytes(_read(process, 4), "big")
            return _read(process, size)
        except (OSError, EOFError):
            raise self._explain(was_killed=watch.finished.is_set()) from None
        finally:
            watch.cancel()

    def _explain(self, *, was_killed: bool) -> GoldenError:
        ignore_lines, masks, _ = self._patterns
        if was_killed:
            return PatternTimedOutError(
                f"the patterns of {' and '.join(word for word, given in (('ignore_lines', ignore_lines), ('masks', masks)) if given)} "
                f"took more than {self._batch_seconds:g}s over a part of it: one backtracks without end, make it simpler"
            )
        return GoldenError("the process that applies masks and ignore_lines broke down")


def _write(process: subprocess.Popen[bytes], value: Any) -> None:
    raw = marshal.dumps(value)
    stream = cast("IO[bytes]", process.stdin)
    stream.write(len(raw).to_bytes(4, "big") + raw)
    stream.flush()


def _read(process: subprocess.Popen[bytes], count: int) -> bytes:
    raw = cast("IO[bytes]", process.stdout).read(count)
    if len(raw) < count:
        raise EOFError
    return raw
