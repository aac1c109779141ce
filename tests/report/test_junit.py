"""JUnit XML that CI servers can read, whatever was printed."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import xmlschema
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.errors import GoldenError
from pytest_golden.regression.model import GoldenProjectResult, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult, Weakening, WeakeningKind, judge_run
from pytest_golden.report.junit import junit_text
from pytest_golden.report.report_files import write_report
from tests.report.samples import every_kind_of_result

MOMENT = datetime(2026, 11, 21, 12, 30, 5, 999, tzinfo=UTC)
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=40)

SCHEMA = xmlschema.XMLSchema(Path(__file__).with_name("junit.xsd"))


def make_text(check: RegressionCheckResult, **more: Any) -> str:
    return junit_text(check, timestamp=MOMENT, hostname="host", **more)


def write(check: RegressionCheckResult, **more: Any) -> ElementTree.Element:
    element = ElementTree.fromstring(make_text(check, **more).encode("utf-8"))
    SCHEMA.validate(element)
    return element


def test_every_kind_of_result_has_its_element() -> None:
    suite = write(every_kind_of_result())[0]
    kinds = {
        case.attrib["name"]: [child.tag for child in case if child.tag != "system-out"]
        for case in suite.iter("testcase")
    }
    assert kinds == {
        "passes": [],
        "fails": ["failure"],
        "errs": ["error"],
        "bare": ["error"],
        "skipped": ["skipped"],
        "needs": ["failure"],
        "flaky": ["skipped"],
    }
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped", "timestamp")} == {
        "tests": "7",
        "failures": "2",
        "errors": "2",
        "skipped": "2",
        "timestamp": "2026-11-21T12:30:05",
    }
    assert suite.attrib["time"] == "1.750"


def test_run_that_did_not_pass_is_no_file_without_a_failure() -> None:
    check = RegressionCheckResult((GoldenProjectResult("one", "p.py", ResultStatus.PASSED),))
    for facts in ({"exit_status": 77}, {"exit_status": 2}, {"other_failures": 1}, {"problems": ["no report"]}):
        verdict = judge_run(check.results, **facts)
        suites = write(check, verdict=verdict)
        assert suites.attrib["errors"] == "1"
        case = suites[0].findall("testcase")[-1]
        assert (case.attrib["classname"], case[0].attrib["message"]) == ("golden_run", verdict.sentence)


def test_suite_tells_the_verdict() -> None:
    check = RegressionCheckResult((GoldenProjectResult("one", "p.py", ResultStatus.PASSED),))
    (told,) = write(check)[0].findall("properties/property")
    assert told.attrib == {"name": "golden_verdict", "value": "PASSED: 1 passed"}


def test_a_failure_says_why() -> None:
    suite = write(every_kind_of_result())[0]
    failure = next(case for case in suite.iter("testcase") if case.attrib["name"] == "fails").find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "exit_code"
    assert failure.attrib["message"].startswith("exit code 3, expected 0")
    assert "full log: /tmp/fails.log" in str(failure.text)
    quarantined = suite.find("testcase[@name='flaky']/skipped")
    assert quarantined is not None
    assert "flaky upstream" in quarantined.attrib["message"]


def test_flaky_pass_names_the_attempts_that_failed() -> None:
    flaky = GoldenProjectResult("wobbly", "p", ResultStatus.PASSED, 0, "fine", attempts=3, is_flaky=True)
    suite = write(RegressionCheckResult((flaky,)))[0]
    failures = suite.findall("testcase/flakyFailure")
    assert [one.attrib["message"] for one in failures] == [
        "attempt 1 failed, attempt 3 passed",
        "attempt 2 failed, attempt 3 passed",
    ]
    assert [one.findtext("stackTrace") for one in failures] == [one.attrib["message"] for one in failures]
    assert (suite.attrib["failures"], suite.attrib["errors"], suite.attrib["skipped"]) == ("0", "0", "0")


def test_weakened_floor_is_a_failing_test_case_of_its_own() -> None:
    passed = GoldenProjectResult("fine", "p", ResultStatus.PASSED, 0)
    weakenings = [
        Weakening("sales", WeakeningKind.LIMIT, "timeout was raised"),
        Weakening(None, WeakeningKind.REQUIREMENT, "gone\x00"),
    ]
    suites = write(RegressionCheckResult((passed,)), weakenings=weakenings)
    assert (suites.attrib["tests"], suites.attrib["failures"]) == ("2", "1")
    case = suites[0].findall("testcase")[1]
    assert (case.attrib["classname"], case.attrib["name"]) == ("golden_floor", "weakened floor")
    failure = case[0]
    assert failure.attrib["message"] == "the floor is weakened in 2 ways: sales: timeout was raised"
    assert str(failure.text).splitlines()[:2] == ["sales: timeout was raised", "gone\\x00"]


def test_skipped_project_is_a_failure_where_all_are_required() -> None:
    skipped = GoldenProjectResult("left", "p", ResultStatus.SKIPPED, error_message="no dbt")
    assert write(RegressionCheckResult((skipped,)), skips_fail=True).attrib["failures"] == "1"
    assert write(RegressionCheckResult((skipped,))).attrib["failures"] == "0"


def test_what_xml_cannot_carry_is_escaped_and_colours_are_gone() -> None:
    text = junit_text(every_kind_of_result(), timestamp=MOMENT, hostname="")
    assert "[31m" not in text
    assert "\\x00\\x07" in text
    assert "\\ud800" in text
    assert "\\U0001ffff" in text
    assert "漢 \U0001f600" in text
    assert 'name="golden projects"' in text


@given(ANY_TEXT, ANY_TEXT, st.sampled_from(ResultStatus))
def test_any_text_gives_valid_xml(name: str, text: str, status: ResultStatus) -> None:
    write(RegressionCheckResult((GoldenProjectResult(name, "p", status, 1, text, text),)))


def test_ten_mebibytes_of_anything_stay_valid() -> None:
    block = "]]> <![CDATA[ \x00\x1b[31m &amp; \ud800 \ufffe \x0b \x85 </testcase> "
    printed = block * (10 * 1024 * 1024 // len(block) + 1)
    result = GoldenProjectResult("huge", "p", ResultStatus.FAILED, 1, printed, "]]>")
    case = write(RegressionCheckResult((result,)))[0].findall("testcase")[0]
    assert len(case.findtext("system-out", "")) > 10 * 1024 * 1024


def test_no_results_are_an_empty_suite() -> None:
    assert write(RegressionCheckResult())[0].attrib["tests"] == "0"


def test_the_file_is_written_with_its_folders(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "reports" / "golden.xml"
    for _ in range(2):
        write_report(path, make_text(every_kind_of_result()), option="--golden-junit")
    assert ElementTree.fromstring(path.read_bytes()).tag == "testsuites"
    assert [file.name for file in path.parent.iterdir()] == ["golden.xml"]


def test_a_path_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file" / "golden.xml", tmp_path, tmp_path / "nul\0l"):
        with pytest.raises(GoldenError, match=r"^--golden-junit .*cannot be written \(.*\); name a file") as caught:
            write_report(path, make_text(RegressionCheckResult()), option="--golden-junit")
        assert "\n" not in str(caught.value)
