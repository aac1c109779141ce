"""What trajectories show: metrics over many runs, an analysis of each, and a reflection by a language model."""
