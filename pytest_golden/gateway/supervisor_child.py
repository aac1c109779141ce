"""Runs pipelines one after another and leaves no process behind; started once a session.

It runs as its own process (`process.SUPERVISOR`, standard library and `limits.py` only) so that pipelines die with the
gate whatever happens to the gate: when its socket closes, everything it started is killed. On Linux it is the subreaper
of all it starts, so that double-forked daemons with a session of their own are still its descendants.

Standard input is a socket. Each line that comes in is a JSON object: `{"op": "run", ...}` with the fields of
`process.Launch`, or `{"op": "interrupt"}` while one runs. Each `run` is answered by one line with the fields of
`process.Exit`. A descriptor that comes before a `run` is for what it launches; GOLDEN_HANDOVER names its number there.

With addresses as arguments (`192.0.2.2/32`) it makes a network of its own, in which these cannot be reached, and says
`network`, or what went wrong, in a first line.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any

from pytest_golden.gateway.limits import (
    ControlGroup,
    DiskMeter,
    count_threads,
    exceeds_memory,
    living_cpu_seconds,
    proportional_bytes,
    stat_fields,
)

PR_SET_CHILD_SUBREAPER = 36
KEYCTL_JOIN_SESSION_KEYRING = 1
KEYCTL_NUMBERS = {"x86_64": 250, "aarch64": 219}
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCADDRT, RTF_UP, RTF_HOST, RTF_REJECT = 0x890B, 0x1, 0x4, 0x200
POLL_SECONDS = 0.05
SETTLE_SECONDS = 10.0
SEAL_SETTLE_SECONDS = 0.02
HAS_PROC = os.path.isdir("/proc/self/task")
LIMITS = ("cpu_limit_seconds", "memory_limit_bytes", "process_limit", "disk_limit_bytes")
#: The sandbox program's own, beside the pipeline's.
SANDBOX_PROCESSES = 2


def become_subreaper() -> None:
    """Make orphaned descendants our children instead of init's."""
    if sys.platform == "linux":
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        keyctl = KEYCTL_NUMBERS.get(os.uname().machine)
        if keyctl is not None:
            # A session keyring of its own: the user's may hold keys to elsewhere.
            libc.syscall(keyctl, KEYCTL_JOIN_SESSION_KEYRING, None)


def make_own_network(closed: list[str]) -> str:
    """Move to a network of our own in which some addresses cannot be reached; return `network`, or what went wrong."""
    import ctypes

    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET):
        return os.strerror(ctypes.get_errno())
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
        for address in closed:
            refuse_route(*address.split("/"))
    except OSError as error:
        return str(error)
    return "network"


def refuse_route(address: str, length: str) -> None:
    """Make a range of IPv4 addresses unreachable; `man 7 netdevice` and <linux/route.h> have the structure."""
    mask = (0xFFFFFFFF << 32 - int(length)) & 0xFFFFFFFF
    target, any_way, mask_field = (
        struct.pack("=HH4s8x", socket.AF_INET, 0, raw)
        for raw in (socket.inet_aton(address), bytes(4), mask.to_bytes(4, "big"))
    )
    flags = RTF_UP | RTF_REJECT | (RTF_HOST if length == "32" else 0)
    entry = struct.pack("L16s16s16sHhLPhPLLH", 0, target, any_way, mask_field, flags, *[0] * 8)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        fcntl.ioctl(asked, SIOCADDRT, entry)


def parents() -> dict[int, int]:
    """Return the parent of each process that can be seen."""
    if not HAS_PROC:
        table = subprocess.run(["ps", "-axo", "pid=,ppid="], capture_output=True, text=True, check=False).stdout
        return {int(pid): int(parent) for pid, parent in (line.split() for line in table.splitlines())}
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = stat_fields(int(name))
            if fields:
                found[int(name)] = int(fields[1])
    return found


