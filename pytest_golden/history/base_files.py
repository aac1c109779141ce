"""The manifest and the baselines as git has them: at a base, changed since, ignored, and just accepted."""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gateway import git
from pytest_golden.gateway.git import SUBMODULE_MODE, find_commit, run_git, run_git_raw, split_paths
from pytest_golden.history.checkout import Checkout, read_checkout
from pytest_golden.regression.gate_configuration import (
    compare_environments,
    compare_gate_files,
    list_gate_files,
    matters_to_environment,
)
from pytest_golden.regression.model import OutputChange
from pytest_golden.regression.verdict import ChangedBaseline, Weakening, WeakeningKind
from pytest_golden.regression.wording import name_some, show_path
from pytest_golden.settings import BASELINES_FOLDER, MANIFEST_NAME

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from pytest_golden.regression.model import GoldenProjectResult

_LONGEST_SECONDS = 600
# How a manifest declares its projects, in YAML or in JSON.
_DECLARES = "^[[:space:]{\"']*golden_projects[\"']?[[:space:]]*:"
_MANIFEST_PATTERNS = ("*.yaml", "*.yml")
# So many fit into one command line, however long they are.
_PATHS_AT_ONCE = 200
# None of these is a blob id.
_REGULAR, _ANOTHER_KIND, _UNREADABLE = "a file", "another kind", "unreadable"
_IGNORE_FILE = ".gitignore"
_ATTRIBUTES = ".gitattributes"
# The attributes with which git converts a committed file, and the values with which it does not.
_NOT_SET = frozenset({"unspecified", "unset"})
_CONVERTING = {
    "filter": _NOT_SET,
    "working-tree-encoding": _NOT_SET,
    "ident": _NOT_SET,
    "eol": _NOT_SET | {"lf"},
    "text": _NOT_SET | {"set", "auto"},
    "crlf": _NOT_SET | {"set", "input"},
}
_MOST_NAMED = 3
# Files of data. A text table with only a header is empty.
_WITH_HEADER = frozenset({".csv", ".tsv"})
_DATA = _WITH_HEADER | {
    *(".json", ".jsonl", ".ndjson", ".xml", ".txt", ".parquet", ".avro", ".orc", ".feather", ".arrow"),
    *(".xlsx", ".db", ".sqlite", ".duckdb", ".gz", ".zip"),
}
_MOST_OF_NOTHING = 65_536
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
        raise GoldenError(f"--golden-base {ref!r} is not a git ref: give a branch, a tag or a commit.")
    folder, name = _find_existing(manifest)
    try:
        commit = find_commit(folder, ref)
        if run_git(folder, "cat-file", "-t", f"{commit}:./{name}").stdout.strip() != "blob":
            return BaseManifest(ref, commit, None)
        shown = run_git(folder, "cat-file", "blob", f"{commit}:./{name}")
    except GoldenError as error:
        raise GoldenError(f"--golden-base {ref}: {error}") from None
    if shown.returncode:
        told = f"{manifest.name} cannot be read at {commit[:12]} ({git.last_line(shown.stderr)})."
        raise GoldenError(f"--golden-base {ref}: {told}")
    return BaseManifest(ref, commit, shown.stdout)


def find_manifest_at(manifest: Path, commit: str, default: Path | None = None) -> Path | None:
    """Find the manifest's version at a commit, also if it was moved since: moving it must not avoid the comparison.

    It is the manifest at the same path, or the one at `default`, or one with the default name in the same folder, or the one that
    the change removes, if it touches no other. None if the change touches no manifest of the base: then this one is new. The
    folder of the answer may no longer exist.

    Raises:
        GoldenError: git cannot tell, or it is not clear which of the commit's manifests became this one.
    """
    for place in filter(None, (manifest, default, manifest.with_name(MANIFEST_NAME))):
        folder, path = _find_existing(place)
        if _ask(folder, commit, "ls-tree", "-z", commit, "--", f"./{path}").startswith("100"):
            return place
    root = find_checkout(manifest.parent)
    listed = _ask(root, commit, "grep", "-l", "-z", "-E", _DECLARES, commit, "--", *_MANIFEST_PATTERNS)
    declaring = {path.removeprefix(f"{commit}:") for path in listed.split("\0") if path}
    asked = ("diff", "--name-only", "--no-renames", "--no-relative", "-z", commit, "--", *_MANIFEST_PATTERNS)
    touched = [path for path in _ask(root, commit, *asked).split("\0") if path in declaring]
    if not touched:
        return None
    if len(touched) == 1 and not (root / touched[0]).exists():
        return root / touched[0]
    raise GoldenError(
        f"the base {commit[:12]} has no {manifest.name}, and it is not clear which of its manifests became this one, "
        f"since the change edits or removes {name_some(touched, _MOST_NAMED)}: make a change that only moves one manifest, or only adds this one."
    )


