from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import count, islice
from itertools import repeat as repeat_one
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from pytest_golden.regression.comparison import (
    Comparison,
    Failure,
    ProjectRuns,
    Side,
    SideRuns,
    Tally,
    Verdict,
    choose_repeats,
    compare_runs,
    find_unjudged,
    fisher_worse,
    tells_nothing,
)
from pytest_golden.regression.model import MACHINE_KINDS, GoldenProjectResult, Reason, ReasonKind, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Iterator

PASSED, FAILED, ERROR, SKIPPED = ResultStatus.PASSED, ResultStatus.FAILED, ResultStatus.ERROR, ResultStatus.SKIPPED
KINDS = {PASSED: (), FAILED: ("exit_code",), ERROR: ("timeout",), SKIPPED: ("skip_if_missing",)}
counts = st.integers(0, 60)


def side(status: ResultStatus | None, *kinds: str, quarantined: str | None = None) -> SideRuns:
    if status is None:
        return SideRuns()
    reasons = tuple(Reason(kind, f"because of {kind}") for kind in kinds or KINDS[status])
    message = reasons[0].message if reasons else None
    result = GoldenProjectResult("p", "p.sh", status, error_message=message, reasons=reasons, quarantined=quarantined)
    failed = status in {FAILED, ERROR}
    return SideRuns.begin(result, failure(*(reason.kind for reason in reasons)) if failed else None)


def failure(*reasons: str, digest: str = "") -> Failure:
    """A failure for these reasons, `about` or `about=exact` or `about=exact/coarse`."""
    told: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for reason in reasons:
        about, _, details = reason.partition("=")
        exact, _, coarse = details.partition("/")
        told.setdefault((about,), set()).add((exact, coarse))
    return Failure({about: frozenset(details) for about, details in told.items()}, digest or " ".join(reasons))


def verdict(base: SideRuns, head: SideRuns, repeat: int = 10) -> Verdict:
    return compare_runs({"p": ProjectRuns("p", base, head)}, repeat)[0].verdict


def with_tallies(base: Tally, head: Tally) -> ProjectRuns:
    assert side(PASSED).result is not None
    return ProjectRuns("p", SideRuns(side(PASSED).result, base), SideRuns(side(FAILED).result, head))


@pytest.mark.parametrize(
    ("base", "head", "expected"),
    [
        (side(PASSED), side(PASSED), Verdict.OK),
        (side(FAILED), side(PASSED), Verdict.FIXED),
        (side(ERROR), side(PASSED), Verdict.FIXED),
        (side(FAILED), side(FAILED), Verdict.KNOWN),
        (side(ERROR), side(FAILED), Verdict.NEW_REGRESSION),
        (side(FAILED), side(ERROR), Verdict.NEW_REGRESSION),
        (side(FAILED, "a", "b"), side(FAILED, "a"), Verdict.KNOWN),
        (side(FAILED, "a"), side(FAILED, "a", "b"), Verdict.NEW_REGRESSION),
        (side(FAILED, "a"), side(FAILED, "b", quarantined="flaky"), Verdict.UNSTABLE),
        (side(FAILED, quarantined="flaky"), side(FAILED), Verdict.KNOWN),
        (side(PASSED), side(FAILED), Verdict.NEW_REGRESSION),
        (side(PASSED), side(ERROR), Verdict.NEW_REGRESSION),
        (side(PASSED), side(FAILED, quarantined="flaky"), Verdict.UNSTABLE),
        (side(FAILED), side(FAILED, quarantined="flaky"), Verdict.KNOWN),
        (side(None), side(FAILED), Verdict.NEW_PROJECT),
        (side(None), side(PASSED), Verdict.NEW_PROJECT),
        (side(PASSED), side(None), Verdict.REMOVED),
        (side(PASSED), side(SKIPPED), Verdict.SKIPPED),
        (side(SKIPPED), side(PASSED), Verdict.OK),
    ],
)
def test_first_runs_give_a_verdict(base: SideRuns, head: SideRuns, expected: Verdict) -> None:
    assert verdict(base, head) is expected


