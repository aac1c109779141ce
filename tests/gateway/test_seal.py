"""The arguments of the seal, and the sockets that it covers."""

from __future__ import annotations

import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway import seal as seal_module
from pytest_golden.gateway.seal import (
    Mounted,
    PrivateFolders,
    Seal,
    can_set_switches,
    cover,
    find_credentials,
    find_masked,
    find_mounts_below,
    find_private_to_root,
    find_sockets,
    parse_names,
    without_idle_covers,
)

if TYPE_CHECKING:
    from tests.gateway.conftest import RunInView


in_both_sealed_views = pytest.mark.parametrize("view", ["overlay", "copy"])


@in_both_sealed_views
def test_nothing_outside_can_be_written(view: str, run_in_view: RunInView, workspace: Path) -> None:
    (workspace / "beside").touch()
    targets = [
        f"{workspace}/new",
        f"{workspace}/beside",
        "/etc/golden",
        "/usr/golden",
        "/golden",
        f"{sys.prefix}/golden",
    ]
    script = f"""
        import errno
        for target in {targets!r}:
            try:
                open(target, "a").close()
            except OSError as error:
                print(errno.errorcode[error.errno])
    """
    assert run_in_view(view, script).stdout.split() == ["EROFS"] * len(targets)
    assert not (workspace / "new").exists()


@in_both_sealed_views
def test_home_and_temporary_folders_are_private_and_writable(
    view: str, run_in_view: RunInView, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "others").write_text("not yours")
    script = f"""
        ls -A ~; ls -A ~/.ssh; cat {tmp_path}/others
        touch ~/mine /tmp/mine /var/tmp/mine "$TMPDIR/mine" && echo written
        echo $HOME $TMPDIR
    """
    done = run_in_view(view, script)
    assert done.stdout == f"written\n{home} /tmp\n"
    assert not (home / "mine").exists()
    assert not Path("/tmp/mine").exists()


@pytest.mark.skipif(not Path("/run").is_dir(), reason="this system has no /run")
def test_sockets_of_the_system_are_hidden(run_in_view: RunInView) -> None:
    assert run_in_view("overlay", "find /run -type s -o -type f").stdout == ""


