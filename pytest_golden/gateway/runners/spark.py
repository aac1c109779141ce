"""Spark: `spark-submit` in local mode, and the jobs that its scheduler logs."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import Runner, find_program
from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_golden.trajectory.readers.model import StepDraft

_BEGUN = re.compile(r"(\S+ \S+) INFO DAGScheduler: Got job (\d+) \((.+?)\) with")
_ENDED = re.compile(r"\S+ \S+ INFO DAGScheduler: Job (\d+) (finished|failed): .+, took ([\d.]+) (s|ms)$")

_ADVICE = "install Spark, or name an environment with pyspark by `venv:`"


def read_jobs(_: str, stderr: str) -> Iterator[StepDraft]:
    """Read the jobs in their order. Why one failed is not told there, but in the exception that the program ends with."""
    tasks = Tasks("spark")
    for line in stderr.splitlines():
        if begun := _BEGUN.match(line):
            tasks.begin(begun[2], begun[3], _read_time(begun[1]))
        elif ended := _ENDED.match(line):
            took = float(ended[3]) * (1000 if ended[4] == "s" else 1)
            tasks.end(ended[1], status="success" if ended[2] == "finished" else "failed", duration_ms=took)
    return tasks.drafts()


def _read_time(text: str) -> datetime | None:
    try:
        return datetime.strptime(text, "%y/%m/%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None


READERS = (OutputReader("spark", read_jobs),)
RUNNERS = (
    Runner(
        name="spark",
        files="a Spark application (.py, .jar)",
        suffixes=(".jar",),
        find_start=lambda pipeline: find_program("spark-submit", pipeline, _ADVICE),
        arguments=lambda _: ("--master", "local[2]", "--conf", "spark.ui.enabled=false", "{path}"),
        environment=lambda pipeline: {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": pipeline.python,
            "PYTHONUNBUFFERED": "1",
        },
        step_readers=("spark",),
        engine_files=("metastore_db/**", "derby.log"),
        program="spark-submit",
        distributions=("pyspark",),
    ),
)
