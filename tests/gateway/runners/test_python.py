from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.gateway.runners.conftest import MakePipeline


def test_what_was_printed_before_a_crash_is_not_lost(
    make_pipeline: MakePipeline, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ended = run(make_pipeline("etl.py", "import os\nprint('loaded 10 rows')\nos.abort()\n"))
    assert (ended.returncode, ended.stdout) == (-6, "loaded 10 rows\n")


def test_script_gets_its_arguments_and_exit_code(
    make_pipeline: MakePipeline, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ended = run(make_pipeline("etl.py", "import sys\nprint(sys.argv[1:])\nsys.exit(3)\n", args=("--day", "a b")))
    assert (ended.returncode, ended.stdout) == (3, "['--day', 'a b']\n")
