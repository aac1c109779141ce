"""Which files probably caused a failure: by its words, and by what git knows of the test that it names.

Runs nothing and needs no store, so it works on the first day. `benchmarks/stream_study.py` measures it on real fixes.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gateway import git
from pytest_golden.gateway.runners.runner import read_regular
from pytest_golden.history.unchanged_paths import is_for_people, is_test
from pytest_golden.redaction.redactor import redact
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

MOST_SUSPECTS = 3
_PROGRAMS = frozenset({".py", ".sql", ".smk", ".r", ".sh", ".nf", ".scala", ".java", ".js", ".ts"})
_PROGRAM_NAMES = frozenset({"Snakefile", "Makefile", "makefile", "GNUmakefile"})
# dbt's name for the project that tests a package.
_TEST_FOLDERS = frozenset({"integration_tests", "testing"})
_MOST_SOURCES, _MOST_BYTES, _MOST_CHANGES, _MOST_FILES_OF_CHANGE, _MOST_ASKED = 2000, 300_000, 3000, 40, 100
_LONGEST_SECONDS, _LONGEST_SUBJECT = 10, 80
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_SHORTEST_WORD, _SHORTEST_ASKED, _MOST_PARTS, _MOST_TESTS = 3, 5, 20, 20
_BETWEEN_PATHS = re.compile(r"[\s'\"`(),:;\[\]<>=|]+")
# A function, a class or a macro of dbt is a piece, and so is the code before the first one.
_PIECE = re.compile(r"^(?=[ \t]*(?:async )?(?:def|class) |@|\{%-? ?(?:macro|test) )", re.MULTILINE)
_PIECE_NAME = re.compile(r"[ \t]*(?:async )?(?:def|class) (\w+)")
_IMPORT = re.compile(r"^[ \t]*(?:from ([\w.]+) import \(?([\w, ]+)|import ([\w., ]+))", re.MULTILINE)
#: Words in the message of a change that fixes something.
FIX = re.compile(
    r"\b(?:fix(?:es|ed|ing)?|bug(?:s|fix)?|revert|hotfix|regress\w*|repair\w*|correct(?:s|ed|ly)?|broken?|breaks|crash\w*|error"
    r"|fail(?:s|ed|ing|ure)?|handle)\b|#\d+",
    re.IGNORECASE,
)
# GitHub appends this to the title of each merged pull request, so it does not suggest a fix.
_PULL_REQUEST = re.compile(r"\s*\(#\d+\)$")
# Okapi BM25, as in any search engine.
_SATURATION, _BY_LENGTH = 1.2, 0.75
_MOST_TIMES_ASKED = 3
# How much the best, the second and the third piece of a file count.
_PIECE_WEIGHTS = (1.0, 0.5, 0.25)
# Fitted to fixes of four repositories, except the last: no question of the study names a file of the program.
_WORDS, _TOGETHER, _NAME, _IMPORTED, _RECENT, _NAMED = 4.8, 1.7, 1.0, 0.9, 1.7, 2.0
# A failure says enough if the likeliest file has this many of its words that few other files have.
_ENOUGH = 4
# With a smaller lead, all three are wrong too often, and it is better to name none.
LEAST_LEAD = 0.35


@dataclass(frozen=True, slots=True)
class Suspect(Shape):
    """A file that probably caused the failure. `score` (0 to 1) is the weight of the evidence; `why` says what the evidence is."""

    path: str
    score: float
    why: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.path} ({self.score:.2f}): {'; '.join(self.why)}"


class Change(NamedTuple):
    """The files of a commit, its short name, its day as `2026-03-01`, and the first line of its message."""

    paths: frozenset[str]
    commit: str = ""
    day: str = ""
    subject: str = ""


class Ranking(NamedTuple):
    """All files, the likeliest first, and the lead of the first over the fourth: 0 to 1, less if the failure says little."""

    suspects: tuple[Suspect, ...]
    lead: float

    @property
    def shown(self) -> tuple[Suspect, ...]:
        """Return those of the first three that have evidence; none if they are hardly likelier than others."""
        return tuple(one for one in self.suspects[:MOST_SUSPECTS] if one.why) if self.lead >= LEAST_LEAD else ()


class Failure(NamedTuple):
    """What a failure says: its words, the tests and other files that it names, and the modules that these tests import."""

    words: Counter[str]
    tests: tuple[str, ...]
    named: frozenset[str]
    imports: frozenset[str]


def find_suspects(root: Path, text: str) -> tuple[Suspect, ...]:
    """Return up to three files below a folder that probably caused a failure, the likeliest first; none if no file is likely enough.

    In a large repository, only 2,000 files are read: those with the failure's words.

    Args:
        root: a folder in a checkout.
        text: the message of a failure, a traceback or the output of tests. The name of a test helps most.

    Raises:
        GoldenError: git is not installed, or it does not answer in time.
    """
    tracked = git.list_tracked(root)
    if not tracked:
        return ()
    failure = read_failure(text, tracked, lambda path: _read(root, path))
    changes = list_changes(root)
    paths = _choose_sources(root, [path for path in tracked if is_source(path)], text, changes)
    sources = {path: split_pieces(_read(root, path)) for path in paths}
    shown = rank_suspects(failure, sources, changes).shown
    return tuple(replace(one, why=(*one.why, *_find_fix(one.path, failure, changes))) for one in shown)


def is_source(path: str) -> bool:
    """Tell whether a tracked file is part of a program but not a test."""
    pure = PurePosixPath(path)
    is_hidden = any(part.startswith(".") for part in pure.parts)
    is_program = pure.suffix.lower() in _PROGRAMS or pure.name in _PROGRAM_NAMES
    return is_program and not is_hidden and not is_for_people(path) and not is_test_file(path)


def is_test_file(path: str) -> bool:
    """Tell whether a file belongs to tests."""
    return is_test(path) or not _TEST_FOLDERS.isdisjoint(PurePosixPath(path).parts)


def _find_fix(path: str, failure: Failure, changes: Sequence[Change]) -> Iterator[str]:
    """Yield the earlier change of a file that reads like a fix and has most of the failure's words; the newest of several."""
    best: tuple[int, Change] | None = None
    for change in changes:
        if path in change.paths and FIX.search(change.subject):
            shared = len(failure.words.keys() & count_words(change.subject).keys() - count_words(path).keys())
            if shared and (best is None or shared > best[0]):
                best = shared, change
    if best is not None:
        _, change = best
        yield f"an earlier change, on {change.day} by {change.commit}: {redact(change.subject)[:_LONGEST_SUBJECT]!r}"


