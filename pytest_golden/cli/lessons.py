"""`golden lessons`: what was learned from failures and their fixes, and a person's word on it.

How lessons are told is in `lesson_lines`.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.action import Action, add_actions
from pytest_golden.cli.lesson_lines import list_lessons, print_lesson, print_stats, shorten_lesson
from pytest_golden.cli.limit_option import add_limit_option, read_limit
from pytest_golden.cli.manifest_option import add_json_option, add_manifest_option
from pytest_golden.cli.moment_option import read_moment
from pytest_golden.cli.person_option import add_person_option, find_person
from pytest_golden.cli.screen import open_console, print_json, print_list, print_table, styled
from pytest_golden.cli.store_option import add_store_option, open_store
from pytest_golden.clock import utc_now
from pytest_golden.errors import SettingsError
from pytest_golden.learning.lessons.paging import ListedLesson
from pytest_golden.learning.lessons.service import Lessons

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.learning.lessons.store import KeptLesson

_DEFAULT_LIMIT, _MOST = 50, 100_000
_MOST_TOLD = 20
_SECONDS_OF_A_DAY = 86_400
_EPILOG = """\
ID is a lesson's id, or the beginning of one that is the only such. The gate's
agent is golden.

shown       it may be shown beside a failure
waits       nobody has approved it yet
harmful     five failures and no pass followed its being shown
superseded  a later lesson says otherwise
rejected    a person rejected it: it is not shown, and not learned again

