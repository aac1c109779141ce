"""What agents say that they did: kept durably without holding them up, and made into plans and training examples."""

from pytest_golden.learning.logger.agent_run import AgentRun, agent_run, current_run
from pytest_golden.learning.logger.outcome_logger import OutcomeTrajectoryLogger
from pytest_golden.learning.logger.shared_logger import get_outcome_logger, log_agent_outcome

__all__ = [
    "AgentRun",
    "OutcomeTrajectoryLogger",
    "agent_run",
    "current_run",
    "get_outcome_logger",
    "log_agent_outcome",
]
