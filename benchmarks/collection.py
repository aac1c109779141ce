"""What collecting costs: `pytest --golden --collect-only` over bare pytest, for growing manifests.

Run: python benchmarks/collection.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

from side_by_side import seconds


def write_manifest(folder: Path, count: int) -> None:
    """Declare `count` projects that do not even exist: collecting looks at nothing but the manifest."""
    entries = "".join(
        f"  - name: project_{n}\n    path: p{n}/run.sh\n    tags: [nightly]\n    timeout: 5m\n" for n in range(count)
    )
    (folder / "golden_projects.yaml").write_text(f"version: 1\ngolden_projects:\n{entries}")


def collect(command: list[str], folder: Path) -> None:
    """Run a collection, which finds something or nothing."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    if done.returncode not in {0, 5}:
        raise SystemExit(f"pytest exited with {done.returncode}")


def main() -> None:
    for count in (1_000, 5_000, 10_000):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "test_none.py").touch()
            write_manifest(folder, count)
            command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only"]

            bare = partial(collect, [*command, "test_none.py"], folder)
            gate = partial(collect, [*command, "--golden"], folder)
            extra = [-seconds(bare) + seconds(gate) for _ in range(7)]
            median = statistics.median(extra)
            print(f"{count:6,} projects: {median:.2f} s over bare pytest, {median / count * 1e6:.0f} us each")


if __name__ == "__main__":
    main()
