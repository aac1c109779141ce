"""What the steps that a pipeline leaves cost its gate: whole sessions over the same ones whose pipelines leave none.

The steps are copied to GOLDEN_STEPS from a file, so that leaving them costs the pipeline nothing. Sessions of both kinds are
run in turns; what is printed is the difference, by project.

Run: python benchmarks/steps_left.py [--steps N] [--projects N] [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# A pipeline of so many seconds may be held up by so much of it.
PIPELINE_SECONDS, SHARE = 10, 0.01


def write_workspace(folder: Path, projects: int, steps: int) -> None:
    """Make a workspace whose projects each leave so many steps."""
    folder.mkdir()
    lines = (
        {"name": f"load_{number % 40}", "rows_in": number, "rows_out": number // 2, "table": f"public.t{number % 7}"}
        for number in range(steps)
    )
    entries = []
    (folder / "steps.jsonl").write_text("".join(f"{json.dumps({**line, 'duration_ms': 1.5})}\n" for line in lines))
    for number in range(projects):
        (folder / f"p{number}").mkdir()
        (folder / f"p{number}" / "run.sh").write_text('cat ../steps.jsonl >> "$GOLDEN_STEPS"\n')
        entries.append(f"  - {{name: p{number}, path: p{number}/run.sh}}\n")
    (folder / "golden_projects.yaml").write_text(f"golden_projects:\n{''.join(entries)}")
    (folder / "tox.ini").write_text("[pytest]\n")


def time_gate(folder: Path) -> float:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--golden", "--golden-learning=off"]
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000)
    parser.add_argument("--projects", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        none, many = Path(name) / "none", Path(name) / "many"
        write_workspace(none, options.projects, 0)
        write_workspace(many, options.projects, options.steps)
        pairs = [(time_gate(none), time_gate(many)) for _ in range(options.rounds)]
    each = statistics.median((second - first) / options.projects for first, second in pairs)
    share = each / PIPELINE_SECONDS * 100
    print(f"{options.steps:,} steps cost {each * 1000:.1f} ms, {each / max(1, options.steps) * 1e6:.1f} us a step")
    print(f"of a pipeline of {PIPELINE_SECONDS} s: {share:.2f} % (promised: {SHARE:.0%})")


if __name__ == "__main__":
    main()
