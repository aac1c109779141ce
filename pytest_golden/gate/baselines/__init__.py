"""The outputs of golden projects against their baselines: found among what a run wrote, compared, and accepted by a person.

How two files are compared is in `pytest_golden.regression.baselines`.
"""

from pytest_golden.gate.baselines.keeping import BaselineKeeper, Examination
from pytest_golden.gate.baselines.place import BASELINES_FOLDER, ProjectBaselines, find_baselines_folder
from pytest_golden.gate.baselines.unused import find_unused_baselines

__all__ = [
    "BASELINES_FOLDER",
    "BaselineKeeper",
    "Examination",
    "ProjectBaselines",
    "find_baselines_folder",
    "find_unused_baselines",
]
