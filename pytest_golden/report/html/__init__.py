"""The gate report as one HTML page that needs no network and no script. Every value of a report is escaped."""

from pytest_golden.report.html.page import html_report, write_html

__all__ = ["html_report", "write_html"]
