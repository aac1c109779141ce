"""The manifest and the baselines as git has them: at a base, changed since, ignored, and just accepted."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.compare.baselines import BASELINES_FOLDER
from pytest_golden.errors import GoldenError
from pytest_golden.history import git
from pytest_golden.history.checkout import Checkout, read_checkout
from pytest_golden.history.git import SUBMODULE_MODE, find_commit, run_git, run_git_raw, split_paths
from pytest_golden.regression.model import OutputChange
from pytest_golden.regression.verdict import ChangedBaseline
from pytest_golden.regression.wording import name_some, show_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pytest_golden.regression.model import GoldenProjectResult

_LONGEST_SECONDS = 600
# So many fit into one command line, however long they are.
_PATHS_AT_ONCE = 200
# None of these is a blob id.
_REGULAR, _ANOTHER_KIND, _UNREADABLE = "a file", "another kind", "unreadable"
_IGNORE_FILE = ".gitignore"
_MOST_NAMED = 3
_ACCEPTED_CHANGES = frozenset({OutputChange.NEW, OutputChange.CHANGED, OutputChange.REMOVED})


class BaseManifest(NamedTuple):
    """The manifest at a base: the commit, and the manifest's text, None if the commit has none at its path."""

    ref: str
    commit: str
    text: str | None


def read_base_manifest(manifest: Path, ref: str) -> BaseManifest:
    """Read the manifest's text at `ref`.

    Raises:
        GoldenError: no git, not a repository, or an unknown ref; the message says what to fetch.
    """
    if not ref or ref.startswith("-"):
        raise GoldenError(f"--golden-base {ref!r} is no git ref: give a branch, a tag or a commit.")
    folder, name = manifest.parent, f"./{manifest.name}"
    try:
        commit = find_commit(folder, ref)
        if run_git(folder, "cat-file", "-t", f"{commit}:{name}").stdout.strip() != "blob":
            return BaseManifest(ref, commit, None)
        shown = run_git(folder, "cat-file", "blob", f"{commit}:{name}")
    except GoldenError as error:
        raise GoldenError(f"--golden-base {ref}: {error}") from None
    if shown.returncode:
        told = f"{manifest.name} cannot be read at {commit[:12]} ({git.last_line(shown.stderr)})."
        raise GoldenError(f"--golden-base {ref}: {told}")
    return BaseManifest(ref, commit, shown.stdout)


class _Entry(NamedTuple):
    """A file of the base: its mode, the name of its content, and its path below the folder of the baselines.

    A submodule may be that folder (its path is empty) or the one of a project.
    """

    mode: str
    blob: str
    path: str

    def list_projects(self, names: Collection[str]) -> list[str]:
        """Return those of the named projects that this is a baseline of."""
        project = self.path.partition("/")[0]
        if not project:
            return list(names)
        return [project] if project in names else []


def find_changed_baselines(
    base_folder: Path, commit: str, head_folder: Path, names: Collection[str]
) -> tuple[ChangedBaseline, ...]:
    """Find the baselines of a commit that are changed or gone in the working tree. New ones are not included.

    Nothing is checked out: contents are compared by git's names for them. Git itself names the files in the working tree,
    so that a file that it converts (line ends, LFS) is equal to the committed one. If a submodule holds all baselines of
    a project, their path is empty.

    Args:
        base_folder: the folder of the base's manifest.
        commit: the base's commit.
        head_folder: the folder of the present manifest.
        names: the golden projects to look at.

    Raises:
        GoldenError: git cannot tell.
    """
    entries = [entry for entry in _list_entries(base_folder, commit) if entry.list_projects(names)]
    present = _name_present(head_folder / BASELINES_FOLDER, entries)
    return tuple(
        ChangedBaseline(project, entry.path.partition("/")[2], is_gone=present[entry.path] is None)
        for entry in entries
        if present[entry.path] != entry.blob
        for project in entry.list_projects(names)
    )


