"""Which lessons may be shown, and why the others may not. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_golden.learning.lessons.model import SkillMemory

#: So many harms without one success, and a lesson is not shown any more.
MOST_HARMS = 5


def is_harmful(skill: SkillMemory) -> bool:
    """Tell whether it harmed five times and never helped."""
    return skill.harm_count >= MOST_HARMS and not skill.success_count


def may_be_shown(skill: SkillMemory) -> bool:
    """Tell whether it may be recalled: approved, not rejected, not superseded, and not harmful."""
    return skill.approved and not skill.rejected and skill.superseded_by is None and not is_harmful(skill)
