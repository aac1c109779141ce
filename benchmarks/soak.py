"""A soak: gate after gate, with random kills, full disks, lost connections and clocks that jump, and a look at what is left.

Several workspaces side by side: one with its own store, one whose state folder is on a small disk, one whose store alone is, and
two with one PostgreSQL. A result is acknowledged when its line was printed or its report written; each must be in the store once
and as it was said, when all that waited in the spool is taken in. Ends with 1 on any difference.

The clock is moved by a library that is loaded before all others (soaking/clock.c, made by the machine's C compiler); small disks
want root and are left out without; most gates are forked from a process that has loaded what a gate loads, every tenth is not.

Run: python benchmarks/soak.py [--gates N] [--minutes M] [--seed N] [--only NAME] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter, deque
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from soaking.checker import Acknowledged, Found, check_place, check_whole, read_acknowledged
from soaking.faults import DEADLY, WITH_WORKERS, list_faults
from soaking.places import Place, Server, build_clock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from soaking.gates import Gate

PLACES = ("own-store", "small-state-folder", "small-store-disk", "server-one", "server-two")
# Shares of the gates.
_QUIET, _PAIRED, _WITH_WORKERS, _COLD, _TWO_FAULTS, _HEALED = 0.2, 0.1, 0.04, 0.1, 0.15, 0.6
_LONGEST_DELAY = 0.05
_LOOK_EVERY = 100
_FIRST_LOOK = 500_000
_ALARMING = ("Traceback", "INTERNALERROR", "not taken in", "remembered in")
_LINES_SHOWN = 40
_PROGRESS_SECONDS = 30.0


class Budget:
    """How many gates there may still be, and until when."""

    def __init__(self, gates: int, minutes: float) -> None:
        self._left = gates
        self._until = time.monotonic() + minutes * 60
        self._lock = threading.Lock()
        self.taken = 0

    def take(self) -> int:
        """Return the next gate's number, 0 when there shall be none."""
        with self._lock:
            if self.taken >= self._left or time.monotonic() > self._until:
                return 0
            self.taken += 1
            return self.taken


class Soaked:
    """Gates in one place, one round after another. A round is one gate, or two at once."""

    def __init__(self, place: Place, budget: Budget, chance: random.Random) -> None:
        self._place = place
        self._budget = budget
        self._chance = chance
        self._faults = list_faults(place)
        self._seconds: deque[float] = deque([2.0], maxlen=20)
        self.struck: Counter[str] = Counter()
        self.said: dict[int, Acknowledged] = {}
        self._befell: dict[int, str] = {}
        self._shown: set[int] = set()
        self.problems: list[str] = []
        self.found = Found()

    def run(self) -> None:
        """Run gates until the budget is spent, and look at the store now and then, and at the end."""
        try:
            self._go_on()
        except Exception as error:
            self._note(f"the soak itself failed: {type(error).__name__}: {error}")
            raise

    def _go_on(self) -> None:
        self._settle(self._budget.take())
        since = 0
        while number := self._budget.take():
            since += self._round(number)
            if since >= _LOOK_EVERY:
                self.look()
                since = 0
        self.look()

    def look(self) -> None:
        """Let what waits be taken in by one more gate, and compare the store with all that was said."""
        self._place.heal()
        with self._place.at_peace():
            # Beyond all that are asked for.
            self._settle(_FIRST_LOOK + len(self.said))
            self.found = check_place(self._place, self.said.values())
            self.found.problems += check_whole(self._place)
        for problem in self.found.problems:
            self._note(problem)
        for number in sorted(self.found.differing - self._shown):
            print(f"gate {number} of {self._place.name}, {self._befell[number]}:\n{self.said[number].said}", flush=True)
        self._shown |= self.found.differing

    def _settle(self, number: int) -> None:
        if number:
            self._finish(self._place.launcher.start(number), frozenset())

    def _round(self, number: int) -> int:
        chance, place = self._chance, self._place
        place.write_script("turning", passes=chance.random() < 0.7)
        names = self._choose()
        has_workers = "worker killed" in names or chance.random() < _WITH_WORKERS / 2
        options = ("-n", "2") if has_workers else ()
        gates = [place.launcher.start(number, options, is_cold=chance.random() < _COLD)]
        began = time.monotonic()
        other = self._budget.take() if chance.random() < _PAIRED else 0
        if other:
            time.sleep(chance.uniform(0, statistics.median(self._seconds)))
            gates.append(place.launcher.start(other))
            self.struck["two at once"] += 1
        struck = {name for name in names if self._strike(name, gates[chance.randrange(len(gates))])}
        if place.server is not None and chance.random() < _HEALED:
            time.sleep(chance.uniform(0, 0.5))
            place.heal()
        for gate in gates:
            self._finish(gate, frozenset(struck))
        if not struck and not other and not has_workers:
            self._seconds.append(time.monotonic() - began)
        if chance.random() < _HEALED:
            place.heal()
        return len(gates)

    def _choose(self) -> Sequence[str]:
        if self._chance.random() < _QUIET:
            return ()
        if self._chance.random() < _WITH_WORKERS:
            return tuple(WITH_WORKERS)
        count = 2 if self._chance.random() < _TWO_FAULTS else 1
        return self._chance.sample(list(self._faults), count)

    def _strike(self, name: str, gate: Gate) -> bool:
        """Let a fault strike: some moments after a random number of its lines, or at any time."""
        typical = statistics.median(self._seconds)
        if self._chance.random() < 0.6:
            gate.wait_for_results(self._chance.randint(0, len(self._place.projects)), 60)
            time.sleep(self._chance.uniform(0, _LONGEST_DELAY))
        else:
            gate.wait_for_results(10**6, self._chance.uniform(0, typical))
        has_struck = (self._faults | WITH_WORKERS)[name](self._place, gate, self._chance)
        self.struck[name if has_struck else f"{name}: too late"] += 1
        return has_struck

    def _finish(self, gate: Gate, struck: frozenset[str]) -> None:
        gate.wait()
        told = read_acknowledged(gate)
        for problem in told.contradictions:
            self._note(problem)
        self.said[gate.number] = told
        self._befell[gate.number] = f"{sorted(struck)}, exit code {gate.code}"
        if "worker killed" not in struck:
            for name, status in told.results.items():
                expected = {"broken": ("FAILED",), "needy": ("SKIPPED",), "turning": ("PASSED", "FAILED")}
                if status not in expected.get(name, ("PASSED",)):
                    self._note(f"gate {gate.number}, {sorted(struck)}: {name} is {status}\n{''.join(gate.lines)}")
        if gate.code != 1 and not (gate.code == -9 and struck & DEADLY):
            self._note(f"gate {gate.number}, {sorted(struck)}: exit {gate.code}\n{''.join(gate.lines)}")
        for place, line in enumerate(gate.lines):
            # What is left of a killed gate may find that nobody listens.
            if gate.code != -9 and any(words in line for words in _ALARMING):
                told = "".join(gate.lines[place : place + _LINES_SHOWN])
                self._note(f"gate {gate.number}, {sorted(struck)}: {told.strip()}")
                break
        gate.report.unlink(missing_ok=True)

    def _note(self, problem: str) -> None:
        told = f"{self._place.name}: {problem}"
        if told not in self.problems:
            self.problems.append(told)
            print(f"DIFFERENCE {told}", flush=True)


