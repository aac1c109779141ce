"""Files that no pipeline may see although they lie where it looks: credentials in HOME, and the gate's own store."""

from __future__ import annotations

import fcntl
import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gate.state_folder import StorePlace, list_store_files
from pytest_golden.gateway.model import AgentRole, Permissions
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.storage.store import Store
from tests.gateway.conftest import run_guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gateway.model import PipelineOutcome
    from tests.gateway.conftest import MakeProject

    Run = Callable[..., PipelineOutcome]

pytestmark = pytest.mark.usefixtures("sealing")
in_both_views = pytest.mark.parametrize("view", ["overlay", "copy"])

SECRETS = (".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".netrc", ".config/pytest-golden/key")


@pytest.fixture
def full_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    for name in (*SECRETS, ".config/tool.toml"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(f"content of {name}\n")
    return home


def run_at(root: Path, view: str, script: str, /, **keys: object) -> PipelineOutcome:
    (root / "pipeline.sh").write_text(script)
    project = GoldenProjectConfig("a", "pipeline.sh", **keys)  # type: ignore[arg-type]
    with ExecutionGateway(root, view=view) as gateway:
        return gateway.run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())


READ_ALL = f"for name in {' '.join(SECRETS)} .config/tool.toml; do cat $HOME/$name; done; true"


@in_both_views
def test_credentials_are_hidden_where_home_is_the_project(view: str, full_home: Path) -> None:
    outcome = run_at(full_home, view, f"{READ_ALL}; echo x > made")
    assert (outcome.stdout, outcome.problem) == ("content of .config/tool.toml\n", None)
    assert outcome.write_set.created == ("made",)


@in_both_views
def test_credentials_are_hidden_where_home_is_the_workspace(view: str, full_home: Path) -> None:
    (full_home / "sub").mkdir()
    (full_home / "sub" / "run.sh").write_text(READ_ALL)
    project = GoldenProjectConfig("a", "sub/run.sh")
    with ExecutionGateway(full_home, view=view) as gateway:
        outcome = gateway.run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())
        told = gateway.describe().seal_reason
    assert (outcome.stdout, outcome.problem) == ("content of .config/tool.toml\n", None)
    assert told.startswith(f"{full_home} is your HOME or contains it: pipelines may read")


def test_credentials_are_shown_by_a_mount_of_their_own_name_alone(full_home: Path) -> None:
    mounts = [{"path": str(full_home), "mode": "read"}, {"path": str(full_home / ".aws"), "mode": "read"}]
    folder = full_home / "p"
    folder.mkdir()
    outcome = run_at(folder, "overlay", READ_ALL, mounts=mounts, pass_files=[str(full_home / ".netrc")])
    # What is passed is redacted.
    shown = ["content of .aws/credentials", "[REDACTED]", "content of .config/tool.toml"]
    assert outcome.stdout.splitlines() == shown


def test_credentials_behind_a_link_are_hidden_where_they_lie(full_home: Path) -> None:
    (full_home / "dotfiles").mkdir()
    (full_home / ".aws").rename(full_home / "dotfiles" / "aws")
    (full_home / ".aws").symlink_to("dotfiles/aws")
    outcome = run_at(full_home, "overlay", "cat .aws/credentials dotfiles/aws/credentials; echo done")
    assert outcome.stdout == "done\n"


@in_both_views
@pytest.mark.parametrize("place", ["project/shard.db", "shard.db"])
def test_store_outside_its_folder_is_hidden_with_its_log(
    view: str, place: str, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, workspace: Path
) -> None:
    path = workspace / place
    with closing(Store.open(path)):
        files = list_store_files(StorePlace(path, is_own=False))
        there = [file for file in files if file.exists()]
        assert [file.name for file in there] == ["shard.db", "shard.db-wal", "shard.db-shm"]
        script = "".join(f"cat {file} | wc -c\n" for file in there) + "echo x > made"
        outcome = run_guarded(open_gateway(view=view, hidden=files), make_project(script))
    assert outcome.stdout == "0\n" * 3
    assert outcome.write_set.created == ("made",)
    assert outcome.changed_underneath == ()


def test_store_is_hidden_below_a_mount_too(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, workspace: Path
) -> None:
    (workspace / "lake").mkdir()
    (workspace / "lake" / "gate.db").write_text("results")
    (workspace / "lake" / "data").write_text("data\n")
    project = make_project("cat ../lake/gate.db ../lake/data", mounts=[{"path": str(workspace / "lake")}])
    outcome = run_guarded(open_gateway(hidden=[workspace / "lake" / "gate.db"]), project)
    assert outcome.stdout == "data\n"


def test_pipes_and_locks_in_the_project_do_not_reach_out(
    run: Callable[..., PipelineOutcome], project_dir: Path
) -> None:
    os.mkfifo(project_dir / "pipe")
    reader = os.open(project_dir / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with (project_dir / "lock").open("w") as lock, os.fdopen(reader, "rb") as pipe:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fcntl.lockf(lock, fcntl.LOCK_EX)
        outcome = run("""
            import fcntl, os
            try:
                os.write(os.open("pipe", os.O_WRONLY | os.O_NONBLOCK), b"x")
            except OSError as error:
                print(error.strerror)
            with open("lock") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with open("lock") as lock:
                fcntl.lockf(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                print("locked")
        """)
        assert outcome.stdout == "No such device or address\nlocked\n"
        assert pipe.read() == b""


@pytest.mark.skipif(os.getuid() != 0, reason="only root can read what is private to root")
@pytest.mark.skipif(not Path("/etc/shadow").exists(), reason="this system has no /etc/shadow")
@in_both_views
def test_root_s_pipeline_reads_nothing_of_etc_that_only_root_may_read(view: str, run: Run) -> None:
    script = "cat /etc/shadow; ls -A /etc/ssl/private; head -c 4 /etc/passwd"
    outcome = run(script, view=view)
    assert (outcome.stdout, outcome.exit_code) == ("root", 0)
    named = run("grep -c root: /etc/shadow", view=view, mounts=[{"path": "/etc/shadow"}])
    assert named.stdout == "1\n"
