"""RECORDED: intents, outcomes, expectations and signals. Rules settle and assess; the stores keep rows. Executes nothing."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    # Imported on use: few users of the journal read messages from outside.
    if name == "github_signal":
        from pytest_golden.journal.outside.github_webhooks import github_signal

        return github_signal
    if name == "human_signal":
        from pytest_golden.journal.outside.human import human_signal

        return human_signal
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
