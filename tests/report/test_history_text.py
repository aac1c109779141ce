from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.history.changes import ChangedSincePass
from pytest_golden.history.checkout import CheckoutChanges
from pytest_golden.report.history_text import (
    describe_changes,
    explain_signs,
    plot_durations,
    show_moment,
    sparkline,
    strip,
)
from tests.history.past_results import NOON, results_of

NOTHING = ChangedSincePass(NOON, "entry_1", "1a2b3c4d" * 5, CheckoutChanges())
FIRST = "last passed 2026-11-20 12:00 UTC at 1a2b3c4"


def test_all_that_changed_is_told_in_short_lines() -> None:
    changed = ChangedSincePass(
        NOON,
        "entry_1",
        "1a2b3c4d" * 5,
        CheckoutChanges(
            "1a2b3c4..9f8e7d6",
            4,
            0,
            ("Load faster", "x" * 80, "third", "fourth"),
            tuple(f"sales/{number}.sql" for number in range(10)),
            11,
            5,
        ),
        ("timeout 600 -> 60", "retries 1 -> 0"),
        ("pandas 2.2.3 -> 2.3.0", *(f"p{number} 1 -> 2" for number in range(5))),
        "step 3, 'load': metadata.rows 100 -> 90",
    )
    assert describe_changes(changed) == (
        FIRST,
        f"since then: 4 commits 1a2b3c4..9f8e7d6: 'Load faster', '{'x' * 57}...', 'third', +1 more",
        "files: sales/0.sql, sales/1.sql, sales/2.sql, sales/3.sql, +12 more",
        "manifest: timeout 600 -> 60, retries 1 -> 0",
        "versions: pandas 2.2.3 -> 2.3.0, p0 1 -> 2, p1 1 -> 2, p2 1 -> 2, +2 more",
        "first difference from the last good run: step 3, 'load': metadata.rows 100 -> 90",
    )


@pytest.mark.parametrize(
    ("checkout", "later", "line"),
    [
        (CheckoutChanges("1..2", 1, 0, ("Tidy",)), 4, "broke between 1 and 2: 'Tidy' (4 commits since)"),
        (CheckoutChanges("1..2", 1, 0, ("Tidy",)), 0, "broke between 1 and 2: 'Tidy'"),
        (
            CheckoutChanges("1..2", 5, 0, ("a", "b", "c", "d", "e")),
            1,
            "broke between 1 and 2, 5 commits: 'a', 'b', 'c', +2 more (1 commit since)",
        ),
    ],
)
def test_commits_that_broke_it_are_told(checkout: CheckoutChanges, later: int, line: str) -> None:
    assert describe_changes(replace(NOTHING, checkout=checkout, later_commit_count=later)) == (FIRST, line)


def test_pass_on_edits_is_told() -> None:
    assert describe_changes(replace(NOTHING, dirty=True))[0] == f"{FIRST} with uncommitted edits"


def test_inputs_that_changed_are_told_by_themselves_and_the_first_few_of_many() -> None:
    changed = replace(NOTHING, inputs=("data/orders.csv changed (12KiB -> 14KiB)",), is_input_known=True)
    assert describe_changes(changed) == (FIRST, "inputs: data/orders.csv changed (12KiB -> 14KiB)")
    many = describe_changes(replace(NOTHING, inputs=tuple(f"{number}.csv is gone (1B)" for number in range(6))))
    assert many[1].endswith("3.csv is gone (1B), +2 more")


def test_nothing_that_changed_is_told_too() -> None:
    nothing = "since then: nothing changed in git, the manifest or the installed versions"
    assert describe_changes(NOTHING) == (FIRST, nothing)
    more = "since then: nothing changed in git, the manifest, the installed versions or the inputs"
    assert describe_changes(replace(NOTHING, is_input_known=True)) == (FIRST, more)
    assert describe_changes(replace(NOTHING, commit=None))[0] == "last passed 2026-11-20 12:00 UTC"