def tell_move(was: Path, now: Path, root: Path) -> Weakening:
    """Describe a moved manifest as a weakening, with its paths relative to a folder."""
    old, new = (os.path.relpath(path, root) for path in (was, now))
    return Weakening(None, WeakeningKind.MANIFEST, f"the manifest moved from {old} to {new}", old, new)


def find_checkout(folder: Path) -> Path:
    """Return the root of the checkout that a folder is in.

    Raises:
        GoldenError: it is in no checkout.
    """
    top = git.find_top(folder)
    if top is None:
        raise GoldenError(f"{folder} is not in a git repository.")
    return top


def _find_existing(path: Path) -> tuple[Path, str]:
    """Return the nearest existing folder above a path, and the path from it: the change may have removed folders."""
    folder = next(place for place in path.parents if place.is_dir())
    return folder, path.relative_to(folder).as_posix()


def _ask(folder: Path, commit: str, *question: str) -> str:
    """Ask git about a commit. Raise if objects are missing, as in a partial clone: that is not an empty answer."""
    found = run_git(folder, *question)
    if found.returncode not in {0, 1} or found.stderr:
        message = f"git cannot read the base {commit[:12]} ({git.last_line(found.stderr)}): fetch what is missing, as a full clone has it."
        raise GoldenError(message)
    return found.stdout


def find_configuration_changes(
    commit: str, folder: Path, *, configuration: Path | None, conftests: Iterable[Path]
) -> tuple[Weakening, ...]:
    """Find what the configuration of pytest in the working tree says about the gate and the base's did not.

    Args:
        commit: the base's commit.
        folder: where pytest begins to look for its configuration; in the checkout.
        configuration: the file that a person has named instead.
        conftests: those that pytest loads beside those of `folder` and above it.

    Raises:
        GoldenError: git cannot tell.
    """
    root = Path(os.path.realpath(find_checkout(folder)))

    def from_root(path: Path) -> str:
        return Path(os.path.relpath(os.path.realpath(path), root)).as_posix()

    start, named = from_root(folder), None if configuration is None else from_root(configuration)
    paths = list_gate_files(start, named, map(from_root, conftests))
    listed = git.ask_git(
        root, "ls-tree", "-z", "--name-only", "--full-tree", commit, "--", *paths, failing="git cannot tell"
    )
    blobs = {path: git.read_blob(root, commit, path) for path in split_paths(listed)}
    told = compare_gate_files(
        start,
        named,
        {path: content for path, content in blobs.items() if content is not None},
        {path: content for path in paths if (content := _read_present(root / path)) is not None},
    )
    return (*told, *compare_environments(start, _read_changed(root, commit, start)))


def _read_present(place: Path) -> bytes | None:
    """Return a file's content; None if it does not exist or cannot be read: then pytest cannot read it either."""
    with suppress(OSError):
        return place.read_bytes() if place.is_file() else None
    return None


def _read_changed(root: Path, commit: str, folder: str) -> dict[str, tuple[bytes | None, bytes | None]]:
    """Return what changed since a commit, or is new, in the files that matter to the environment of the judge."""
    failing = f"git cannot tell what changed since {commit[:12]}"
    listed = split_paths(git.ask_git(root, "diff", "--name-status", "--no-renames", "-z", commit, failing=failing))
    new = split_paths(git.ask_git(root, "ls-files", "--others", "--exclude-standard", "-z", failing=failing))
    statuses = dict(zip(listed[1::2], listed[::2], strict=True)) | dict.fromkeys(new, "A")
    wanted = (path for path, status in statuses.items() if matters_to_environment(path, folder, is_new=status == "A"))
    return {
        path: (
            git.read_blob(root, commit, path) if statuses[path] != "A" else None,
            _read_present(root / path),
        )
        for path in wanted
    }


def find_emptied_inputs(commit: str, folders: Mapping[str, Path]) -> dict[str, str]:
    """Return, by golden project, a data file in its folder that had content at a commit and is empty now.

    Args:
        commit: the base's commit.
        folders: the folder of each project that has one of its own.

    Raises:
        GoldenError: git cannot tell.
    """
    if not folders:
        return {}
    root = Path(os.path.realpath(find_checkout(_find_existing(next(iter(folders.values())))[0])))
    failing = f"git cannot tell what changed since {commit[:12]}"
    # A file that was only renamed is no longer listed under its old name.
    asked = ("diff", "--name-only", "--find-renames", "--diff-filter=MD", "-z", commit)
    changed = split_paths(git.ask_git(root, *asked, failing=failing))
    found: dict[str, str] = {}
    for path in changed:
        owners = [name for name, folder in folders.items() if (root / path).is_relative_to(os.path.realpath(folder))]
        if owners and PurePosixPath(path).suffix in _DATA and _is_emptied(root, commit, path):
            found |= dict.fromkeys(owners, path)
    return found


