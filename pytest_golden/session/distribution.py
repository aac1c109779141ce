"""The session under xdist: one scheduler of ours, notes shared with the workers, nothing lost with a crashed one."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.errors import SettingsError
from pytest_golden.gate.order import find_independent
from pytest_golden.session.gate_id import tell_worker

if TYPE_CHECKING:
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.session.declared import Declared
    from pytest_golden.session.earlier import EarlierRuns

_NOTES_KEY = "golden_notes"


class GoldenDistribution:
    """The controller's hooks under xdist. `notes` is the scratch folder that the workers write to."""

    def __init__(self, declared: Declared, earlier: EarlierRuns) -> None:
        self._declared = declared
        self._earlier = earlier
        self._with_result: set[str] = set()
        self.notes = Path(tempfile.mkdtemp(prefix="golden-notes-"))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker which session it belongs to, where the notes are, and what earlier runs say."""
        tell_worker(node.config, node.workerinput)
        self._earlier.tell_worker(node.workerinput)
        node.workerinput[_NOTES_KEY] = str(self.notes)

    @pytest.hookimpl(optionalhook=True, tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Give the scheduler that keeps golden projects in order."""
        from pytest_golden.session.scheduler import GoldenScheduling  # noqa: PLC0415 - xdist is optional

        independent = find_independent(self._declared.projects.values())
        return GoldenScheduling(config, log, self._declared, independent, self._with_result.__contains__)

    def pytest_golden_result_recorded(self, result: GoldenProjectResult) -> None:
        """Remember which projects have a result: their worker may crash before it says that it is done with them."""
        self._with_result.add(result.name)

    def pytest_unconfigure(self) -> None:
        """Remove the notes."""
        shutil.rmtree(self.notes, ignore_errors=True)


def find_notes(config: pytest.Config) -> Path | None:
    """Give the folder of the notes in an xdist worker, None elsewhere."""
    folder = getattr(config, "workerinput", {}).get(_NOTES_KEY)
    return Path(folder) if folder else None


def is_worker(config: pytest.Config) -> bool:
    """Tell whether this process is an xdist worker."""
    return hasattr(config, "workerinput")


def count_workers(config: pytest.Config) -> int:
    """Count the processes that run tests at the same time: xdist's workers, or this one alone."""
    if not is_distributed(config):
        return 1
    # As `popen`, or `3*popen`.
    counts = (str(spec).partition("*") for spec in config.getoption("tx"))
    return sum(int(count) if star and count.isdecimal() else 1 for count, star, _ in counts)


def is_distributed(config: pytest.Config) -> bool:
    """Tell whether this process is the controller of xdist workers.

    Raises:
        SettingsError: every worker would run every project.
    """
    if is_worker(config) or not config.pluginmanager.hasplugin("xdist"):
        return False
    dist = config.getoption("dist", "no")
    if dist == "each":
        message = (
            "--dist each would run every golden project on every worker: use another --dist, or leave --golden out."
        )
        raise SettingsError(message)
    return dist != "no" and bool(config.getoption("tx")) and not config.option.collectonly
