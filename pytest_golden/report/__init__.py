"""Results as files and lines for others: JUnit XML, the gate report in JSON, what GitHub shows. Decides nothing."""

from pytest_golden.report.files import append_report
from pytest_golden.report.gate_report import gate_report, write_gate_report
from pytest_golden.report.github import annotation
from pytest_golden.report.html import html_report, write_html
from pytest_golden.report.job_summary import job_summary
from pytest_golden.report.junit import write_junit
from pytest_golden.report.schema import report_schema

__all__ = [
    "annotation",
    "append_report",
    "gate_report",
    "html_report",
    "job_summary",
    "report_schema",
    "write_gate_report",
    "write_html",
    "write_junit",
]
