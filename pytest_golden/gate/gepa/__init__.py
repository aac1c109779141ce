"""Golden projects as the data set of GEPA, which improves texts of a project by trying and reflecting. Records nothing.

The library `gepa` is an extra and is loaded when an adapter is made.
"""

from pytest_golden.gate.gepa.adapter import GoldenAdapter

__all__ = ["GoldenAdapter"]
