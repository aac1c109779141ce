"""The runner of Odibi projects: `odibi run`, in a way that leaves Odibi's own exit code. Reads no story."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.model import Runner, RunnerError
from pytest_golden.gateway.runners.programs import find_tool_python

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gateway.runners.model import PipelineFile

_CHILD = Path(__file__).with_name("odibi_child.py")
_READ_BYTES = 1024 * 1024
_TOP_LEVEL_KEY = re.compile(r"""^["']?([A-Za-z_]\w*)["']?\s*:(?:\s|$)""", re.MULTILINE)
_PIPELINE_KEYS = frozenset({"pipelines", "imports"})
_PROJECT_KEYS = frozenset({"project", "engine", "connections", "story", "system"})


def _recognises(pipeline: PipelineFile) -> bool:
    """Tell an Odibi project config by the top-level keys that Odibi demands.

    They are found without parsing the YAML: a config that got broken is still Odibi's, whose own error is the news.
    """
    if pipeline.file.suffix.lower() not in {".yaml", ".yml"}:
        return False
    try:
        with pipeline.file.open("rb") as stream:
            text = stream.read(_READ_BYTES).decode("utf-8-sig", "replace")
    except OSError as error:
        message = f"{pipeline.config.name}: {pipeline.file} cannot be read ({error.strerror}): make it readable"
        raise RunnerError(Problem.PERMISSION_DENIED, message) from error
    keys = frozenset(_TOP_LEVEL_KEY.findall(text))
    return not keys.isdisjoint(_PIPELINE_KEYS) and len(keys & _PROJECT_KEYS) > 1


def _find_start(pipeline: PipelineFile) -> tuple[str, ...]:
    return (find_tool_python("odibi", "odibi", pipeline), str(_CHILD))


def _environment(_: PipelineFile) -> Mapping[str, str]:
    return {
        # Odibi prints by rich, which wraps at the terminal's width: an expected error's text would be cut in two. The
        # script that runs Odibi takes away the spaces with which rich fills the lines.
        "COLUMNS": "1000",
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",
        # A gate run is no production run: it must not appear in the company's lineage. Spans go nowhere by themselves,
        # since Odibi sends them only where OTEL_EXPORTER_OTLP_ENDPOINT says.
        "OPENLINEAGE_DISABLED": "true",
    }


ODIBI = Runner(
    name="odibi",
    recognises=_recognises,
    find_start=_find_start,
    arguments=lambda _: ("run", "{path}"),
    environment=_environment,
    step_readers=("odibi",),
    program="odibi",
)
