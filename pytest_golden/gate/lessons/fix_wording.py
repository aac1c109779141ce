"""What a language model is asked to word about a fix, and whether what it said may be kept. Pure; asking is elsewhere."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pytest_golden.clock import new_id
from pytest_golden.learning.language_model.prompting import write_prompt
from pytest_golden.learning.lessons.model_wording import list_parts, put_in_words
from pytest_golden.learning.lessons.quality import check_lesson
from pytest_golden.learning.limits import thaw

if TYPE_CHECKING:
    from datetime import datetime

    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.learning.lessons.model_wording import Wording

_TASK = """\
A data pipeline failed, something was changed, and at once it passed. Word the lesson that the next person should be told
whose pipeline fails in this way, as one or two plain sentences: what to look at or to do, and when. It must help with other
pipelines too: no paths, ids, dates, times or addresses of this one case. Name only what stands in the data, in backticks.
Say in "why" what the cause was, in one sentence. The data do not show what the change did in full: claim no more than they say."""
_TOLD = ("error", "commits", "files", "edited", "declaration", "versions", "inputs")
_NAMED = re.compile(r"`([^`\n]{1,200})`")


def write_fix_prompt(skill: SkillMemory) -> str:
    """Give the prompt for the lesson of a fix that rules have worded; what programs and people wrote is data in it."""
    evidence = thaw(skill.evidence)
    data = {
        "The failure": skill.what_failed,
        "The change as rules worded it": skill.lesson,
        "What was recorded": {name: evidence[name] for name in _TOLD if evidence.get(name)},
    }
    return write_prompt(_TASK, data)


def apply_fix_wording(skill: SkillMemory, said: Wording, moment: datetime) -> SkillMemory | None:
    """Give a lesson of its own in the model's words, not approved; None when it names what is not in the data, or is no good.

    Whoever approves it puts it in the place of the one that it words.
    """
    worded = put_in_words(skill, said)
    if not list_parts(match[1] for match in _NAMED.finditer(worded.lesson)) <= _list_known(skill):
        return None
    worded = worded.replace(
        id=new_id("lesson"),
        what_worked=worded.lesson,
        judged_by=None,
        judged_at=None,
        support=1,
        success_count=0,
        harm_count=0,
        last_used=None,
        created_at=moment,
        evidence={**thaw(skill.evidence), "worded_from": skill.id},
    )
    return None if check_lesson(worded) else worded


def _list_known(skill: SkillMemory) -> set[str]:
    told = (json.dumps(thaw(skill.evidence), ensure_ascii=False), skill.lesson, skill.context, skill.what_failed)
    return list_parts(told)
