"""Amounts and outputs as a person reads them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_golden.regression.wording import (
    count_of,
    find_failing_step,
    format_duration,
    format_size,
    quote_pattern,
    shorten_patterns,
    show_path,
    summarize_output,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.5, "0.5s"),
        (90, "90s"),
        (119.96, "120s"),
        (120, "2m"),
        (600, "10m"),
        (5400, "1h 30m"),
        (3661, "1h 1m 1s"),
        (7200, "2h"),
    ],
)
def test_durations_are_written_as_people_do(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


def test_amounts_are_written_with_their_plural() -> None:
    told = count_of(1, "line"), count_of(1200, "line"), count_of(2, "entry", "entries")
    assert told == ("1 line", "1,200 lines", "2 entries")


@pytest.mark.parametrize(
    ("size", "text"), [(512, "512B"), (2048, "2KiB"), (3 << 19, "1.5MiB"), (2 << 30, "2GiB"), (5 << 40, "5TiB")]
)
def test_sizes_are_written_in_their_unit(size: int, text: str) -> None:
    assert format_size(size) == text


def test_short_outputs_are_kept_whole() -> None:
    assert summarize_output("", "") == ""
    assert summarize_output("out\n", " \n") == "out\n"
    assert summarize_output("", "err\n") == "err\n"


def test_long_outputs_keep_head_and_tail_and_tell_what_is_left_out() -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))
    summary = summarize_output("", text)
    assert summary.startswith("line 0\n")
    assert summary.endswith("line 9999\n")
    head, tail = summary.split("\n[... ")[0], summary.split(" bytes left out ...]\n")[1]
    assert f"[... {len(text) - len(head) - len(tail):,} bytes left out ...]" in summary
    assert len(summary) < 4200
    assert "1,000,000" in summarize_output("", text, stderr_bytes=1_000_000 + len(head) + len(tail))


@given(st.text(max_size=9000), st.text(max_size=9000))
@settings(max_examples=60)
def test_summaries_stay_small_whatever_was_printed(stdout: str, stderr: str) -> None:
    assert len(summarize_output(stdout * 2, stderr * 2).encode("utf-8", "backslashreplace")) < 4096 + 200


def test_path_is_shown_in_one_line() -> None:
    assert show_path("data/ä 1.csv") == "data/ä 1.csv"
    assert show_path("a\n::error::\x1b[0m\u202eb\udcff") == "a\\n::error::\\x1b[0m\\u202eb\\udcff"


@pytest.mark.parametrize(
    ("pattern", "shown"),
    [
        ("boom", "boom"),
        ("x" * 40, "x" * 40),
        ("a" * 30 + "b" * 30, "a" * 19 + "..." + "b" * 18),
        ("no `id`, but \n" + "y" * 40, "no `id`, but \n" + "y" * 40),
    ],
)
def test_long_patterns_are_cut_in_their_middle_and_nothing_else_is(pattern: str, shown: str) -> None:
    text = f"exit 1, but {quote_pattern(pattern)} was expected; wrote `{'z' * 50}` too"
    assert shorten_patterns(text) == text.replace(pattern, shown)


@given(st.text(alphabet="ab`. \n", max_size=120))
@settings(max_examples=60)
def test_text_without_a_long_pattern_stays(text: str) -> None:
    assert shorten_patterns(text) == text
    assert len(shorten_patterns(quote_pattern(text))) <= len(quote_pattern(text))


def test_last_failing_step_counts_and_the_note_of_the_harness_does_not() -> None:
    steps = (
        {"type": "action", "content": "one", "metadata": {"error": "x"}},
        {"type": "action", "content": "two", "metadata": {}},
        {"type": "observation", "content": "it left no step", "metadata": {"error": "it left no step"}},
    )
    assert find_failing_step(steps) is steps[0]
    assert find_failing_step(steps[1:]) is None


def test_data_test_that_failed_is_the_failing_step_although_it_only_observes() -> None:
    test = {"type": "observation", "content": "unique_id", "metadata": {"error": "Got 1 result"}}
    assert find_failing_step(({"type": "action", "content": "one", "metadata": {}}, test)) is test


def test_failing_step_is_looked_for_from_the_end() -> None:
    looked_at: list[int] = []

    class Counted(dict[str, object]):
        def get(self, key: str, default: object = None) -> object:
            looked_at.append(self["number"])  # type: ignore[arg-type]
            return super().get(key, default)

    steps = tuple(Counted(number=number, type="action", metadata={"failed": number == 998}) for number in range(1000))
    assert find_failing_step(steps) is steps[998]
    assert set(looked_at) == {998, 999}
