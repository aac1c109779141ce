"""Whether a project became slow: its recent passes in the same environment, and the judgement by them.

The figures are `regression/trends.py`. `reading.py` and `store.py` load the database library, and are imported by
themselves.
"""

from pytest_golden.gate.trends.environment import describe_run_environment
from pytest_golden.gate.trends.judging import SlowdownJudge

__all__ = ["SlowdownJudge", "describe_run_environment"]