def _is_emptied(root: Path, commit: str, path: str) -> bool:
    place = root / path
    if place.is_file() and place.stat().st_size > _MOST_OF_NOTHING:
        return False
    return _holds_nothing(path, _read_present(place) or b"") and not _holds_nothing(
        path, git.read_blob(root, commit, path) or b""
    )


def _holds_nothing(path: str, content: bytes) -> bool:
    lines = content.strip().splitlines()
    return len(lines) <= (1 if PurePosixPath(path).suffix in _WITH_HEADER else 0)


class _Entry(NamedTuple):
    """A file of the base: its mode, the name of its content, and its path below the folder of the baselines.

    A submodule may be that folder (its path is empty) or the one of a project.
    """

    mode: str
    blob: str
    path: str

    def list_projects(self, names: Collection[str]) -> list[str]:
        """Return which of the named projects this is a baseline of."""
        project = self.path.partition("/")[0]
        if not project:
            return list(names)
        return [project] if project in names else []


def find_changed_baselines(
    base_folder: Path, commit: str, head_folder: Path, names: Collection[str]
) -> tuple[ChangedBaseline, ...]:
    """Find the baselines of a commit that are changed or gone in the working tree. New ones are not included.

    Nothing is checked out: contents are compared by git's names for them. A file is unchanged if its bytes are those of the
    base, or if git converts it to them (line ends, LFS) by the same attributes as at the base: a change of `.gitattributes`
    must not make another file out of a baseline. If a submodule holds all baselines of a project, their path is empty.

    Args:
        base_folder: the folder of the base's manifest.
        commit: the base's commit.
        head_folder: the folder of the present manifest.
        names: the golden projects to look at.

    Raises:
        GoldenError: git cannot tell.
    """
    entries = [entry for entry in _list_entries(base_folder, commit) if entry.list_projects(names)]
    folder = head_folder / BASELINES_FOLDER
    present = _name_present(folder, entries)
    files = [entry.path for entry in entries if entry.mode not in {git.LINK_MODE, SUBMODULE_MODE}]
    attributes = _find_attributes(base_folder / BASELINES_FOLDER, folder, commit, files)
    return tuple(
        ChangedBaseline(project, entry.path.partition("/")[2], present[entry.path] is None, cause)
        for entry in entries
        if (cause := _find_cause(entry, present[entry.path], attributes.get(entry.path))) is not None
        for project in entry.list_projects(names)
    )


def _find_cause(entry: _Entry, now: _Names | None, attributes: _Attributes | None) -> str | None:
    """Return why a baseline differs; an empty text if its content differs, None if it is the same."""
    if now is None or entry.blob not in now:
        return ""
    if attributes is None or (now.raw == entry.blob and not attributes.convert_base):
        return None
    changed = ", ".join(attributes.changed)
    return f"its git attributes changed: {changed}" if changed else None


def list_committed_baselines(folder: Path, commit: str) -> tuple[str, ...]:
    """List the baselines at a commit, as paths relative to the baselines folder. `folder` is the manifest's folder.

    Raises:
        GoldenError: git cannot tell.
    """
    return tuple(entry.path for entry in _list_entries(folder, commit))


def _list_entries(folder: Path, commit: str) -> list[_Entry]:
    place, baselines = _find_existing(folder / BASELINES_FOLDER)
    asked = ("ls-tree", "-r", "-z", commit, "--", baselines)
    failing = f"the baselines at {commit[:12]} cannot be listed"
    listed = git.ask_git(place, *asked, failing=failing, longest_seconds=_LONGEST_SECONDS)
    entries = []
    for facts, _, path in (record.partition("\t") for record in split_paths(listed)):
        # Source: git-ls-tree(1), "Output format".
        mode, _, blob = facts.split(" ")
        entries.append(_Entry(mode, blob, path.removeprefix(baselines).removeprefix("/")))
    return [entry for entry in entries if entry.path or entry.mode == SUBMODULE_MODE]


class _Names(NamedTuple):
    """Git's names for a file as it is, and for what git would commit of it. For anything but a file both are the same."""

    raw: str
    committed: str


class _Attributes(NamedTuple):
    """What git attributes say about one baseline: whether the base's convert it, and the names of those that changed."""

    convert_base: bool
    changed: tuple[str, ...]


