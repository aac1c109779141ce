"""What is running now, in a log."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from pytest_golden.session.live_line import RunningNames
from tests.patience import wait_until

if TYPE_CHECKING:
    from pathlib import Path


def test_naming_that_is_late_writes_into_no_other_file(tmp_path: Path) -> None:
    looking, go_on = threading.Event(), threading.Event()

    def list_running() -> list[tuple[str, float]]:
        looking.set()
        go_on.wait()
        return [("slow", 2.0)]

    with (tmp_path / "log").open("w") as log:
        names = RunningNames(log, list_running, lambda: False)
        names.start()
        assert looking.wait(60)
        threads = threading.enumerate()
        names.stop()
        with (tmp_path / "other").open("w") as other:
            go_on.set()
            for thread in threads:
                if thread.name == "golden-running":
                    thread.join()
            other.flush()
        assert (tmp_path / "other").read_text() == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_naming_goes_on_after_a_fork(tmp_path: Path) -> None:
    running: list[tuple[str, float]] = []
    with (tmp_path / "log").open("w") as log:
        names = RunningNames(log, lambda: running, lambda: False)
        names.start()
        if (child := os.fork()) == 0:  # pragma: no cover - the child ends here
            os._exit(0)
        os.waitpid(child, 0)
        running.append(("slow", 2.0))
        names.erase()
        wait_until(lambda: (tmp_path / "log").read_text() == "running slow\n")
        names.stop()