def list_committed_baselines(folder: Path, commit: str) -> tuple[str, ...]:
    """List the baselines at a commit, as paths relative to the baselines folder. `folder` is the manifest's folder.

    Raises:
        GoldenError: git cannot tell.
    """
    return tuple(entry.path for entry in _list_entries(folder, commit))


def _list_entries(folder: Path, commit: str) -> list[_Entry]:
    asked = ("ls-tree", "-r", "-z", commit, "--", BASELINES_FOLDER)
    failing = f"the baselines at {commit[:12]} cannot be listed"
    listed = git.ask_git(folder, *asked, failing=failing, longest_seconds=_LONGEST_SECONDS)
    entries = []
    for facts, _, path in (record.partition("\t") for record in split_paths(listed)):
        # Source: git-ls-tree(1), "Output format".
        mode, _, blob = facts.split(" ")
        entries.append(_Entry(mode, blob, path.removeprefix(BASELINES_FOLDER).removeprefix("/")))
    return [entry for entry in entries if entry.path or entry.mode == SUBMODULE_MODE]


def _name_present(folder: Path, entries: Sequence[_Entry]) -> dict[str, str | None]:
    """Return git's name for what is at each entry's path now; None if nothing is there."""
    names = {entry.path: _name_special(folder / entry.path, entry) for entry in entries}
    regular = [path for path, name in names.items() if name == _REGULAR]
    for start in range(0, len(regular), _PATHS_AT_ONCE):
        names |= _name_files(folder, regular[start : start + _PATHS_AT_ONCE])
    return names


def _name_special(place: Path, entry: _Entry) -> str | None:
    """Return a name for anything but a regular file, or for another kind than in the base; else `_REGULAR`."""
    try:
        mode = place.lstat().st_mode
    except OSError:
        return None
    if entry.mode == SUBMODULE_MODE:
        return git.find_head(place)
    if stat.S_ISLNK(mode) != (entry.mode == git.LINK_MODE):
        return _ANOTHER_KIND
    if stat.S_ISLNK(mode):
        return git.name_blob(os.fsencode(place.readlink()), "sha256" if len(entry.blob) == 64 else "sha1")
    return _REGULAR if stat.S_ISREG(mode) else _ANOTHER_KIND


def _name_files(folder: Path, paths: Sequence[str]) -> dict[str, str | None]:
    done = run_git_raw(folder, "hash-object", "--", *paths, longest_seconds=_LONGEST_SECONDS)
    names = done.stdout.decode("ascii").split()
    if not done.returncode and len(names) == len(paths):
        return dict(zip(paths, names, strict=True))
    if len(paths) == 1:
        return {paths[0]: _UNREADABLE}
    # A file that has gone meanwhile, or cannot be read, must not hide the others.
    middle = len(paths) // 2
    return _name_files(folder, paths[:middle]) | _name_files(folder, paths[middle:])


class IgnoreRule(NamedTuple):
    """The line of an ignore file that matches a path. `source` is relative to the checkout's root, or absolute."""

    source: str
    line: str
    pattern: str

    def __str__(self) -> str:
        return f"{show_path(self.source)}:{self.line} (`{show_path(self.pattern)}`)"


def list_ignored_baselines(folder: Path) -> tuple[str, ...]:
    """List the baselines that git ignores, sorted, relative to the baselines folder. Outside a checkout there are none.

    They are in no commit, so other checkouts lack them, and a base cannot be judged. Git never ignores tracked files.
    """
    if not folder.is_dir():
        return ()
    wanted = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--", f"./{folder.name}")
    try:
        done = run_git_raw(folder.parent, *wanted, longest_seconds=_LONGEST_SECONDS)
    except GoldenError:
        return ()
    prefix = f"{folder.name}/"
    # Names that begin with a dot are outputs that wait to be accepted.
    return tuple(
        sorted(path.removeprefix(prefix) for path in split_paths(done.stdout) if not path.startswith(f"{prefix}."))
    )


