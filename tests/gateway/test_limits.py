"""What a run takes of the disk, and the groups in which the kernel holds memory and processes.

Folders stand for the kernel's: they show what is written there, and are filled with what the kernel would report.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway import limits
from pytest_golden.gateway.limits import DiskMeter, open_control_groups, used_bytes
from pytest_golden.gateway.model import Ending
from pytest_golden.gateway.process import Launch, Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.gateway.process import Exit

MIB = 1 << 20


def test_memory_threads_and_time_of_living_processes_are_summed() -> None:
    living, gone = [os.getpid(), os.getppid()], [2**22 - 1]
    before = limits.count_threads(living)
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    assert limits.count_threads([*living, *gone]) == before + 1
    ended.set()
    thread.join()
    assert limits.exceeds_memory([*living, *gone], MIB)
    assert not limits.exceeds_memory(living, 1 << 60)
    assert limits.living_cpu_seconds(living) > limits.living_cpu_seconds(gone) == 0
    assert limits.proportional_bytes(gone[0]) == 0


def test_space_is_counted_by_blocks_and_a_linked_file_once(tmp_path: Path) -> None:
    empty = used_bytes(str(tmp_path))
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(bytes(range(256)) * 4096)
    os.link(tmp_path / "a" / "b" / "file", tmp_path / "again")
    (tmp_path / "loop").symlink_to(tmp_path)
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(100 * MIB)
    assert MIB <= used_bytes(str(tmp_path)) - empty < 2 * MIB
    assert used_bytes(str(tmp_path / "gone")) == 0


def test_space_is_counted_deeper_than_a_path_can_say(tmp_path: Path) -> None:
    name, above = "d" * 250, os.open(tmp_path, os.O_RDONLY)
    for _ in range(20):
        os.mkdir(name, dir_fd=above)
        below = os.open(name, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = below
    number = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=above)
    os.write(number, b"x" * MIB)
    os.close(number)
    os.close(above)
    assert used_bytes(str(tmp_path)) >= MIB


def test_meter_counts_from_what_was_there_and_never_below_nothing(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"x" * MIB)
    meter = DiskMeter(str(tmp_path), used_bytes(str(tmp_path)), MIB)
    (tmp_path / "new").write_bytes(b"x" * 2 * MIB)
    assert (meter.is_exceeded(), meter.bytes >= 2 * MIB) == (True, True)
    for name in ("old", "new"):
        (tmp_path / name).unlink()
    assert meter.measure() == 0


def test_meter_of_a_folder_that_was_removed_counts_nothing(tmp_path: Path) -> None:
    meter = DiskMeter(str(tmp_path / "gone"), 0, MIB)
    assert (meter.is_exceeded(), meter.bytes) == (False, 0)


def test_meter_looks_again_only_when_its_last_look_is_paid_for(tmp_path: Path) -> None:
    meter = DiskMeter(str(tmp_path), used_bytes(str(tmp_path)), 1 << 60)
    assert not meter.is_exceeded()
    first = meter.looked
    meter.took = 3600.0
    assert not meter.is_exceeded()
    assert meter.looked == first
    meter.took = 0.0
    assert not meter.is_exceeded()
    assert meter.looked > first


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return what stands for a folder of control groups, of which this process is a member."""
    folder = tmp_path / "cgroup" / "scope"
    folder.mkdir(parents=True)
    (folder / "cgroup.controllers").write_text("cpu memory pids\n")
    (folder / "cgroup.subtree_control").write_text("")
    (folder / "cgroup.procs").write_text("41\n42\n")
    (tmp_path / "membership").write_text("1:name=systemd:/x\n0::/scope\n")
    monkeypatch.setattr(limits, "_GROUPS", str(tmp_path / "cgroup"))
    monkeypatch.setattr(limits, "_MEMBERSHIP", str(tmp_path / "membership"))
    return folder


def test_groups_that_are_ready_are_used_as_they_are(groups: Path) -> None:
    (groups / "cgroup.subtree_control").write_text("memory pids\n")
    assert open_control_groups() == str(groups)
    assert not (groups / "golden-gate").exists()


def test_delegated_group_is_divided_and_found_again_from_its_leaf(
    groups: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        os, "getxattr", lambda path, name: b"1" if (path, name) == (str(groups), "user.delegate") else b""
    )
    assert open_control_groups() == str(groups)
    assert (groups / "golden-gate" / "cgroup.procs").read_text() == "42"
    assert (groups / "cgroup.subtree_control").read_text() == "+memory +pids"
    (groups / "cgroup.subtree_control").write_text("memory pids\n")
    (tmp_path / "membership").write_text("0::/scope/golden-gate\n")
    assert open_control_groups() == str(groups)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda groups: (groups / "cgroup.controllers").write_text("cpu memory\n"),
        lambda groups: (groups / "cgroup.controllers").unlink(),
        lambda _: None,
    ],
    ids=["no pids controller", "the first version", "not delegated"],
)
def test_without_a_delegated_group_there_is_none(spoil: Callable[[Path], Any], groups: Path) -> None:
    spoil(groups)
    assert open_control_groups() == ""
    assert not (groups / "golden-gate").exists()


