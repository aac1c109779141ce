"""The network of `network: true`: it leads out, and to no server of this machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pytest_golden.errors import GatewayError
from pytest_golden.gateway import own_network
from pytest_golden.gateway.model import AgentRole, Permissions
from pytest_golden.gateway.own_network import (
    PROGRAM,
    NetworkHelper,
    find_closed_addresses,
    parse_own_addresses,
    write_resolver,
)
from tests.gateway.conftest import NOT_ROOT, RunElsewhere, processes_with, run_guarded, wait_until
from tests.requirement import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject

    Run = Callable[..., PipelineOutcome]

ASK = """
import socket
for host in {hosts!r}:
    try:
        socket.create_connection((host, {port}), 3).close()
        print(host, "connected")
    except OSError:
        print(host, "refused")
"""
_ROUTES = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 192.0.2.0
        /24 link UNICAST
Local:
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 192.0.2.2
        /32 host LOCAL
     |-- 192.0.2.2
        /32 host LOCAL
     |-- 10.9.0.0
        /16 host LOCAL
     |-- 192.0.2.255
        /32 link BROADCAST
"""


@pytest.fixture
def online(sealing: None, open_gateway: Callable[..., ExecutionGateway]) -> ExecutionGateway:
    """Return a gateway that has a network of its own."""
    gateway = open_gateway()
    abilities = gateway.describe()
    require(abilities.network == "own", f"a network for pipelines: {abilities.network_reason}")
    return gateway


@pytest.fixture
def server() -> Iterator[int]:
    """Listen on every address of this machine and return the port."""
    with socket.create_server(("0.0.0.0", 0)) as listening:
        yield listening.getsockname()[1]


@pytest.fixture
def own_address() -> str:
    """Return an address of this machine."""
    found = [one.removesuffix("/32") for one in parse_own_addresses(own_network._ROUTES.read_text())]
    require(found, "an address beside loopback")
    return found[0]


def test_addresses_of_this_machine_are_read_from_its_routes() -> None:
    assert parse_own_addresses(_ROUTES) == ("192.0.2.2/32", "10.9.0.0/16")


def test_machine_whose_addresses_are_unknown_gets_no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(own_network, "_ROUTES", tmp_path / "missing")
    with pytest.raises(GatewayError, match=r"missing cannot be read: No such file"):
        find_closed_addresses()


def test_resolver_keeps_all_but_the_servers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "system").write_text("# made by\nnameserver 127.0.0.53\nsearch corp.example\noptions ndots:5\n")
    monkeypatch.setattr(own_network, "_RESOLVER_FILE", str(tmp_path / "system"))
    lines = write_resolver(tmp_path).read_text().splitlines()
    assert lines == ["nameserver 198.51.100.3", "# made by", "search corp.example", "options ndots:5"]
    monkeypatch.setattr(own_network, "_RESOLVER_FILE", str(tmp_path / "missing"))
    assert write_resolver(tmp_path).read_text() == "nameserver 198.51.100.3\n"
    assert own_network.mount_resolver(tmp_path) == []


def test_no_server_of_this_machine_is_reached(
    online: ExecutionGateway, make_project: MakeProject, server: int, own_address: str
) -> None:
    hosts = ["127.0.0.1", own_address, "198.51.100.2", "0.0.0.0"]
    outcome = run_guarded(online, make_project(ASK.format(hosts=hosts, port=server)))
    assert outcome.stdout.split("\n") == [*(f"{host} refused" for host in hosts), ""]
    clouds = make_project(
        "import errno, socket\nfor host in ('169.254.169.254', '168.63.129.16'):\n"
        "    print(socket.socket().connect_ex((host, 80)) == errno.EHOSTUNREACH)"
    )
    assert run_guarded(online, clouds).stdout == "True\nTrue\n"
    beside = run_guarded(online, make_project(ASK.format(hosts=hosts[:2], port=server), network="host"))
    assert beside.stdout == f"127.0.0.1 connected\n{own_address} connected\n"


