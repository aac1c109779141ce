"""The filter of system calls: what the program says of a call on each architecture, and what the kernel makes of it."""

from __future__ import annotations

import errno
import os
import platform
import struct
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.syscall_filter import build_filter
from tests.gateway.conftest import NOT_ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gateway.model import PipelineOutcome
    from tests.gateway.conftest import RunElsewhere

    Run = Callable[..., PipelineOutcome]

X86_64, AARCH64, I386, ARM = 0xC000003E, 0xC00000B7, 0x40000003, 0x40000028
ALLOWED, KILLED = 0x7FFF0000, 0x80000000
NEW_USER, NEW_PID, THREAD = 0x10000000, 0x20000000, 0x003D0F00


def interpret(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """Run a program of classic BPF over one call, as the kernel does, and return its verdict."""
    call = struct.pack("<IIQ6Q", number, audit, 0, *(*arguments, 0, 0, 0, 0, 0, 0)[:6])
    lines = list(struct.iter_unpack("<HBBI", program))
    loaded = place = 0
    while True:
        code, if_true, if_false, value = lines[place]
        place += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            (loaded,) = struct.unpack_from("<I", call, value)
            continue
        holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: loaded & value != 0}[code]
        place += if_true if holds else if_false


def failing(error: int) -> int:
    return 0x00050000 | error


def call(machine: str, number: int, *arguments: int) -> int:
    return interpret(build_filter(machine), {"x86_64": X86_64, "aarch64": AARCH64}[machine], number, *arguments)


#: socket, socketpair, clone, unshare, setns, add_key, request_key, keyctl; then what must stay: read, execve, ptrace.
NUMBERS = {
    "x86_64": ((41, 53, 56, 272, 308, 248, 249, 250), (0, 59, 101)),
    "aarch64": ((198, 199, 220, 97, 268, 217, 218, 219), (63, 221, 117)),
}
on_both = pytest.mark.parametrize("machine", NUMBERS)


@on_both
def test_only_usual_families_of_sockets_are_allowed(machine: str) -> None:
    for number in NUMBERS[machine][0][:2]:
        allowed = [family for family in range(64) if call(machine, number, family, 1, 0) == ALLOWED]
        assert allowed == [0, 1, 2, 10, 16]
        # The kernel takes an int: what stands above its 32 bits changes nothing.
        assert call(machine, number, 40 | 1 << 32) == failing(errno.EAFNOSUPPORT)


@on_both
def test_new_user_namespaces_are_refused_and_other_processes_are_not(machine: str) -> None:
    _, _, clone, unshare, setns, *_ = NUMBERS[machine][0]
    for number in (clone, unshare):
        assert call(machine, number, NEW_USER | 17) == failing(errno.EPERM)
        assert call(machine, number, NEW_USER | NEW_PID) == failing(errno.EPERM)
        assert call(machine, number, NEW_USER | 0xFFFFFFFF << 32) == failing(errno.EPERM)
        assert call(machine, number, THREAD) == call(machine, number, 17) == ALLOWED
    assert call(machine, setns, 3, 0) == failing(errno.EPERM)
    # Its flags lie in memory, where no filter can look.
    assert call(machine, 435, 0) == failing(errno.ENOSYS)


@on_both
def test_keys_and_io_uring_are_refused_and_the_rest_is_allowed(machine: str) -> None:
    denied, allowed = NUMBERS[machine]
    assert {call(machine, number) for number in denied[-3:]} == {failing(errno.EPERM)}
    assert {call(machine, number) for number in (425, 426, 427)} == {failing(errno.ENOSYS)}
    assert {call(machine, number) for number in (*allowed, 424, 428, 434, 436)} == {ALLOWED}
    refused = [number for number in range(500) if call(machine, number) != ALLOWED]
    assert refused == sorted([*denied[-4:], 425, 426, 427, 435])


@on_both
def test_programs_of_other_architectures_are_killed(machine: str) -> None:
    program, own = build_filter(machine), {"x86_64": X86_64, "aarch64": AARCH64}[machine]
    for other in {X86_64, AARCH64, I386, ARM} - {own}:
        assert interpret(program, other, NUMBERS[machine][1][0]) == KILLED


def test_calls_of_x32_do_not_exist() -> None:
    for number in (0x40000000, 0x40000000 | 41, 0x40000000 | 56, 0xFFFFFFFF):
        assert call("x86_64", number) == failing(errno.ENOSYS)