def make_places(
    root: Path, wanted: Sequence[str], chance: random.Random, cleanup: ExitStack, keeps: Path | None
) -> list[Place]:
    library = build_clock(root)
    server = Server() if any(name.startswith("server") for name in wanted) else None
    if server is not None:
        cleanup.callback(server.remove)
    places = []
    for name in wanted:
        place = Place(name, root, library=library, server=server if name.startswith("server") else None)
        cleanup.callback(lambda place=place: place.close(keeps=keeps))
        if place.server is not None:
            place.location = place.server.url
        if name == "small-state-folder" and not place.mount(place.folder / ".golden"):
            continue
        if name == "small-store-disk":
            if not place.mount(root / "disk"):
                continue
            place.location = str(root / "disk" / "golden.db")
        place.make(chance)
        places.append(place)
    return places


def soak(places: Sequence[Place], budget: Budget, seed: int) -> list[Soaked]:
    """Run all places side by side, and tell now and then how far they are."""
    all_soaked = [Soaked(place, budget, random.Random(f"{seed} {place.name}")) for place in places]
    threads = [threading.Thread(target=one.run, daemon=True) for one in all_soaked]
    for thread in threads:
        thread.start()
    began = time.monotonic()
    while any(thread.is_alive() for thread in threads):
        until = time.monotonic() + _PROGRESS_SECONDS
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        differences = sum(len(one.problems) for one in all_soaked)
        print(f"{time.monotonic() - began:6.0f} s: {budget.taken} gates, {differences} differences", flush=True)
    return all_soaked


def sum_up(all_soaked: Sequence[Soaked]) -> bool:
    """Print what was done and found, and tell whether all was well."""
    struck: Counter[str] = sum((one.struck for one in all_soaked), Counter())
    said = [told for one in all_soaked for told in one.said.values()]
    print(f"gates: {len(said)}")
    for name, count in sorted(struck.items()):
        print(f"  {name}: {count}")
    print(f"results acknowledged: {sum(len(told.results) for told in said)}")
    print(f"results said to be lost: {sum(told.said_lost for told in said)}")
    for name in ("present", "missing", "twice"):
        print(f"  {name}: {sum(getattr(one.found, name) for one in all_soaked)}")
    problems = [problem for one in all_soaked for problem in one.problems]
    print(f"differences: {len(problems)}")
    return not problems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gates", type=int, default=2_000)
    parser.add_argument("--minutes", type=float, default=90.0, help="no gate is started after so many")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", action="append", choices=PLACES, help="soak this place alone; may be given again")
    parser.add_argument("--keep", type=Path, help="copy all that is left into this folder")
    options = parser.parse_args()
    # Small disks and the server are to be cleared away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"seed {options.seed}", flush=True)
    budget = Budget(options.gates, options.minutes)
    with tempfile.TemporaryDirectory(prefix="golden-soak-", ignore_cleanup_errors=True) as name, ExitStack() as cleanup:
        places = make_places(
            Path(name).resolve(), options.only or PLACES, random.Random(options.seed), cleanup, options.keep
        )
        print(f"places: {', '.join(place.name for place in places)}", flush=True)
        is_well = sum_up(soak(places, budget, options.seed))
    sys.exit(0 if is_well else 1)


if __name__ == "__main__":
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    main()
