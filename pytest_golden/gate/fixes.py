"""Fixes and breaks: which results of a project belong together, what changed between them, and what kind of change it is.

A store holds the runs of many branches and machines. Two results are related if the later one continues the earlier one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.errors import GoldenError
from pytest_golden.history.changes import compare_declarations
from pytest_golden.history.checkout import list_changed_files, list_commits
from pytest_golden.history.inputs import RunInputs, compare_inputs
from pytest_golden.history.run_environment import compare_surroundings
from pytest_golden.learning.memories import MemoryDraft
from pytest_golden.learning.signature import cause_of, error_signature
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import MACHINE_KINDS, ReasonKind, ResultStatus
from pytest_golden.settings import BASELINES_FOLDER
from pytest_golden.storage.columns import from_ms
from pytest_golden.values.shape import Shape, form

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pytest_golden.history.checkout import Checkout, Commit
    from pytest_golden.history.inputs import InputChange

    Descends = Callable[[str, str], bool]

# These are about the gate, its machine or its user, and not about the project.
_OF_HARNESS = MACHINE_KINDS | {
    *(ReasonKind.INTERRUPTED, ReasonKind.PATTERN_TIMED_OUT, ReasonKind.WORKER_CRASHED, ReasonKind.NEED_NOT_PASSED)
}
_SHORT_COMMIT = 7
_VERSION = re.compile(r"(?P<name>\S+) (?P<old>\S+) -> (?P<new>\S+)(?: \(in .*\))?")
_CAME = re.compile(r"(?P<name>\S+) (?P<version>\S+) (?P<how>added|removed)(?: \(in .*\))?")
# The kernel and the like differ between machines and fix nothing.
_OF_MACHINE = frozenset({"platform", "implementation", "pytest-golden-projects"})
_WORDS = re.compile(r"[a-z0-9_.-]+")
_KEY = re.compile(r"set_env\.\S+|\w+")
# The values of these keys explain a fix by themselves.
_TOLD_WITH_VALUES = frozenset(
    {"timeout", "cpu_limit", "memory_limit", "process_limit", "disk_limit", "network", "runner", "retries"}
)
# If these change, the project is judged by other rules, and nothing was fixed.
_OF_JUDGEMENT = frozenset(
    {"expected_outcome", "outputs", "retries", "max_slowdown", "unexpected_files", "writes", "skip_if_missing"}
)
_FOR_PEOPLE = frozenset({".md", ".rst", ".adoc", ".svg", ".png", ".jpg"})
_NAMES_FOR_PEOPLE = frozenset({"license", "changelog", "codeowners", ".gitignore", ".gitattributes", ".editorconfig"})
_FOLDERS_FOR_PEOPLE = frozenset({"docs", ".github", BASELINES_FOLDER})
_DEPENDENCIES = re.compile(
    r"(?:requirements|constraints)[\w.-]*\.(?:txt|in)|pyproject\.toml|setup\.(?:py|cfg)|pipfile(?:\.lock)?|poetry\.lock"
    r"|uv\.lock|pdm\.lock|pixi\.(?:toml|lock)|(?:conda-)?environment\.ya?ml|packages\.yml|package-lock\.yml|dependencies\.yml"
)
INPUT_DATA, CONFIGURATION = "input data", "configuration"
_KINDS = (
    ({".py"}, "Python code"),
    ({".sql"}, "SQL"),
    ({".ipynb"}, "a notebook"),
    ({".sh", ".bash"}, "a shell script"),
    ({".yaml", ".yml", ".toml", ".ini", ".cfg", ".json", ".conf", ".env"}, CONFIGURATION),
    (
        {".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".xls", ".xlsx", ".avro", ".orc", ".feather", ".arrow"},
        INPUT_DATA,
    ),
    ({".duckdb", ".sqlite", ".sqlite3", ".db"}, INPUT_DATA),
    ({".txt", ".j2", ".jinja", ".tmpl"}, "a text file"),
)
_COMPRESSED = re.compile(r"(?<=\w)\.(?:gz|zst|bz2|xz|lz4|snappy)$")
_HOW = {"changed": "was changed", "added": "was added", "removed": "was removed"}
MOST_VERSIONS = 8
_MOST_TOLD = 3
BREAKS = ("breaks", "golden")
# A change of more files does not tell which of them matters.
_MOST_BREAK_FILES = 100
_FEW_FILES = 10
_MOST_OF_ERROR, _MOST_BREAK_COMMITS = 500, 5


@dataclass(frozen=True, slots=True)
class Point:
    """One result of a project and where it ran. `message` is the first reason of a failure that concerns the project.

    `is_accepted` tells that what it produced was made its baselines: it passed by that, whatever it produced.
    """

    number: int
    entry_id: str
    run_id: str
    project: str
    status: ResultStatus
    message: str | None
    reason_kind: str | None
    is_flaky: bool
    commit: str | None
    branch: str | None
    dirty: bool | None
    workspace_root: str
    declaration_digest: str
    environment_digest: str
    created_at: int
    inputs_digest: str | None = None
    is_accepted: bool = False

    @property
    def has_passed(self) -> bool:
        """Tell whether the project passed."""
        return self.status is ResultStatus.PASSED

    @property
    def counts(self) -> bool:
        """Tell whether the result is about the project: it ran to its end, and did not fail because of the gate."""
        if self.has_passed:
            return True
        return self.status.is_failure and self.message is not None and self.reason_kind not in _OF_HARNESS

    def is_as(self, other: Point) -> bool:
        """Tell whether both ran on the same state, as far as this is known without comparing edits."""
        return self._place == other._place and self.dirty is False

    @property
    def _place(self) -> tuple[str | bool | None, ...]:
        return self.commit, self.dirty, self.declaration_digest, self.environment_digest, self.inputs_digest


@dataclass(frozen=True, slots=True)
class State:
    """What a result ran on: the checkout with its edits, manifest keys, installed versions, and inputs outside git."""

    checkout: Checkout
    declaration: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    inputs: RunInputs = field(default_factory=RunInputs)


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs in a later state.

    `commits` were added, newest first; if some touch the project's own folder, only those. `commit_count` counts all of
    them, `lost_count` those that are gone. `files` are all changed files, whether by commits or by uncommitted edits;
    `edited` are the latter, with their contents in `blobs`, and `inside` those below the project's folder. `declaration`
    and `surroundings` are lines for people. `inputs` are those that git does not hold.
    """

    commit_range: str | None = None
    commits: tuple[Commit, ...] = ()
    commit_count: int = 0
    lost_count: int = 0
    files: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    blobs: Mapping[str, str | None] = field(default_factory=dict)
    declaration: tuple[str, ...] = ()
    surroundings: tuple[str, ...] = ()
    inputs: tuple[InputChange, ...] = ()


