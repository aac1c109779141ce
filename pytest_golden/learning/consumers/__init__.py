"""What others make of what was learned: plans as trajectories to begin with, and training examples as a file."""

from pytest_golden.learning.consumers.pending_trajectories import trajectories_for
from pytest_golden.learning.consumers.training_export import export_training_examples

__all__ = ["export_training_examples", "trajectories_for"]
