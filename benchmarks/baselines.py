"""A project with 1,000 small outputs: what comparing them costs it, and how long accepting all of them takes.

Run: python benchmarks/baselines.py [OUTPUTS]
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from side_by_side import seconds

from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig

ROUNDS = 5
SCRIPT = """\
import pathlib, sys
for number in range({count}):
    folder = pathlib.Path("out", str(number % 20))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{{number}}.txt").write_text("id,amount\\n" + "".join(f"{{row}},{{row * {factor}}}\\n" for row in range(50)))
"""


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        plain = GoldenProjectConfig("many", "run.py")
        compared = replace(plain, outputs=(DeclaredOutput("out/**"),))
        folder = root / "golden_baselines"
        with ExecutionGateway(root, unwatched=[folder]) as gateway:

            def check(project: GoldenProjectConfig, *, accepts: bool = False) -> tuple[float, float]:
                keeper = BaselineKeeper(folder, accepts=accepts)
                results = []
                took = seconds(
                    lambda: results.append(RegressionGuard(gateway, baselines=keeper).check_one(project, {}))
                )
                assert results[0].status == "PASSED", results[0].error_message
                return took, results[0].compare_seconds

            def write(factor: int) -> None:
                (root / "run.py").write_text(SCRIPT.format(count=count, factor=factor))

            write(1)
            check(plain)
            new, changed = [], []
            for number in range(ROUNDS):
                shutil.rmtree(folder, ignore_errors=True)
                write(1)
                new.append(check(compared, accepts=True)[0])
                write(number + 2)
                changed.append(check(compared, accepts=True)[0])
            pairs = [(check(plain), check(compared)) for _ in range(ROUNDS)]
        floor = statistics.median(seconds(lambda: write_and_sync(root / "floor", count)) for _ in range(ROUNDS))
    without = statistics.median(plain[0] for plain, _ in pairs)
    # How long the pipeline itself takes to write so many files varies far more than what is measured.
    more = statistics.median(compared[1] - plain[1] for plain, compared in pairs)
    print(f"{count} outputs, run without comparing: {without:.2f} s")
    print(f"compared with their baselines: {more / count * 1e6:.0f} us more an output")
    print(
        f"accepted when all are new: {statistics.median(new):.2f} s, when all have changed: {statistics.median(changed):.2f} s"
    )
    print(f"writing and syncing as many files alone: {floor:.2f} s")


def write_and_sync(folder: Path, count: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for number in range(count):
        with (folder / str(number)).open("wb") as file:
            file.write(bytes(500))
            file.flush()
            os.fsync(file.fileno())


if __name__ == "__main__":
    main()
