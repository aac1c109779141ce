"""Run a check's command: through the gateway, in a sealed view of the workspace, without a network, and leaving nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.errors import GoldenError
from pytest_golden.gateway.model import AgentRole, Ending, Permissions
from pytest_golden.journal.checks.rules import judge_command, unable
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pytest_golden.gateway.model import Gateway
    from pytest_golden.journal.checks.rules import Answer

_NAME = "check"


def run_command(gateway: Gateway, command: Sequence[str], timeout_seconds: float) -> Answer:
    """Run a command and tell what its outcome says.

    Raises:
        KeyboardInterrupt: it was stopped by one.
    """
    try:
        project = GoldenProjectConfig(
            _NAME, ".", command=tuple(command), project_dir=".", timeout=timeout_seconds, network=False
        )
        outcome = gateway.run_pipeline(
            project, role=AgentRole.ENVIRONMENT, permissions=Permissions(can_execute_tasks=True, can_edit_source=False)
        )
    except GoldenError as error:
        return unable(str(error))
    except ValueError as error:
        return unable(f"its command cannot be declared: {error}")
    if outcome.ending is Ending.INTERRUPTED:
        raise KeyboardInterrupt
    return judge_command(outcome)
