"""`golden bisect NAME`: find the commit that broke a golden project.

Run the project on earlier commits, each in its own worktree, by binary search. The manifest and the baselines come from your working
tree, so every commit is judged by the same rules. A commit that cannot run, or fails for another reason, is skipped. Recorded results of
clean commits under the same floor are used first. At both ends, the project runs again until the failure repeats byte for byte or
Fisher's exact test decides whether it is random. Without --good, go further and further back, beginning with the last recorded pass.
With --env, or `setup:` in the manifest, each commit gets its own environment. After an interruption, the same command continues.

exit code: 0 found, 1 several commits are possible or the failure is random, 2 bad input or interrupted, 3 the search is not possible.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_golden.cli import options
from pytest_golden.cli.screen import answer, print_indented, styled
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.state_folder import find_state_folder
from pytest_golden.gateway import git
from pytest_golden.history.base_files import find_checkout
from pytest_golden.history.past_store import find_last_pass
from pytest_golden.regression.wording import count_of
from pytest_golden.report.report_files import write_report
from pytest_golden.settings import BASELINES_FOLDER
from pytest_golden.verify.base_worktree import PrivateFolder
from pytest_golden.verify.bisection import Bisector, Look, Standing
from pytest_golden.verify.gates import clean_environment
from pytest_golden.verify.past_commits import PastCommits
from pytest_golden.verify.store import digest_environment, list_recorded

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from rich.console import Console

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.values.shape import Shape
    from pytest_golden.verify.bisection import Bisection, Culprit

    _Found = TypeVar("_Found", bound=Shape)

_DEFAULT_REPEAT, _MOST_REPEAT = 10, 1000
_SHORT, _MOST_NAMED = 12, 10
_FOUND, _UNCLEAR, _NOT_SEARCHED = 0, 1, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden bisect`."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="The golden project.")
    parser.add_argument(
        "--all", action="store_true", help="Search for each failing project; the searches share their runs."
    )
    parser.add_argument("--good", metavar="REF", help="A commit at which it passes (default: look ever further back).")
    parser.add_argument("--bad", metavar="REF", default="HEAD", help="A commit at which it fails (default: HEAD).")
    parser.add_argument(
        "--since",
        metavar="DATE",
        help="Do not look further back than this date, in a form that git accepts: 2026-01-31, 2.weeks.",
    )
    parser.add_argument(
        "--repeat",
        metavar="N",
        type=int,
        default=_DEFAULT_REPEAT,
        help=f"Run it at most N times at each end (default {_DEFAULT_REPEAT}).",
    )
    parser.add_argument(
        "--env",
        metavar="FILE",
        help="Make each commit's environment from its own lock file of this name: uv.lock, or a file for `pip install -r`.",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="Ignore the results of earlier searches and recorded gates."
    )
    parser.set_defaults(base=None)
    options.add_options(parser, "--manifest", "--store", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Search, and show what was found."""
    if not 1 <= arguments.repeat <= _MOST_REPEAT:
        raise SettingsError(f"--repeat {arguments.repeat}: give a number from 1 to {_MOST_REPEAT}")
    for option in ("good", "bad", "since"):
        given = getattr(arguments, option)
        if given is not None and (not given.strip() or given.startswith("-")):
            what = "date" if option == "since" else "git ref"
            raise SettingsError(f"--{option} {given!r} is not a {what}")
    if (arguments.name is None) != arguments.all:
        raise SettingsError("name one golden project, or give --all to search for every failing one")
    if arguments.good is not None and arguments.since is not None:
        raise SettingsError("--good and --since both say how far to look back: give one of them")
    if arguments.env is not None and not Path(arguments.env).is_file():
        raise SettingsError(f"--env {arguments.env!r} is not a file here: name the lock file of the working tree")
    return options.run_against_base(arguments, lambda _, manifest: _search(arguments, manifest))


