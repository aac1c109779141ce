"""SQLMesh projects: `sqlmesh plan` without questions, and the models that it evaluates."""

from __future__ import annotations

import re
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import (
    LEFT_OUT_FILE,
    Runner,
    find_tool_python,
    is_started_beside,
    read_beginning,
)
from pytest_golden.trajectory.readers.engine_reports import OutputReader, Tasks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.gateway.runners.runner import PipelineFile
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.trajectory.readers.model import StepDraft

_EVALUATED = re.compile(r"\[(\d+)/\d+\]\s+(\S+)\s+\[(.*?)\]\s+([\d.]+)s")
# Its unit tests run before anything else.
_FAILED_TEST = re.compile(r"^ *• `([^`\n]+)`::`([^`\n]+)`", re.MULTILINE)
# Before what a test says of itself.
_TEST_ERROR = "Failed to run test:"
# The configuration may be a script.
_IMPORT = re.compile(r"^(?:from|import) sqlmesh\b", re.MULTILINE)
_CONFIG = re.compile(r"^config[ \t]*(?::[^=\n]*)?=[ \t]*(?:\w+\.)?Config\(", re.MULTILINE)
_FENCE = "```"
# A file that is a model or its data, and nothing that others include.
_NODE = re.compile(r"models/[\w./-]+\.sql|(?:models|seeds)/[\w./-]+\.csv")
_CHILD = Path(__file__).with_name("sqlmesh_child.py")


def _recognises(pipeline: PipelineFile) -> bool:
    """Tell a SQLMesh project by the name of its configuration and a key that it must have."""
    if pipeline.file.name not in {"config.yaml", "config.yml"}:
        return False
    lines = read_beginning(pipeline).splitlines()
    return any(line.startswith(b"model_defaults:") for line in lines)


def _find_narrowing(project: GoldenProjectConfig, _file: Path) -> Callable[[str], bool] | None:
    """Return the test for files of models; None if an output is not a table, or if it is started otherwise than by its folder alone."""
    is_of_files = not all(output.path and output.is_of_tables for output in project.outputs)
    if project.args or is_of_files or not is_started_beside(project):
        return None
    return lambda path: _NODE.fullmatch(path) is not None


def read_models(stdout: str, _: str) -> Iterator[StepDraft]:
    """Read the models in the order in which they were evaluated, and the unit tests that failed before.

    A model that has several batches is one step.
    """
    tasks = Tasks("sqlmesh")
    took: dict[str, float] = {}
    told, _, failures = stdout.partition("**Failed models**")
    for line in told.splitlines():
        if model := _EVALUATED.match(line.strip()):
            name = model[2].replace('"', "")
            took[name] = took.get(name, 0.0) + float(model[4]) * 1000
            tasks.begin(name, name, batches=int(model[1]), how=model[3])
            tasks.end(name, duration_ms=took[name])
    for test in _FAILED_TEST.finditer(told):
        tasks.end(f"{test[1]}::{test[2]}", error=_find_words(told, test[2]) or "the test failed")
    for part in failures.split("\n* `")[1:]:
        name, _, rest = part.partition("`")
        words = [line.strip() for line in "".join(rest.split(_FENCE)[1:2]).splitlines() if line.strip()]
        if words and words[0].startswith("File '"):
            # A model in Python: the exception is below its frames.
            words = [words[-1], *words[:-1]]
        tasks.end(name.replace('"', ""), error="\n".join(words) or "the model failed")
    return tasks.drafts()


def _find_words(told: str, test: str) -> str:
    """Return what a failed test says, below the line with its name and a line of dashes."""
    for mark in ("ERROR", "FAIL"):
        said = told.partition(f"\n{mark}: {test} (")[2].partition(_FENCE)[0]
        words = [line.strip() for line in said.partition("\n----")[2].splitlines()[1:]]
        block = [word for word in takewhile(lambda word: not word.startswith("----"), words) if word]
        if block:
            return "\n".join(block[1:] if block[0].endswith(_TEST_ERROR) else block)
    return ""


READERS = (OutputReader("sqlmesh", read_models),)
RUNNERS = (
    Runner(
        name="sqlmesh",
        files="SQLMesh's config.yaml (with `model_defaults`)",
        suffixes=(".yaml", ".yml"),
        recognises=_recognises,
        # Its package cannot be run by `python -m`.
        find_start=lambda pipeline: (find_tool_python("sqlmesh", "sqlmesh", pipeline), str(_CHILD)),
        arguments=lambda _: ("plan", "--auto-apply", "--no-prompts"),
        environment=lambda _: {
            "SQLMESH__DISABLE_ANONYMIZED_ANALYTICS": "true",
            "DO_NOT_TRACK": "1",
            "MAX_FORK_WORKERS": "1",
            # It prints by rich, which wraps at the terminal's width.
            "COLUMNS": "1000",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
        },
        step_readers=("sqlmesh",),
        engine_files=("**/.cache/**", "logs/**", LEFT_OUT_FILE),
        is_incremental=True,
        program="sqlmesh",
        is_sure=True,
        find_in_script=lambda text: () if _IMPORT.search(text) and _CONFIG.search(text) else None,
        distributions=("sqlmesh",),
        oldest="0.236",
        find_narrowing=_find_narrowing,
        # A gateway of its own, since one in Python cannot be changed by variables.
        keep_tables={
            "SQLMESH__DEFAULT_GATEWAY": "golden",
            "SQLMESH__GATEWAYS__GOLDEN__CONNECTION__TYPE": "duckdb",
            "SQLMESH__GATEWAYS__GOLDEN__CONNECTION__DATABASE": "golden.duckdb",
        },
    ),
)
