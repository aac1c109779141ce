"""JUnit XML (`--golden-junit`) as Jenkins, GitLab and the Surefire schema read it.

FAILED becomes a failure, ERROR an error, SKIPPED skipped. A CI server sees nothing else, so everything that fails the
gate is a failure: a project whose need did not pass, a skipped project with `--golden-require`, and a weakened floor,
which is its own test case. Anything else that makes the run fail, or its interruption, is another test case. The
verdict is a property of the suite. A quarantined project is skipped with the reason. A flaky pass has a `flakyFailure`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from junit_xml import TestCase, TestSuite

from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.verdict import RunStatus, fails_the_gate
from pytest_golden.report.github import disarm
from pytest_golden.report.result_text import clean_xml_line, clean_xml_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.regression.verdict import RegressionCheckResult, RunVerdict, Weakening

_SUITE, _CLASS_NAME = "golden projects", "golden_projects"
_FLOOR_CLASS_NAME, _FLOOR_NAME = "golden_floor", "weakened floor"
_RUN_CLASS_NAME, _RUN_NAME = "golden_run", "verdict"


def junit_text(
    check: RegressionCheckResult,
    *,
    timestamp: datetime,
    hostname: str,
    skips_fail: bool = False,
    weakenings: Sequence[Weakening] = (),
    verdict: RunVerdict | None = None,
) -> str:
    """Return the results as JUnit XML.

    Args:
        check: all results.
        timestamp: when the gate run started.
        hostname: where it ran.
        skips_fail: whether a skipped project fails the gate (`--golden-require`).
        weakenings: how the floor is weaker, if nobody accepted that. They become one failing test case.
        verdict: the run's verdict; None to make one from the results alone.
    """
    verdict = check.verdict if verdict is None else verdict
    cases = [_test_case(result, skips_fail=skips_fail) for result in check.results]
    cases += [_floor_case(weakenings)] if weakenings else []
    cases += [_run_case(verdict)] if verdict.causes or verdict.status is RunStatus.INTERRUPTED else []
    suite = TestSuite(
        _SUITE,
        cases,
        hostname=clean_xml_line(hostname) or "localhost",
        # The schema's dateTime has neither a fraction nor a zone in the form that Jenkins reads.
        timestamp=timestamp.strftime("%Y-%m-%dT%H:%M:%S"),
        properties={"golden_verdict": clean_xml_line(verdict.sentence)},
    )
    element = suite.build_xml_doc(encoding="utf-8")
    element.attrib.pop("disabled", None)
    for case in element.iter("testcase"):
        case.set("time", "0.000")
    for case, result in zip(element.iter("testcase"), check.results, strict=False):
        case.set("time", f"{max(result.execution_time_seconds, 0.0):.3f}")
        _add_flaky_failures(case, result)
    element.set("time", f"{sum(max(result.execution_time_seconds, 0.0) for result in check.results):.3f}")
    suites = ElementTree.Element("testsuites")
    suites.extend([element])
    # Jenkins' schema knows no count of skipped ones here.
    for count in ("tests", "failures", "errors", "time"):
        suites.set(count, element.get(count, "0"))
    ElementTree.indent(suites)
    # A later step of a job may print the file.
    return disarm('<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n")


def _test_case(result: GoldenProjectResult, *, skips_fail: bool) -> TestCase:
    # Newlines at the ends keep what was printed apart from the indentation of the file.
    case = TestCase(
        clean_xml_line(result.name) or "unnamed", classname=_CLASS_NAME, stdout=clean_xml_text(result.output_summary)
    )
    message = clean_xml_line(result.error_message or str(result.status))
    details = clean_xml_text("\n".join(_details(result)))
    if result.quarantined is not None:
        case.add_skipped_info(message=clean_xml_line(f"quarantined, {result.quarantined}: {message}"), output=details)
    elif result.status is ResultStatus.ERROR:
        case.add_error_info(message=message, output=details, error_type=_type_of(result))
    elif fails_the_gate(result, skips_fail=skips_fail):
        case.add_failure_info(message=message, output=details, failure_type=_type_of(result))
    elif result.status is ResultStatus.SKIPPED:
        case.add_skipped_info(message=message, output=details)
    return case


def _floor_case(weakenings: Sequence[Weakening]) -> TestCase:
    case = TestCase(_FLOOR_NAME, classname=_FLOOR_CLASS_NAME)
    told = [f"{one.project}: {one.message}" if one.project else one.message for one in weakenings]
    count = f"weakened in {len(told)} way{'' if len(told) == 1 else 's'}"
    case.add_failure_info(
        message=clean_xml_line(f"the floor is {count}: {told[0]}"),
        output=clean_xml_text(
            "\n".join([*told, "A person accepts this with --golden-floor=accept (golden gate: --floor accept)."])
        ),
        failure_type="weakened_floor",
    )
    return case


def _run_case(verdict: RunVerdict) -> TestCase:
    case = TestCase(_RUN_NAME, classname=_RUN_CLASS_NAME)
    case.add_error_info(message=clean_xml_line(verdict.sentence), error_type=verdict.word.lower())
    return case


def _add_flaky_failures(case: ElementTree.Element, result: GoldenProjectResult) -> None:
    """Add a `flakyFailure` for each attempt that failed before a pass; junit-xml does not write that element.

    Source: https://maven.apache.org/surefire/maven-surefire-plugin/xsd/surefire-test-report.xsd
    """
    if not result.is_flaky or result.status is not ResultStatus.PASSED:
        return
    for attempt in range(1, result.attempts):
        message = f"attempt {attempt} failed, attempt {result.attempts} passed"
        failure = ElementTree.Element("flakyFailure", type="flaky", message=message)
        ElementTree.SubElement(failure, "stackTrace").text = message
        # The schema wants it before the output.
        case.insert(attempt - 1, failure)


def _type_of(result: GoldenProjectResult) -> str:
    return clean_xml_line(str(result.reasons[0].kind)) if result.reasons else str(result.status).lower()


def _details(result: GoldenProjectResult) -> list[str]:
    lines = [reason.message for reason in result.reasons] or [result.error_message or str(result.status)]
    lines += [f"note: {warning}" for warning in result.warnings]
    if result.attempts > 1:
        lines.append(f"attempts: {result.attempts}")
    if result.log_path:
        lines.append(f"full log: {result.log_path}")
    return lines
