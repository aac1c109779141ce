"""JUnit XML (`--golden-junit`) as Jenkins, GitLab and the Surefire schema read it.

FAILED becomes a failure, ERROR an error, SKIPPED skipped. Two deviate, because a CI server looks at nothing else: a
project that was not run since its need did not pass is a failure, and a quarantined one is skipped with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree

from junit_xml import TestCase, TestSuite

from pytest_golden.regression.model import ResultStatus
from pytest_golden.report.files import write_report
from pytest_golden.report.xml_text import clean_xml_line, clean_xml_text

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.regression.model import GoldenProjectResult, RegressionCheckResult

_CLASS_NAME = "golden_projects"


def write_junit(
    path: Path, check: RegressionCheckResult, *, suite_name: str, timestamp: datetime, hostname: str
) -> None:
    """Write the results as JUnit XML; an existing file is replaced in one step.

    Args:
        path: where to; missing parent folders are made.
        check: all results.
        suite_name: the name of the one test suite.
        timestamp: when the gate run started.
        hostname: where it ran.

    Raises:
        GoldenError: the file cannot be written.
    """
    text = junit_text(check, suite_name=suite_name, timestamp=timestamp, hostname=hostname)
    write_report(path, text, option="--golden-junit")


def junit_text(check: RegressionCheckResult, *, suite_name: str, timestamp: datetime, hostname: str) -> str:
    """Give the results as JUnit XML."""
    suite = TestSuite(
        clean_xml_line(suite_name) or _CLASS_NAME,
        [_test_case(result) for result in check.results],
        hostname=clean_xml_line(hostname) or "localhost",
        # The schema's dateTime has neither a fraction nor a zone in the form that Jenkins reads.
        timestamp=timestamp.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    element = suite.build_xml_doc(encoding="utf-8")
    element.attrib.pop("disabled", None)
    for case, result in zip(element.iter("testcase"), check.results, strict=True):
        case.set("time", f"{max(result.execution_time_seconds, 0.0):.3f}")
    element.set("time", f"{sum(max(result.execution_time_seconds, 0.0) for result in check.results):.3f}")
    suites = ElementTree.Element("testsuites")
    suites.extend([element])
    # Jenkins' schema knows no count of skipped ones here.
    for count in ("tests", "failures", "errors", "time"):
        suites.set(count, element.get(count, "0"))
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def _test_case(result: GoldenProjectResult) -> TestCase:
    # Newlines at the ends keep what was printed apart from the indentation of the file.
    case = TestCase(
        clean_xml_line(result.name) or "unnamed",
        classname=_CLASS_NAME,
        stdout=clean_xml_text(result.output_summary),
    )
    message = clean_xml_line(result.error_message or str(result.status))
    details = clean_xml_text("\n".join(_details(result)))
    if result.quarantined is not None:
        case.add_skipped_info(message=clean_xml_line(f"quarantined, {result.quarantined}: {message}"), output=details)
    elif result.status is ResultStatus.ERROR:
        case.add_error_info(message=message, output=details, error_type=_type_of(result))
    elif result.is_regression:
        case.add_failure_info(message=message, output=details, failure_type=_type_of(result))
    elif result.status is ResultStatus.SKIPPED:
        case.add_skipped_info(message=message, output=details)
    return case


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