def test_only_what_passed_and_fails_is_run_again() -> None:
    runs = {
        "ok": ProjectRuns("ok", side(PASSED), side(PASSED)),
        "known": ProjectRuns("known", side(FAILED), side(FAILED)),
        "fixed": ProjectRuns("fixed", side(FAILED), side(PASSED)),
        "new": ProjectRuns("new", side(None), side(FAILED)),
        "gone": ProjectRuns("gone", side(PASSED), side(None)),
        "skipped": ProjectRuns("skipped", side(PASSED), side(SKIPPED)),
        "waiting": ProjectRuns("waiting", side(PASSED), side(SKIPPED, "need_not_passed"), ("broken",)),
        "quarantined": ProjectRuns("quarantined", side(PASSED), side(FAILED, quarantined="flaky")),
        "broken": ProjectRuns("broken", side(PASSED), side(FAILED)),
    }
    assert choose_repeats(runs, 10) == {Side.HEAD: ("broken",)}


@given(repeat=st.integers(1, 30), recorded=st.integers(1, 40))
def test_what_always_passed_and_always_fails_is_a_regression_whatever_may_be_run(repeat: int, recorded: int) -> None:
    project = with_tallies(Tally(recorded, 0), Tally(0, 1))
    while wanted := choose_repeats({"p": project}, repeat):
        (place,) = wanted
        project = project.count(place, PASSED if place is Side.BASE else FAILED)
    assert compare_runs({"p": project}, repeat)[0].verdict is Verdict.NEW_REGRESSION
    assert project.head.tally.total <= repeat
    assert project.base.tally.total <= max(repeat, recorded)
    assert project.head.tally.failed >= 2 or repeat == 1


def test_a_regression_that_looks_different_each_time_takes_seven_runs() -> None:
    project = with_tallies(Tally(1, 0), Tally(0, 1))
    sides = []
    while wanted := choose_repeats({"p": project}, 10):
        (place,) = wanted
        sides.append(place)
        project = project.count(place, PASSED if place is Side.BASE else FAILED)
    assert sides == [Side.HEAD, Side.BASE, Side.HEAD, Side.BASE, Side.HEAD]
    assert project.p_value == pytest.approx(1 / 35)


@given(ends=st.lists(st.booleans(), min_size=60, max_size=60), repeat=st.integers(1, 30))
def test_running_again_always_ends_and_what_it_says_is_shown_by_the_figures(ends: list[bool], repeat: int) -> None:
    project = with_tallies(Tally(1, 0), Tally(0, 1))
    rest = iter(ends)
    while wanted := choose_repeats({"p": project}, repeat):
        (place,) = wanted
        project = project.count(place, PASSED if next(rest) else FAILED)
    found = compare_runs({"p": project}, repeat)[0]
    is_clear = not project.base.tally.failed and not project.head.tally.passed
    p_value = project.p_value
    assert p_value is not None
    assert (found.verdict is Verdict.NEW_REGRESSION) == (is_clear or p_value < 0.05)
    assert max(project.base.tally.total, project.head.tally.total) <= repeat


@pytest.mark.parametrize("repeat", [3, 5, 10, 20])
@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.7, 0.9])
def test_a_project_that_is_as_unstable_as_before_is_seldom_called_a_regression(rate: float, repeat: int) -> None:
    assert chance_of_alarm(rate, rate, repeat) <= 0.05


def test_a_project_that_began_to_fail_often_is_found() -> None:
    assert chance_of_alarm(0.0, 1.0, 10) == pytest.approx(1.0)
    assert chance_of_alarm(0.0, 0.8, 10) > 0.75


def chance_of_alarm(base_rate: float, head_rate: float, repeat: int, same: Failure | None = None) -> float:
    """Return the exact probability that a project which fails at these rates is called a new regression.

    All its failures are the `same` byte for byte, or none is where that is None.
    """

    @cache
    def follow(base: Tally, head: Tally) -> float:
        project = with_tallies(base, head)
        if same is not None:
            sides = [replace(one, failures=(same,) * one.tally.failed) for one in (project.base, project.head)]
            project = ProjectRuns("p", sides[0], sides[1])
        wanted = choose_repeats({"p": project}, repeat)
        if not wanted:
            return float(compare_runs({"p": project}, repeat)[0].verdict is Verdict.NEW_REGRESSION)
        if Side.BASE in wanted:
            return base_rate * follow(base.count(FAILED), head) + (1 - base_rate) * follow(base.count(PASSED), head)
        return head_rate * follow(base, head.count(FAILED)) + (1 - head_rate) * follow(base, head.count(PASSED))

    return (1 - base_rate) * head_rate * follow(Tally(1, 0), Tally(0, 1))


