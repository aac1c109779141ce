"""A project folder of 5,000 files and 1 GiB in overlay view: nothing is copied or hashed, and each scan is cheap.

Run: python benchmarks/large_project.py
"""

from __future__ import annotations

import os
import statistics
import tempfile
from pathlib import Path

from side_by_side import seconds

from pytest_golden.gateway.model import AgentRole, Permissions
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.gateway.write_set import take_fingerprint
from pytest_golden.manifest.model import GoldenProjectConfig

FILES, TOTAL_BYTES = 5_000, 1 << 30


def read_bytes() -> int:
    """Return what this process has read from files so far."""
    line = next(line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("rchar"))
    return int(line.split()[1])


def main() -> None:
    block = os.urandom(TOTAL_BYTES // FILES)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for number in range(FILES):
            folder = root / "data" / str(number % 50)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.bin").write_bytes(block)
        (root / "run.sh").write_text("echo done > result.txt\n")
        scans = [seconds(lambda: take_fingerprint(str(root))) for _ in range(15)]
        print(f"fingerprint: {statistics.median(scans) / (FILES + 51) * 1e6:.1f} us a file")
        project = GoldenProjectConfig("large", "run.sh")
        with ExecutionGateway(root, view="overlay") as gateway:
            for label in ("first", "neighbour", "neighbour"):
                before = read_bytes()
                took = seconds(
                    lambda: gateway.run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())
                )
                print(f"{label} run: {took * 1000:.0f} ms, {read_bytes() - before:,} bytes read by the gate")


if __name__ == "__main__":
    main()
