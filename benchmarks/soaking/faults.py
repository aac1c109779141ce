"""What befalls a gate: each fault strikes once, at a moment that the caller has chosen, and tells whether it did."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from soaking.gates import Gate
    from soaking.places import Place

    Fault = Callable[[Place, Gate, random.Random], bool]

# What is written into the small files of a project stays below this.
_SMALLEST_LIMIT = 96 * 1024
_MORE_THAN_STORE = 64 * 1024
# How xdist says that all workers have collected.
_BEGUN = " workers ["
_LONGEST_START_SECONDS = 20.0


def kill(_place: Place, gate: Gate, _chance: random.Random) -> bool:
    """Kill -9 of the gate's own process."""
    return gate.kill()


def kill_group(_place: Place, gate: Gate, _chance: random.Random) -> bool:
    """Kill -9 of all processes of its group at once."""
    return gate.kill(whole_group=True)


def kill_worker(_place: Place, gate: Gate, chance: random.Random) -> bool:
    """Kill -9 of one of its xdist workers, once they work: xdist itself gives up when it loses one before."""
    with gate.news:
        gate.news.wait_for(lambda: gate.is_over or any(_BEGUN in line for line in gate.lines), _LONGEST_START_SECONDS)
    with suppress(psutil.Error, IndexError):
        workers = [one for one in psutil.Process(gate.pid).children() if _is_worker(one.cmdline())]
        os.kill(chance.choice(workers).pid, signal.SIGKILL)
        return True
    return False


def _is_worker(command: list[str]) -> bool:
    """Tell whether this is how execnet starts an interpreter."""
    return any("execnet" in word or "stdin.readline()" in word for word in command)


def fill_disk(place: Place, _gate: Gate, _chance: random.Random) -> bool:
    """Fill the disk on which its store is."""
    return place.fill_disk()


def limit_files(place: Place, gate: Gate, chance: random.Random) -> bool:
    """Let no file of its own grow beyond somewhere around the size of its store, as a quota would."""
    if "://" in place.location or gate.is_over:
        return False
    path = Path(place.location)
    size = path.stat().st_size if path.exists() else 0
    most = max(_SMALLEST_LIMIT, size + chance.randint(-_MORE_THAN_STORE, _MORE_THAN_STORE))
    with suppress(OSError):
        resource.prlimit(gate.pid, resource.RLIMIT_FSIZE, (most, most))
        return True
    return False


def move_clock(place: Place, _gate: Gate, chance: random.Random) -> bool:
    """Set the clock that it reads."""
    return place.clock.jump(chance)


def stop_server(place: Place, _gate: Gate, _chance: random.Random) -> bool:
    """Stop PostgreSQL as for an upgrade."""
    return place.server is not None and place.server.go(suddenly=False)


def kill_server(place: Place, _gate: Gate, _chance: random.Random) -> bool:
    """Kill -9 of PostgreSQL and all its processes."""
    return place.server is not None and place.server.go(suddenly=True)


EVERYWHERE: dict[str, Fault] = {"gate killed": kill, "group killed": kill_group, "clock moved": move_clock}
WITH_WORKERS: dict[str, Fault] = {"worker killed": kill_worker}
OF_FILES: dict[str, Fault] = {"files limited": limit_files}
OF_DISKS: dict[str, Fault] = {"disk filled": fill_disk}
OF_SERVERS: dict[str, Fault] = {"server stopped": stop_server, "server killed": kill_server}
#: After these a gate need not end by itself.
DEADLY = frozenset({"gate killed", "group killed"})


def list_faults(place: Place) -> dict[str, Fault]:
    """Return the faults that there can be at a place."""
    faults = dict(EVERYWHERE)
    if place.server is not None:
        faults |= OF_SERVERS
    elif place.disk is not None:
        faults |= OF_DISKS
    else:
        faults |= OF_FILES
    return faults
