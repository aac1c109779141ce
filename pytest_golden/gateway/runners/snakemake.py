"""Snakemake workflows: `snakemake`, and the jobs that it tells of on standard error (as versions 7, 8 and 9 print them)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import LEFT_OUT_FILE, Runner, find_tool_python
from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.trajectory.readers.model import StepDraft

_TIME = re.compile(r"\[(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\]")
_RULE = re.compile(r"(?:local)?(?:rule|checkpoint) (\w+):$")
_FINISHED = re.compile(r"Finished job(?:id:)? (\d+)")
_FAILED = re.compile(r"Error in (?:rule|checkpoint) (\w+):$")
_JOB = re.compile(r"    jobid: (\d+)")
_FACT = re.compile(r"    (wildcards|output|log): (.+)$")
# What stands between two jobs and is not a word of theirs.
_ELSE = re.compile(
    r"Select jobs|Execute \d+ jobs|\d+ of \d+ steps|RuleException:|Trying to restart|Shutting down|Removing output|Exiting because|WorkflowError|At least one job|  |$"
)
# What Snakemake reads itself, or nobody.
_WHOLE = re.compile(r"(?:^|/)(?:Snakefile|\.[^/]*)$|\.(?:smk|ya?ml|md|rst|toml|cfg|ini)$")
_CHILD = Path(__file__).with_name("snakemake_child.py")


class _Log:
    """Snakemake's lines, one after the other. The words of a job that fails stand above the sentence that it failed."""

    def __init__(self, last_words: str | None) -> None:
        self._last_words = last_words
        self.tasks = Tasks("snakemake")
        self._at: datetime | None = None
        self._rule = self._job = ""
        self._has_failed = False
        self._facts: dict[str, str] = {}
        self._words: list[str] = []
        self._readers: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], None]], ...] = (
            (_TIME, self._read_time),
            (_RULE, lambda found: self._read_head(found, has_failed=False)),
            (_FAILED, lambda found: self._read_head(found, has_failed=True)),
            (_JOB, self._read_job),
            (_FACT, self._read_fact),
            (_FINISHED, self._read_end),
            (_ELSE, lambda _: None),
        )

    def read(self, line: str) -> None:
        """Read one line."""
        for pattern, reader in self._readers:
            if found := pattern.match(line):
                reader(found)
                return
        self._words.append(line)

    def _read_time(self, found: re.Match[str]) -> None:
        self._at = datetime.strptime(found[1], "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)

    def _read_head(self, found: re.Match[str], *, has_failed: bool) -> None:
        self._rule, self._has_failed, self._facts = found[1], has_failed, {}

    def _read_fact(self, found: re.Match[str]) -> None:
        if self._rule:
            self._facts[found[1]] = found[2]
        else:
            self.tasks.add_fact(self._job, **{found[1]: found[2]})

    def _read_job(self, found: re.Match[str]) -> None:
        if not self._rule:
            return
        self._job = found[1]
        if self._has_failed:
            self.tasks.fail(self._job, self._words or [*filter(None, [self._last_words])], self._at)
        else:
            self.tasks.begin(self._job, self._rule, self._at, **self._facts)
        self._rule, self._words = "", []

    def _read_end(self, found: re.Match[str]) -> None:
        self.tasks.end(found[1], self._at)
        self._words = []


def read_jobs(stdout: str, stderr: str) -> Iterator[StepDraft]:
    """Read the jobs in the order in which they began. A job that fails without a word may have said why on standard output."""
    log = _Log(next((line for line in reversed(stdout.splitlines()) if line.strip()), None))
    for line in stderr.splitlines():
        log.read(line)
    return log.tasks.drafts()


def _find_narrowing(project: GoldenProjectConfig, _file: Path) -> Callable[[str], bool] | None:
    """Return the test for programs, data and baselines; None if an output is a table, or if arguments may say what is made."""
    if project.args or any(output.is_of_tables for output in project.outputs):
        return None
    return lambda path: _WHOLE.search(path) is None


READERS = (OutputReader("snakemake", read_jobs),)
RUNNERS = (
    Runner(
        name="snakemake",
        files="Snakefile",
        suffixes=("", ".smk"),
        recognises=lambda pipeline: pipeline.file.name in {"Snakefile", "Snakefile.smk"},
        find_start=lambda pipeline: (find_tool_python("snakemake", "snakemake", pipeline), str(_CHILD)),
        arguments=lambda _: ("--snakefile", "{path}", "--cores", "2", "--show-failed-logs"),
        environment=lambda _: {"NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        step_readers=("snakemake",),
        engine_files=("**/.snakemake/**", LEFT_OUT_FILE),
        is_incremental=True,
        program="snakemake",
        is_sure=True,
        # The standard layout, `workflow/Snakefile`, is started from above.
        find_folder=lambda file: file.parent.parent if file.parent.name == "workflow" else file.parent,
        distributions=("snakemake",),
        oldest="7.32",
        find_narrowing=_find_narrowing,
    ),
)
