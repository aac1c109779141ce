"""Texts compared as the gate does it, and the differences as a person reads them."""

from __future__ import annotations

import gzip
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from pytest_golden.compare.comparing import compare_files
from pytest_golden.compare.showing import NOT_SHOWN
from pytest_golden.compare.text import text_lines as lines_module
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.redaction.redactor import Redactor
from pytest_golden.regression.model import ReasonKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.compare.files import Files

REPORT = [f"line {number} of the report" for number in range(1, 61)]


def text(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def test_equal_texts_hold(files: Files) -> None:
    assert files.compare("a.txt", text(REPORT), text(REPORT)) is None
    assert files.compare("a.txt.gz", gzip.compress(b"x\n", mtime=1), gzip.compress(b"x\n", mtime=2)) is None


def test_a_change_is_shown_with_the_lines_around_it_and_a_mark_below(files: Files) -> None:
    output = REPORT.copy()
    output[20] = "line 21 of the Report"
    assert files.tell("a.txt", text(output), text(REPORT)).splitlines() == [
        "out/a.txt differs from its baseline, first at line 21 (- baseline, + output)",
        "@@ -18 +18 @@",
        "  line 18 of the report",
        "  line 19 of the report",
        "  line 20 of the report",
        "- line 21 of the report",
        "+ line 21 of the Report",
        "?                ^",
        "  line 22 of the report",
        "  line 23 of the report",
        "  line 24 of the report",
    ]


def test_every_place_that_differs_has_a_hunk_until_there_is_no_more_room(files: Files) -> None:
    output = [line for line in REPORT if line not in {REPORT[9], REPORT[29]}]
    output.insert(45, "something new")
    message = files.tell("a.txt", text(output), text(REPORT))
    assert [line for line in message.splitlines() if line[0] in "-+@"] == [
        "@@ -7 +7 @@",
        "- line 10 of the report",
        "@@ -27 +26 @@",
        "- line 30 of the report",
        "@@ -45 +43 @@",
        "+ something new",
    ]
    many = [line if number % 9 else "another" for number, line in enumerate(REPORT * 4)]
    assert files.tell("a.txt", text(many), text(REPORT * 4)).endswith("\n[... more is not shown ...]")


def test_two_changes_close_to_each_other_share_a_hunk(files: Files) -> None:
    output = REPORT.copy()
    output[10], output[12], output[17] = "one", "two", "three"
    message = files.tell("a.txt", text(output), text(REPORT))
    assert [line for line in message.splitlines() if line.startswith("@@")] == ["@@ -8 +8 @@"]
    assert message.count("line 15 of the report") == 1


def test_a_long_change_is_cut_on_both_sides(files: Files) -> None:
    output = [*REPORT[:5], *(f"new {number}" for number in range(30)), *REPORT[25:]]
    message = files.tell("a.txt", text(output), text(REPORT))
    assert "- [... 14 more lines of the baseline ...]" in message
    assert "+ [... 24 more lines of the output ...]" in message
    same = [line.upper() if 5 <= number < 25 else line for number, line in enumerate(REPORT)]
    assert "[... 14 more changed lines ...]" in files.tell("a.txt", text(same), text(REPORT))


def test_a_text_that_ends_early_or_goes_on_is_told_as_such(files: Files) -> None:
    shorter = files.tell("a.txt", text(REPORT[:30]), text(REPORT))
    assert shorter.startswith("out/a.txt differs from its baseline: it ends after 30 lines, and its baseline goes on (")
    longer = files.tell("a.txt", text(REPORT), text(REPORT[:30]))
    assert longer.startswith("out/a.txt differs from its baseline: it goes on at line 31, where its baseline ends (")
    empty = files.tell("a.txt", "", "one\n")
    assert empty.splitlines()[0].startswith("out/a.txt differs from its baseline: it ends after 0 lines")
    assert empty.splitlines()[1:] == ["@@ -1 +1 @@", "- one"]


def test_other_line_ends_are_told_as_such(files: Files) -> None:
    message = files.tell("a.txt", text(REPORT).replace("\n", "\r\n"), text(REPORT))
    assert message == (
        "out/a.txt differs from its baseline only in line ends, first at line 1: the output has CRLF, its baseline LF; "
        "if git did that to the baseline, write `golden_baselines/** -text` into .gitattributes"
    )
    assert "first at line 2: the output has LF, its baseline CRLF" in files.tell("a.txt", "a\nb\nc\n", "a\nb\r\nc\n")


def test_other_line_ends_beside_other_changes_are_differences_like_any(files: Files) -> None:
    message = files.tell("a.txt", "a\nb\nc\n", "a\r\nb\r\nd\r\n")
    assert "only in line ends" not in message
    assert r"- a\r" in message


@pytest.mark.parametrize(
    ("output", "baseline", "told"),
    [
        ("a\nb", "a\nb\n", "the output has no line end, its baseline a line end (LF)"),
        ("a\nb\r\n", "a\nb", "the output has a line end (CRLF), its baseline no line end"),
        ("a\nb\r", "a\nb", "the output has a carriage return, its baseline no line end"),
    ],
)
def test_the_end_of_the_last_line_is_told_as_such(files: Files, output: str, baseline: str, told: str) -> None:
    message = files.tell("a.txt", output, baseline)
    assert message == f"out/a.txt differs from its baseline only after the last line: there {told}"


def test_a_missing_line_end_beside_a_change_is_shown(files: Files) -> None:
    message = files.tell("a.txt", "a\nc", "a\nb\n")
    assert message.splitlines()[-3:] == ["- b", "+ c", "\\ no line end at the end of the file"]


def test_blanks_are_made_visible_where_nothing_else_differs(files: Files) -> None:
    message = files.tell("a.txt", "a\tb \nc\n", "a b\nc\n")
    assert "note: the first lines that differ do so only in blanks" in message
    assert "+ a\\tb·" in message
    assert "    x" in files.tell("a.txt", "\tx\n", "\ty\n")


def test_another_order_is_told_as_such_and_accepted_on_request(files: Files) -> None:
    turned = text(reversed(REPORT))
    note = "note: the lines are the same in another order, which `unordered: true` would accept"
    assert note in files.tell("a.txt", turned, text(REPORT))
    assert note not in files.tell("a.txt", turned.replace("60", "61"), text(REPORT))
    assert files.compare("a.txt", turned, text(REPORT), unordered=True) is None


def test_what_is_no_utf_8_is_shown_as_bytes(files: Files) -> None:
    message = files.tell("a.txt", "café\n".encode("latin-1"), "café\n")
    assert "note: the output is not UTF-8 there" in message
    assert "+ caf\\xe9" in message
    latin = "caf\xe9 %s\n".encode("latin-1")
    assert files.compare("a.txt", latin % b"1", latin % b"2", masks=[r"\d"]) is None


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-le", "utf-16-be"])
def test_wide_encodings_are_read_and_told(files: Files, encoding: str) -> None:
    wide = "größer 1\n€\n".encode(encoding)
    message = files.tell("a.txt", wide, "größer 1\nEuro\n")
    assert f"note: the output is {encoding.upper()[:6]}, its baseline UTF-8" in message
    assert "+ €" in message
    assert files.compare("a.txt", wide, "größer 2\n€\n".encode(encoding), masks=[r"\d"]) is None


def test_letters_that_only_look_alike_are_told(files: Files) -> None:
    composed, decomposed = "caf\u00e9\n", "cafe\u0301\n"
    assert "another Unicode form" in files.tell("a.txt", composed, decomposed)
    assert "a byte-order mark stands" in files.tell("a.txt", "\ufeffa\n", "a\n")


def test_long_lines_are_cut_around_what_differs(files: Files) -> None:
    one, other = "x" * 5000 + "A" + "y" * 5000, "x" * 5000 + "B" + "y" * 5000
    message = files.tell("a.txt", one, other)
    assert all(len(line) < 220 for line in message.splitlines())
    shown = [line for line in message.splitlines() if line[0] in "-+?"]
    assert shown[0][shown[2].index("^")] == "B"
    assert shown[1][shown[2].index("^")] == "A"


def test_lines_without_end_are_compared_in_pieces(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "LONGEST_PIECE", 300_000)
    vast = "x" * 2_000_000
    message = files.tell("a.txt", f"first\n{vast}A{vast}", f"first\n{vast}B{vast}\nlast\n")
    assert message.startswith("out/a.txt differs from its baseline, first at line 2 ")
    assert "xxxBxxx" in message


@pytest.mark.parametrize(
    ("output", "baseline"), [(b"x", b"y"), (b"xxxxx\n1", b"xxxxx\n2"), (b"x" * 40 + b"1", b"x" * 40 + b"2")]
)
def test_lines_without_end_are_compared_in_flat_memory(files: Files, output: bytes, baseline: bytes) -> None:
    vast = {ord("x"): "x" * (1 << 20), ord("y"): "y" * (40 << 20)}
    texts = [text.decode().translate(vast).encode() for text in (output, baseline)]
    actual, accepted = files.output("a.txt", texts[0]), files.baseline("a.txt", texts[1])
    del texts
    tracemalloc.start()
    try:
        found = compare_files(DeclaredOutput(path="a.txt"), actual.path, accepted.path, shown_as="a.txt")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None
    assert peak < 20 << 20


def test_a_line_too_long_for_patterns_is_told(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "LONGEST_MATCHED_LINE", 100_000)
    found = files.compare("a.txt", "x" * 1_000_000, "y", masks=["z"])
    assert found is not None
    assert found.kind == ReasonKind.OUTPUT_UNREADABLE
    assert "has a line of more than 16 MiB" in found.message


def test_lines_that_do_not_count_are_left_out_and_masks_stand_for_what_they_match(files: Files) -> None:
    rules = {"masks": [r"\d{4}-\d\d-\d\d"], "ignore_lines": ["^DEBUG", "took"]}
    output = "2026-01-02 start\nDEBUG 1\nrows 5\ntook 3s\n"
    assert files.compare("a.log", output, "2025-03-04 start\nrows 5\nDEBUG 2\nDEBUG 3\n", **rules) is None
    assert files.tell("a.log", output, "DEBUG\n2025-03-04 start\nrows 6\n", **rules).splitlines() == [
        "out/a.log differs from its baseline, first at line 3 (- baseline, + output)",
        "@@ -2 +1 @@",
        "  <masked> start",
        "- rows 6",
        "+ rows 5",
        "?      ^",
    ]


def test_patterns_see_no_line_end(files: Files) -> None:
    rules = {"masks": ["[0-9]+$"]}
    assert files.compare("a.log", "rows 5\r\nend\r\n", "rows 6\r\nend\r\n", **rules) is None
    assert files.compare("a.log", "rows 5\nend", "rows 6\nend", **rules) is None
    assert "only in line ends" in files.tell("a.log", "rows 5\r\nend\r\n", "rows 6\nend\n", **rules)


def test_a_mask_that_can_match_nothing_leaves_letters_alone(files: Files) -> None:
    message = files.tell("a.log", "rows 5 of a\n", "rows 6 of b\n", masks=["[0-9]*"])
    assert "+ rows <masked> of a" in message


def test_texts_of_any_order_show_what_each_has_more_of(files: Files) -> None:
    message = files.tell("a.log", "b\na\nx\nx\n", "a\nb\ny\n", unordered=True)
    assert message.splitlines() == [
        "out/a.log differs from its baseline, whatever the order: 2 lines only in the output, 1 only in its baseline "
        "(- baseline, + output)",
        "the output has 4 lines, its baseline 3 lines",
        "- y",
        "+ x  [2 times more]",
    ]
    many = files.tell("a.log", text(map(str, range(100))), "", unordered=True)
    assert many.endswith("+ [... 83 more lines ...]")


@pytest.mark.parametrize("unordered", [True, False])
def test_secret_that_is_broken_over_lines_is_not_shown(files: Files, unordered: bool) -> None:
    redact = Redactor(literals=("correct-horse-battery-staple",)).text
    broken = "first\ncorrect-\nhorse-bat\ntery-staple\nlast\n"
    actual, accepted = files.write("view", "a.log", broken), files.write("baselines", "a.log", "other\n")
    declared = DeclaredOutput("a.log", unordered=unordered)
    found = compare_files(declared, actual, accepted, shown_as="a.log", redact=redact)
    assert found is not None
    assert NOT_SHOWN in found.message
    assert "horse" not in found.message


def test_texts_of_any_order_are_masked_too_and_the_last_line_is_one_like_all(files: Files) -> None:
    assert files.compare("a.log", "b 1\na 2", "a 3\nb 4\n", unordered=True, masks=[r"\d"]) is None
    assert files.compare("a.log", "x\nb\na", "a\ny\nz\nb\n", unordered=True, ignore_lines=["[xyz]"]) is None


def test_large_texts_are_compared_in_flat_memory(files: Files) -> None:
    rows = [b"%07d the row that was written to the warehouse today%s\n" % (at, b"." * 900) for at in range(16_000)]
    output = b"".join(rows) + b"one more\n"
    actual = files.output("a.log", output)
    baseline = files.baseline("a.log", b"".join(rows))
    del rows, output
    for rules in ({}, {"masks": (r"^\d{7}",)}, {"unordered": True}):
        declared = DeclaredOutput(path="a.log", **rules)
        tracemalloc.start()
        try:
            found = compare_files(declared, actual.path, baseline.path, shown_as="a.log")
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert found is not None
        assert "+ one more" in found.message
        assert peak < 12 << 20
