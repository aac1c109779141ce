"""`golden lessons`: what was learned from failures and their fixes, and a person's word on it.

ID is a lesson's id, or a unique beginning of it. The gate's agent is golden. People alone approve, reject and delete lessons, and
see those that are not shown: at a terminal, or with --as-person.

shown       it may be shown beside a failure
waits       nobody has approved it yet
harmful     after it was shown, there were five failures and no pass
superseded  a later lesson contradicts it
rejected    a person rejected it: it is not shown, and not learned again

exit code: 0 done, 2 bad input.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_golden.cli import options
from pytest_golden.cli.options import Action
from pytest_golden.cli.screen import WIDE, answer, print_indented, print_list, print_listing, show_local, styled
from pytest_golden.cli.trajectory import shorten
from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.learning.learned_pages import ListedLesson
from pytest_golden.learning.lessons.recalling import describe_state, may_be_shown
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.regression.wording import count_of
from pytest_golden.values.shape import plain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from rich.console import Console
    from rich.text import Text

    from pytest_golden.learning.lessons.model import LessonStats, SkillMemory
    from pytest_golden.learning.lessons.store import KeptLesson


_STYLES = {"shown": "green", "waits": "yellow", "harmful": "bold red", "rejected": "red", "superseded": "dim"}
_COUNTS = ("learned", "helped", "harmed")
_TITLES = ("state", "agent", "kind", "lesson", *_COUNTS, "id")
_MOST_OF_TEXT = 4_000
_WORDED_BY = {"rules": "rules", "model": "a language model", "agent": "an agent", "person": "a person"}
_DEFAULT_LIMIT, _MOST = 50, 100_000
_MOST_TOLD = 20
_SECONDS_OF_A_DAY = 86_400


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `golden lessons`."""
    options.add_actions(parser, ACTIONS, "--manifest", "--store", "--json")


run = options.run_action


@contextmanager
def _open_lessons(arguments: argparse.Namespace) -> Iterator[Lessons]:
    """Yield the lessons of the store; a ValueError inside the block becomes a SettingsError, as bad input."""
    with options.open_store(arguments) as store, options.refusing_values():
        yield Lessons(store)


def _declare_list(parser: argparse.ArgumentParser) -> None:
    options.add_options(parser, "--agent", "--as-person")
    parser.add_argument("--all", action="store_true", help="Include superseded and rejected lessons.")
    options.add_limit_option(parser, _DEFAULT_LIMIT)


def _list(arguments: argparse.Namespace) -> int:
    """List the lessons, newest first."""
    limit = options.read_limit(arguments.limit, _MOST)
    with _open_lessons(arguments) as lessons:
        kept = lessons.list_kept(arguments.agent, include_superseded=arguments.all, include_rejected=arguments.all)
    seen = [one for one in kept if _may_see(arguments, one.skill)]
    newest = sorted(seen, key=lambda one: (one.skill.created_at, one.skill.id), reverse=True)
    left_out, hidden = max(0, len(newest) - limit), len(kept) - len(seen)
    facts = {"lessons": [_as_json(one) for one in newest[:limit]], "left_out": left_out, "hidden": hidden}
    if not kept:
        none = "nothing is learned yet" if arguments.agent is None else "no lesson is this agent's"
        return answer(arguments, facts, none)
    return answer(arguments, facts, lambda console: _list_lessons(console, newest[:limit], left_out, hidden))


def _may_see(arguments: argparse.Namespace, skill: SkillMemory) -> bool:
    """Tell whether the text of a lesson is for who types the command: an agent would act on one that waits or was rejected."""
    return may_be_shown(skill) or options.is_person(arguments)


def _declare_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", metavar="ID", help="The lesson; see below.")
    options.add_options(parser, "--as-person")


