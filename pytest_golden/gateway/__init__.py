"""EXECUTED: the only way in which a pipeline is run. Permissions, view, seal, processes and runners in; facts out.

What runs is resolved on first use: most that ask this room want its values.
"""

from typing import TYPE_CHECKING

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
from pytest_golden.lazy_names import resolve_lazily

if TYPE_CHECKING:
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

__getattr__ = resolve_lazily(__name__, {"ExecutionGateway": "service", "WrittenFiles": "written_files"})
