from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway.model import WriteSet, WrittenFile
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.verify.failures import identify_failure, mask_noise

if TYPE_CHECKING:
    from pytest_golden.regression.comparison import Failure

DIFFERENCE = "a.csv differs from its baseline: 1 row differs\n  2  amount  20  21"
ADVICE = "\nif this is right, accept it with `pytest --golden -k {} --golden-update`"


def failed(*reasons: Reason, **more: Any) -> GoldenProjectResult:
    told = {"exit_code": 1, **more}
    return GoldenProjectResult("p", "p.sh", ResultStatus.FAILED, reasons=reasons, **told)


def identify(result: GoldenProjectResult) -> Failure:
    found = identify_failure(result)
    assert found is not None
    return found


def is_other(head: GoldenProjectResult, *base: GoldenProjectResult) -> bool:
    return identify(head).is_other_than([identify(one) for one in base])


def exits(told: str, code: int = 1) -> GoldenProjectResult:
    message = f"exit code {code}, expected 0: {told}"
    return failed(Reason(ReasonKind.EXIT_CODE, message), exit_code=code)


def differs(message: str, path: str = "a.csv", content: str = "c1") -> GoldenProjectResult:
    files = {path: WrittenFile(path, "file", 1, content)}
    return failed(Reason(ReasonKind.OUTPUT_DIFFERS, message, path), write_set=WriteSet((path,), files=files))


@pytest.mark.parametrize(
    ("base", "head"),
    [
        ("2026-11-23 10:11:12,345 ERROR no such table: a", "2026-11-24T23:59:59Z ERROR no such table: a"),
        ("[Errno 2] No such file: '/tmp/tmpab12cd34/data.csv'", "[Errno 2] No such file: '/tmp/tmpzz99yy88/data.csv'"),
        ("at /tmp/golden-verify-1/base/etl/load.py, line 12", "at /home/me/work/etl/load.py, line 13"),
        ("<Job object at 0x7f12ab> was killed (pid 4711)", "<Job object at 0x7fee00> was killed (pid 12)"),
        (
            "run 0b9f6a7e-1c2d-4e3f-8a9b-0c1d2e3f4a5b failed in 1.2s",
            "run 1b9f6a7e-1c2d-4e3f-8a9b-0c1d2e3f4a5c failed in 33 s",
        ),
        ("expected 100 rows, found 97", "expected 100 rows, found 12"),
    ],
)
def test_noise_makes_no_other_failure(base: str, head: str) -> None:
    assert mask_noise(base) == mask_noise(head)
    assert not is_other(exits(head), exits(base))


@pytest.mark.parametrize(
    ("base", "head"),
    [
        (exits("no such table: invoices"), exits("no such table: orders")),
        (exits("HTTP Error 404: gone"), exits("HTTP Error 503: gone")),
        (exits("cannot read /data/a.csv"), exits("cannot read /data/b.csv")),
        (exits("ORA-00942: no table"), exits("ORA-00955: no table")),
        (exits("it failed", 1), exits("it failed", 2)),
        (differs(DIFFERENCE), differs(DIFFERENCE.replace("21", "22"))),
        (differs(DIFFERENCE), differs(DIFFERENCE.replace("a.csv", "b.csv"), "b.csv")),
        # Nobody sees the whole difference, so that the content decides.
        (differs("a.csv differs, first at byte 1"), differs("a.csv differs, first at byte 1", content="c2")),
        (differs(f"{DIFFERENCE}\n[... 9 more ...]"), differs(f"{DIFFERENCE}\n[... 9 more ...]", content="c2")),
        (exits("it failed"), replace(exits("it failed"), reasons=(Reason(ReasonKind.TIMEOUT, "it failed"),))),
    ],
)
def test_other_cause_is_another_failure(base: GoldenProjectResult, head: GoldenProjectResult) -> None:
    assert is_other(head, base)


def test_same_difference_of_an_output_is_the_same_failure_whatever_is_advised() -> None:
    base, head = differs(DIFFERENCE + ADVICE.format("a")), differs(DIFFERENCE + ADVICE.format("b"), content="c2")
    assert not is_other(head, base)
    missing = Reason(ReasonKind.OUTPUT_MISSING, "this run did not write a.csv; it wrote x", "a.csv")
    assert not is_other(failed(replace(missing, message="this run did not write a.csv; it wrote y")), failed(missing))


def test_output_without_a_baseline_on_either_side_is_known_by_its_content() -> None:
    def lacks(content: str) -> GoldenProjectResult:
        told = Reason(
            ReasonKind.BASELINE_MISSING, "a.csv has no baseline: look at it, then accept it with `x`", "a.csv"
        )
        return failed(told, write_set=WriteSet(("a.csv",), files={"a.csv": WrittenFile("a.csv", "file", 1, content)}))

    assert is_other(lacks("c2"), lacks("c1"))
    assert not is_other(lacks("c1"), lacks("c1"))
    # What the base itself writes differently each time tells nothing.
    assert not is_other(lacks("c3"), lacks("c1"), lacks("c2"))


def test_one_more_reason_or_failing_step_is_another_failure_and_one_less_is_not() -> None:
    def steps(*names: str) -> GoldenProjectResult:
        told = [{"type": "tool", "content": name, "metadata": {"failed": True}} for name in names]
        passed = {"type": "tool", "content": "fine", "metadata": {}}
        return failed(Reason(ReasonKind.EXIT_CODE, "exit code 1, expected 0"), steps=(*told, passed))

    assert is_other(steps("load 1", "load 2"), steps("load 1"))
    assert is_other(steps("a", "b"), steps("a"))
    assert not is_other(steps("a"), steps("a", "b"))
    both = replace(exits("x"), reasons=(*exits("x").reasons, *differs(DIFFERENCE).reasons))
    assert is_other(both, exits("x"))
    assert not is_other(exits("x"), both)


def test_only_what_fails_has_a_failure() -> None:
    for status in (ResultStatus.PASSED, ResultStatus.SKIPPED):
        assert identify_failure(GoldenProjectResult("p", "p.sh", status)) is None


def test_digest_is_of_all_that_was_shown_but_for_times_and_temporary_names() -> None:
    one = replace(exits("x"), output_summary="took 1.2s in /tmp/tmpabcdef12, 3 of 9 failed")
    same = replace(one, output_summary="took 7.7s in /var/tmp/tmpabcdef34, 3 of 9 failed")
    other = replace(one, output_summary="took 1.2s in /tmp/tmpabcdef12, 4 of 9 failed")
    assert identify(one).digest == identify(same).digest
    assert identify(one).digest != identify(other).digest


def test_the_order_of_reasons_and_their_advice_make_no_other_failure() -> None:
    one, other = (Reason(ReasonKind.OUTPUT_DIFFERS, f"{name} differs\n- 1\n+ 2", name) for name in ("a", "b"))
    told = ADVICE.format("p")
    there, back = (
        failed(replace(first, message=first.message + told), second) for first, second in ((one, other), (other, one))
    )
    assert identify(there) == identify(back)
