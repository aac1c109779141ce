"""The runner of Odibi projects: `odibi run`, so that Odibi's own exit code is left (see `odibi_child.py`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.gateway.runners.runner import Runner, explain_closed, find_tool_python

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gateway.runners.runner import PipelineFile

_CHILD = Path(__file__).with_name("odibi_child.py")
_READ_BYTES = 1024 * 1024
_TOP_LEVEL_KEY = re.compile(r"""^["']?([A-Za-z_]\w*)["']?\s*:(?:\s|$)""", re.MULTILINE)
_PIPELINE_KEYS = frozenset({"pipelines", "imports"})
_PROJECT_KEYS = frozenset({"project", "engine", "connections", "story", "system"})


def _recognises(pipeline: PipelineFile) -> bool:
    """Tell an Odibi project config by the top-level keys that Odibi demands.

    They are found without parsing the YAML: a config that got broken is still Odibi's, whose own error is the news.
    """
    try:
        with pipeline.file.open("rb") as stream:
            text = stream.read(_READ_BYTES).decode("utf-8-sig", "replace")
    except OSError as error:
        raise explain_closed(pipeline, error) from error
    keys = frozenset(_TOP_LEVEL_KEY.findall(text))
    return not keys.isdisjoint(_PIPELINE_KEYS) and len(keys & _PROJECT_KEYS) > 1


def _environment(_: PipelineFile) -> Mapping[str, str]:
    return {
        # Odibi prints by rich, which wraps at the terminal's width: an expected error's text would be cut in two. The
        # script that runs Odibi takes away the spaces with which rich fills the lines.
        "COLUMNS": "1000",
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",
        # A gate run is not a production run, so it must not appear in the company's lineage. Spans go nowhere by themselves,
        # since Odibi sends them only where OTEL_EXPORTER_OTLP_ENDPOINT says.
        "OPENLINEAGE_DISABLED": "true",
    }


RUNNERS = (
    Runner(
        name="odibi",
        files="Odibi's YAML (top-level `pipelines` with `project`, `connections`, `story` or `system`)",
        suffixes=(".yaml", ".yml"),
        recognises=_recognises,
        find_start=lambda pipeline: (find_tool_python("odibi", "odibi", pipeline), str(_CHILD)),
        arguments=lambda _: ("run", "{path}"),
        environment=_environment,
        step_readers=("odibi",),
        program="odibi",
        is_sure=True,
        distributions=("odibi",),
    ),
)
