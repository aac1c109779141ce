"""`golden replay BASE..HEAD [NAME...]`: show what the present floor would have said about past commits.

Run the golden projects at each commit after BASE up to HEAD (first parents), each in a worktree. The manifest and the
baselines come from your working tree, so a new output, tolerance or project can be tried on real changes before it is
accepted. With --against REF, the floor of REF judges the same commits too, and the differences are shown. With `setup:` in the
manifest, each commit gets its own environment. After an interruption, the same command continues.

exit code: 0 whatever was red, 2 bad input or interrupted, 3 a ref does not exist, or BASE is not an ancestor of HEAD.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.bisect import KnownRuns, digest_baselines
from pytest_golden.cli.screen import answer, print_indented, styled
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gateway import git
from pytest_golden.history.base_files import find_checkout, find_manifest_at
from pytest_golden.history.changes import compare_declarations
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.wording import count_of, name_some
from pytest_golden.verify.base_worktree import BaseWorktree, PrivateFolder
from pytest_golden.verify.gates import clean_environment
from pytest_golden.verify.past_commits import NOT_RUN, PastCommits, ReplayedCommit, Replayer

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from pytest_golden.verify.past_commits import Replay

_NOT_RUN_CODE = 3
_SHORT, _LONGEST_STRIP = 12, 60
_MOST_JOBS, _MOST_NAMED = 256, 3
_SIGNS = {
    ResultStatus.PASSED.value: "✓",
    ResultStatus.FAILED.value: "✗",
    ResultStatus.ERROR.value: "!",
    ResultStatus.SKIPPED.value: "-",
    NOT_RUN: "?",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden replay`."""
    parser.add_argument("range", metavar="BASE..HEAD", help="The commits; BASE alone means up to HEAD.")
    parser.add_argument("names", metavar="NAME", nargs="*", help="Golden projects (default: all).")
    parser.add_argument(
        "--against", metavar="REF", help="Compare with the floor of REF: its manifest and its baselines."
    )
    parser.add_argument(
        "--jobs", metavar="N", type=int, default=1, help="Run N commits in parallel, if all projects are `independent`."
    )
    parser.add_argument("--fresh", action="store_true", help="Ignore the results of earlier replays.")
    parser.set_defaults(base=None)
    options.add_options(parser, "--manifest", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Run the range, and show what was red."""
    if not 1 <= arguments.jobs <= _MOST_JOBS:
        raise SettingsError(f"--jobs {arguments.jobs}: give a number from 1 to {_MOST_JOBS}")
    if arguments.against is not None and (not arguments.against.strip() or arguments.against.startswith("-")):
        raise SettingsError(f"--against {arguments.against!r} is not a git ref: give a branch, a tag or a commit")
    base, _, head = arguments.range.partition("..")
    if not base or base.startswith("-") or head.startswith((".", "-")):
        raise SettingsError(f"{arguments.range!r} is not a range of commits: write BASE..HEAD, such as v1.0..main")
    return options.run_against_base(arguments, lambda _, manifest: _replay(arguments, manifest, (base, head or "HEAD")))


def _replay(arguments: argparse.Namespace, manifest: Path, ends: tuple[str, str]) -> int:
    try:
        checkout = find_checkout(manifest.parent)
        base, head = (git.find_commit(manifest.parent, ref) for ref in ends)
        floor = None if arguments.against is None else _find_floor(manifest, arguments.against)
    except GoldenError as error:
        options.say(str(error))
        return _NOT_RUN_CODE
    with ExitStack() as held:
        private = held.enter_context(PrivateFolder(outside=checkout)).path
        say, show = held.enter_context(options.watch_gates())
        floors = _Floors(arguments, checkout, private, say, show)
        try:
            found = floors.replay(manifest, base, head)
            if floor is not None:
                commit, old = floor
                tree = BaseWorktree(checkout, private, commit, "against")
                held.callback(tree.close)
                moved = tree.root / os.path.relpath(os.path.realpath(old), os.path.realpath(checkout))
                found = floors.compare(found, manifest, moved, tree.root)
        except GoldenError as error:
            say(str(error))
            return _NOT_RUN_CODE
    return answer(arguments, found.to_dict, lambda console: _show(console, found))


def _find_floor(manifest: Path, ref: str) -> tuple[str, Path]:
    """Return the commit of a ref, and the path of the manifest at that commit."""
    commit = git.find_commit(manifest.parent, ref)
    old = find_manifest_at(manifest, commit)
    if old is None:
        raise GoldenError(f"{ref} has no golden projects: without --against this floor is replayed alone")
    return commit, old


class _Floors:
    """Runs floors over a range of commits, as the command's arguments say."""

    def __init__(
        self,
        arguments: argparse.Namespace,
        checkout: Path,
        private: Path,
        say: Callable[[str], None],
        show: Callable[[str], None] | None,
    ) -> None:
        self._arguments = arguments
        self._checkout = checkout
        self._private = private
        self._say = say
        self._show = show

    def _open(self, manifest: Path, floor_root: Path | None = None) -> PastCommits:
        environment = clean_environment(os.environ)
        return PastCommits(manifest, self._checkout, self._private, environment, self._show, floor_root=floor_root)

    def replay(self, manifest: Path, base: str, head: str) -> Replay:
        """Run the floor of the working tree."""
        past = self._open(manifest)
        names = [past.declared.get_project(name).name for name in self._arguments.names]
        names = names or [project.name for project in past.declared.projects]
        return self._run(past, KnownRuns("replay.json", manifest, past.declared, ""), base, head, names, self._say)

    def compare(self, found: Replay, manifest: Path, old: Path, root: Path) -> Replay:
        """Also run an old floor, for its projects whose declaration or baselines differ here.

        `old` is its manifest, in the checkout `root`.
        """
        ref = self._arguments.against
        past, now = self._open(old, root), load_manifest(manifest)
        there = {project.name: project for project in past.declared.projects}
        here = {project.name: project for project in now.projects}

        def differs(name: str) -> bool:
            if compare_declarations(there[name].to_dict(), here[name].to_dict()):
                return True
            return digest_baselines(old, name) != digest_baselines(manifest, name)

        gone = [] if self._arguments.names else [name for name in there if name not in here]
        if gone:
            self._say(
                f"only the floor of {ref} has {name_some(gone, _MOST_NAMED)}: this floor misses everything that it sees"
            )
        names = [name for name in found.projects if name in there and differs(name)]
        if not names:
            self._say(f"the floor of {ref} is the same for {name_some(found.projects, _MOST_NAMED)}")
            return replace(found, against=ref)
        kept = KnownRuns("replay_against.json", old, past.declared, "", root=now.workspace_root)
        told = f"with the floor of {ref}: "
        other = self._run(past, kept, found.base, found.head, names, lambda text: self._say(told + text))
        return replace(found, against=ref, before=other.commits)

    def _run(
        self,
        past: PastCommits,
        kept: KnownRuns,
        base: str,
        head: str,
        names: Sequence[str],
        say: Callable[[str], None],
    ) -> Replay:
        known = {} if self._arguments.fresh else {one.commit: one for one in kept.read(ReplayedCommit)}
        jobs = self._arguments.jobs
        shared = [name for name in names if not past.declared.get_project(name).independent]
        if shared and jobs > 1:
            say(f"--jobs is ignored: {name_some(shared, _MOST_NAMED)} cannot run in parallel (see `independent`)")
            jobs = 1
        return Replayer(past, known, keep=kept.keep, say=say, jobs=jobs).run(base, head, names)


def _show(console: Console, found: Replay) -> None:
    if not found.commits:
        console.print(styled(f"no commit lies between {found.base[:_SHORT]} and {found.head[:_SHORT]}"))
        return
    signs = (
        _SIGNS if (sys.stdout.encoding or "").lower().startswith("utf") else {**_SIGNS, "PASSED": "P", "FAILED": "F"}
    )
    width = max(map(len, found.projects), default=0)

    def show_strip(name: str, commits: Sequence[ReplayedCommit], told: str, style: str) -> None:
        statuses = ({one.project: one.status for one in commit.results}.get(name, NOT_RUN) for commit in commits)
        strip = "".join(signs.get(status, "?") for status in statuses)
        shown = strip if len(strip) <= _LONGEST_STRIP else f"...{strip[-_LONGEST_STRIP:]}"
        console.print(styled(f"{name:<{width}}  {shown}  {told}", style))

    reds, missing, new = found.red, found.missed, found.gained
    for name in found.projects:
        red = reds[name]
        told = f"red at {red} of {count_of(len(found.commits), 'commit')}"
        show_strip(name, found.commits, told, "bold red" if red else "green")
        if name in missing:
            missed, gained = len(missing[name]), len(new[name])
            told = f"by the floor of {found.against}: this one misses {missed} of its red commits, and adds {gained}"
            show_strip(name, found.before, told, "bold yellow" if missed else "dim")
    before: list[str] = []
    for number, one in enumerate(found.commits):
        lines = [*_tell_commit(found, number, missing)]
        # If nothing changed since the commit before, the strip shows it.
        news = [line for line in lines if line not in before]
        before = lines
        if news:
            console.print()
            console.print(styled(f"{one.commit[:_SHORT]}  {one.day}  {one.subject}", "bold"))
            for line in news:
                print_indented(console, line, 2)


def _tell_commit(found: Replay, number: int, missing: Mapping[str, Collection[str]]) -> Iterator[str]:
    """Print what does not pass at a commit, and what would be missed. `missing` are such commits by project."""
    for result in found.commits[number].results:
        if result.status != ResultStatus.PASSED.value:
            yield f"{result.project} {result.status}: {result.reason}"
    for result in found.before[number].results if found.before else ():
        if found.commits[number].commit in missing[result.project]:
            yield f"{result.project} passes now, and is {result.status} by the floor of {found.against}: {result.reason}"
