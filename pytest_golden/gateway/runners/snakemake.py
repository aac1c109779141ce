"""Snakemake workflows: `snakemake`, and the jobs that it tells of on standard error (as versions 7, 8 and 9 print them)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import Runner, find_tool_python
from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.trajectory.readers.model import StepDraft

_TIME = re.compile(r"\[(\w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4})\]")
_RULE = re.compile(r"(?:local)?(?:rule|checkpoint) (\w+):")
_FINISHED = re.compile(r"Finished job(?:id:)? (\d+)")
_FAILED = re.compile(r"Error in (?:rule|checkpoint) (\w+):")
_JOB = re.compile(r"    jobid: (\d+)")
_FACT = re.compile(r"    (wildcards|output|log): (.+)")
# What stands between two jobs and is no word of theirs.
_ELSE = re.compile(
    r"Select jobs|Execute \d+ jobs|\d+ of \d+ steps|RuleException:|Trying to restart|Shutting down|Removing output|  "
)
_MOST_WORDS = 40


def read_jobs(_: str, stderr: str) -> Iterator[StepDraft]:
    """Read the jobs in their order. The words of a job that fails stand above the sentence that it failed."""
    tasks, at, words = Tasks("snakemake"), None, []
    began = failed = ""
    key = ""
    for line in stderr.splitlines():
        if time := _TIME.fullmatch(line):
            at = datetime.strptime(time[1], "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        elif rule := _RULE.fullmatch(line):
            began, failed, words = rule[1], "", []
        elif error := _FAILED.fullmatch(line):
            began, failed = "", error[1]
        elif (began or failed) and (job := _JOB.match(line)):
            key = job[1]
            if began:
                tasks.begin(key, began, at)
            else:
                told = "\n".join(["the rule failed", *words[-_MOST_WORDS:]])
                tasks.end(key, at, error=told)
            began = failed = ""
            words = []
        elif key and (fact := _FACT.fullmatch(line)):
            tasks.add_fact(key, **{fact[1]: fact[2]})
        elif finished := _FINISHED.match(line):
            tasks.end(finished[1], at)
            words = []
        elif line.strip() and not _ELSE.match(line):
            words.append(line)
    return tasks.drafts()


READERS = (OutputReader("snakemake", read_jobs),)
RUNNERS = (
    Runner(
        name="snakemake",
        files="Snakefile",
        suffixes=("", ".smk"),
        recognises=lambda pipeline: pipeline.file.name in {"Snakefile", "Snakefile.smk"},
        find_start=lambda pipeline: (find_tool_python("snakemake", "snakemake", pipeline), "-m", "snakemake"),
        arguments=lambda _: ("--snakefile", "{path}", "--cores", "2", "--show-failed-logs"),
        environment=lambda _: {"NO_COLOR": "1", "PYTHONUNBUFFERED": "1"},
        step_readers=("snakemake",),
        engine_files=("**/.snakemake/**",),
        program="snakemake",
        is_sure=True,
        distributions=("snakemake",),
    ),
)