def test_packets_lead_out(
    online: ExecutionGateway,
    run: Run,
    server: int,
    own_address: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    # What is not known to be this machine's own stands for the rest of the world.
    (tmp_path / "routes").touch()
    monkeypatch.setattr(own_network, "_ROUTES", tmp_path / "routes")
    assert run(ASK.format(hosts=[own_address], port=server)).stdout == f"{own_address} connected\n"


@pytest.mark.parametrize(
    ("said", "is_told"),
    [
        ('connection to server at "localhost" (127.0.0.1), port 5432 failed: Connection refused', True),
        ("ConnectionRefusedError: [Errno 111] Connection refused", True),
        ("db.corp.example: Connection refused", False),
    ],
)
@pytest.mark.parametrize("network", [True, False, "host"])
def test_refused_loopback_is_explained_where_it_is_the_pipeline_s_own(
    network: Any, said: str, is_told: bool, online: ExecutionGateway, make_project: MakeProject
) -> None:
    outcome = run_guarded(online, make_project(f"echo '{said}' >&2; exit 1", network=network))
    told = "a pipeline has a loopback of its own: declare `network: host` if it needs a server of this machine"
    assert outcome.warnings == ((told,) if is_told and network != "host" else ())


def test_servers_without_a_file_are_out_of_reach(online: ExecutionGateway, make_project: MakeProject) -> None:
    name = f"\0golden-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(name)
        listening.listen()
        script = f"""
            import socket
            try:
                socket.socket(socket.AF_UNIX).connect({name!r})
                print("connected")
            except OSError:
                print("refused")
        """
        assert run_guarded(online, make_project(script)).stdout == "refused\n"
        assert run_guarded(online, make_project(script, network="host")).stdout == "connected\n"


def test_closed_addresses_stay_closed(online: ExecutionGateway, make_project: MakeProject, own_address: str) -> None:
    script = f"""
        import fcntl, socket, struct
        SIOCDELRT = 0x890C
        address = struct.pack("=HH4s8x", socket.AF_INET, 0, socket.inet_aton("{own_address}"))
        entry = struct.pack("L16s16s16sHhLPhPLLH", 0, address, bytes(16), bytes(16), 0x205, *[0] * 8)
        try:
            fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), SIOCDELRT, entry)
        except PermissionError as error:
            print(error.strerror)
    """
    assert run_guarded(online, make_project(script)).stdout == "Operation not permitted\n"


def test_names_are_looked_up_by_the_helper(online: ExecutionGateway, make_project: MakeProject) -> None:
    outcome = run_guarded(online, make_project("head -1 /etc/resolv.conf; test ! -w /etc/resolv.conf"))
    assert (outcome.stdout, outcome.exit_code) == ("nameserver 198.51.100.3\n", 0)


def test_loopback_of_its_own_serves_and_is_free_again(online: ExecutionGateway, make_project: MakeProject) -> None:
    script = """
        import socket
        server = socket.create_server(("127.0.0.1", 8123))
        client = socket.create_connection(("127.0.0.1", 8123), 3)
        server.accept()[0].sendall(b"served")
        print(client.recv(9).decode())
    """
    assert [run_guarded(online, make_project(script)).stdout for _ in range(2)] == ["served\n", "served\n"]


def test_helper_that_was_killed_is_started_again(
    online: ExecutionGateway, make_project: MakeProject, own_address: str
) -> None:
    (helper,) = (one for one in psutil.Process().children() if one.name() == PROGRAM)
    helper.kill()
    assert wait_until(lambda: helper.status() == psutil.STATUS_ZOMBIE)
    outcome = run_guarded(online, make_project("grep -c tap0 /proc/net/dev"))
    assert (outcome.stdout, outcome.problem) == ("1\n", None)


def test_nothing_is_left_when_the_gate_is_killed(
    online: ExecutionGateway, workspace: Path, make_project: MakeProject
) -> None:
    make_project("true")
    code = """
import sys
from pytest_golden.gateway.service import ExecutionGateway
gateway = ExecutionGateway(sys.argv[1])
assert gateway.describe().network == "own"
print(gateway._online.pid, flush=True)
sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(workspace)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as gate:
        assert gate.stdout is not None
        mark = f"/proc/{gate.stdout.readline().strip()}/ns/user"
        assert len(processes_with(mark)) >= 1
        gate.send_signal(signal.SIGKILL)
    assert wait_until(lambda: processes_with(mark) == [])


def test_ordinary_user_has_it_too(online: ExecutionGateway, run_elsewhere: RunElsewhere, server: int) -> None:
    code = f"""
        (workspace / "project" / "ask.py").write_text({ASK.format(hosts=["127.0.0.1"], port=server)!r} + "print(open('/etc/resolv.conf').readline())")
        with ExecutionGateway(workspace) as gateway:
            show(guarded(gateway, GoldenProjectConfig("a", "project/ask.py")), gateway)
    """
    facts = run_elsewhere(NOT_ROOT, code)
    assert facts["abilities"]["network"] == "own"
    assert facts["stdout"] == "127.0.0.1 refused\nnameserver 198.51.100.3\n\n"


def test_shell_is_in_that_network(
    online: ExecutionGateway,
    open_gateway: Callable[..., ExecutionGateway],
    make_project: MakeProject,
    tmp_path: Path,
) -> None:
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\ngrep -q tap0 /proc/net/dev && exit 7\n")
    shell.chmod(0o755)
    gateway = open_gateway(environ={**os.environ, "SHELL": str(shell)}, roots=[tmp_path])
    codes = [
        gateway.open_shell(
            make_project("true", network=network),
            role=AgentRole.USER,
            permissions=Permissions(),
            announce=lambda *_: None,
        )
        for network in (True, False)
    ]
    assert codes == [7, 1]


@pytest.mark.parametrize(
    ("helper", "reason"),
    [
        (None, "slirp4netns is not installed"),
        (
            "echo first >&2; echo no tap device >&2; echo WARNING: x >&2; echo child failed >&2; exit 1",
            "slirp4netns failed: no tap device; child failed",
        ),
        ("exit 1", "slirp4netns failed: it said nothing"),
    ],
)
def test_without_a_working_helper_the_network_is_the_machine_s_and_the_reason_is_told(
    helper: str | None,
    reason: str,
    sealing: None,
    open_gateway: Callable[..., ExecutionGateway],
    make_project: MakeProject,
    server: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    if helper is not None:
        (programs / PROGRAM).write_text(f"#!/bin/sh\n{helper}\n")
        (programs / PROGRAM).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    gateway = open_gateway()
    told = f"pipelines with `network: true` reach the servers of this machine: {reason}"
    abilities = gateway.describe()
    assert (abilities.network, abilities.reasons[0]) == ("host", told)
    outcome = run_guarded(gateway, make_project(ASK.format(hosts=["127.0.0.1"], port=server)))
    assert outcome.stdout == "127.0.0.1 connected\n"


def test_helper_for_a_process_that_is_gone_is_an_error() -> None:
    require(shutil.which(PROGRAM), PROGRAM)
    with pytest.raises(GatewayError, match=r"^slirp4netns failed: \S"):
        NetworkHelper(2**22 - 1)