def _read(root: Path, path: str) -> str:
    return (read_regular(root / path, _MOST_BYTES) or b"").decode("utf-8", "replace")


def list_changes(root: Path) -> tuple[Change, ...]:
    """List the changes that git knows, newest first. A change to very many files is listed without files."""
    # To detect renames, git would read the files (and fetch them, in a partial clone). Here it only lists names.
    how = ("--no-merges", "--no-renames", "--relative", "--name-only", "-z", "--format=%x01%h%x02%cs%x02%s%x02")
    told = git.run_git_raw(root, "log", f"--max-count={_MOST_CHANGES}", *how, longest_seconds=_LONGEST_SECONDS)
    return tuple(map(_read_change, told.stdout.split(b"\x01")[1:]))


def _read_change(told: bytes) -> Change:
    # A file's name can contain any character.
    head, listed = told.split(b"\x02", 3)[:3], told.split(b"\x02", 3)[3:]
    paths = frozenset(path.strip() for path in git.split_paths(b"".join(listed))) - {""}
    told_paths = paths if len(paths) <= _MOST_FILES_OF_CHANGE else frozenset()
    return Change(told_paths, *(part.decode("utf-8", "replace") for part in head))


def _choose_sources(root: Path, paths: Collection[str], text: str, changes: Sequence[Change]) -> list[str]:
    """Return the files to read. If there are too many: those with the failure's rarer words, and of these the ones that changed last."""
    if len(paths) <= _MOST_SOURCES:
        return sorted(paths)
    asked = {word for word in _IDENTIFIER.findall(text) if len(word) >= _SHORTEST_ASKED}
    words = [part for word in sorted(asked, key=len, reverse=True)[:_MOST_ASKED] for part in ("-e", word)]
    found = (
        git.run_git_raw(root, "grep", "--no-color", "-lzIF", *words, longest_seconds=_LONGEST_SECONDS)
        if words
        else None
    )
    recent = {path: number for number, change in reversed([*enumerate(changes)]) for path in change.paths}
    holding = set(paths).intersection(() if found is None else git.split_paths(found.stdout))
    kept = sorted(holding, key=lambda path: (recent.get(path, len(changes)), path))
    return kept[:_MOST_SOURCES]


def split_pieces(text: str) -> tuple[Counter[str], ...]:
    """Return the words of each function, class and macro of a program, and of the code outside them."""
    return tuple(filter(None, map(count_words, _PIECE.split(text))))