def _search(arguments: argparse.Namespace, manifest: Path) -> int:
    try:
        checkout = find_checkout(manifest.parent)
        bad = git.find_commit(manifest.parent, arguments.bad)
        good = None if arguments.good is None else git.find_commit(manifest.parent, arguments.good)
    except GoldenError as error:
        options.say(str(error))
        return _NOT_SEARCHED
    with PrivateFolder(outside=checkout) as private, options.watch_gates() as (say, show):
        lock = None if arguments.env is None else _find_in_checkout(arguments.env, checkout)
        past = PastCommits(manifest, checkout, private.path, clean_environment(os.environ), show, lock=lock)

        def find(name: str) -> Bisection:
            kept = KnownRuns("bisect.json", past.manifest, past.declared, name, lock or "")
            known = {} if arguments.fresh else {one.commit: one for one in kept.read(Look)}

            def keep(looks: Iterable[Look]) -> None:
                # A commit that could not run for a moment may run tomorrow.
                kept.keep(look for look in looks if look.standing is not Standing.SKIPPED)

            project = past.declared.get_project(name)
            hint, recorded = _find_recorded(arguments, past, project)
            bisector = Bisector(past, project, known, recorded=recorded, keep=keep, say=say, repeat=arguments.repeat)
            return bisector.find(bad, good, hint=None if good is not None else hint, since=arguments.since)

        if arguments.all:
            return _search_all(arguments, past, bad, find, say)
        name = past.declared.get_project(arguments.name).name
        try:
            found = find(name)
        except GoldenError as error:
            say(str(error))
            return _NOT_SEARCHED
    answer(arguments, found.to_dict, lambda console: _show(console, found))
    return _FOUND if found.is_found else _UNCLEAR


def _search_all(
    arguments: argparse.Namespace,
    past: PastCommits,
    bad: str,
    find: Callable[[str], Bisection],
    say: Callable[[str], None],
) -> int:
    """Search for each project that fails at the bad end."""
    found: list[Bisection] = []
    missed: dict[str, str] = {}
    try:
        results = past.run_all(bad, [project.name for project in past.declared.projects])
    except GoldenError as error:
        say(str(error))
        return _NOT_SEARCHED
    red = [name for name, result in results.items() if result.status.is_failure]
    past.run_together(red)
    for name in red:
        say(f"searching for {name}")
        try:
            found.append(find(name))
        except GoldenError as error:
            say(str(error))
            missed[name] = str(error)

    def show(console: Console) -> None:
        if not red:
            console.print(styled(f"no golden project fails at {bad[:_SHORT]}", "bold green"))
        for one in found:
            _show(console, one)
            console.print()
        for name, told in missed.items():
            console.print(styled(f"{name} was not searched for: {told}", "bold yellow"))

    answer(arguments, {"projects": [one.to_dict() for one in found], "not_searched": missed}, show)
    return _NOT_SEARCHED if missed else _FOUND if all(one.is_found for one in found) else _UNCLEAR


def _find_in_checkout(path: str, checkout: Path) -> str:
    """Return a file's path from the root of the checkout."""
    file = Path(os.path.realpath(path))
    if not file.is_relative_to(checkout):
        raise SettingsError(f"--env {path!r} lies outside the repository {checkout}")
    return str(file.relative_to(checkout))


def _find_recorded(
    arguments: argparse.Namespace, past: PastCommits, project: GoldenProjectConfig
) -> tuple[str | None, dict[str, GoldenProjectResult]]:
    """Return the commit of the project's last recorded pass, and the recorded results under the present floor, by commit."""
    with suppress(GoldenError), options.open_store(arguments) as store, store.read() as connection:
        last = find_last_pass(connection, project.name)
        hint = None if last is None or last.result.dirty else last.result.commit
        if arguments.fresh or past.has_environments:
            return hint, {}
        folder = past.manifest.parent
        installed = digest_environment(past.declared, past.declared.workspace_root, folder)
        recorded = list_recorded(connection, project, installed)
        baselines = f"{BASELINES_FOLDER}/{project.name}"
        if git.run_git(folder, "ls-files", "--others", "--", baselines).stdout:
            return hint, {}
        return hint, {
            commit: result
            for commit, result in recorded.items()
            if git.run_git(folder, "diff", "--quiet", "--no-ext-diff", commit, "--", baselines).returncode == 0
        }
    return None, {}