@in_both_sealed_views
def test_there_are_no_capabilities_and_no_way_to_get_them(view: str, run_in_view: RunInView) -> None:
    done = run_in_view(view, "grep -E '^(Cap|NoNewPrivs)' /proc/self/status")
    found = dict(line.split(":\t") for line in done.stdout.splitlines())
    assert {found[name] for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {"0000000000000000"}
    assert found["NoNewPrivs"] == "1"


@in_both_sealed_views
def test_mounts_cannot_be_changed(view: str, run_in_view: RunInView, workspace: Path) -> None:
    script = f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        MS_REMOUNT_BIND, MS_BIND = 32 | 4096, 4096
        print(libc.mount(None, b"/", None, MS_REMOUNT_BIND, None))
        print(libc.mount(b"/proc", b"{workspace}", None, MS_BIND, None))
        print(libc.umount2(b"{workspace}/project", 2))
    """
    assert run_in_view(view, script).stdout.split() == ["-1", "-1", "-1"]


def test_new_namespaces_do_not_lead_out(run_in_view: RunInView, workspace: Path) -> None:
    script = f"""
        import subprocess
        for flags in (["-rm"], ["-rmp", "--fork"]):
            subprocess.run(["unshare", *flags, "sh", "-c", "mount -o remount,bind,rw /; touch {workspace}/out"])
    """
    run_in_view("overlay", script)
    assert not (workspace / "out").exists()


@in_both_sealed_views
def test_processes_outside_cannot_be_seen(view: str, run_in_view: RunInView, tmp_path: Path) -> None:
    script = f"""
        import os
        print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit())[0], os.getpid() < 20)
        for pid in ("1", "self"):
            for name in ("{tmp_path}/home/.ssh/id_ed25519",):
                print(os.path.exists(f"/proc/{{pid}}/root{{name}}"))
        try:
            os.kill({os.getpid()}, 0)
        except ProcessLookupError:
            print("nobody there")
    """
    assert run_in_view(view, script).stdout.split("\n")[:4] == ["1 True", "False", "False", "nobody there"]


def test_network_of_the_machine_is_there_unless_cut_off(run_in_view: RunInView) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"""
            import socket
            try:
                socket.create_connection(("127.0.0.1", {port}), 2).close()
                print("connected")
            except OSError as error:
                print("refused")
        """
        assert run_in_view("overlay", script, network="host").stdout == "connected\n"
        assert run_in_view("overlay", script, network=False).stdout == "refused\n"


@in_both_sealed_views
def test_without_a_network_loopback_still_works_inside(view: str, run_in_view: RunInView) -> None:
    script = """
        import socket
        print([name for _, name in socket.if_nameindex()])
        server = socket.create_server(("127.0.0.1", 0))
        client = socket.create_connection(server.getsockname(), 2)
        server.accept()[0].sendall(b"hello")
        print(client.recv(5).decode())
        try:
            socket.create_connection(("192.0.2.1", 80), 2)
        except OSError as error:
            print(error.errno != 110)
    """
    assert run_in_view(view, script, network=False).stdout == "['lo']\nhello\nTrue\n"


@in_both_sealed_views
def test_descriptors_of_the_gate_are_closed_inside(view: str, run_in_view: RunInView, tmp_path: Path) -> None:
    script = """
        import os
        for name in sorted(os.listdir("/proc/self/fd"), key=int):
            try:
                print(name, os.readlink(f"/proc/self/fd/{name}").rsplit("/", 1)[-1])
            except FileNotFoundError:
                pass
    """
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        assert run_in_view(view, script).stdout.splitlines() == ["0 null", "1 main.out", "2 main.err"]


def test_what_lies_inside_the_project_is_seen_as_the_view_has_it(
    seal: Seal, workspace: Path, tmp_path: Path, project_dir: Path
) -> None:
    """Also when it is a root or on `sys.path`, and would be shown read-only elsewhere."""
    inner = project_dir / "tests"
    outer = Seal(seal.bwrap, seal.home, seal.masked, (str(inner), str(workspace)))
    private = PrivateFolders(tmp_path / "a", tmp_path / "b")
    command = outer.arguments(
        private, ["--bind", "view", str(project_dir)], (), network=True, working_folder=str(project_dir)
    )
    assert str(inner) not in command
    assert str(workspace) in command


def test_outer_mounts_come_before_inner_ones_and_the_last_of_two_stays_on_top(tmp_path: Path) -> None:
    seal = Seal("bwrap", "/home/me", ("/tmp", "/run", "/home/me"), ("/home/me/tool",))
    (tmp_path / "run").mkdir()
    private = PrivateFolders.make(tmp_path / "run")
    inner = [Mounted("/work/p/.git", ("--ro-bind", "git", "/work/p/.git")), Mounted("/work", ("--bind", "w", "/work"))]
    command = seal.arguments(private, ["--bind", "v", "/work/p"], inner, network=False, working_folder="/work/p")
    targets = [command[place + 2] for place, word in enumerate(command) if word in {"--bind", "--ro-bind"}]
    shown = [target for target in targets if not target.startswith("/proc/")]
    assert shown == ["/", "/tmp", "/work", "/home/me", "/work/p", "/home/me/tool", "/work/p/.git"]
    assert ("/proc/sys" in targets) is can_set_switches()
    assert command[0] == "bwrap"
    assert "--unshare-net" in command
    assert command[-3:] == ("--chdir", "/work/p", "--")
    assert private.home.stat().st_mode & 0o777 == private.temporary.stat().st_mode & 0o777 == 0o700


def test_masked_are_folders_and_never_the_whole_system_or_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert "/tmp" in find_masked(str(tmp_path))
    assert str(tmp_path) in find_masked(str(tmp_path))
    for unfit in ("/", str(tmp_path / "link"), str(tmp_path / "gone")):
        assert unfit not in find_masked(unfit)


def test_temporary_folder_of_the_machine_is_masked_where_no_other_mask_holds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert str(tmp_path) not in find_masked("/home/me")
    monkeypatch.setattr("pytest_golden.gateway.seal._PRIVATE", ())
    assert find_masked("/home/me")[-1] == str(tmp_path)
    assert find_masked(str(tmp_path)).count(str(tmp_path)) == 1


def test_credentials_are_those_that_exist_and_the_folder_of_key_and_token(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert find_credentials(str(home)) == (str(home / ".ssh"),)
    (tmp_path / "pytest-golden").mkdir()
    (home / ".netrc").touch()
    assert find_credentials(str(home)) == (str(home / ".ssh"), str(home / ".netrc"), str(tmp_path / "pytest-golden"))


def test_mounts_below_a_folder_are_read_from_the_kernels_table() -> None:
    table = (
        "1 0 8:1 / / rw - ext4 /dev/sda rw\n"
        "2 1 8:1 / /work rw - ext4 x rw\n"
        "3 1 8:1 / /work/data\\040lake rw shared:1 - ext4 x rw\n"
        "4 1 8:1 / /work/data\\040lake/sub rw - ext4 x rw\n"
        "5 1 8:1 / /work/\\303\\274 rw - ext4 x rw\n"
        "6 1 8:1 / /workshop rw - ext4 x rw\n"
    )
    assert find_mounts_below("/work", table) == ("/work/data lake", "/work/data lake/sub", "/work/ü")
    assert find_mounts_below("/elsewhere", table) == ()


TABLE = b"""Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 1901087 /srv/one s\nock\n
00000000b73ff008: 00000003 00000000 00000000 0001 03  1125
00000000b73ff009: 00000002 00000000 00010000 0001 01 19010 @/tmp/abstract
00000000b73ff00a: 00000002 00000000 00010000 0001 01 19010 relative
00000000b73ff00b: 00000002 00000000 00000000 0002 01     0 /srv/\xff
"""


def test_names_are_read_whatever_is_in_them() -> None:
    assert list(parse_names(TABLE)) == ["/srv/one s\nock\n", os.fsdecode(b"/srv/\xff")]
    assert list(parse_names(b"")) == list(parse_names(TABLE.splitlines()[0])) == []


@pytest.mark.skipif(sys.platform != "linux", reason="Linux names its sockets")
def test_sockets_are_found_while_they_are_there(tmp_path: Path) -> None:
    path, gone = str(tmp_path / "here"), tmp_path / "gone"
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as other:
        server.bind(path)
        other.bind(str(gone))
        gone.unlink()
        found = find_sockets()
        assert path in found
        assert str(gone) not in found
    assert path not in find_sockets()


@pytest.mark.skipif(os.getuid() != 0, reason="only root goes through folders that are closed to it")
def test_socket_behind_a_folder_of_somebody_else_needs_no_cover(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        os.chown(folder, 12345, 12345)
        assert str(folder / "s") not in find_sockets()
        folder.chmod(0o711)
        assert str(folder / "s") in find_sockets()


def test_covers_of_what_is_gone_or_out_of_reach_are_left_out(tmp_path: Path) -> None:
    here, closed, gone = (str(tmp_path / name) for name in ("here", "closed", "gone"))
    for path in (here, closed):
        (tmp_path / path).touch()
    prefix = ("bwrap", "--ro-bind", "/dev/null", "x", *cover(gone).arguments, *cover(here).arguments)
    prefix = (*prefix, *cover(closed).arguments, "--chdir", "/", "--")
    complaint = f"bwrap: Can't create file at {closed}: Permission denied\n".encode()
    kept = ("bwrap", *cover(here).arguments, "--chdir", "/", "--")
    assert without_idle_covers(prefix, complaint) == kept
    assert without_idle_covers(kept, complaint) == kept


def test_only_the_machines_own_folders_show_servers() -> None:
    assert Mounted("/srv", ("--ro-bind", "/srv", "/srv")).shows_servers
    assert Mounted("/srv", ("--bind", "/srv", "/srv")).shows_servers
    assert not Mounted("/srv", ("--bind", "/srv", "/srv"), is_granted=True).shows_servers
    assert not Mounted("/srv", ("--bind", "/scratch/view", "/srv")).shows_servers
    assert not Mounted("/srv", ("--overlay-src", "/srv", "--overlay", "u", "w", "/srv")).shows_servers
    assert not Mounted("/run", ("--size", "1", "--tmpfs", "/run")).shows_servers


@pytest.mark.skipif(os.getuid() != 0, reason="only root owns what is private to root")
def test_what_only_root_may_read_is_found_as_deep_as_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "deep" / "deeper").mkdir(parents=True)
    (tmp_path / "closed").mkdir(mode=0o750)
    (tmp_path / "theirs").mkdir(mode=0o700)
    (tmp_path / "nothing").mkdir(mode=0o700)
    for path in ("open", "secret", "empty", "closed/below", "deep/secret", "deep/deeper/secret"):
        (tmp_path / path).write_text("" if path == "empty" else "x")
        (tmp_path / path).chmod(0o644 if path == "open" else 0o640)
    (tmp_path / "link").symlink_to("secret")
    os.chown(tmp_path / "theirs", 12345, 12345)
    monkeypatch.setattr(seal_module, "_PLACES_OF_SYSTEM", {str(tmp_path): 2, f"{tmp_path}/gone": 1})
    assert find_private_to_root.__wrapped__() == tuple(
        f"{tmp_path}/{path}" for path in ("closed", "deep/secret", "secret")
    )
