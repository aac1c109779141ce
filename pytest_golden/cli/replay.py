"""`golden replay BASE..HEAD [NAME...]`: what the present floor would have said of past commits.

It runs the golden projects at each commit after BASE up to HEAD, by first parents, each checked out in a worktree. The manifest and
the baselines are those of your working tree: so a new output, tolerance or project can be tried on real changes before it is
accepted. With `setup:` in the manifest each commit gets an environment of its own. Interrupted, the same command goes on where it was.

exit code: 0 whatever was red, 2 bad input or interrupted, 3 a ref is not there, or BASE did not come before HEAD.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.bisect import KnownRuns
from pytest_golden.cli.screen import answer, print_indented, styled
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gateway import git
from pytest_golden.history.base_files import find_checkout
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import count_of
from pytest_golden.verify.base_worktree import PrivateFolder
from pytest_golden.verify.gates import clean_environment
from pytest_golden.verify.past_commits import NOT_RUN, PastCommits, PastStatus, ReplayedCommit, Replayer

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from rich.console import Console

    from pytest_golden.verify.past_commits import Replay

_NOT_RUN_CODE = 3
_SHORT, _LONGEST_STRIP = 12, 60
_SIGNS = {
    ResultStatus.PASSED.value: "✓",
    ResultStatus.FAILED.value: "✗",
    ResultStatus.ERROR.value: "!",
    ResultStatus.SKIPPED.value: "-",
    NOT_RUN: "?",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden replay`."""
    parser.add_argument("range", metavar="BASE..HEAD", help="The commits; BASE alone means up to the present one.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="Golden projects (default: all).")
    parser.add_argument("--fresh", action="store_true", help="Run commits again that an earlier replay has run.")
    parser.set_defaults(base=None)
    options.add_options(parser, "--manifest", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Run the range, and show what was red."""
    base, _, head = arguments.range.partition("..")
    if not base or base.startswith("-") or head.startswith((".", "-")):
        raise SettingsError(f"{arguments.range!r} is no range of commits: write BASE..HEAD, such as v1.0..main")
    return options.run_against_base(arguments, lambda _, manifest: _replay(arguments, manifest, (base, head or "HEAD")))


def _replay(arguments: argparse.Namespace, manifest: Path, ends: tuple[str, str]) -> int:
    try:
        checkout = find_checkout(manifest.parent)
        base, head = (git.find_commit(manifest.parent, ref) for ref in ends)
    except GoldenError as error:
        options.say(str(error))
        return _NOT_RUN_CODE
    with PrivateFolder(outside=checkout) as private, options.watch_gates() as (say, show):
        past = PastCommits(manifest, checkout, private.path, clean_environment(os.environ), show)
        names = [past.declared.get_project(name).name for name in arguments.names]
        names = names or [project.name for project in past.declared.projects]
        kept = KnownRuns("replay.json", past.manifest, past.declared, "")
        known = {} if arguments.fresh else {one.commit: one for one in kept.read(ReplayedCommit)}
        try:
            found = Replayer(past, known, keep=kept.keep, say=say).run(base, head, names)
        except GoldenError as error:
            say(str(error))
            return _NOT_RUN_CODE
    return answer(arguments, found.to_dict, lambda console: _show(console, found))


def _show(console: Console, found: Replay) -> None:
    if not found.commits:
        console.print(styled(f"no commit lies between {found.base[:_SHORT]} and {found.head[:_SHORT]}"))
        return
    signs = (
        _SIGNS if (sys.stdout.encoding or "").lower().startswith("utf") else {**_SIGNS, "PASSED": "P", "FAILED": "F"}
    )
    width = max(map(len, found.projects), default=0)
    for place, name in enumerate(found.projects):
        strip = "".join(signs.get(one.results[place].status, "?") for one in found.commits)
        red = found.red[name]
        shown = strip if len(strip) <= _LONGEST_STRIP else f"...{strip[-_LONGEST_STRIP:]}"
        told = f"red at {red} of {count_of(len(found.commits), 'commit')}"
        console.print(styled(f"{name:<{width}}  {shown}  {told}", "bold red" if red else "green"))
    before: frozenset[PastStatus] = frozenset()
    for one in found.commits:
        others = [result for result in one.results if result.status != ResultStatus.PASSED.value]
        # What goes on as at the commit before is told by the strip.
        news = [result for result in others if result not in before]
        before = frozenset(others)
        if news:
            console.print()
            console.print(styled(f"{one.commit[:_SHORT]}  {one.day}  {one.subject}", "bold"))
            for result in news:
                print_indented(console, f"{result.project} {result.status}: {result.reason}", 2)