def _show(arguments: argparse.Namespace) -> int:
    """Show a lesson with its evidence and its changes."""
    with _open_lessons(arguments) as lessons:
        kept = lessons.get_kept(arguments.lesson)
        history = lessons.history(kept.skill.id)
    if not may_be_shown(kept.skill):
        options.check_person(arguments, f"a lesson that is not shown ({describe_state(kept.skill)})")
    versions = [{"version": one.version, **(one.provenance or {})} for one in history]
    facts = {**_as_json(kept), "history": versions}
    return answer(arguments, facts, lambda console: _print_lesson(console, kept, history))


def _declare_judging(parser: argparse.ArgumentParser) -> None:
    _declare_id(parser)
    options.add_options(parser, "--by")


def _approve(arguments: argparse.Namespace) -> int:
    """Approve a lesson, so that it is shown; the last decision wins."""
    return _judge(arguments, approves=True)


def _reject(arguments: argparse.Namespace) -> int:
    """Reject a lesson: it is not shown, and not learned again."""
    return _judge(arguments, approves=False)


def _judge(arguments: argparse.Namespace, *, approves: bool) -> int:
    by = options.find_person(arguments, f"{'approving' if approves else 'rejecting'} a lesson")
    with _open_lessons(arguments) as lessons:
        judge = lessons.approve if approves else lessons.reject
        kept = lessons.get_kept(judge(arguments.lesson, by).id)
    word = "approved" if approves else "rejected"
    told = f"{kept.skill.id}: {word} by {kept.skill.judged_by}: {shorten(kept.skill.lesson)}"
    return answer(arguments, _as_json(kept), told)


def _delete(arguments: argparse.Namespace) -> int:
    """Delete a lesson; it may be learned again."""
    options.check_person(arguments, "deleting a lesson")
    with _open_lessons(arguments) as lessons:
        gone = lessons.delete(arguments.lesson)
    return answer(arguments, {"deleted": gone.to_dict()}, f"{gone.id} deleted: {shorten(gone.lesson)}")


def _stats(arguments: argparse.Namespace) -> int:
    """Count the lessons, and how often they helped and harmed."""
    with _open_lessons(arguments) as lessons:
        counted = lessons.stats(arguments.agent)
    return answer(arguments, counted.to_dict(), lambda console: _print_stats(console, counted))


def _declare_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than",
        metavar="WHEN",
        help="Remove lessons neither learned again nor helpful since: 90d, 12h ago, or a time.",
    )
    parser.add_argument("--keep", metavar="N", help="Keep only the best N of each agent.")
    parser.add_argument("--harmful", action="store_true", help="Remove harmful lessons.")
    options.add_options(parser, "--agent", "--as-person")
    parser.add_argument("--dry-run", action="store_true", help="Only show what would be removed.")


def _prune(arguments: argparse.Namespace) -> int:
    """Remove old, surplus or harmful lessons; never those that a person judged."""
    keep = None if arguments.keep is None else options.read_limit(arguments.keep, _MOST, "--keep")
    since = None if arguments.older_than is None else options.read_moment("--older-than", arguments.older_than)
    if keep is None and since is None and not arguments.harmful:
        raise SettingsError("say which lessons to remove: give --older-than, --keep or --harmful")
    days = None if since is None else max(0.0, (utc_now() - since).total_seconds() / _SECONDS_OF_A_DAY)
    with _open_lessons(arguments) as lessons:
        gone = lessons.prune(
            arguments.agent, older_than_days=days, keep=keep, harmful=arguments.harmful, dry_run=arguments.dry_run
        )
    shown = [skill.to_dict() if _may_see(arguments, skill) else {"id": skill.id} for skill in gone]
    facts = {"dry_run": arguments.dry_run, "lessons": shown}
    return answer(arguments, facts, lambda console: _tell_pruned(console, shown, is_trial=arguments.dry_run))


