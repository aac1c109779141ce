"""Runners: each knows the command for one kind of pipeline. They start nothing; the gateway does.

The files ending in `_child.py` are scripts that stand between the gateway and a tool, run by the tool's own interpreter.
"""

from pytest_golden.gateway.runners.choice import find_runner, find_runner_command
from pytest_golden.gateway.runners.model import PipelineFile, RunnerError

__all__ = ["PipelineFile", "RunnerError", "find_runner", "find_runner_command"]
