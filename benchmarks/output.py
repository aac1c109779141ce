"""A pipeline that prints 1 GiB: how much memory the gate needs for it, and how long it takes beside a bare run.

Run: python benchmarks/output.py
"""

from __future__ import annotations

import resource
import subprocess
import tempfile
from pathlib import Path

from side_by_side import seconds

from pytest_golden.gateway.model import AgentRole, Permissions
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import GoldenProjectConfig

SCRIPT = "yes 'row 000123 of the daily load was written to the warehouse' | head -c 1073741824\n"


def peak_mib() -> float:
    """Return the most resident memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "run.sh").write_text(SCRIPT)
        (root / "true.sh").write_text("true\n")

        def run(gateway: ExecutionGateway, script: str) -> None:
            project = GoldenProjectConfig("loud", script)
            outcome = gateway.run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())
            print(f"{script}: exit code {outcome.exit_code}, {outcome.stdout_bytes:,} bytes printed")

        with ExecutionGateway(root, log_folder=root / "logs") as gateway:
            run(gateway, "true.sh")
            before = peak_mib()
            ours = seconds(lambda: run(gateway, "run.sh"))
            after = peak_mib()

        def bare() -> None:
            with (root / "raw").open("wb") as out:
                subprocess.run(["sh", "run.sh"], cwd=root, stdout=out, check=True)

        floor = seconds(bare)
        log = root / "logs" / "loud.log"
        print(
            f"gate {ours:.1f} s, bare {floor:.1f} s; {after - before:.0f} MiB more memory; log {log.stat().st_size:,} bytes"
        )


if __name__ == "__main__":
    main()