def test_what_is_known_to_be_unstable_is_tested_also_when_it_failed_last() -> None:
    base = SideRuns(side(FAILED).result, Tally(5, 5))
    project = ProjectRuns("p", base, side(FAILED))
    assert choose_repeats({"p": project}, 10) == {Side.HEAD: ("p",)}
    hopeful = project
    for _ in range(9):
        hopeful = hopeful.count(Side.HEAD, FAILED)
    assert compare_runs({"p": hopeful}, 10)[0].verdict is Verdict.NEW_REGRESSION
    assert compare_runs({"p": project.count(Side.HEAD, PASSED)}, 2)[0].verdict is Verdict.UNSTABLE


def test_no_further_run_is_made_when_none_can_show_that_the_head_is_worse() -> None:
    project = with_tallies(Tally(1, 3), Tally(3, 1))
    assert choose_repeats({"p": project}, 5) == {}
    assert compare_runs({"p": project}, 5)[0].verdict is Verdict.UNSTABLE


def test_one_failure_is_no_proof_however_often_the_base_passed() -> None:
    project = with_tallies(Tally(500, 0), Tally(0, 1))
    assert choose_repeats({"p": project}, 10) == {Side.HEAD: ("p",)}


def test_what_could_not_be_run_again_is_excused_only_by_chance() -> None:
    clear, chance = with_tallies(Tally(1, 0), Tally(0, 2)), with_tallies(Tally(5, 0), Tally(1, 1))
    assert compare_runs({"p": clear}, 10)[0].verdict is Verdict.NEW_REGRESSION
    assert compare_runs({"p": chance}, 10)[0].verdict is Verdict.UNSTABLE


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        (ProjectRuns("need", side(PASSED), side(FAILED)), Verdict.NEW_REGRESSION),
        (ProjectRuns("need", side(FAILED), side(FAILED)), Verdict.KNOWN),
        (ProjectRuns("need", SideRuns(side(PASSED).result, Tally(9, 1)), side(FAILED)), Verdict.UNSTABLE),
        (ProjectRuns("need", side(None), side(FAILED)), Verdict.NEW_REGRESSION),
    ],
)
def test_what_waited_for_a_need_has_its_verdict_unless_that_excuses_nothing(
    need: ProjectRuns, expected: Verdict
) -> None:
    waiting = ProjectRuns("p", side(PASSED), side(SKIPPED, "need_not_passed"), ("other", "need"))
    runs = {"p": waiting, "need": need, "other": ProjectRuns("other", side(PASSED), side(PASSED))}
    assert compare_runs(runs, 10)[0].verdict is expected


def test_base_that_said_nothing_of_a_project_judges_no_failure() -> None:
    skipped = find_unjudged(ProjectRuns("p", side(SKIPPED), side(FAILED)))
    assert skipped == "p fails on the head, and on the base it was skipped: because of skip_if_missing"
    waiting = find_unjudged(ProjectRuns("p", side(SKIPPED, "need_not_passed"), side(FAILED)))
    assert waiting == "p fails on the head, and on the base it was skipped: because of need_not_passed"
    lacking = find_unjudged(ProjectRuns("p", side(FAILED, "baseline_missing"), side(FAILED, "output_differs")))
    assert lacking is not None
    assert lacking.startswith("p fails on the head, and the base has no baseline for ")
    unable = find_unjudged(ProjectRuns("p", side(ERROR, "path_not_found"), side(FAILED)))
    assert unable == "p fails on the head, and on the base it could not be run: because of path_not_found"


@pytest.mark.parametrize("kind", sorted(MACHINE_KINDS))
def test_machine_that_can_run_neither_side_excuses_nothing(kind: ReasonKind) -> None:
    unable = find_unjudged(ProjectRuns("p", side(ERROR, kind), side(ERROR, kind)))
    assert unable == f"p fails on the head, and on the base it could not be run: because of {kind}"


