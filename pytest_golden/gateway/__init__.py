"""EXECUTED: the only way in which a pipeline is run. Permissions, view, seal, processes and runners in; facts out."""

from pytest_golden.gateway.model import (
    AgentRole,
    Ending,
    GatewayAbilities,
    OutputFinding,
    Permissions,
    PipelineOutcome,
    Problem,
    RunnerCommand,
    WriteSet,
    WrittenFile,
)
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.gateway.written_files import WrittenFiles

__all__ = [
    "AgentRole",
    "Ending",
    "ExecutionGateway",
    "GatewayAbilities",
    "OutputFinding",
    "Permissions",
    "PipelineOutcome",
    "Problem",
    "RunnerCommand",
    "WriteSet",
    "WrittenFile",
    "WrittenFiles",
]