def descendants(root: int) -> list[int]:
    """List all descendants of a process, parents before children."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    queue = [root]
    while queue:
        below = children.get(queue.pop(), [])
        found += below
        queue += below
    return found


def send(pids: list[int], number: int) -> None:
    """Send a signal to each of them that is still there."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def hand_in(argv: list[str], program: bytes, environment: dict[str, str]) -> tuple[list[str], list[int]]:
    """Return a sandbox's command line with the descriptors that it reads a filter and the environment inside from.

    In its own environment, variables of a pipeline (LD_PRELOAD) would load code into the sandbox, which is outside the
    seal; as plain arguments, everybody on this machine could read them.
    """
    words = [word for name, value in environment.items() for word in ("--setenv", name, value)]
    numbers = [open_memory(b"".join(os.fsencode(word) + b"\0" for word in words))]
    options = ["--args", str(numbers[0])]
    if program:
        numbers.append(open_memory(program))
        options += ["--seccomp", str(numbers[1])]
    return [argv[0], *options, *argv[1:]], numbers


def open_memory(content: bytes) -> int:
    """Return a descriptor that a program reads these bytes from."""
    number = os.memfd_create("golden")
    with open(number, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(number, 0, os.SEEK_SET)
    return number


class Run:
    """One execution, from its launch to the last of its processes."""

    def __init__(self, request: dict[str, Any], handed: list[int]) -> None:
        self.request = request
        self.handed = handed
        self.ending = ""
        self.status: int | None = None
        self.cpu_seconds = 0.0
        self.killed_cpu_seconds = 0.0
        self.peak_bytes = 0
        self.ladder: list[tuple[float, int]] = []
        self.status_pipe = -1
        self.group = self.make_group()
        cpu, memory, processes, limit = (request[name] for name in LIMITS)
        polled = (cpu,) if self.group is not None else (cpu, memory, processes)
        self.polls_tree = HAS_PROC and polled != (None,) * len(polled)
        self.polls = self.polls_tree or self.group is not None or limit is not None
        self.disk = None if limit is None else DiskMeter(request["disk_folder"], request["disk_before_bytes"], limit)
        self.started = time.monotonic()
        self.process = self.launch()
        self.deadline = self.started + request["timeout_seconds"] if request["timeout_seconds"] else None

    def make_group(self) -> ControlGroup | None:
        """Make a control group if there can be one and it holds anything."""
        parent, memory, processes = (
            self.request[name] for name in ("control_groups", "memory_limit_bytes", "process_limit")
        )
        if not parent or (memory, processes) == (None, None):
            return None
        own = SANDBOX_PROCESSES if self.request["sealed"] else 0
        try:
            return ControlGroup(parent, memory, None if processes is None else processes + own)
        except OSError:
            return None

    def launch(self) -> subprocess.Popen[bytes]:
        """Start the command with output to new files that only we may read."""
        request = self.request
        argv, keep, environment = list(request["argv"]), list(self.handed), request["environment"]
        if keep:
            environment = {**environment, "GOLDEN_HANDOVER": str(keep[0])}
        if request["sealed"]:
            argv, numbers = hand_in(argv, bytes.fromhex(request["filter"]), environment)
            self.status_pipe, write_end = os.pipe()
            argv[1:1] = ["--json-status-fd", str(write_end)]
            keep += [*numbers, write_end]
            environment = {}
        out, err = (
            os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for name in ("stdout", "stderr")
        )
        try:
            return subprocess.Popen(
                argv,
                cwd=request["cwd"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                pass_fds=keep,
                preexec_fn=None if self.group is None else self.group.enter,  # noqa: PLW1509 - there is one thread
                start_new_session=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError):
            if self.status_pipe >= 0:
                os.close(self.status_pipe)
            if self.group is not None:
                self.group.remove()
            raise
        finally:
            for number in (out, err, *keep[len(self.handed) :]):
                os.close(number)

    def reap(self) -> None:
        """Take the status of all that have ended; each one's CPU time holds that of the children it waited for."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.cpu_seconds += usage.ru_utime + usage.ru_stime
            self.peak_bytes = max(self.peak_bytes, usage.ru_maxrss * (1024 if sys.platform == "linux" else 1))
            if pid == self.process.pid:
                self.status = status
                self.process.returncode = os.waitstatus_to_exitcode(status)

    def inner(self) -> list[int]:
        """List the pipeline's own processes: in a seal, not the two of the sandbox around them."""
        tree = descendants(self.process.pid)
        return tree[1:] if self.request["sealed"] else [self.process.pid, *tree]

    def stop(self, ending: str) -> None:
        """Begin the ladder of interrupt, terminate and kill; a second call changes nothing."""
        if self.ending:
            return
        self.ending = ending
        now = time.monotonic()
        interrupt, terminate = self.request["interrupt_grace_seconds"], self.request["terminate_grace_seconds"]
        self.ladder = [
            (now, signal.SIGINT),
            (now + interrupt, signal.SIGTERM),
            (now + interrupt + terminate, signal.SIGKILL),
        ]

    def check(self) -> float | None:
        """Apply what is due; return the seconds until the next look, None when only an event can change anything."""
        now = time.monotonic()
        if not self.ending:
            if self.deadline is not None and now >= self.deadline:
                self.stop("timeout")
            else:
                self.check_limits()
        while self.ladder and self.ladder[0][0] <= now:
            _, number = self.ladder.pop(0)
            if number == signal.SIGKILL:
                self.measure([self.process.pid, *descendants(self.process.pid)])
                kill_all()
            else:
                send(self.inner(), number)
        return self.next_look(now)

    def check_limits(self) -> None:
        """Stop a tree that has used up what it may."""
        if not self.polls:
            return
        tree = [self.process.pid, *descendants(self.process.pid)] if self.polls_tree else []
        cpu = self.request["cpu_limit_seconds"]
        excess = self.find_excess(tree)
        if excess:
            self.ending = excess
            self.measure(tree or [self.process.pid, *descendants(self.process.pid)])
            kill_all()
        elif cpu is not None and self.cpu_seconds + living_cpu_seconds(tree) > cpu:
            self.measure(tree)
            self.stop("cpu_limit")

    def find_excess(self, tree: list[int]) -> str:
        """Return the limit that a tree exceeds and is killed for, empty if none."""
        if self.disk is not None and self.disk.is_exceeded():
            return "disk_limit"
        if self.group is not None:
            return self.group.find_excess()
        memory, processes = self.request["memory_limit_bytes"], self.request["process_limit"]
        if memory is not None and exceeds_memory(tree, memory):
            return "memory_limit"
        own = SANDBOX_PROCESSES if self.request["sealed"] else 0
        return "process_limit" if processes is not None and count_threads(tree) > processes + own else ""

    def measure(self, tree: list[int]) -> None:
        """Note what a tree has used before it is stopped: the usage of processes that are not waited for is lost."""
        self.killed_cpu_seconds = max(self.killed_cpu_seconds, living_cpu_seconds(tree))
        self.peak_bytes = max(self.peak_bytes, sum(map(proportional_bytes, tree)))

    def next_look(self, now: float) -> float | None:
        """Return the seconds until something may be due."""
        if self.ladder:
            return max(0.0, self.ladder[0][0] - now)
        if self.ending:
            return POLL_SECONDS
        waits = [] if self.deadline is None else [max(0.0, self.deadline - now)]
        if self.polls:
            waits.append(POLL_SECONDS)
        return min(waits, default=None)

    def finish(self) -> dict[str, Any]:
        """End whatever is left of it and return the facts."""
        duration = time.monotonic() - self.started
        left = self.end_leftovers()
        self.ending = self.ending or self.find_last_excess()
        if self.group is not None:
            if self.ending == "memory_limit":
                # What was killed no longer tells what it held.
                self.peak_bytes = max(self.peak_bytes, self.request["memory_limit_bytes"])
            self.group.remove()
        code = self.process.returncode
        started = True
        if self.status_pipe >= 0:
            with os.fdopen(self.status_pipe, "rb") as pipe:
                started = b'"exit-code"' in pipe.read() or bool(self.ending)
        return {
            "ending": self.ending or ("signalled" if code < 0 else "exited" if started else "not_started"),
            "exit_code": code,
            "duration_seconds": duration,
            "cpu_seconds": max(self.cpu_seconds, self.killed_cpu_seconds),
            "peak_memory_bytes": self.peak_bytes,
            "disk_bytes": 0 if self.disk is None else self.disk.bytes,
            "left_behind": left,
        }

    def find_last_excess(self) -> str:
        """Return the limit that it exceeded between the last look and its end, empty if none."""
        if self.disk is not None and self.disk.measure() > self.disk.limit:
            return "disk_limit"
        return "" if self.group is None else self.group.find_excess()

    def end_leftovers(self) -> int:
        """Kill every process that is still there and return how many survived that."""
        now = time.monotonic()
        # The kernel ends a sealed tree by itself as the sandbox exits; looking through /proc at once would cost more.
        patience, limit = now + (SEAL_SETTLE_SECONDS if self.request["sealed"] else 0), now + SETTLE_SECONDS
        while has_children(self):
            now = time.monotonic()
            if now > limit:
                return len(descendants(os.getpid()))
            if now > patience:
                kill_all()
            time.sleep(0.0002)
        return 0


def has_children(run: Run) -> bool:
    """Reap what has ended and tell whether anything is left."""
    run.reap()
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def kill_all() -> None:
    """Kill all that we started: stopped first, so that one that forks without end cannot outrun us."""
    tree = descendants(os.getpid())
    send(tree, signal.SIGSTOP)
    send(tree, signal.SIGKILL)


def serve(control: socket.socket) -> None:
    """Answer requests until the other end closes, then kill what is running."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    os.set_blocking(wake_read, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    selector = selectors.DefaultSelector()
    selector.register(control, selectors.EVENT_READ)
    selector.register(wake_read, selectors.EVENT_READ)
    buffer = b""
    handed: list[int] = []
    run: Run | None = None
    while True:
        for key, _ in selector.select(run.check() if run else None):
            if key.fileobj is control:
                received, numbers, _, _ = socket.recv_fds(control, 1 << 16, 1)
                if not received:
                    return
                buffer += received
                handed += numbers
            else:
                os.read(wake_read, 4096)
        *lines, buffer = buffer.split(b"\n")
        for line in filter(None, lines):
            run = accept(json.loads(line), run, control, handed)
        if run is not None:
            run.reap()
            if run.status is not None:
                reply(control, run.finish())
                run = None


def accept(request: dict[str, Any], run: Run | None, control: socket.socket, handed: list[int]) -> Run | None:
    """Act on one line; return the run that is then in progress, which gets the descriptors that came before it."""
    if request["op"] == "interrupt":
        if run is not None:
            run.stop("interrupted")
        return run
    try:
        return Run(request, handed)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reply(
            control,
            {"ending": "not_started", "exit_code": None, "message": str(error), "errno": getattr(error, "errno", None)},
        )
        return None
    finally:
        while handed:
            os.close(handed.pop())


def reply(control: socket.socket, answer: dict[str, Any]) -> None:
    """Send one answer line."""
    control.sendall(json.dumps(answer).encode() + b"\n")


def main() -> None:
    """Serve until the gate closes its end, by whatever cause, and leave nothing running."""
    become_subreaper()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # A handler, not SIG_IGN: what is ignored stays ignored in the pipelines that we start.
        signal.signal(number, lambda *_: None)
    control = socket.socket(fileno=0)
    try:
        if sys.argv[1:]:
            control.sendall(make_own_network(sys.argv[1:]).encode() + b"\n")
        serve(control)
    except OSError:
        pass
    finally:
        limit = time.monotonic() + SETTLE_SECONDS
        while descendants(os.getpid()) and time.monotonic() < limit:
            kill_all()
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                break
            time.sleep(0.001)
