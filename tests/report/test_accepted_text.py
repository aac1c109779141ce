from __future__ import annotations

from pytest_golden.regression.model import AcceptedOutput, GoldenProjectResult, OutputChange, ResultStatus
from pytest_golden.report.result_text import describe_accepted


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
