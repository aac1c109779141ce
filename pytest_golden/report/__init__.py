"""Results as files and lines for others: JUnit XML, the gate report in JSON, GitHub's annotations. Decides nothing."""

from pytest_golden.report.gate_report import gate_report, report_schema, write_gate_report
from pytest_golden.report.github import annotation
from pytest_golden.report.junit import write_junit

__all__ = ["annotation", "gate_report", "report_schema", "write_gate_report", "write_junit"]
