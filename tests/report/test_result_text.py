from __future__ import annotations

from typing import Any

import pytest

from pytest_golden.regression.model import (
    AcceptedOutput,
    GoldenProjectResult,
    OutputChange,
    Reason,
    ReasonKind,
    ResultStatus,
)
from pytest_golden.report.result_text import (
    LAST_LINES,
    describe_accepted,
    describe_step,
    explain_failure,
    first_difference,
    make_visible,
    note_unchecked_needs,
    short_reason,
    summarize_reasons,
)


def failed(**facts: Any) -> GoldenProjectResult:
    reasons = facts.pop("reasons", (Reason(ReasonKind.EXIT_CODE, "exit code 1, expected 0"),))
    facts = {"exit_code": 1, **facts}
    return GoldenProjectResult("sales", "sales.py", facts.pop("status", ResultStatus.FAILED), reasons=reasons, **facts)


def explain(result: GoldenProjectResult, shell_command: str | None = "golden run sales --shell") -> str:
    return explain_failure(result, shell_command=shell_command)


def test_reasons_come_first_and_what_to_try_next_last() -> None:
    result = failed(
        reasons=(Reason(ReasonKind.EXIT_CODE, "exit code 1"), Reason("mine", "too slow")),
        attempts=3,
        output_summary="one\ntwo\n",
        warnings=("ran in a copy",),
        log_path="/logs/sales.log",
        kept_view="/kept/sales",
    )
    assert explain(result).splitlines() == [
        "FAILED: exit code 1",
        "also: too slow",
        "tried 3 times, each time without a pass",
        "last output:",
        "  one",
        "  two",
        "note: ran in a copy",
        "try next: golden run sales --shell   (a shell in its view, nothing real is touched)",
        "full log: /logs/sales.log",
        "kept view: /kept/sales",
    ]


def test_last_failing_step_is_named_with_its_error_and_time() -> None:
    steps = (
        {"type": "action", "content": "load", "metadata": {"error": "earlier"}},
        {"type": "action", "content": "join", "duration_ms": 1200, "metadata": {"error": "no column id"}},
        {"type": "action", "content": "never", "metadata": {}},
        {"type": "observation", "content": "exit code 1", "metadata": {"error": "exit code 1"}},
    )
    assert "failing step: join (1.2s): no column id" in explain(failed(steps=steps))
    assert "failing step: check\n" in explain(
        failed(steps=({"type": "action", "content": "check", "metadata": {"failed": True}},))
    )
    assert "failing step" not in explain(failed(steps=({"type": "action", "content": "check"},)))


def test_long_output_is_cut_at_its_beginning() -> None:
    text = explain(failed(output_summary="\n".join(f"line {number}" for number in range(20))))
    assert f"last output ({20 - LAST_LINES} more lines before it):\n  line 5\n" in text


def test_project_that_never_ran_has_no_next_move() -> None:
    result = failed(
        status=ResultStatus.SKIPPED, exit_code=None, reasons=(Reason(ReasonKind.NEED_NOT_PASSED, "needs a"),)
    )
    assert explain(result) == "SKIPPED: needs a"


def test_no_command_is_told_where_none_knows_the_project() -> None:
    assert "try next" in explain(failed())
    assert "try next" not in explain(failed(), None)


def test_result_without_reasons_says_what_it_has() -> None:
    assert explain(failed(reasons=(), exit_code=None)) == "FAILED: no reason was given"


def test_step_that_is_named_by_its_error_tells_it_once() -> None:
    assert describe_step({"content": "no such file", "metadata": {"error": "no such file"}}) == "no such file"


@pytest.mark.parametrize("error", [{"code": 7}, [7], 7])
def test_error_of_a_step_may_be_any_json(error: object) -> None:
    step = {"type": "action", "content": "load", "metadata": {"error": error}}
    assert f"failing step: load: {error}" in explain(failed(steps=(step,)))


def test_step_does_not_repeat_the_error_that_the_reason_has_told() -> None:
    reasons = (Reason(ReasonKind.EXIT_CODE, "exit code 1, expected 0: join: no column id"),)
    steps = ({"type": "action", "content": "join", "metadata": {"error": "no column id"}},)
    assert explain(failed(reasons=reasons, steps=steps)).splitlines()[:2] == [
        "FAILED: exit code 1, expected 0: join: no column id",
        "failing step: join",
    ]
    longer = ({"type": "action", "content": "join", "metadata": {"error": "no column id\n  in orders.csv"}},)
    assert "failing step: join: no column id\n  in orders.csv\n" in explain(failed(reasons=reasons, steps=longer))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m\ttab\r\nline", "red\ttab\nline"),
        ("bell\x07 del\x7f", "bell\\x07 del\\x7f"),
        ("\x1b]0;title\x07x\u202ey", "x\\u202ey"),
        ("half \ud83d", "half \\ud83d"),
    ],
)
def test_unseen_signs_become_visible(text: str, shown: str) -> None:
    assert make_visible(text) == shown


