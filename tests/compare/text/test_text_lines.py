"""What holds for all texts: the walk, the multiset and the patterns agree with the plain ways to do the same."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from pytest_golden.compare.text import text_lines as lines_module
from pytest_golden.compare.text import text_lines as unordered
from pytest_golden.compare.text.compare_texts import write_hunks
from pytest_golden.compare.text.text_lines import CountingLines, SideBySide, find_unordered_difference
from pytest_golden.compare.text_patterns import PatternProcess

if TYPE_CHECKING:
    from tests.compare.files import Files

LINES = st.lists(st.sampled_from(["a", "b", "c", "x 1", "x 2", ""]), max_size=12)
QUIET = settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


@QUIET
@given(LINES, LINES)
def test_a_walk_finds_the_first_line_that_differs(files: Files, one: list[str], other: list[str]) -> None:
    with PatternProcess() as patterns:
        pair = SideBySide(
            CountingLines(files.output("a.txt", joined(one)), patterns),
            CountingLines(files.baseline("a.txt", joined(other)), patterns),
        )
        first = next(
            (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
        )
        assert pair.find_difference() == (one != other)
        if one != other:
            assert [line.number for line in pair.ours.look(1, 0)] == [first + 1][: len(one) - first]
            assert [line.text for line in pair.theirs.look(1, 0)] == [
                f"{line}\n".encode() for line in other[first : first + 1]
            ]


@QUIET
@given(LINES, LINES)
def test_the_changes_shown_are_those_that_make_the_one_text_of_the_other(
    files: Files, one: list[str], other: list[str]
) -> None:
    with PatternProcess() as patterns:
        pair = SideBySide(
            CountingLines(files.output("a.txt", joined(one)), patterns),
            CountingLines(files.baseline("a.txt", joined(other)), patterns),
        )
        shown = list(write_hunks(pair, str)) if pair.find_difference() else []
    if any("[..." in line for line in shown):
        return
    changes: Counter[str] = Counter()
    for line in shown:
        if line[0] in "-+":
            changes[line[2:].rstrip()] += 1 if line[0] == "+" else -1
    assert {line: count for line, count in changes.items() if count} == {
        line: count for line, count in _excess(one, other).items() if count
    }


def _excess(one: list[str], other: list[str]) -> Counter[str]:
    excess = Counter(one)
    excess.subtract(other)
    return excess


@QUIET
@given(LINES, LINES)
def test_multisets_of_lines_differ_by_what_is_counted(files: Files, one: list[str], other: list[str]) -> None:
    ours, theirs = files.output("a.txt", joined(one)), files.baseline("a.txt", joined(other))
    with PatternProcess() as patterns:
        found = find_unordered_difference(
            lambda: CountingLines(ours, patterns), lambda: CountingLines(theirs, patterns)
        )
    excess = _excess(one, other)
    assert (found is None) == (not any(excess.values()))
    if found is not None:
        assert found.is_whole
        assert dict(found.only_ours) == {f"{line}\n".encode(): count for line, count in excess.items() if count > 0}
        assert dict(found.only_theirs) == {f"{line}\n".encode(): -count for line, count in excess.items() if count < 0}


def test_of_too_many_lines_some_are_shown_and_that_is_said(files: Files) -> None:
    ours = files.output("a.txt", joined([str(number) for number in range(80_000)]))
    theirs = files.baseline("a.txt", joined([str(-number) for number in range(80_000)]))
    with PatternProcess() as patterns:
        found = find_unordered_difference(
            lambda: CountingLines(ours, patterns), lambda: CountingLines(theirs, patterns)
        )
    assert found is not None
    assert not found.is_whole
    assert 0 < len(found.only_ours) < 60_000
    assert {count for _, count in (*found.only_ours, *found.only_theirs)} == {1}


def test_no_more_lines_are_held_than_have_room(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unordered, "_MOST_BYTES_HELD", 100)
    message = files.tell("a.txt", joined(["x" * 60, "y" * 60, "z"]), joined(["v" * 300]), unordered=True)
    assert "at least 1 line only in the output" in message


@QUIET
@given(st.binary(max_size=400), st.integers(1, 50))
def test_blocks_are_the_file_again_whatever_the_size_of_a_piece(files: Files, raw: bytes, piece: int) -> None:
    assume(lines_module.find_encoding(files.output("a.txt", raw)) == "UTF-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "LONGEST_PIECE", piece)
        blocks = list(lines_module.read_blocks(files.output("a.txt", raw), whole_lines=False))
    assert b"".join(blocks) == raw