def count_words(text: str) -> Counter[str]:
    """Count the names in a text and their parts, in small letters: `read_orders` is also `read` and `orders`."""
    words: Counter[str] = Counter()
    for name, count in Counter(_IDENTIFIER.findall(text)).items():
        for word in _split_name(name):
            words[word] += count
    return words


@lru_cache(maxsize=1 << 16)
def _split_name(name: str) -> tuple[str, ...]:
    words = {name.lower(), *(part.lower() for part in _PART.findall(name))}
    return tuple(word for word in words if len(word) >= _SHORTEST_WORD)


def read_failure(text: str, tracked: Collection[str], read: Callable[[str], str]) -> Failure:
    """Read what a failure says; `read` returns the text of a tracked file.

    If it names a test by its file and function, the text of that test counts as part of the failure.
    """
    named = frozenset(_find_named(text, tracked))
    tests = tuple(sorted(path for path in named if is_test_file(path)))[:_MOST_TESTS]
    words, imports = count_words(text), set[str]()
    functions = set(_IDENTIFIER.findall(text))
    for path in tests:
        content = read(path)
        imports.update(_list_imports(content))
        for piece in _PIECE.split(content):
            name = _PIECE_NAME.match(piece)
            if name is not None and name[1] in functions:
                words += count_words(piece)
    imports.update(_list_imports(text))
    return Failure(words, tests, named, frozenset(imports))


def _find_named(text: str, tracked: Collection[str]) -> Iterator[str]:
    """Yield the tracked files that a text names: by their path, or by the end of it."""
    for found in {word for word in _BETWEEN_PATHS.split(text) if "." in word or "/" in word}:
        parts = PurePosixPath(os.path.normpath(found)).parts[-_MOST_PARTS:]
        for start in range(len(parts)):
            path = "/".join(parts[start:])
            if path in tracked:
                yield path
                break


def _list_imports(text: str) -> Iterator[str]:
    for module, names, modules in _IMPORT.findall(text):
        yield from (name.split()[0] for name in modules.split(",") if name.strip())
        if module:
            yield module
            yield from (f"{module}.{name.split()[0]}" for name in names.split(",") if name.strip())


def rank_suspects(
    failure: Failure, sources: Mapping[str, Sequence[Counter[str]]], changes: Sequence[Change]
) -> Ranking:
    """Rank all files of a program.

    Args:
        failure: the failure to explain.
        sources: the words of the pieces of each file, by its path.
        changes: newest first.
    """
    of_tests = _count_together(failure.tests, changes)
    recent = {path: number for number, change in reversed([*enumerate(changes)]) for path in change.paths}
    words = weigh_words(failure.words, sources)
    weighed = (
        (_WORDS, words),
        (_TOGETHER, {path: max(_rate(one) for one in found.values()) for path, found in of_tests.items()}),
        (_NAME, {path: _compare_names(path, failure.tests) for path in sources}),
        (_IMPORTED, {path: float(_name_module(path) in failure.imports) for path in sources}),
        (_RECENT, {path: 1 - number / len(changes) for path, number in recent.items()}),
        (_NAMED, {path: float(path in failure.named) for path in sources}),
    )
    scores, possible = dict.fromkeys(sources, 0.0), 0.0
    for weight, values in weighed:
        most = max((values.get(path, 0.0) for path in sources), default=0.0)
        if most > 0:
            possible += weight
            for path in sources:
                scores[path] += weight * values.get(path, 0.0) / most
    most_of_words = max(words.values(), default=0.0)
    ranked = [
        Suspect(
            path,
            round(scores[path] / possible, 4) if possible else 0.0,
            tuple(_explain(path, failure, of_tests.get(path, {}), words[path] / (most_of_words or 1.0))),
        )
        for path in sorted(sources, key=lambda path: (-scores[path], path))
    ]
    lead = ranked[0].score - (ranked[MOST_SUSPECTS].score if len(ranked) > MOST_SUSPECTS else 0.0) if ranked else 0.0
    enough = _ENOUGH * math.log(2 + sum(map(len, sources.values())))
    return Ranking(tuple(ranked), lead * min(1.0, most_of_words / enough))


class _Together(NamedTuple):
    """How often a test and a file changed together, and how often the test changed."""

    both: int
    all: int


def _rate(together: _Together) -> float:
    return together.both / (together.all + 1)


