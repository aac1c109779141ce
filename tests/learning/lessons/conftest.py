from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.service import Lessons
from tests.learning.conftest import START
from tests.storage.conftest import elsewhere

if TYPE_CHECKING:
    from pytest_golden.storage.store import Store
    from tests.learning.conftest import Clock

__all__ = ["elsewhere"]
ERROR = "ValueError: could not convert string to float: '7,5' in row 12"


def make_skill(lesson: str = "Pass decimal=',' to read_csv", **fields: Any) -> SkillMemory:
    plain = {
        "what_failed": "read_csv failed",
        "what_worked": "decimal=','",
        "tool_name": "read_csv",
        "evidence": {"error": ERROR},
        "created_at": START,
    }
    return SkillMemory(lesson=lesson, **{**plain, **fields})


@pytest.fixture
def lessons(store: Store, clock: Clock) -> Lessons:
    return Lessons(store, clock=clock)