exit code: 0 done, 2 bad input."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `golden lessons`."""
    for action, declared in add_actions(parser, ACTIONS.values(), _EPILOG):
        action.declare(declared)
        add_manifest_option(declared)
        add_store_option(declared)
        add_json_option(declared)


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked."""
    return ACTIONS[arguments.action].run(arguments)


@contextmanager
def _open_lessons(arguments: argparse.Namespace) -> Iterator[Lessons]:
    """Give the lessons that are meant; what they refuse inside the block is bad input."""
    with open_store(arguments) as store:
        try:
            yield Lessons(store)
        except ValueError as error:
            raise SettingsError(str(error)) from None


def _add_agent_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--agent", metavar="NAME", help="Of this agent alone (default: of all).")


def _declare_list(parser: argparse.ArgumentParser) -> None:
    _add_agent_option(parser)
    parser.add_argument("--all", action="store_true", help="Also those that are superseded or rejected.")
    add_limit_option(parser, _DEFAULT_LIMIT)


def _list(arguments: argparse.Namespace) -> int:
    limit = read_limit(arguments.limit, _MOST)
    with _open_lessons(arguments) as lessons:
        kept = lessons.list_kept(arguments.agent, include_superseded=arguments.all, include_rejected=arguments.all)
    newest = sorted(kept, key=lambda one: (one.skill.created_at, one.skill.id), reverse=True)
    left_out = max(0, len(newest) - limit)
    if arguments.json:
        print_json({"lessons": [_as_json(one) for one in newest[:limit]], "left_out": left_out})
        return 0
    console = open_console()
    if not newest:
        console.print(styled("nothing is learned yet" if arguments.agent is None else "no lesson is this agent's"))
        return 0
    print_table(console, list_lessons(console, newest[:limit]))
    if left_out:
        console.print(styled(f"{left_out:,} more; --limit shows more", "dim"))
    return 0


def _declare_id(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", metavar="ID", help="Which lesson; see below.")


def _show(arguments: argparse.Namespace) -> int:
    with _open_lessons(arguments) as lessons:
        kept = lessons.get_kept(arguments.lesson)
        history = lessons.history(kept.skill.id)
    if arguments.json:
        versions = [{"version": one.version, **(one.provenance or {})} for one in history]
        print_json({**_as_json(kept), "history": versions})
    else:
        print_lesson(open_console(), kept, history)
    return 0


def _declare_judging(parser: argparse.ArgumentParser) -> None:
    _declare_id(parser)
    add_person_option(parser)


def _approve(arguments: argparse.Namespace) -> int:
    with _open_lessons(arguments) as lessons:
        kept = lessons.get_kept(lessons.approve(arguments.lesson, find_person(arguments)).id)
    return _tell_judged(arguments, kept, "approved")


def _reject(arguments: argparse.Namespace) -> int:
    with _open_lessons(arguments) as lessons:
        kept = lessons.get_kept(lessons.reject(arguments.lesson, find_person(arguments)).id)
    return _tell_judged(arguments, kept, "rejected")


def _tell_judged(arguments: argparse.Namespace, kept: KeptLesson, word: str) -> int:
    if arguments.json:
        print_json(_as_json(kept))
    else:
        told = f"{kept.skill.id}: {word} by {kept.skill.judged_by}: {shorten_lesson(kept.skill)}"
        open_console().print(styled(told))
    return 0


def _delete(arguments: argparse.Namespace) -> int:
    with _open_lessons(arguments) as lessons:
        gone = lessons.delete(arguments.lesson)
    if arguments.json:
        print_json({"deleted": gone.to_dict()})
    else:
        open_console().print(styled(f"{gone.id} deleted: {shorten_lesson(gone)}"))
    return 0


def _stats(arguments: argparse.Namespace) -> int:
    with _open_lessons(arguments) as lessons:
        counted = lessons.stats(arguments.agent)
    if arguments.json:
        print_json(counted.to_dict())
    else:
        print_stats(open_console(), counted)
    return 0


def _declare_prune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--older-than", metavar="WHEN", help="Those not learned again and of no help since: 90d, 12h ago, or a time."
    )
    parser.add_argument("--keep", metavar="N", help="All but the best N of each agent.")
    parser.add_argument("--harmful", action="store_true", help="Those that are harmful.")
    _add_agent_option(parser)
    parser.add_argument("--dry-run", action="store_true", help="Only tell what would go.")


def _prune(arguments: argparse.Namespace) -> int:
    keep = None if arguments.keep is None else read_limit(arguments.keep, _MOST, "--keep")
    since = None if arguments.older_than is None else read_moment("--older-than", arguments.older_than)
    if keep is None and since is None and not arguments.harmful:
        raise SettingsError("nothing says which are to go: give --older-than, --keep or --harmful")
    days = None if since is None else max(0.0, (utc_now() - since).total_seconds() / _SECONDS_OF_A_DAY)
    with _open_lessons(arguments) as lessons:
        gone = lessons.prune(
            arguments.agent, older_than_days=days, keep=keep, harmful=arguments.harmful, dry_run=arguments.dry_run
        )
    if arguments.json:
        print_json({"dry_run": arguments.dry_run, "lessons": [skill.to_dict() for skill in gone]})
    else:
        _tell_pruned(gone, is_trial=arguments.dry_run)
    return 0


def _tell_pruned(gone: tuple[SkillMemory, ...], *, is_trial: bool) -> None:
    told = f"{len(gone):,} lesson{'' if len(gone) == 1 else 's'}"
    console = open_console()
    console.print(styled(f"{told} would be removed; nothing was changed" if is_trial else f"{told} removed"))
    print_list(console, [(skill.id, shorten_lesson(skill)) for skill in gone[:_MOST_TOLD]])
    if len(gone) > _MOST_TOLD:
        console.print(styled(f"  and {len(gone) - _MOST_TOLD:,} more", "dim"))


def _as_json(kept: KeptLesson) -> dict[str, Any]:
    return ListedLesson(kept).to_dict()


ACTIONS: Mapping[str, Action] = {
    action.name: action
    for action in (
        Action("list", "List the lessons, the newest first.", _declare_list, _list),
        Action("show", "Show a lesson with its evidence, and what was done to it.", _declare_id, _show),
        Action("approve", "Approve a lesson, so that it is shown; the last word wins.", _declare_judging, _approve),
        Action("reject", "Reject a lesson: it is not shown, and not learned again.", _declare_judging, _reject),
        Action("delete", "Delete a lesson; it may be learned again.", _declare_id, _delete),
        Action("stats", "Count the lessons, and what came of showing them.", _add_agent_option, _stats),
        Action(
            "prune", "Remove old, superfluous or harmful lessons; never what a person judged.", _declare_prune, _prune
        ),
    )
}
