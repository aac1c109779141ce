"""The files that a run wrote, for whoever examines them while its view still stands. For reading only.

Unlike the write set this holds what was rewritten with equal bytes too, and pipes, sockets and devices; it hashes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from bisect import bisect_left
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.content import lstat_below
from pytest_golden.gateway.model import Ending, OutputFinding, PipelineOutcome, Problem
from pytest_golden.redaction.redactor import redact_known

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pytest_golden.gateway.view import View
    from pytest_golden.redaction.redactor import Redactor

    Examine = Callable[[PipelineOutcome, "WrittenFiles"], Iterable[OutputFinding]]


@dataclass(frozen=True, slots=True)
class WrittenFiles:
    """Everything that one run wrote.

    `paths` are relative to project_dir, with `/`, sorted; whatever a pipeline can make has a place there, symlinks and
    pipes too. `redact` removes the project's secrets from text, `redact_known` from binary content. `project_dir` is
    the project's own folder.
    """

    root: Path
    paths: tuple[str, ...]
    redact: Callable[[str], str]
    project_dir: Path | None = None
    redact_known: Callable[[str], str] = redact_known

    def locate(self, path: str) -> Path:
        """Return the real file behind one of `paths`, a regular one opened up for reading. It may be a symlink: do not follow it.

        Raises:
            FileNotFoundError: it was not written, or is gone by now.
            OSError: it cannot be opened up.
        """
        position = bisect_left(self.paths, path)
        is_written = self.paths[position : position + 1] == (path,)
        found = lstat_below(str(self.root), path) if is_written else None
        if found is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        place = self.root / path
        if stat.S_ISREG(found.st_mode) and not os.access(place, os.R_OK):
            place.chmod(stat.S_IMODE(found.st_mode) | stat.S_IRUSR)
        return place


def examined(examine: Examine | None, view: View, outcome: PipelineOutcome, redactor: Redactor) -> PipelineOutcome:
    """Return the outcome with what an examination of the written files found; where nothing ran there is nothing to examine.

    A failure of the examination is the harness's, and the facts of the run stay.
    """
    if examine is None or outcome.ending is Ending.NOT_STARTED:
        return outcome
    try:
        written = WrittenFiles(*view.find_written(), redactor.text, view.project_dir, redactor.known)
        found = tuple(examine(outcome, written))
    except KeyboardInterrupt:
        told = "interrupted while its outputs were examined"
        return replace(outcome, ending=Ending.INTERRUPTED, problem=None, message=told)
    except Exception as error:
        told = f"its outputs could not be examined: {error if isinstance(error, GoldenError) else repr(error)}"
        return replace(
            outcome, problem=outcome.problem or Problem.HARNESS, message=outcome.message or redactor.text(told)
        )
    return replace(outcome, output_findings=tuple(_redacted(one, redactor.text) for one in found))


def _redacted(finding: OutputFinding, redact: Callable[[str], str]) -> OutputFinding:
    path = None if finding.path is None else redact(finding.path)
    return OutputFinding(finding.kind, redact(finding.message), path)