def warn_of_ignored_baselines(folder: Path) -> str | None:
    """Say in one line which baselines git ignores, because of which rule, and what to do; None if it ignores none."""
    ignored = list_ignored_baselines(folder)
    return describe_ignored_baselines(folder, ignored) if ignored else None


def describe_ignored_baselines(folder: Path, ignored: Sequence[str]) -> str:
    """Describe in one line a few of the ignored baselines, the rules that match them, and what to do."""
    shown = name_some([show_path(f"{folder.name}/{path}") for path in ignored], _MOST_NAMED)
    rules = _find_rules(folder.parent, [f"{folder.name}/{path}" for path in ignored])
    by = ", ".join(map(str, rules[:_MOST_NAMED])) or "git"
    is_are = "is" if len(ignored) == 1 else "are"
    return f"{shown} {is_are} ignored by {by}: {_advise(folder, rules)}"


def _find_rules(folder: Path, paths: Sequence[str]) -> list[IgnoreRule]:
    """Find the rules that make git ignore these paths. Source: git-check-ignore(1), "Output"."""
    asked = b"\0".join(map(os.fsencode, paths))
    try:
        done = run_git_raw(folder, "check-ignore", "--verbose", "-z", "--stdin", told=asked)
    except GoldenError:
        return []
    fields = os.fsdecode(done.stdout).split("\0")[:-1]
    rules = [IgnoreRule(*fields[at : at + 3]) for at in range(0, len(fields), 4)]
    return list(dict.fromkeys(rules))


def _advise(folder: Path, rules: Sequence[IgnoreRule]) -> str:
    """Say how to make git track the baselines. If their own folder is ignored, it must be included again first."""
    root = git.find_top(folder.parent)
    below = os.path.relpath(os.path.realpath(folder), root).replace(os.sep, "/")
    if root is None or _find_rules(folder.parent, ["."]):
        return f"add them with `git add --force {show_path(folder.name)}` and commit them"
    # An absolute path is a global ignore file, which applies to all repositories of a person.
    sources = [PurePosixPath(rule.source) for rule in rules]
    own = [source for source in sources if source.name == _IGNORE_FILE and not source.is_absolute()]
    target = max(own, key=lambda source: len(source.parts), default=PurePosixPath(_IGNORE_FILE))
    inside = f"{os.path.relpath(below, target.parent)}/".replace(os.sep, "/").removeprefix("./")
    whole = f"`!{inside}` and " if _find_rules(folder.parent, [f"{folder.name}/"]) else ""
    where = f"to {_IGNORE_FILE}" if not own else f"at the end of {show_path(str(target))}"
    where = "below it" if own and len(rules) == 1 else where
    return f"add {whole}`!{inside}**` {where} and commit the baselines"


def find_accepted_edits(
    begun: Checkout, folder: Path, results: Iterable[GoldenProjectResult]
) -> Mapping[str, str | None] | None:
    """Return the files that differ from the commit after a run that accepted baselines.

    The baselines in `folder` are those of now, since the run itself wrote them; all others are those of its beginning.
    None if no baseline was changed, or the state of the checkout is not known.
    """
    has_changed = any(one.change in _ACCEPTED_CHANGES for result in results for one in result.accepted or ())
    if not has_changed or begun.root is None or begun.dirty_files is None:
        return None
    place = Path(os.path.realpath(folder))
    if not place.is_relative_to(begun.root):
        return None
    now = read_checkout(begun.root)
    if now.commit != begun.commit or now.dirty_files is None:
        return None
    prefix = f"{place.relative_to(begun.root).as_posix()}/"
    others = {path: content for path, content in begun.dirty_files.items() if not path.startswith(prefix)}
    return others | {path: content for path, content in now.dirty_files.items() if path.startswith(prefix)}