@pytest.mark.parametrize(
    ("checkout", "lines"),
    [
        (CheckoutChanges(files=("a.py",), inside_count=1), ["since then: no commit, but files changed", "files: a.py"]),
        (CheckoutChanges("1..2", 1, 0), ["since then: 1 commit 1..2"]),
        (CheckoutChanges("1..2", 0, 2), ["since then: 0 commits 1..2, and 2 commits gone"]),
        (CheckoutChanges("1..2", note="not here"), ["since then: 1..2", "git: not here"]),
        (CheckoutChanges(note="not known"), ["git: not known"]),
        (
            CheckoutChanges(files=("a\n\x1b[31mb", "\udcff\u202e"), inside_count=2),
            ["since then: no commit, but files changed", "files: a b, \\udcff\\u202e"],
        ),
    ],
)
def test_state_of_git_is_told(checkout: CheckoutChanges, lines: list[str]) -> None:
    assert describe_changes(replace(NOTHING, checkout=checkout)) == (FIRST, *lines)


@pytest.mark.parametrize(("count", "offers"), [(None, False), (1, False), (2, True)])
def test_a_search_is_offered_among_several_commits(count: int | None, offers: bool) -> None:
    changed = replace(NOTHING, checkout=CheckoutChanges("1..2", count, 0))
    assert ("find the commit: golden bisect 'a b'" in describe_changes(changed, "a b")) is offers
    assert not any("bisect" in line for line in describe_changes(changed))


def test_strip_has_a_sign_for_each_run_oldest_left() -> None:
    results = results_of("PPF~E-^P")
    assert strip(results) == "PPF~E-^P"
    assert strip(results, is_unicode=True) == "✓✓✗~!-^✓"
    assert strip(()) == ""
    assert explain_signs() == "P passed, F failed, E error, ~ passed after a retry, - skipped, ^ interrupted"
    assert explain_signs(is_unicode=True).startswith("✓ passed")


def test_sparkline_goes_from_the_shortest_to_the_longest() -> None:
    results = results_of("PPP-P", execution_time_seconds=[1.0, 8.0, 4.5, 0.0, 1.0])
    assert sparkline(results) == "_#= _"
    assert sparkline(results, is_unicode=True) == "▁█▅ ▁"
    assert sparkline(results_of("PP")) == "__"
    assert sparkline(results_of("-")) == ""


def test_moments_are_written_to_the_minute() -> None:
    assert show_moment(NOON) == "2026-11-20 12:00"


def test_bars_stand_oldest_left_with_median_and_limit_marked() -> None:
    told = plot_durations([1.0, None, 2.0, 6.0], 80, median=2.0, limit=4.0, is_unicode=True)
    assert told == (
        "       6.00s │            ███",
        "             │            ███",
        " limit 4.00s │            ███",
        "             │            ███",
        "median 2.00s │        ███ ███",
        "             │███     ███ ███",
    )


def test_without_unicode_bars_are_drawn_in_ascii() -> None:
    told = plot_durations([0.5, 1.0], 30, is_unicode=False)
    assert "\n".join(told).isascii()
    assert told[0] == "1.00s |    ###"
    assert told[-1].endswith("|### ###")


def test_median_and_limit_in_one_row_share_it() -> None:
    told = plot_durations([1.0, 6.0], 80, median=5.1, limit=5.5, is_unicode=True)
    assert told[0].startswith("median 5.10s")


@pytest.mark.parametrize(("durations", "width"), [([], 80), ([None, None], 80), ([1.0], 5)])
def test_nothing_known_or_no_room_draws_nothing(durations: list[float | None], width: int) -> None:
    assert plot_durations(durations, width) == ()


def test_newest_runs_stay_where_there_is_no_room_for_all() -> None:
    told = plot_durations([5.0] * 100 + [1.0], 20, is_unicode=True)
    assert max(map(len, told)) <= 20
    assert told[0].endswith("█")
    assert not told[0].endswith("██████████████")


@given(st.lists(st.none() | st.floats(0, 1e7), max_size=60), st.integers(1, 120), st.booleans())
def test_plot_is_never_wider_than_the_terminal(durations: list[float | None], width: int, is_unicode: bool) -> None:
    for line in plot_durations(durations, width, median=1.0, limit=2.0, is_unicode=is_unicode):
        assert len(line) <= width
