"""Modules are loaded without the garbage collector, and set aside once: in processes of their own, since the collector is."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def _run(code: str) -> str:
    # Python 3.12 itself sets some objects aside when it starts.
    head = "import gc\nfrom pytest_golden.values.loading import loading\nstart = gc.get_freeze_count()\n"
    return subprocess.run([sys.executable, "-c", head + code], capture_output=True, text=True, check=True).stdout


def test_the_collector_is_off_inside_and_as_before_afterwards() -> None:
    shown = "with loading(): print(gc.isenabled())\nprint(gc.isenabled(), gc.get_freeze_count() - start)\n"
    assert _run(shown) == "False\nTrue 0\n"
    assert _run(f"gc.disable()\n{shown}") == "False\nFalse 0\n"


def test_an_error_switches_it_on_again() -> None:
    code = "try:\n  with loading(is_last=True): 1 / 0\nexcept ZeroDivisionError: print(gc.isenabled(), gc.get_freeze_count() - start)"
    assert _run(code) == "True 0\n"


@pytest.mark.parametrize("before", ["", "gc.freeze()\n"])
def test_what_is_there_is_set_aside_once(before: str) -> None:
    code = """
with loading(is_last=True): pass
frozen = gc.get_freeze_count()
more = [[] for _ in range(100)]
with loading(is_last=True): pass
print(frozen > start, gc.get_freeze_count() == frozen)
"""
    assert _run(before + code) == "True True\n"


def test_what_is_set_aside_is_finished_when_python_exits(tmp_path: Path) -> None:
    path = str(tmp_path / "told")
    code = (
        f"cycle = [open({path!r}, 'w')]\ncycle.append(cycle)\ncycle[0].write('told')\nwith loading(is_last=True): pass"
    )
    _run(code)
    assert (tmp_path / "told").read_text() == "told"