def test_other_machines_have_no_filter() -> None:
    assert build_filter("riscv64") == build_filter("") == b""


TRY = """
    import ctypes, errno, os, socket
    libc = ctypes.CDLL(None, use_errno=True)
    def told(*call):
        result = libc.syscall(*call)
        return "done" if result >= 0 else errno.errorcode[ctypes.get_errno()]
    socket_call, unshare, setns, add_key, request_key, keyctl = {numbers}
    print(*[told(socket_call, family, kind, 0) for family, kind in ((40, 1), (17, 3), (38, 5), (1, 1), (2, 1), (16, 3))])
    print(*[told(call, 0, 0) for call in (425, 426, 427, 435)])
    print(told(keyctl, 0, -4, 1), told(add_key, b"user", b"n", b"v", 1, -3), told(request_key, b"user", b"n", 0, 0))
    print(told(unshare, 0x10000000), told(setns, os.open("/proc/self/ns/net", os.O_RDONLY), 0), told(unshare, 0x200))
    print(libc.ptrace(16, {pid}, 0, 0), errno.errorcode[ctypes.get_errno()])
"""
REFUSED = [
    "EAFNOSUPPORT EAFNOSUPPORT EAFNOSUPPORT done done done",
    "ENOSYS ENOSYS ENOSYS ENOSYS",
    "EPERM EPERM EPERM",
    "EPERM EPERM done",
    "-1 ESRCH",
]
has_filter = pytest.mark.skipif(not build_filter(platform.machine()), reason="no filter for this machine")


@has_filter
@pytest.mark.usefixtures("sealing")
@pytest.mark.parametrize("view", ["overlay", "copy"])
def test_kernel_refuses_what_the_filter_names(view: str, run: Run) -> None:
    socket_call, _, _, unshare, setns, *keys = NUMBERS[platform.machine()][0]
    outcome = run(TRY.format(numbers=(socket_call, unshare, setns, *keys), pid=os.getpid()), view=view)
    assert outcome.stdout.splitlines() == REFUSED, outcome.stderr


@has_filter
@pytest.mark.usefixtures("sealing")
def test_commands_before_and_after_are_filtered_too(run: Run) -> None:
    seccomp = ["sh", "-c", "grep -q 'Seccomp:.2' /proc/self/status"]
    assert run("grep 'Seccomp:' /proc/self/status", before=[seccomp], after=[seccomp]).stdout == "Seccomp:\t2\n"


@pytest.mark.usefixtures("sealing")
def test_processes_threads_and_debuggers_of_ones_own_work(run: Run) -> None:
    """What tests memory for leaks, and what shows a stack, traces processes of its own."""
    outcome = run("""
        import ctypes, multiprocessing, os, subprocess, threading
        thread = threading.Thread(target=print, args=("thread",))
        thread.start()
        thread.join()
        with multiprocessing.get_context("fork").Pool(1) as pool:
            print(pool.map(abs, [-1]))
        libc = ctypes.CDLL(None)
        child = subprocess.Popen(["sleep", "60"])
        print(libc.ptrace(16, child.pid, 0, 0))
        os.waitpid(child.pid, 0)
        print(libc.ptrace(8, child.pid, 0, 0))
    """)
    assert outcome.stdout.splitlines() == ["thread", "[1]", "0", "0"], outcome.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux filters system calls")
def test_kernel_without_filters_still_seals_and_says_so(run_elsewhere: RunElsewhere) -> None:
    number = {"x86_64": 157, "aarch64": 167}[platform.machine()]
    # Let prctl(PR_SET_SECCOMP, ...) fail, as such a kernel does.
    program = b"".join(
        struct.pack("<HBBI", *line)
        for line in (
            *((0x20, 0, 0, 0), (0x15, 0, 3, number), (0x20, 0, 0, 16), (0x15, 0, 1, 22)),
            *((0x06, 0, 0, failing(errno.EINVAL)), (0x06, 0, 0, ALLOWED)),
        )
    )
    facts = run_elsewhere(
        NOT_ROOT,
        """
        from pytest_golden.gateway.machine import Machine
        machine = Machine("auto", [workspace])
        print(json.dumps(machine.describe().to_dict()))
        machine.close()
        """,
        program=program,
    )
    assert (facts["view"], facts["seal"]) == ("overlay", "namespaces")
    assert facts["reasons"][0].startswith("system calls are not filtered: ")
    assert "SECCOMP" in facts["reasons"][0]
