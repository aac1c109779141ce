"""Lessons from the gate's own history: what broke a project, what fixed it, and what came of showing that. The gate meets git here.

The names below are resolved on first use: a session learns at its end, and recalls only when something failed.
"""

from typing import TYPE_CHECKING

from pytest_golden.lazy_names import resolve_lazily

if TYPE_CHECKING:
    from pytest_golden.gate.lessons.learning import GateLearner, find_budget
    from pytest_golden.gate.lessons.recalling import find_known_lessons

__all__ = ["GateLearner", "find_budget", "find_known_lessons"]

__getattr__ = resolve_lazily(
    __name__, {"GateLearner": "learning", "find_budget": "learning", "find_known_lessons": "recalling"}
)
