"""Outputs beside their baselines: whether what a run wrote is still what was accepted, and how it differs.

Files are read and nothing else is done; which files belong together, and what is accepted, is decided by `gate/baselines/`.
"""

from pytest_golden.regression.baselines.comparing import compare_files
from pytest_golden.regression.baselines.kinds import choose_comparison
from pytest_golden.regression.baselines.model import Mismatch

__all__ = ["Mismatch", "choose_comparison", "compare_files"]
