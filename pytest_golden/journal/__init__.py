"""RECORDED: what was intended, expected and heard back. Rules settle and assess; rows are made in `store.py`. Executes nothing."""

from pytest_golden.errors import JournalError
from pytest_golden.journal.model import (
    Assessment,
    Expectation,
    ExpectationStatus,
    HistoryRecord,
    ImmediateResult,
    JournalEntry,
    Polarity,
    RoutedBy,
    Signal,
    SignalType,
)
from pytest_golden.journal.service import Journal

__all__ = [
    "Assessment",
    "Expectation",
    "ExpectationStatus",
    "HistoryRecord",
    "ImmediateResult",
    "Journal",
    "JournalEntry",
    "JournalError",
    "Polarity",
    "RoutedBy",
    "Signal",
    "SignalType",
]