@dataclass(frozen=True, slots=True)
class Correction:
    """What somebody said was wrong with an entry's work; `number` gives the order of recording, `at` is in milliseconds."""

    number: int
    signal_id: str
    text: str
    source: str
    at: int
    entry_id: str
    agent: str
    intent: str


def find_turned(point: Point, earlier: Sequence[Point], descends: Descends) -> Point | None:
    """Find the related result right before this one, if it ended differently; None if it ended the same way.

    Args:
        point: a result that counts.
        earlier: the project's results before it, newest first.
        descends: tells whether the first commit is a descendant of the second.
    """
    before = (one for one in earlier if one.counts and is_related(point, one, descends))
    last = next(before, None)
    return last if last is not None and last.has_passed != point.has_passed else None


def is_chance(failed: Point, passed: Point, earlier: Iterable[Point]) -> bool:
    """Tell whether the failure came and went by itself: a retry helped, or the same state had passed before."""
    return passed.is_flaky or passed.is_as(failed) or any(one.has_passed and one.is_as(failed) for one in earlier)


def find_ending(shown: Point, later: Iterable[Point], descends: Descends) -> Point | None:
    """Find what followed a failure: a pass, or the same failure again; None if neither has come yet."""
    related = (one for one in later if one.counts and is_related(one, shown, descends))
    return next((one for one in related if one.has_passed or _is_same_failure(one, shown)), None)


