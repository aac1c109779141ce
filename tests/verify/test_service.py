from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import pytest_golden.cli.verify
import pytest_golden.verify.service
late = ("gateway.service", "journal.service", "trajectory", "report")
print([name for name in late if f"pytest_golden.{name}" in sys.modules])
"""


def test_head_that_waits_for_the_bases_recorded_runs_waits_for_nothing_that_only_the_end_or_a_base_needs() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
