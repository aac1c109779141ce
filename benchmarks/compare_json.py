"""Comparing two JSON files by value: written otherwise, with one change, with one item more; beside `json.loads` of both.

Run: python benchmarks/compare_json.py [MB]
"""

from __future__ import annotations

import json
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from side_by_side import seconds

from pytest_golden.compare.comparing import compare_files
from pytest_golden.manifest.model import DeclaredOutput

ROUNDS = 3
ROW_BYTES = 124


def make_row(number: int) -> dict[str, Any]:
    about = {"id": number, "name": f"customer {number}", "tags": ["a", "b", str(number % 7)]}
    return {**about, "amount": random.random() * 1000, "ok": number % 3 == 0, "note": None}


def main() -> None:
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    random.seed(1)
    rows = [make_row(number) for number in range(megabytes * 1_000_000 // ROW_BYTES)]
    with tempfile.TemporaryDirectory() as name:
        baseline, actual = Path(name, "baseline.json"), Path(name, "actual.json")
        baseline.write_text(json.dumps({"rows": rows}))
        print(f"{baseline.stat().st_size / 1e6:.0f} MB")
        for title in ("written otherwise", "one value changed", "one item more"):
            if title == "one value changed":
                rows[len(rows) // 2]["amount"] += 1
            elif title == "one item more":
                rows.insert(len(rows) // 3, make_row(-1))
            actual.write_text(json.dumps({"rows": rows}, indent=0))
            declared = DeclaredOutput("actual.json")
            found = compare_files(declared, actual, baseline, shown_as="actual.json")
            assert (found is None) == (title == "written otherwise")
            ratios = [
                seconds(lambda: compare_files(declared, actual, baseline, shown_as="actual.json"))  # noqa: B023 - called at once
                / seconds(lambda: [json.loads(file.read_bytes()) for file in (actual, baseline)])
                for _ in range(ROUNDS)
            ]
            print(f"{title}: {statistics.median(ratios):.2f} times json.loads of both")


if __name__ == "__main__":
    main()