def _tell_pruned(console: Console, gone: Sequence[dict[str, Any]], *, is_trial: bool) -> None:
    told = count_of(len(gone), "lesson")
    console.print(styled(f"{told} would be removed; nothing was changed" if is_trial else f"{told} removed"))
    print_list(console, [(one["id"], shorten(one.get("lesson", ""))) for one in gone[:_MOST_TOLD]])
    if len(gone) > _MOST_TOLD:
        console.print(styled(f"  and {len(gone) - _MOST_TOLD:,} more", "dim"))


def _as_json(kept: KeptLesson) -> dict[str, Any]:
    return ListedLesson(kept).to_dict()


ACTIONS = (
    Action("list", _list, _declare_list),
    Action("show", _show, _declare_id),
    Action("approve", _approve, _declare_judging),
    Action("reject", _reject, _declare_judging),
    Action("delete", _delete, _declare_id),
    Action("stats", _stats, lambda one: options.add_options(one, "--agent")),
    Action("prune", _prune, _declare_prune),
)


def _list_lessons(console: Console, lessons: Sequence[KeptLesson], left_out: int, hidden: int) -> None:
    if console.width >= WIDE:
        rows = [_make_row(one) for one in lessons]
        print_listing(console, _TITLES, rows, whole=("state", *_COUNTS, "id"), right=_COUNTS)
    else:
        narrow = [
            (
                _show_state(one.skill),
                f"{shorten(one.skill.lesson)}\n{_describe_kind(one.skill)} of {one.agent}; {_describe_use(one.skill)}",
                one.skill.id,
            )
            for one in lessons
        ]
        print_listing(console, ("state", "lesson", "id"), narrow, whole=("state", "id"))
    if left_out:
        console.print(styled(f"{left_out:,} more; --limit shows more", "dim"))
    if hidden:
        console.print(
            styled(f"{count_of(hidden, 'lesson')} only for people: at a terminal, or with --as-person", "dim")
        )


def _make_row(kept: KeptLesson) -> tuple[str | Text, ...]:
    skill = kept.skill
    counts = (f"{count:,}" for count in (skill.support, skill.success_count, skill.harm_count))
    return _show_state(skill), kept.agent, _describe_kind(skill), shorten(skill.lesson), *counts, skill.id


def _show_state(skill: SkillMemory) -> Text:
    state = describe_state(skill)
    return styled(state, _STYLES[state])


def _print_lesson(console: Console, kept: KeptLesson, history: Sequence[KeptLesson]) -> None:
    skill = kept.skill
    state = describe_state(skill)
    console.print(styled(skill.id, "bold"))
    print_indented(console, styled(_cut(skill.lesson), _STYLES[state]), 2)
    superseded = f" by {skill.superseded_by}" if skill.superseded_by is not None else ""
    judged = f"{'rejected' if skill.rejected else 'approved'} by {skill.judged_by}, {show_local(skill.judged_at)}"
    facts = [
        ("state", f"{state}{superseded if state == 'superseded' else ''}"),
        ("agent", kept.agent),
        ("kind", f"{_describe_kind(skill)}, worded by {_WORDED_BY.get(skill.source, skill.source)}"),
        ("proposed by", skill.proposed_by or ""),
        ("when", skill.context),
        ("what failed", skill.what_failed),
        ("what worked", skill.what_worked),
        ("why", skill.why),
        ("tool", skill.tool_name or ""),
        ("confidence", f"{skill.confidence:g}"),
        ("use", _describe_use(skill)),
        ("created", show_local(skill.created_at)),
        ("last used", "" if skill.last_used is None else show_local(skill.last_used)),
        ("judged", "" if skill.judged_by is None else judged),
        *((f"evidence: {name}", _show_evidence(value)) for name, value in sorted(skill.evidence.items())),
    ]
    print_list(console, [(name, _cut(told)) for name, told in facts if told.strip()])
    for one in history:
        console.print(styled(f"  version {one.version}: {_describe_change(one)}", "dim"))


def _print_stats(console: Console, counted: LessonStats) -> None:
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
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_OF_TEXT else f"{text[:_MOST_OF_TEXT]} ... {len(text) - _MOST_OF_TEXT:,} more"
