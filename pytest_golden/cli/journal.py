"""`golden journal`: intents, expectations and signals. Its actions are in `journal_writing`, `_heartbeat` and `_review`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.cli import journal_heartbeat, journal_review, journal_writing
from pytest_golden.cli.action import add_actions
from pytest_golden.cli.journal_action import declare_common

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from pytest_golden.cli.action import Action

_ACTIONS = (
    *journal_writing.ACTIONS,
    *journal_heartbeat.ACTIONS,
    *journal_review.ACTIONS,
    *journal_writing.TRANSFER_ACTIONS,
)
ACTIONS: Mapping[str, Action] = {action.name: action for action in _ACTIONS}
_EPILOG = """\
The gate's agent is golden: a run is an entry of type regression_check, a
result one of type golden_run.
Times are shown in the local time zone; JSON has them in UTC.

exit code: 0 done, 2 bad input."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the actions of `golden journal`."""
    for action, declared in add_actions(parser, ACTIONS.values(), _EPILOG):
        action.declare(declared)
        declare_common(declared)


def run(arguments: argparse.Namespace) -> int:
    """Do what is asked."""
    return ACTIONS[arguments.action].run(arguments)
