"""The runner of anything else: the `command:` that the manifest gives."""

from __future__ import annotations

from pytest_golden.gateway.runners.model import Runner

COMMAND = Runner(
    name="command",
    recognises=lambda pipeline: bool(pipeline.config.command),
    find_start=lambda _: (),
    arguments=lambda pipeline: pipeline.config.command or (),
    environment=lambda _: {},
)
