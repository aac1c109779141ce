"""How often `golden recall` names the right file: real fixes of public repositories, each asked with what was known before it.

A fix is a change of one to five files of a program and of a test, whose message says so. The question is the text of that test: its
path, the lines that the fix added to it and the functions around them; no word of the message, and nothing of later changes. Right is a
file that the fix changed. Beside ours stand the files whose words are closest (BM25), and those that changed last. `short` asks by the first
line of the message instead, as somebody who describes a failure.

Run: python benchmarks/stream_study.py REPOSITORY ... [--most N] [--short]

A repository is a clone with its history; a partial clone works where it has the contents.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pytest_golden.history import suspects
from pytest_golden.history.suspects import (
    MOST_SUSPECTS,
    Change,
    is_source,
    rank_suspects,
    read_failure,
    split_pieces,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MOST_BYTES, _MOST_SOURCES, _MOST_FILES, _MOST_CHANGES = 300_000, 5, 25, 3000
# The first fixes of a repository have no history to go by.
_FIRST_PART = 5


class Fix(NamedTuple):
    """A change that mends something: `number` of all changes, the files that it mends, and its tests."""

    number: int
    commit: str
    subject: str
    sources: tuple[str, ...]
    tests: tuple[str, ...]


class Score(NamedTuple):
    """What one question gave: is the first right, is one of the first three; is it shown, and is that wrong."""

    first: bool
    three: bool
    is_shown: bool
    is_wrong: bool


class History:
    """The changes of a repository without merges, the oldest first."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._pieces: dict[str, tuple[Counter[str], ...]] = {}
        self._texts = subprocess.Popen(
            ["git", "-C", str(repository), "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.changes: list[Change] = []
        self.fixes: list[Fix] = []
        told = self._ask(
            "log",
            "--reverse",
            "--no-merges",
            "--no-renames",
            "--name-status",
            "--format=%x01%H%x02%s%x02%b%x02",
            "HEAD",
        )
        for number, part in enumerate(told.split("\x01")[1:]):
            commit, subject, body, listed = part.split("\x02", 3)
            files = [line.split("\t") for line in listed.splitlines() if "\t" in line]
            changed = tuple(file[1] for file in files if file[0] == "M")
            self.changes.append(Change(frozenset(file[-1] for file in files)))
            sources = tuple(path for path in changed if is_source(path))
            tests = tuple(file[-1] for file in files if file[0] in {"A", "M"} and suspects.is_test_file(file[-1]))
            if (
                0 < len(sources) <= _MOST_SOURCES
                and tests
                and len(files) <= _MOST_FILES
                and suspects.FIX.search(f"{subject} {body}")
            ):
                self.fixes.append(Fix(number, commit, subject, sources, tests))

    def _ask(self, *arguments: str) -> str:
        command = ["git", "-c", "core.quotePath=off", "-C", str(self._repository), *arguments]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        return done.stdout.decode("utf-8", "replace")

    def read_tree(self, fix: Fix) -> dict[str, str]:
        """Return the ids of the contents of all files before a fix."""
        lines = self._ask("ls-tree", "-r", f"{fix.commit}^").splitlines()
        return {path: meta.split()[2] for meta, _, path in (line.partition("\t") for line in lines)}

    def read_text(self, content: str) -> str:
        """Return a text by its id; nothing of one that a partial clone lacks."""
        assert self._texts.stdin is not None
        assert self._texts.stdout is not None
        self._texts.stdin.write(f"{content}\n".encode())
        self._texts.stdin.flush()
        head = self._texts.stdout.readline().split()
        if head[-1] == b"missing":
            return ""
        text = self._texts.stdout.read(int(head[2]) + 1)
        return text[:_MOST_BYTES].decode("utf-8", "replace")

    def read_pieces(self, content: str) -> tuple[Counter[str], ...]:
        """Return the pieces of a program by its id."""
        if content not in self._pieces:
            self._pieces[content] = split_pieces(self.read_text(content))
        return self._pieces[content]

    def read_question(self, fix: Fix) -> str:
        """Return the text of the failing test: the paths, the lines that were added, and the functions around them."""
        diff = self._ask("show", "-U0", "--no-renames", "--no-color", "--format=", fix.commit, "--", *fix.tests)
        added = [line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
        around = [line.split("@@", 2)[2] for line in diff.splitlines() if line.startswith("@@")]
        return "\n".join([*fix.tests, *around, *added]) if added else ""


def main() -> None:
    """Ask for the last fixes of each repository and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repositories", nargs="+", type=Path)
    parser.add_argument("--most", type=int, default=200, help="the last fixes of each repository (200)")
    parser.add_argument("--short", action="store_true", help="ask by the first line of the message")
    arguments = parser.parse_args()
    print(f"{'':28} fixes   ours: first, three   shown, wrong   BM25: first, three   changed last: first, three")
    means = []
    for repository in arguments.repositories:
        scores = list(ask(History(repository), arguments.most, is_short=arguments.short))
        rates = [statistics.fmean(values) for values in zip(*map(flatten, scores), strict=True)]
        means.append(rates)
        print_rates(repository.parent.name if repository.name == "repo" else repository.name, len(scores), rates)
    print_rates("mean", 0, [statistics.fmean(values) for values in zip(*means, strict=True)])


def ask(history: History, most: int, *, is_short: bool) -> Iterator[tuple[Score, Score, Score]]:
    """Yield the scores of ours, of BM25 and of what changed last, for each fix."""
    for fix in history.fixes[len(history.fixes) // _FIRST_PART :][-most:]:
        tree = history.read_tree(fix)
        sources = {path: history.read_pieces(tree[path]) for path in tree if is_source(path)}
        question = fix.subject if is_short else history.read_question(fix)
        if question and not sources.keys().isdisjoint(fix.sources) and len(sources) > MOST_SUSPECTS:
            yield answer(history, fix, tree, sources, question)


def answer(
    history: History, fix: Fix, tree: Mapping[str, str], sources: Mapping[str, tuple[Counter[str], ...]], question: str
) -> tuple[Score, Score, Score]:
    """Ask all three for one fix."""
    changes = history.changes[max(0, fix.number - _MOST_CHANGES) : fix.number][::-1]
    failure = read_failure(
        question, tree.keys() | set(fix.tests), lambda path: history.read_text(tree[path]) if path in tree else ""
    )
    ranking = rank_suspects(failure, sources, changes)
    whole = {path: (sum(pieces, Counter()),) for path, pieces in sources.items()}
    closest = suspects.weigh_words(failure.words, whole)
    recent = {path: number for number, change in reversed([*enumerate(changes)]) for path in change.paths}
    return (
        score([one.path for one in ranking.suspects], fix, is_shown=bool(ranking.shown)),
        score(sorted(sources, key=lambda path: (-closest[path], path)), fix),
        score(sorted(sources, key=lambda path: (recent.get(path, len(changes)), path)), fix),
    )


def score(ranked: Sequence[str], fix: Fix, *, is_shown: bool = True) -> Score:
    """Compare a ranking with what the fix changed."""
    three = not set(ranked[:MOST_SUSPECTS]).isdisjoint(fix.sources)
    return Score(ranked[0] in fix.sources, three, is_shown, is_shown and not three)


def flatten(scores: tuple[Score, Score, Score]) -> tuple[bool, ...]:
    """Return what is printed of one fix."""
    ours, bm25, last = scores
    return (*ours, bm25.first, bm25.three, last.first, last.three)


def print_rates(name: str, count: int, rates: Sequence[float]) -> None:
    """Print one line."""
    told = [f"{rate:6.1%}" for rate in rates]
    print(
        f"{name:28} {count or '':>5}   {told[0]} {told[1]}        {told[2]} {told[3]}   {told[4]} {told[5]}        {told[6]} {told[7]}",
        flush=True,
    )


if __name__ == "__main__":
    main()