def is_repeat(shown: Point, earlier: Iterable[Point]) -> bool:
    """Tell whether a failure only repeats the previous one on the same state, so that no fix was tried.

    `earlier` are the results before it, newest first.
    """
    last = next((one for one in earlier if one.counts), None)
    return last is not None and not last.has_passed and _is_same_failure(last, shown) and last.is_as(shown)


def is_related(later: Point, earlier: Point, descends: Descends) -> bool:
    """Tell whether a result continues an earlier one: on the same branch, or on a descendant of its commit.

    Outside git, it is the same folder.
    """
    if later.commit is None or earlier.commit is None:
        return later.commit == earlier.commit and later.workspace_root == earlier.workspace_root
    is_same_branch = later.branch is not None and later.branch == earlier.branch
    return is_same_branch or descends(later.commit, earlier.commit)


def _is_same_failure(one: Point, other: Point) -> bool:
    signature, other_signature = (error_signature(cause_of(point.message or "")) for point in (one, other))
    return signature == other_signature


class Clone:
    """The checkout in which the gate runs. `root` is its top folder, `workspace` lies in it."""

    def __init__(self, root: Path, workspace: Path, *, longest_seconds: float) -> None:
        self.root = root
        self.longest_seconds = longest_seconds
        self._workspace = workspace

    def find_difference(self, before: State, now: State) -> Difference | None:
        """Return what differs in a later state; None if that is not known.

        It is not known outside git, where one of the two ran on edits that were not all kept, and where one of the
        commits is not in this clone.
        """
        with suppress(GoldenError):
            if before.checkout.dirty is not None and now.checkout.dirty is not None:
                return self._compare(before, now)
        return None

    def find_folder(self, declaration: Mapping[str, Any]) -> str:
        """Return the project's own folder relative to the root, ending with a slash; empty if it is the root itself."""
        folder = declaration.get("project_dir")
        path = Path(str(folder)) if folder is not None else Path(str(declaration.get("path") or "")).parent
        place = self._workspace / path
        if not place.is_relative_to(self.root):
            return ""
        within = place.relative_to(self.root).as_posix()
        return "" if within == "." else f"{within}/"

    def _compare(self, before: State, now: State) -> Difference:
        then, present = before.checkout, now.checkout
        files = list_changed_files(self.root, then, present, longest_seconds=self.longest_seconds)
        folder = self.find_folder(now.declaration)
        edits = present.dirty_files or {}
        told = {*files, *(then.dirty_files or ()), *edits}
        difference = Difference(
            files=files,
            inside=tuple(file for file in files if file.startswith(folder)),
            edited=tuple(file for file in files if file in edits),
            blobs={file: edits[file] for file in files if file in edits},
            declaration=compare_declarations(before.declaration, now.declaration),
            surroundings=compare_surroundings(before.surroundings, now.surroundings, venv=now.declaration.get("venv")),
            inputs=compare_inputs(before.inputs, now.inputs, told),
        )
        if then.commit is None or present.commit is None or then.commit == present.commit:
            return difference
        return self._add_commits(difference, then.commit, present.commit, folder)

    def _add_commits(self, difference: Difference, before: str, now: str, folder: str) -> Difference:
        seconds = self.longest_seconds
        came = list_commits(self.root, before, now, longest_seconds=seconds)
        own = came
        if len(came) > 1 and folder:
            within = str(PurePosixPath(folder))
            own = list_commits(self.root, before, now, within=within, longest_seconds=seconds) or came
        return replace(
            difference,
            commit_range=f"{before[:_SHORT_COMMIT]}..{now[:_SHORT_COMMIT]}",
            commits=own,
            commit_count=len(came),
            lost_count=len(list_commits(self.root, now, before, longest_seconds=seconds)),
        )


