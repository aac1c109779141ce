"""Lessons for people: as a table, in full, and counted. Whatever is in them, no control character and no markup gets through."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.listing import WIDE, make_listing
from pytest_golden.cli.screen import print_indented, print_list, styled
from pytest_golden.cli.trajectory_lines import shorten
from pytest_golden.learning.lessons.standing import describe_state
from pytest_golden.learning.limits import thaw

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from pytest_golden.learning.lessons.model import LessonStats, SkillMemory
    from pytest_golden.learning.lessons.store import KeptLesson

_STYLES = {"shown": "green", "waits": "yellow", "harmful": "bold red", "rejected": "red", "superseded": "dim"}
_COUNTS = ("learned", "helped", "harmed")
_TITLES = ("state", "agent", "kind", "lesson", *_COUNTS, "id")
_MOST_OF_TEXT = 4_000


def shorten_lesson(skill: SkillMemory) -> str:
    """Give what a lesson says in one line of bounded length."""
    return shorten(skill.lesson)


def list_lessons(console: Console, lessons: Sequence[KeptLesson]) -> Table:
    """Make a table of lessons."""
    if console.width >= WIDE:
        rows = [_make_row(one) for one in lessons]
        return make_listing(console, _TITLES, rows, whole=("state", *_COUNTS, "id"), right=_COUNTS)
    narrow = [
        (
            _show_state(one.skill),
            f"{shorten_lesson(one.skill)}\n{_describe_kind(one.skill)} of {one.agent}; {_describe_use(one.skill)}",
            one.skill.id,
        )
        for one in lessons
    ]
    return make_listing(console, ("state", "lesson", "id"), narrow, whole=("state", "id"))


def _make_row(kept: KeptLesson) -> tuple[str | Text, ...]:
    skill = kept.skill
    counts = (f"{count:,}" for count in (skill.support, skill.success_count, skill.harm_count))
    return _show_state(skill), kept.agent, _describe_kind(skill), shorten_lesson(skill), *counts, skill.id


def _show_state(skill: SkillMemory) -> Text:
    state = describe_state(skill)
    return styled(state, _STYLES[state])


def print_lesson(console: Console, kept: KeptLesson, history: Sequence[KeptLesson]) -> None:
    """Print all of a lesson."""
    skill = kept.skill
    state = describe_state(skill)
    console.print(styled(skill.id, "bold"))
    print_indented(console, styled(_cut(skill.lesson), _STYLES[state]), 2)
    superseded = f" by {skill.superseded_by}" if skill.superseded_by is not None else ""
    judged = f"{'rejected' if skill.rejected else 'approved'} by {skill.judged_by}, {_show_moment(skill.judged_at)}"
    facts = [
        ("state", f"{state}{superseded if state == 'superseded' else ''}"),
        ("agent", kept.agent),
        ("kind", f"{_describe_kind(skill)}, worded by {_WORDED_BY.get(skill.source, skill.source)}"),
        ("when", skill.context),
        ("what failed", skill.what_failed),
        ("what worked", skill.what_worked),
        ("why", skill.why),
        ("tool", skill.tool_name or ""),
        ("confidence", f"{skill.confidence:g}"),
        ("use", _describe_use(skill)),
        ("created", _show_moment(skill.created_at)),
        ("last used", "" if skill.last_used is None else _show_moment(skill.last_used)),
        ("judged", "" if skill.judged_by is None else judged),
        *((f"evidence: {name}", _show_evidence(value)) for name, value in sorted(skill.evidence.items())),
    ]
    print_list(console, [(name, _cut(told)) for name, told in facts if told.strip()])
    for one in history:
        console.print(styled(f"  version {one.version}: {_describe_change(one)}", "dim"))


def print_stats(console: Console, counted: LessonStats) -> None:
    """Print how many lessons there are, and what came of showing them."""
    facts = [
        ("lessons", counted.total),
        ("may be shown", counted.shown),
        ("wait for approval", counted.unapproved),
        ("harmful", counted.harmful),
        ("superseded", counted.superseded),
        ("rejected", counted.rejected),
        ("times shown", counted.recalled),
        ("a pass followed", counted.helped),
        ("a failure followed", counted.harmed),
        *((f"of kind {kind.replace('_', ' ')}", count) for kind, count in counted.by_kind.items()),
        *((f"of agent {shorten(agent)}", count) for agent, count in counted.by_agent.items()),
    ]
    print_list(console, [(name, f"{count:,}") for name, count in facts])


_WORDED_BY = {"rules": "rules", "model": "a language model", "person": "a person"}


def _describe_kind(skill: SkillMemory) -> str:
    return str(skill.kind).replace("_", " ")


def _describe_use(skill: SkillMemory) -> str:
    learned = "learned once" if skill.support == 1 else f"learned {skill.support:,} times"
    return f"{learned}, helped {skill.success_count:,}, harmed {skill.harm_count:,}"


def _describe_change(kept: KeptLesson) -> str:
    provenance = kept.provenance or {}
    by = f" by {provenance['by']}" if provenance.get("by") else ""
    more = [f"{name} {value}" for name, value in provenance.items() if name not in {"why", "by"} and value is not None]
    return shorten(f"{provenance.get('why') or 'written'}{by}{'; ' if more else ''}{', '.join(more)}")


def _show_evidence(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(thaw(value), ensure_ascii=False)


def _show_moment(moment: datetime | None) -> str:
    return "-" if moment is None else moment.astimezone().strftime("%Y-%m-%d %H:%M")


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_OF_TEXT else f"{text[:_MOST_OF_TEXT]} ... {len(text) - _MOST_OF_TEXT:,} more"
