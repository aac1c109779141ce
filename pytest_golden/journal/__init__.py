"""RECORDED: what was intended, expected and heard back. Rules settle and assess; rows are made in `store.py`. Executes nothing.

The names below are resolved on first use: whoever wants one module of the journal's does not wait for all of it.
"""

from typing import TYPE_CHECKING

from pytest_golden.errors import JournalError, PayloadError, SignatureError
from pytest_golden.lazy_names import resolve_lazily

if TYPE_CHECKING:
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
    from pytest_golden.journal.outside.callback import callback_signal
    from pytest_golden.journal.outside.github import github_signal
    from pytest_golden.journal.outside.human import human_signal
    from pytest_golden.journal.reading.summary import JournalSummary, SuccessRate
    from pytest_golden.journal.routing.explanation import RoutingExplanation
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
    "JournalSummary",
    "PayloadError",
    "Polarity",
    "RoutedBy",
    "RoutingExplanation",
    "Signal",
    "SignalType",
    "SignatureError",
    "SuccessRate",
    "callback_signal",
    "github_signal",
    "human_signal",
]

__getattr__ = resolve_lazily(
    __name__,
    {
        "Assessment": "model",
        "Expectation": "model",
        "ExpectationStatus": "model",
        "HistoryRecord": "model",
        "ImmediateResult": "model",
        "Journal": "service",
        "JournalEntry": "model",
        "JournalSummary": "reading.summary",
        "Polarity": "model",
        "RoutedBy": "model",
        "RoutingExplanation": "routing.explanation",
        "Signal": "model",
        "SignalType": "model",
        "SuccessRate": "reading.summary",
        "callback_signal": "outside.callback",
        "github_signal": "outside.github",
        "human_signal": "outside.human",
    },
)