def tell_versions(lines: Sequence[str], error: str) -> tuple[str, ...]:
    """Say which versions changed: those that the error names first, and only those if many changed."""
    told = {name: sentence for name, sentence in map(_tell_version, lines) if name and name not in _OF_MACHINE}
    whole = _WORDS.findall(error.lower())
    words = {*whole, *(part for word in whole for part in word.split("."))}
    named = [name for name in told if name in words or name.replace("-", "_") in words]
    if len(told) > MOST_VERSIONS:
        return tuple(told[name] for name in named)
    return tuple(told[name] for name in dict.fromkeys([*named, *told]))


def tell_keys(lines: Iterable[str]) -> tuple[str, ...]:
    """Say which keys of the manifest changed, with their values if these are general."""
    return tuple(dict.fromkeys(_tell_key(line) for line in lines))


def tell_inputs(changes: Iterable[InputChange]) -> tuple[str, ...]:
    """Say which inputs outside git changed, but only those that the pipeline certainly reads."""
    return tuple(dict.fromkeys(filter(None, map(_tell_input, changes))))


def is_judged_otherwise(lines: Iterable[str]) -> bool:
    """Tell whether the manifest changed what counts as correct."""
    return any(_name_key(line) in _OF_JUDGEMENT for line in lines)


def choose_files(files: Iterable[str], manifest: str) -> tuple[str, ...]:
    """Return the files that can change how a project runs: not documents, baselines or the manifest itself."""
    return tuple(file for file in files if file != manifest and not _is_for_people(PurePosixPath(file.lower())))


def has_baselines_of(project: str, files: Iterable[str]) -> bool:
    """Tell whether baselines of the project are among these files: then its outputs are judged differently."""
    return any(f"/{BASELINES_FOLDER}/{project}/" in f"/{file}" for file in files)


def name_kinds(files: Iterable[str]) -> tuple[str, ...]:
    """Name the kinds of these files, the most frequent first."""
    return tuple(kind for kind, _ in Counter(map(name_kind, files)).most_common())


def name_kind(file: str) -> str:
    """Name the kind of a file."""
    path = PurePosixPath(_COMPRESSED.sub("", file.lower()))
    if _DEPENDENCIES.fullmatch(path.name):
        return "the declared dependencies"
    found = next((kind for endings, kind in _KINDS if path.suffix in endings), None)
    return found or (f"a {path.suffix} file" if path.suffix else "a file without an extension")


def join(parts: Sequence[str]) -> str:
    """Join the first few parts of a sentence, and count the others."""
    more = len(parts) - _MOST_TOLD
    shown = [*parts[:_MOST_TOLD], *([f"{more} more"] if more > 0 else [])]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _tell_version(line: str) -> tuple[str, str]:
    changed = _VERSION.fullmatch(line)
    if changed:
        name, old, new = changed["name"], changed["old"], changed["new"]
        how = "pinned back" if _order(new) < _order(old) else "upgraded"
        return name, f"{name} {old} was {how} to {new}"
    came = _CAME.fullmatch(line)
    if came is None:
        return line.partition(" ")[0] if line.startswith("platform ") else "", ""
    verb = "installed" if came["how"] == "added" else "removed"
    return came["name"], f"{came['name']} {came['version']} was {verb}"


def _tell_input(change: InputChange) -> str:
    if change.kind == "variable":
        return f"the variable {change.name} of `pass_env` was {'set' if change.how == 'added' else 'taken away'}"
    if change.kind == "passed":
        return f"a file of `pass_files` {_HOW[change.how]}"
    kind = INPUT_DATA if change.name.endswith("/") else name_kind(change.name)
    return f"{kind} that git does not hold {_HOW[change.how]}" if kind in {INPUT_DATA, CONFIGURATION} else ""


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(number[:9]) for number in re.findall(r"\d+", version))


