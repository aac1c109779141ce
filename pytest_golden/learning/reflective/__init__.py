"""Records from which a language model rewrites the texts of a program, in the form that GEPA's reflection reads."""

from pytest_golden.learning.reflective.dataset import reflective_dataset

__all__ = ["reflective_dataset"]
