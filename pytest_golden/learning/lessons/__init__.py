"""Lessons: what failed, what worked and why, with the evidence. Found in attempts and in the gate's runs, kept, recalled, credited.

`model.py` has the values; `patterns.py` finds them in attempts, `wording.py` words them, `quality.py` refuses; `service.py`
keeps them. The names below are resolved on first use, since a gate needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.lazy_names import resolve_lazily

if TYPE_CHECKING:
    from pytest_golden.learning.lessons.learning import learn_from_attempts
    from pytest_golden.learning.lessons.model import (
        Attempt,
        LessonKind,
        LessonPattern,
        LessonStats,
        LessonVerdict,
        Recalled,
        RecallReason,
        SkillMemory,
    )
    from pytest_golden.learning.lessons.patterns import find_patterns
    from pytest_golden.learning.lessons.quality import check_lesson
    from pytest_golden.learning.lessons.service import Lessons
    from pytest_golden.learning.lessons.store import KeptLesson

__all__ = [
    "Attempt",
    "KeptLesson",
    "LessonKind",
    "LessonPattern",
    "LessonStats",
    "LessonVerdict",
    "Lessons",
    "RecallReason",
    "Recalled",
    "SkillMemory",
    "check_lesson",
    "find_patterns",
    "learn_from_attempts",
]

__getattr__ = resolve_lazily(
    __name__,
    {
        **dict.fromkeys(__all__, "model"),
        "KeptLesson": "store",
        "Lessons": "service",
        "check_lesson": "quality",
        "find_patterns": "patterns",
        "learn_from_attempts": "learning",
    },
)