def _tell_key(line: str) -> str:
    key = _name_key(line)
    before, arrow, now = line.removeprefix(f"{key} ").partition(" -> ")
    if arrow and key in _TOLD_WITH_VALUES:
        return f"the manifest's {key} was changed from {before} to {now}"
    if line.startswith("set_env.") and line.endswith(" removed"):
        return f"{key} was removed from the manifest"
    return f"{key} was added to the manifest" if " added: " in line else f"the manifest's {key} was changed"


def _name_key(line: str) -> str:
    found = _KEY.match(line)
    return found[0].rstrip(":") if found else line


def _is_for_people(path: PurePosixPath) -> bool:
    is_named = path.suffix in _FOR_PEOPLE or path.stem in _NAMES_FOR_PEOPLE or path.name in _NAMES_FOR_PEOPLE
    return is_named or bool(_FOLDERS_FOR_PEOPLE & set(path.parts[:-1]))


@dataclass(frozen=True, slots=True)
class Break(Shape):
    """That a project broke: when (milliseconds since the epoch), by which commits, and which files had changed.

    `commits` are `{commit, subject}`, the newest first; `inside` are the files of the project's own folder.
    """

    project: str
    entry: str
    at: int
    error: str
    commit_range: str | None
    commits: tuple[Mapping[str, str], ...]
    files: tuple[str, ...]
    inside: tuple[str, ...]

    def to_draft(self) -> MemoryDraft:
        """Return it as a memory to store. It is found only by its files."""
        return MemoryDraft(BREAKS, self.entry, redact(self.to_dict()), ("break",))

    def overlap(self, files: Collection[str]) -> tuple[str, ...]:
        """Return which of these files had changed then, if that means something: few had changed, or they are its own."""
        among = self.files if len(self.files) <= _FEW_FILES else self.inside
        return tuple(file for file in among if file in files)


def make_break(failed: Point, difference: Difference, manifest: str) -> Break | None:
    """Return the break for a first failure; None if no file can be blamed, or too many."""
    files = choose_files(difference.files, manifest)
    if not 0 < len(files) <= _MOST_BREAK_FILES:
        return None
    own = set(difference.inside)
    return Break(
        project=failed.project,
        entry=failed.entry_id,
        at=failed.created_at,
        error=cause_of(failed.message or "")[:_MOST_OF_ERROR],
        commit_range=difference.commit_range,
        commits=tuple({"commit": one.id, "subject": one.subject} for one in difference.commits[:_MOST_BREAK_COMMITS]),
        files=files,
        inside=tuple(file for file in files if file in own),
    )


def _write_break(broke: Break) -> dict[str, Any]:
    return {**broke.to_dict(), "at": iso_utc(from_ms(broke.at))}


@dataclass(frozen=True, slots=True)
class BrokeBefore(Shape):
    """That a project broke when some of these files changed: how often of all its breaks, and the last time."""

    project: str
    count: int
    break_count: int
    files: tuple[str, ...]
    last: Break = field(metadata=form(key="last_broken", write=_write_break, as_type=Mapping[str, Any]))


def find_broken(breaks: Iterable[Break], files: Collection[str]) -> tuple[BrokeBefore, ...]:
    """Find the projects that broke when these files changed, most frequent first. `breaks` are oldest first."""
    by_project: dict[str, list[Break]] = {}
    for one in breaks:
        by_project.setdefault(one.project, []).append(one)
    found = []
    for project, known in by_project.items():
        met = [(one, overlap) for one in known if (overlap := one.overlap(files))]
        if met:
            named = tuple(dict.fromkeys(file for _, overlap in reversed(met) for file in overlap))
            found.append(BrokeBefore(project, len(met), len(known), named, met[-1][0]))
    return tuple(sorted(found, key=lambda one: (-one.count, one.project)))
