"""The runner of Python scripts."""

from __future__ import annotations

from pytest_golden.gateway.runners.model import Runner

PYTHON = Runner(
    name="python",
    recognises=lambda pipeline: pipeline.file.suffix.lower() == ".py",
    find_start=lambda pipeline: (pipeline.python,),
    arguments=lambda _: ("{path}",),
    # What was printed before a crash or a kill must not be lost in a buffer.
    environment=lambda _: {"PYTHONUNBUFFERED": "1"},
)