@pytest.fixture
def grouped(groups: Path, tmp_path: Path) -> Iterator[Callable[..., Exit]]:
    """Run a script in a group; it may write what the kernel would report into its folder, $GROUP."""
    (groups / "cgroup.subtree_control").write_text("memory pids\n")
    by = Supervisor()

    def run(script: str, **keys: Any) -> Exit:
        command = ("sh", "-c", f"GROUP=$(echo {groups}/golden-run-*)\n{script}")
        out, err = str(tmp_path / "out"), str(tmp_path / "err")
        return by.run(Launch(command, "/", {"PATH": "/usr/bin:/bin"}, out, err, sealed=False, **keys))

    yield run
    by.close()


def test_limits_are_written_before_the_pipeline_enters_its_group(grouped: Callable[..., Exit], tmp_path: Path) -> None:
    names = "cgroup.procs memory.max memory.oom.group pids.max"
    script = f"for name in {names}; do echo $name $(cat $GROUP/$name); done; rm -r $GROUP"
    done = grouped(script, memory_limit_bytes=64 * MIB, process_limit=8)
    told = f"cgroup.procs 0\nmemory.max {64 * MIB}\nmemory.oom.group 1\npids.max 8\n"
    assert (done.ending, (tmp_path / "out").read_text()) == (Ending.EXITED, told)


@pytest.mark.parametrize(
    ("report", "ending"),
    [
        ("echo 'oom 1\noom_kill 1' > $GROUP/memory.events; kill -9 $$", Ending.MEMORY_LIMIT),
        ("echo 'max 3' > $GROUP/pids.events; exit 1", Ending.PROCESS_LIMIT),
        ("echo 'max 3' > $GROUP/pids.events; sleep 600", Ending.PROCESS_LIMIT),
        ("echo 'oom_kill 1' > $GROUP/memory.events; sleep 600", Ending.MEMORY_LIMIT),
        ("echo 'max 0' > $GROUP/pids.events; exit 1", Ending.EXITED),
    ],
)
def test_what_the_kernel_has_held_is_the_ending(report: str, ending: Ending, grouped: Callable[..., Exit]) -> None:
    done = grouped(report, memory_limit_bytes=MIB, process_limit=8)
    assert (done.ending, done.left_behind) == (ending, 0)
    assert done.peak_memory_bytes >= (MIB if ending is Ending.MEMORY_LIMIT else 0)


@pytest.mark.parametrize("script", ["exit 0", "sleep 600"])
def test_group_is_removed_however_the_run_ends(script: str, grouped: Callable[..., Exit], groups: Path) -> None:
    done = grouped(f"rm $GROUP/*\n{script}", memory_limit_bytes=64 * MIB, timeout_seconds=0.5)
    assert done.ending is (Ending.EXITED if script == "exit 0" else Ending.TIMEOUT)
    assert list(groups.glob("golden-run-*")) == []


def test_swap_is_held_where_it_is_counted_and_an_empty_group_is_removed(
    groups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = os.mkdir

    def make_with_swap(path: str) -> None:
        make(path)
        Path(path, "memory.swap.max").write_text("max")

    monkeypatch.setattr(os, "mkdir", make_with_swap)
    group = limits.ControlGroup(str(groups), MIB, None)
    (folder,) = groups.glob("golden-run-*")
    assert (folder / "memory.swap.max").read_text() == "0"
    group.enter()
    assert (folder / "cgroup.procs").read_text() == "0"
    assert group.find_excess() == ""
    (folder / "pids.events").write_text("max 1\n")
    assert group.find_excess() == "process_limit"
    (folder / "memory.events").write_text("oom_kill 1\n")
    assert group.find_excess() == "memory_limit"
    for file in folder.iterdir():
        file.unlink()
    group.remove()
    group.remove()
    assert not folder.exists()


def test_run_without_such_limits_has_no_group(grouped: Callable[..., Exit], groups: Path) -> None:
    assert grouped("exit 0", cpu_limit_seconds=60.0).ending is Ending.EXITED
    assert list(groups.glob("golden-run-*")) == []


def test_group_that_cannot_be_made_leaves_the_limit_to_polling(grouped: Callable[..., Exit], groups: Path) -> None:
    grouped("exit 0")
    groups.rename(groups.with_name("moved"))
    hold = f"exec {sys.executable} -c 'import time; x = bytearray(150_000_000); time.sleep(300)'"
    assert grouped(hold, memory_limit_bytes=100_000_000).ending is Ending.MEMORY_LIMIT