@pytest.mark.parametrize(
    "project",
    [
        ProjectRuns("p", side(PASSED), side(FAILED)),
        ProjectRuns("p", side(FAILED), side(FAILED)),
        ProjectRuns("p", side(SKIPPED), side(PASSED)),
        ProjectRuns("p", side(None), side(FAILED)),
        ProjectRuns("p", side(PASSED), side(None)),
        ProjectRuns("p", side(ERROR, "path_not_found"), side(ERROR, "path_not_found")),
        ProjectRuns("p", side(ERROR, "path_not_found"), side(PASSED)),
        ProjectRuns("p", side(FAILED, "baseline_missing"), side(FAILED, "baseline_missing")),
        ProjectRuns("p", side(FAILED, "baseline_missing"), side(FAILED, "exit_code")),
        ProjectRuns("p", side(SKIPPED, "need_not_passed"), side(SKIPPED, "need_not_passed")),
    ],
)
def test_base_that_can_be_compared_with_is(project: ProjectRuns) -> None:
    assert find_unjudged(project) is None


def test_timeout_is_the_projects_news_and_a_full_disk_is_not() -> None:
    timed_out, full = side(ERROR, "timeout").result, side(ERROR, ReasonKind.SCRATCH_FULL).result
    assert timed_out is not None
    assert full is not None
    assert not tells_nothing(timed_out)
    assert tells_nothing(full)


def test_comparison_is_told_as_plain_values() -> None:
    project = with_tallies(Tally(3, 0), Tally(0, 4))
    assert Comparison(project, Verdict.NEW_REGRESSION).to_dict() == {
        "name": "p",
        "verdict": "new_regression",
        "base_status": "PASSED",
        "head_status": "FAILED",
        "base_reasons": [],
        "head_reasons": [{"kind": "exit_code", "message": "because of exit_code"}],
        "repeats": {"base": {"passed": 3, "failed": 0}, "head": {"passed": 0, "failed": 4}},
        "p_value": pytest.approx(1 / 35),
    }
    plain = Comparison(ProjectRuns("p", side(None), side(SKIPPED)), Verdict.NEW_PROJECT).to_dict()
    assert plain["base_status"] is None
    assert plain["repeats"]["head"] == {"passed": 0, "failed": 0}
    assert plain["p_value"] is None
    many = tuple(Reason("output_differs", "x" * 9_999, f"{number}.csv") for number in range(99))
    head = SideRuns.begin(GoldenProjectResult("p", "p.sh", FAILED, reasons=many), failure("a"))
    told = Comparison(ProjectRuns("p", side(PASSED), head), Verdict.NEW_REGRESSION).to_dict()["head_reasons"]
    assert (len(told), len(told[0]["message"]), told[0]["path"]) == (20, 2_000, "0.csv")


def run_again(project: ProjectRuns, base: Iterator[Failure | None], head: Iterator[Failure | None]) -> ProjectRuns:
    """Run again what is to be run again; each run of a side fails as told, None for a pass."""
    while wanted := choose_repeats({"p": project}, 10):
        (place,) = wanted
        ended = next(base if place is Side.BASE else head)
        project = project.count(place, PASSED if ended is None else FAILED, ended)
    return project


def test_red_that_repeats_itself_is_settled_after_two_runs_of_each_side() -> None:
    always = failure("exit_code")
    for base in (side(PASSED), side(FAILED, "timeout")):
        again = None if base.status is PASSED else failure("timeout")
        project = run_again(ProjectRuns("p", base, side(FAILED)), repeat_one(again), repeat_one(always))
        assert (project.base.tally.total, project.head.tally.total) == (2, 2)
        assert compare_runs({"p": project}, 10)[0].verdict is Verdict.NEW_REGRESSION
        assert project.p_value is None
    recorded = ProjectRuns("p", SideRuns(side(PASSED).result, Tally(5, 0)), side(FAILED))
    assert run_again(recorded, iter(()), repeat_one(always)).head.tally == Tally(0, 2)


def test_settling_early_seldom_blames_a_project_that_is_as_unstable_as_before() -> None:
    rates = [number / 20 for number in range(1, 20)]
    alarms = [chance_of_alarm(rate, rate, 10, failure("same")) for rate in rates]
    assert max(alarms) < 0.09
    assert alarms[1] < 0.01


