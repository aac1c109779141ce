"""Which lessons may be shown, and why the others may not. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pytest_golden.learning.lessons.model import SkillMemory

#: So many harms without one success, and a lesson is not shown any more.
MOST_HARMS = 5
#: How a lesson may stand. The last two have no future: a person, or a later lesson, has said otherwise.
STATES = ("shown", "waits", "harmful", "superseded", "rejected")


def is_harmful(skill: SkillMemory) -> bool:
    """Tell whether it harmed five times and never helped."""
    return skill.harm_count >= MOST_HARMS and not skill.success_count


def may_be_shown(skill: SkillMemory) -> bool:
    """Tell whether it may be recalled: approved, not rejected, not superseded, and not harmful."""
    return skill.approved and not skill.rejected and skill.superseded_by is None and not is_harmful(skill)


def describe_state(skill: SkillMemory) -> str:
    """Give in one word whether a lesson is shown, and if not, why: one of `STATES`."""
    if skill.rejected:
        return "rejected"
    if skill.superseded_by is not None:
        return "superseded"
    if not skill.approved:
        return "waits"
    return "harmful" if is_harmful(skill) else "shown"