def _count_together(tests: Sequence[str], changes: Sequence[Change]) -> dict[str, dict[str, _Together]]:
    """Count, for each file and test, the changes of both."""
    found: dict[str, dict[str, _Together]] = {}
    for test in tests:
        of_test = [change for change in changes if test in change.paths]
        for path, count in Counter(path for change in of_test for path in change.paths).items():
            found.setdefault(path, {})[test] = _Together(count, len(of_test))
    return found


def weigh_words(asked: Counter[str], sources: Mapping[str, Sequence[Counter[str]]]) -> dict[str, float]:
    """Return how well each file's best pieces match the failure's words; 0 if not at all."""
    pieces = [piece for some in sources.values() for piece in some]
    holding = Counter(word for piece in pieces for word in asked.keys() & piece.keys())
    length = sum(piece.total() for piece in pieces) / (len(pieces) or 1) or 1.0
    rarity = {word: math.log(1 + (len(pieces) - held + 0.5) / (held + 0.5)) for word, held in holding.items()}

    def weigh(piece: Counter[str]) -> float:
        by_length = _SATURATION * (1 - _BY_LENGTH + _BY_LENGTH * piece.total() / length)
        return sum(
            rarity[word]
            * piece[word]
            * (_SATURATION + 1)
            / (piece[word] + by_length)
            * min(asked[word], _MOST_TIMES_ASKED)
            for word in asked.keys() & piece.keys()
        )

    found = {}
    for path, some in sources.items():
        best = sorted(map(weigh, some), reverse=True)
        found[path] = sum(value * weight for value, weight in zip(best, _PIECE_WEIGHTS, strict=False))
    return found


def _compare_names(path: str, tests: Sequence[str]) -> float:
    """Return the share of words that the names of two files have in common, for the most similar named test."""
    own = set(count_words(PurePosixPath(path).stem))
    others = [
        set(count_words(PurePosixPath(test).stem)) - {"test", "tests", PurePosixPath(test).stem} for test in tests
    ]
    return max((len(own & other) / len(own | other) for other in others if own | other), default=0.0)


def _name_module(path: str) -> str:
    """Return the name by which a file is imported."""
    return path.removeprefix("src/").rpartition(".")[0].replace("/", ".").removesuffix(".__init__")


def _explain(path: str, failure: Failure, together: Mapping[str, _Together], nearness: float) -> Iterator[str]:
    if path in failure.named:
        yield "the failure names it"
    if nearness > 0:
        yield "its words are the closest to the failure's" if nearness == 1 else "it has words of the failure"
    for test, found in sorted(together.items(), key=lambda one: -_rate(one[1]))[:1]:
        yield f"{found.both} of {found.all} changes of {test} changed it too"
    if _name_module(path) in failure.imports:
        yield "the test imports it"


class Fix(NamedTuple):
    """A commit that fixes something: its id, that of its first parent, its subject, and the files that it changed."""

    commit: str
    parent: str
    subject: str
    files: tuple[str, ...]


def list_fixes(folder: Path, *which: str, by_message: bool = True) -> tuple[Fix, ...]:
    """List the commits whose message says that they fix something, newest first; a merge counts as its parts.

    `which` are arguments of `git log`, such as `--since=2y` or `main..HEAD`. Without `by_message`, every commit counts.

    Raises:
        GoldenError: git cannot list them.
    """
    found = _read_fixes(folder, "--no-merges", *which)
    return tuple(fix for fix in found if not by_message or FIX.search(_PULL_REQUEST.sub("", fix.subject)))


def read_fix(folder: Path, ref: str) -> Fix:
    """Read a commit as a fix, whatever its message says; a merge by its changes against its first parent.

    Raises:
        GoldenError: the commit does not exist, or has no parent.
    """
    commit = git.find_commit(folder, ref)
    found = _read_fixes(folder, "--diff-merges=first-parent", "--max-count=1", commit)
    if not found:
        raise GoldenError(f"{commit[:12]} has no parent here: nothing was before it, or the clone is shallow")
    return found[0]


def _read_fixes(folder: Path, *which: str) -> list[Fix]:
    how = ("--no-renames", "--name-only", "-z", "--format=%x01%H%x02%P%x02%s%x02", f"--max-count={_MOST_CHANGES}")
    told = git.ask_git(folder, "log", *how, *which, failing="git cannot list commits")
    found = []
    for listed in told.split(b"\x01")[1:]:
        *head, files = listed.split(b"\x02", 3)
        commit, parents, subject = (part.decode("utf-8", "replace") for part in head)
        if parents:
            paths = (path.strip("\n") for path in git.split_paths(files))
            found.append(Fix(commit, parents.split()[0], " ".join(subject.split()), tuple(filter(None, paths))))
    return found