def test_base_that_fails_otherwise_each_time_by_itself_is_compared_in_the_form_that_stays() -> None:
    def noise(coarse: str) -> Iterator[Failure]:
        return (failure(f"exit_code={coarse}{number}/{coarse}") for number in count())

    def begin(base: Iterator[Failure], head: Iterator[Failure]) -> ProjectRuns:
        found = side(FAILED).result
        assert found is not None
        return run_again(
            ProjectRuns("p", SideRuns.begin(found, next(base)), SideRuns.begin(found, next(head))), base, head
        )

    alike = begin(noise("x"), islice(noise("x"), 50, None))
    assert alike.base.tally.total == 2
    assert compare_runs({"p": alike}, 10)[0].verdict is Verdict.KNOWN
    other = begin(noise("x"), noise("y"))
    assert compare_runs({"p": other}, 10)[0].verdict is Verdict.NEW_REGRESSION
    # Each reason is another one, on both sides alike: nothing is proved.
    wild = begin((failure(f"a{number}") for number in count()), (failure(f"b{number}") for number in count()))
    assert compare_runs({"p": wild}, 10)[0].verdict is Verdict.UNSTABLE


def test_new_reason_is_found_also_where_the_base_passes_sometimes() -> None:
    base = SideRuns(side(FAILED).result, Tally(1, 9), (failure("old"),) * 9)
    head = SideRuns(side(FAILED).result, Tally(0, 1), (failure("new", digest="1"),))
    digests = (failure("new", digest=str(number)) for number in count(2))
    project = run_again(ProjectRuns("p", base, head), iter(()), digests)
    assert compare_runs({"p": project}, 10)[0].verdict is Verdict.NEW_REGRESSION
    assert project.fails_otherwise
    assert project.p_value is not None
    assert project.p_value < 0.05
    same = SideRuns(side(FAILED).result, Tally(0, 1), (failure("old"),))
    project = run_again(ProjectRuns("p", base, same), iter(()), repeat_one(failure("old")))
    assert compare_runs({"p": project}, 10)[0].verdict is Verdict.UNSTABLE


def test_what_neither_side_ran_for_the_same_reason_is_skipped_alike() -> None:
    skipped = side(SKIPPED)
    assert ProjectRuns("p", skipped, skipped).is_skipped_alike
    others = (side(PASSED), side(None), side(SKIPPED, "skipped_by_pytest"))
    assert not any(ProjectRuns("p", base, skipped).is_skipped_alike for base in others)
    # It passed before, and that stands for it: what the head lacks is not lacking there.
    unchanged = side(SKIPPED, "unchanged")
    assert not ProjectRuns("p", unchanged, unchanged).is_skipped_alike


@given(base_passed=counts, base_failed=counts, head_passed=counts, head_failed=counts)
def test_p_value_is_the_one_of_scipy(base_passed: int, base_failed: int, head_passed: int, head_failed: int) -> None:
    table = [[head_failed, head_passed], [base_failed, base_passed]]
    expected = fisher_exact(table, alternative="greater").pvalue
    assert fisher_worse(base_passed, base_failed, head_passed, head_failed) == pytest.approx(expected, rel=1e-9)


@given(passed=st.integers(0, 100_000), failed=st.integers(0, 2_000), head=st.integers(1, 2_000))
def test_figures_of_any_size_give_a_probability(passed: int, failed: int, head: int) -> None:
    assert 0.0 <= fisher_worse(passed, failed, 0, head) <= 1.0


@pytest.mark.parametrize(
    ("figures", "p_value"),
    [((0, 0, 0, 0), 1.0), ((1, 0, 0, 1), 1 / 2), ((3, 0, 0, 3), 1 / 20), ((3, 0, 0, 4), 1 / 35), ((5, 5, 5, 0), 1.0)],
)
def test_p_value_of_few_runs_is_known_by_hand(figures: tuple[int, int, int, int], p_value: float) -> None:
    assert fisher_worse(*figures) == pytest.approx(p_value)


def test_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match=r"negative, and these are \(1, -1, 0, 0\)"):
        fisher_worse(1, -1, 0, 0)