def digest_baselines(manifest: Path, name: str) -> str:
    """Return a digest of the names and contents of a project's baselines; of all baselines if the name is empty."""
    digest = hashlib.sha256()
    folder = manifest.parent / BASELINES_FOLDER / name
    for path in sorted(one for one in folder.rglob("*") if one.is_file()):
        digest.update(f"\0{path.relative_to(folder)}\0".encode("utf-8", "surrogateescape"))
        with path.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


class KnownRuns:
    """Keeps results in a file for a later command with the same question.

    The key stands for the manifest, the baselines of the project `name` (of all projects if empty), the installed packages, and `more`.
    `root` is the workspace root whose state folder contains the file; by default that of the manifest.
    """

    def __init__(
        self, file: str, manifest: Path, declared: Manifest, name: str, more: str = "", *, root: Path | None = None
    ) -> None:
        self._file, self._name = find_state_folder(root or declared.workspace_root) / file, name
        installed = digest_environment(declared, declared.workspace_root, manifest.parent)
        told = (name, installed, more, manifest.read_text(encoding="utf-8"), digest_baselines(manifest, name))
        self._key = hashlib.sha256("\0".join(told).encode("utf-8", "surrogateescape")).hexdigest()

    def _read_all(self) -> Any:
        return json.loads(self._file.read_text(encoding="utf-8"))

    def read(self, kind: type[_Found]) -> list[_Found]:
        """Return the kept results; none if the file is damaged or belongs to another floor."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            plain = self._read_all()[self._name]
            if plain["key"] == self._key:
                return [kind.from_dict(one) for one in plain["found"]]
        return []

    def keep(self, found: Iterable[Shape]) -> None:
        """Write the results. If that fails, the command is only slower next time."""
        told: dict[str, Any] = {}
        with suppress(OSError, ValueError, TypeError):
            told = dict(self._read_all())
        told[self._name] = {"key": self._key, "found": [one.to_dict() for one in found]}
        with suppress(OSError, GoldenError):
            write_report(self._file, json.dumps(told, indent=1), option=self._file.name)


def _show(console: Console, found: Bisection) -> None:
    first = found.culprits[-1]
    if found.is_chance:
        console.print(styled(f"{found.project} fails by chance: no commit is to blame", "bold yellow"))
    elif found.is_found:
        console.print(styled(f"{found.project} broke with {first.commit[:_SHORT]}", "bold red"))
    else:
        told = (
            f"{found.project} broke with one of {count_of(len(found.culprits), 'commit')}; those between tell nothing"
        )
        console.print(styled(told, "bold yellow"))
    for culprit in found.culprits:
        _show_culprit(console, culprit)
    print_indented(console, found.reason, 2)
    console.print(styled(_describe_certainty(found)))
    for look in found.looks:
        if look.standing is Standing.SKIPPED:
            console.print(styled(f"skipped {look.commit[:_SHORT]}: {look.reason.partition(chr(10))[0]}", "dim"))
    for gap in found.gaps:
        console.print(styled(f"worktree: {gap}", "dim"))
    recorded = sum(look.is_recorded for look in found.looks)
    told = f", {recorded} of them in the store" if recorded else ""
    console.print(styled(f"{count_of(len(found.looks), 'commit')} looked at{told}", "dim"))


def _show_culprit(console: Console, culprit: Culprit) -> None:
    merge = "a merge, " if culprit.is_merge else ""
    console.print(styled(f"  {culprit.commit[:_SHORT]}  {merge}{culprit.author}, {culprit.authored_at}", "bold"))
    print_indented(console, culprit.subject, 4)
    more = len(culprit.files) - _MOST_NAMED
    named = ", ".join(culprit.files[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    print_indented(console, named, 4)


def _describe_certainty(found: Bisection) -> str:
    before = f"{found.good_failed} of {found.good_passed + found.good_failed} runs failed at {found.good[:_SHORT]}"
    after = f"{found.bad_failed} of {found.bad_passed + found.bad_failed} at {found.bad[:_SHORT]}"
    chance = "" if found.p_value is None else f"; by chance alone: p = {found.p_value:.2g}"
    return f"{before}, {after}{chance}"