def _name_present(folder: Path, entries: Sequence[_Entry]) -> dict[str, _Names | None]:
    """Return git's names for what is at each entry's path now; None if nothing is there."""
    special = {entry.path: _name_special(folder / entry.path, entry) for entry in entries}
    names = {path: None if name is None else _Names(name, name) for path, name in special.items()}
    blobs = {entry.path: entry.blob for entry in entries}
    regular = [path for path, name in special.items() if name == _REGULAR]
    for start in range(0, len(regular), _PATHS_AT_ONCE):
        paths = regular[start : start + _PATHS_AT_ONCE]
        raw = _name_files(folder, paths, "--no-filters")
        converted = [path for path in paths if raw[path] != blobs[path]]
        committed = raw | (_name_files(folder, converted) if converted else {})
        names |= {path: _Names(raw[path], committed[path]) for path in paths}
    return names


def _name_special(place: Path, entry: _Entry) -> str | None:
    """Return a name for anything but a regular file, or for another kind than in the base; otherwise `_REGULAR`."""
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


def _name_files(folder: Path, paths: Sequence[str], *options: str) -> dict[str, str]:
    done = run_git_raw(folder, "hash-object", *options, "--", *paths, longest_seconds=_LONGEST_SECONDS)
    names = done.stdout.decode("ascii").split()
    if not done.returncode and len(names) == len(paths):
        return dict(zip(paths, names, strict=True))
    if len(paths) == 1:
        return {paths[0]: _UNREADABLE}
    # A file that was removed meanwhile, or cannot be read, must not hide the others.
    middle = len(paths) // 2
    return _name_files(folder, paths[:middle], *options) | _name_files(folder, paths[middle:], *options)


def _find_attributes(base: Path, head: Path, commit: str, paths: Sequence[str]) -> dict[str, _Attributes]:
    """Find what git attributes said about baselines at a commit, and what they say now; nothing for those without attributes.

    `base` and `head` are the folders of the baselines then and now.
    """
    root = Path(os.path.realpath(find_checkout(_find_existing(head)[0])))
    then, now = ([_below(root, folder / path) for path in paths] for folder in (base, head))
    files = sorted({str(folder / _ATTRIBUTES) for path in then for folder in PurePosixPath(path).parents})
    listed = (
        git.ask_git(root, "ls-tree", "-z", "--full-tree", commit, "--", *files, failing="git cannot tell")
        if files
        else b""
    )
    is_any = listed or any(
        (root / folder / _ATTRIBUTES).exists() for path in now for folder in PurePosixPath(path).parents
    )
    if not is_any:
        return {}
    with tempfile.TemporaryDirectory() as scratch:
        # An index with nothing but the base's attributes: git has no option before 2.41 that reads them from a commit.
        index = Path(scratch, "index")
        written = run_git_raw(root, "update-index", "-z", "--index-info", told=_without_kind(listed), index=index)
        if written.returncode:
            raise GoldenError(
                f"git cannot read the attributes at {commit[:12]}: {git.last_line(os.fsdecode(written.stderr))}"
            )
        before = _ask_attributes(root, then, "--cached", index=index)
    present = _ask_attributes(root, now)
    found = {}
    for path, old, new in zip(paths, before, present, strict=True):
        changed = tuple(name for name in _CONVERTING if old[name] != new[name])
        found[path] = _Attributes(any(old[name] not in plain for name, plain in _CONVERTING.items()), changed)
    return found


def _ask_attributes(root: Path, paths: Sequence[str], *options: str, index: Path | None = None) -> list[dict[str, str]]:
    """Return the converting attributes of each path. Source: git-check-attr(1), "OUTPUT"."""
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    done = run_git_raw(root, "check-attr", *options, "-z", "--stdin", *_CONVERTING, told=asked, index=index)
    if done.returncode:
        raise GoldenError(f"git cannot tell the attributes of the baselines: {git.last_line(os.fsdecode(done.stderr))}")
    fields = os.fsdecode(done.stdout).split("\0")[2::3]
    count = len(_CONVERTING)
    return [dict(zip(_CONVERTING, fields[at : at + count], strict=True)) for at in range(0, len(fields), count)]


def _without_kind(listed: bytes) -> bytes:
    """Return the output of ls-tree in the form that update-index reads: without the kind of each object."""
    return listed.replace(b" blob ", b" ")


def _below(root: Path, path: Path) -> str:
    return Path(os.path.relpath(Path(os.path.realpath(path.parent), path.name), root)).as_posix()


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
    """Return one line about which baselines git ignores, because of which rule, and what to do; None if it ignores none."""
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

    The baselines in `folder` are the present ones, since the run itself wrote them; all others are those of its beginning.
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