def test_differences_of_outputs_stand_below_their_sentence_the_first_three_of_them() -> None:
    reasons = [Reason(ReasonKind.OUTPUT_DIFFERS, f"{n}.csv differs\n- 1\n+ \x1b[31m2", f"{n}.csv") for n in range(5)]
    missing = [Reason(ReasonKind.BASELINE_MISSING, "x has no baseline\nlook at it", "x")]
    result = GoldenProjectResult("p", "p.py", ResultStatus.FAILED, reasons=(*reasons, *missing))
    text = explain_failure(result, shell_command=None)
    assert text.splitlines()[:6] == ["FAILED: 0.csv differs", "  - 1", "  + 2", "also: 1.csv differs", "  - 1", "  + 2"]
    assert text.count("  - 1") == 3
    assert text.splitlines()[-3:] == ["also: 3.csv differs", "also: 4.csv differs", "also: x has no baseline"]
    assert first_difference(result) == ["  - 1", "  + 2"]
    assert first_difference(GoldenProjectResult("p", "p.py", ResultStatus.PASSED)) == []


def test_very_many_reasons_are_counted() -> None:
    reasons = tuple(Reason(ReasonKind.OUTPUT_MISSING, f"{n} is missing") for n in range(150))
    text = explain_failure(GoldenProjectResult("p", "p.py", ResultStatus.FAILED, reasons=reasons), shell_command=None)
    assert text.splitlines()[-1] == "also: 49 more reasons"


def accepted(name: str, *outputs: AcceptedOutput) -> GoldenProjectResult:
    return GoldenProjectResult(name, "p", ResultStatus.PASSED, accepted=outputs)


def test_each_kind_of_change_has_its_line_and_a_difference_stands_below() -> None:
    result = accepted(
        "sales",
        AcceptedOutput("a.csv", OutputChange.NEW, "2KiB"),
        AcceptedOutput("b\n.csv", OutputChange.CHANGED, "b.csv differs\n- 1\n+ \x1b[31m2"),
        AcceptedOutput("c.csv", OutputChange.UNCHANGED),
        AcceptedOutput("d.csv", OutputChange.REMOVED, "it was not written any more"),
        AcceptedOutput("e.csv", OutputChange.REFUSED, "a secret\nin it"),
    )
    assert describe_accepted([result]) == [
        "sales: 1 new, 1 changed, 1 unchanged, 1 removed, 1 refused",
        "  new        a.csv (2KiB)",
        "  changed    b\\n.csv",
        "      b.csv differs",
        "      - 1",
        "      + 2",
        "  removed    d.csv (it was not written any more)",
        "  refused    e.csv: a secret in it",
    ]
    assert "  unchanged  c.csv" in describe_accepted([result], in_full=True)


def test_what_was_not_accepted_is_not_told_and_a_project_without_outputs_is() -> None:
    failed = GoldenProjectResult("failed", "p", ResultStatus.FAILED)
    assert describe_accepted([failed]) == []
    assert describe_accepted([accepted("none")]) == ["none: no output to keep; its duration history starts anew"]


def test_account_of_much_is_bounded() -> None:
    many = accepted("many", *(AcceptedOutput(f"{n}", OutputChange.CHANGED, "differs\n- 1") for n in range(100)))
    brief = describe_accepted([many])
    assert brief[-1] == "  and 50 more: -v names them"
    assert sum(line == "      - 1" for line in brief) == 10
    assert len(describe_accepted([many], in_full=True)) == 301


def test_accepted_outputs_go_through_json() -> None:
    result = accepted("sales", AcceptedOutput("a.csv", OutputChange.NEW, "2KiB"))
    assert GoldenProjectResult.from_dict(result.to_dict()) == result
    plain = GoldenProjectResult("failed", "p", ResultStatus.FAILED)
    assert GoldenProjectResult.from_dict(plain.to_dict()).accepted is None


def result(status: str = "FAILED", **facts: object) -> GoldenProjectResult:
    return GoldenProjectResult("orders", "orders.sh", ResultStatus(status), **facts)  # type: ignore[arg-type]


def test_reasons_are_one_line_in_which_nothing_is_unseen() -> None:
    reasons = (Reason("mine", "too\n  slow\x1b[0m"), Reason("mine", "bell\x07"))
    assert summarize_reasons(result(reasons=reasons)) == "too slow; bell\\x07"
    assert summarize_reasons(result(error_message="broken\n  pipe")) == "broken pipe"
    assert summarize_reasons(result()) == "FAILED"


def test_long_pattern_hides_nothing_that_stands_beside_it() -> None:
    pattern = "Custom check 'amount_is_not_negative' failed\\. Found 3 invalid rows"
    message = f"exit code 2: no such column, but `specific_error:{pattern}` was expected and is not in the output"
    told = summarize_reasons(result(reasons=(Reason(ReasonKind.PATTERN_ABSENT, message),)))
    assert told == (
        "exit code 2: no such column, but `specific_error:Custom check 'amoun...und 3 invalid rows` was expected "
        "and is not in the output"
    )


def test_what_is_to_be_known_beside_a_status_is_brief() -> None:
    assert short_reason(result("PASSED")) == ""
    assert short_reason(result("PASSED", is_flaky=True, attempts=2)) == "flaky: passed on attempt 2"
    assert short_reason(result(quarantined="upstream")) == "quarantined, upstream"


def test_needs_that_were_left_out_are_named_with_what_ran_without_them() -> None:
    assert note_unchecked_needs({}) is None
    assert note_unchecked_needs({"load": ["sales"]}) == "load was deselected: sales ran without it having been checked"
    many = note_unchecked_needs({f"need{n}": [f"user{m}" for m in range(7)] for n in range(7)})
    assert many is not None
    assert "user4 and 2 more ran without it having been checked" in many
    assert many.endswith("; and 2 more such needs")
