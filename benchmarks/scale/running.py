"""Runs the studies, size after size, and writes the page and the figures."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from scale import journal, memories_kept, pipelines, projects, steps
from scale.model import Series
from scale.page import make_page

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scale.model import Point, Study

_QUICK_SECONDS, _ALL_QUICK_SECONDS = 24.0, 240.0
_ENOUGH = 2
# Of what a size takes, filling a store included.
_LEAST_GROWTH, _MOST_GROWTH = 0.5, 1.2


def run_study(study: Study, folder: Path, most_seconds: float) -> list[Series]:
    """Measure a study's sizes while there is time, and give its series."""
    found: dict[str, list[Point]] = {name: [] for name in study.floors}
    taken: list[tuple[int, float]] = []
    began = time.monotonic()
    with study.begin(folder) as measure_size:
        for size in study.sizes:
            started = time.monotonic()
            if started - began + foresee(taken, size) > most_seconds:
                print(f"  {size:,} {study.unit}: left out, there is no time for it", flush=True)
                break
            for name, point in measure_size(size).items():
                found[name].append(point)
                told = f"{name}: {point.ours:.6f} s, {point.ratio:.2f} times the floor"
                print(f"  {size:>13,} {study.unit}, {told}", flush=True)
            taken.append((size, time.monotonic() - started))
    return [Series(study.group, name, study.unit, study.floors[name], tuple(points)) for name, points in found.items()]


def foresee(taken: Sequence[tuple[int, float]], size: int) -> float:
    """Guess how many seconds a size will take from those that the smaller ones took."""
    if len(taken) < _ENOUGH:
        return 0.0
    (one, first), (other, second) = taken[-2:]
    growth = math.log(max(second / first, 1e-9)) / math.log(other / one)
    return second * (size / other) ** min(max(growth, _LEAST_GROWTH), _MOST_GROWTH)


def list_studies(only: str | None, largest: Path | None) -> Sequence[Study]:
    """Return the studies that are wanted."""
    rooms = (projects.list_studies(), journal.list_studies(largest), memories_kept.list_studies(), steps.list_studies())
    every = [study for room in (*rooms, pipelines.list_studies()) for study in room]
    return [study for study in every if only is None or only in study.group]


def describe_machine(folder: Path) -> Mapping[str, str]:
    """Say in general words where this was measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 30
    return {
        "measured": datetime.now(UTC).date().isoformat(),
        "cores": str(os.cpu_count()),
        "memory": f"{memory} GiB",
        "system": f"{platform.system()}, {_find_file_system(folder)}",
        "Python": platform.python_version(),
        "load when it began": f"{os.getloadavg()[0]:.1f}",
    }


def _find_file_system(folder: Path) -> str:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()]
    return max((len(place), kind) for _, place, kind, *_ in mounts if folder.is_relative_to(place))[1]


def main(description: str) -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="what can be measured in a few minutes")
    parser.add_argument("--only", help="the studies alone whose names hold this; the page keeps the others'")
    parser.add_argument("--minutes-each", type=float, default=15.0, help="for each study")
    parser.add_argument("--largest", type=Path, help="a store of 1,000,000 entries that `journal_store.py` has filled")
    parser.add_argument("--to", type=Path, default=Path(), help="the folder for scale.html and scale.json")
    options = parser.parse_args()
    most_seconds = _QUICK_SECONDS if options.quick else options.minutes_each * 60
    until = time.monotonic() + (_ALL_QUICK_SECONDS if options.quick else math.inf)
    options.to.mkdir(parents=True, exist_ok=True)
    found = read_others(options.to / "scale.json", options.only)
    with tempfile.TemporaryDirectory(dir=".") as name:
        facts = describe_machine(Path(name).resolve())
        wanted = list_studies(options.only, options.largest)
        for number, study in enumerate(wanted):
            share = (until - time.monotonic()) / (len(wanted) - number)
            print(study.group, flush=True)
            folder = Path(name).resolve() / str(number)
            folder.mkdir()
            found += run_study(study, folder, min(most_seconds, share))
            write_report(found, facts, options.to)
    print(f"written: {options.to / 'scale.html'}, {options.to / 'scale.json'}")


def read_others(path: Path, only: str | None) -> list[Series]:
    """Return the series of an earlier report that are not measured now; all are, unless only some are asked for."""
    if only is None or not path.exists():
        return []
    told = json.loads(path.read_text(encoding="utf-8"))
    return [Series.from_dict(one) for one in told["series"] if only not in one["group"]]


def write_report(found: Sequence[Series], facts: Mapping[str, str], folder: Path) -> None:
    """Write the page and the figures, of what there is so far."""
    places = [study.group for study in list_studies(None, None)]
    found = sorted(found, key=lambda one: places.index(one.group))
    (folder / "scale.html").write_text(make_page(found, facts), encoding="utf-8")
    figures = {"facts": dict(facts), "series": [one.to_dict() for one in found]}
    (folder / "scale.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
