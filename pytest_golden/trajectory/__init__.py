"""TRACED: what happened inside a run, as an immutable trajectory of steps; readers that find the steps. No judgement."""
