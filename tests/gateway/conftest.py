"""What tests of the gateway share: projects made of real files, run in every kind of view, also on lesser machines."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from pytest_golden.gateway.execution import Executed, execute
from pytest_golden.gateway.machine import Probe, build_seal, probe
from pytest_golden.gateway.model import AgentRole, Permissions, PipelineOutcome, RunnerCommand
from pytest_golden.gateway.preparation import Prepared, prepare
from pytest_golden.gateway.process import Supervisor
from pytest_golden.gateway.resolution import resolve_project
from pytest_golden.gateway.sandbox_program import list_programs
from pytest_golden.gateway.seal import Seal, find_credentials, find_masked, handing_in
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.gateway.write_set import take_fingerprint
from pytest_golden.manifest.model import GoldenProjectConfig
from tests.requirement import require

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pytest_golden.gateway.model import WriteSet

#: The three ways in which a pipeline can be run; the last is all there is on a machine without user namespaces.
VIEWS = ("overlay", "copy", "unsealed")


class MakeProject(Protocol):
    def __call__(self, script: str, /, **keys: Any) -> GoldenProjectConfig: ...


class RunInView(Protocol):
    def __call__(self, view: str, script: str, /, **keys: Any) -> ViewRun: ...


class RunElsewhere(Protocol):
    def __call__(
        self,
        machine: Sequence[str],
        code: str,
        /,
        *,
        environment: Mapping[str, str] | None = None,
        program: bytes = b"",
    ) -> dict[str, Any]: ...


@pytest.fixture(scope="session")
def found() -> Probe:
    """Find out once what this machine can do; tests of the seal are skipped where it can do nothing."""
    with TemporaryDirectory(prefix="golden-test-") as scratch:
        return probe(Path(scratch), ())


@pytest.fixture(scope="session")
def machine_seal() -> Seal | None:
    """Build this machine's seal once, with the HOME that the tests were started with."""
    bwrap = next(iter(list_programs()), None)
    return None if bwrap is None else build_seal(bwrap, ())


@pytest.fixture
def seal(machine_seal: Seal | None, home: Path, workspace: Path) -> Seal | None:
    """Return the seal as it is for a test's own HOME and workspace."""
    if machine_seal is None:
        return None
    masked = find_masked(str(home))
    visible = (str(workspace), *machine_seal.visible)
    return replace(machine_seal, home=str(home), masked=masked, visible=visible, hidden=find_credentials(str(home)))


@pytest.fixture
def sealing(found: Probe) -> None:
    """Skip where pipelines cannot be sealed at all, unless everything is required."""
    _require(found.overlay, found)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return every test a HOME of its own with a secret in it."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True)
    (folder / ".ssh" / "id_ed25519").write_text("the private key\n")
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "project").mkdir(parents=True)
    return folder


@pytest.fixture
def project_dir(workspace: Path) -> Path:
    return workspace / "project"


@pytest.fixture
def make_project(project_dir: Path) -> MakeProject:
    """Write a script as the project's pipeline: Python where it imports something, else shell."""

    def make(script: str, /, **keys: Any) -> GoldenProjectConfig:
        script = textwrap.dedent(script).lstrip("\n")
        name = "pipeline.py" if script.startswith(("import ", "from ")) else "pipeline.sh"
        (project_dir / name).write_text(script)
        return GoldenProjectConfig(keys.pop("name", "sales"), f"project/{name}", **keys)

    return make


@pytest.fixture
def open_gateway(workspace: Path) -> Iterator[Callable[..., ExecutionGateway]]:
    """Open gateways on the workspace, closed when the test ends."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(ExecutionGateway(workspace, **options))


@pytest.fixture
def run(open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject) -> Callable[..., PipelineOutcome]:
    """Run a script as a golden project through a gateway."""

    def run_script(script: str, /, *, view: str = "auto", **keys: Any) -> PipelineOutcome:
        return run_guarded(open_gateway(view=view), make_project(script, **keys))

    return run_script


def run_guarded(gateway: ExecutionGateway, project: GoldenProjectConfig) -> PipelineOutcome:
    return gateway.run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())


@dataclass(frozen=True)
class ViewRun:
    """A run below the gateway: what was prepared, how it went, what it printed and wrote."""

    prepared: Prepared
    executed: Executed

    @property
    def stdout(self) -> str:
        return self.executed.stdout.read_text()

    @property
    def stderr(self) -> str:
        return self.executed.stderr.read_text()

    @property
    def write_set(self) -> WriteSet:
        return self.prepared.view.take_write_set()


@pytest.fixture(scope="session")
def supervisor() -> Iterator[Supervisor]:
    supervisor = Supervisor()
    yield supervisor
    supervisor.close()


@pytest.fixture
def run_in_view(
    workspace: Path,
    tmp_path: Path,
    make_project: MakeProject,
    supervisor: Supervisor,
    found: Probe,
    seal: Seal | None,
) -> RunInView:
    """Run a script in one kind of view, the unsealed one included whatever this machine can do."""

    def run_script(view: str, script: str, /, **keys: Any) -> ViewRun:
        _require({"overlay": found.overlay, "copy": found.seal is not None}.get(view, True), found)
        stand_ins = keys.pop("stand_ins", None)
        project = resolve_project(make_project(script, **keys), workspace)
        start = sys.executable if project.file.suffix == ".py" else "sh"
        command = RunnerCommand((start, "{path}"))
        folder = tmp_path / f"scratch-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        prepared = prepare(
            project,
            command,
            folder=folder,
            seal=None if view == "unsealed" else seal,
            overlay=view == "overlay",
            fingerprint=take_fingerprint(str(project.project_dir)),
            masked_roots=(workspace, project.project_dir),
            environ=os.environ,
            stand_ins=stand_ins,
        )
        return ViewRun(prepared, execute(prepared, command.argv, supervisor))

    return run_script


_CHILD = """
import json, os, sys
from pathlib import Path
from pytest_golden.gateway.model import *
from pytest_golden.gateway.service import *
from pytest_golden.manifest.model import GoldenProjectConfig, Mount
workspace = Path(os.environ["WORKSPACE"])
def guarded(gateway, project):
    return gateway.run_pipeline(project, role=AgentRole.REGRESSION_GUARD, permissions=Permissions())
def show(outcome, gateway=None):
    facts = {
        "ending": outcome.ending, "exit_code": outcome.exit_code, "problem": outcome.problem, "message": outcome.message,
        "stdout": outcome.stdout, "stderr": outcome.stderr, "sealed": outcome.sealed, "warnings": outcome.warnings,
        "changed_underneath": outcome.changed_underneath, "write_set": outcome.write_set.to_dict(),
    }
    if gateway is not None:
        facts["abilities"] = gateway.describe().to_dict()
    print(json.dumps(facts))
"""


@pytest.fixture
def run_elsewhere(workspace: Path, tmp_path: Path, found: Probe) -> RunElsewhere:
    """Run Python code, which prints JSON, on a lesser machine that the sandbox program makes of this one.

    `program` is a filter of system calls that makes it lesser still.
    """
    bwrap = next(iter(list_programs()), None)

    def run_code(
        machine: Sequence[str],
        code: str,
        /,
        *,
        environment: Mapping[str, str] | None = None,
        program: bytes = b"",
    ) -> dict[str, Any]:
        _require(found.seal is not None, found)
        assert bwrap is not None
        command = [bwrap, *machine, "--", sys.executable, "-W", "error", "-c", _CHILD + textwrap.dedent(code)]
        inside = {**os.environ, "WORKSPACE": str(workspace), **(environment or {})}
        with handing_in(command, program, inside) as (argv, numbers):
            done = subprocess.run(
                argv,
                cwd=tmp_path,
                env={},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
                pass_fds=numbers,
            )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr, done.stderr
        facts: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return facts

    return run_code


#: No user namespace can be made inside: the machine of a locked-down kernel or container.
NO_NAMESPACES = ("--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--proc", "/proc")
#: Nothing can be written anywhere, as in a container that was started read-only.
READ_ONLY = (
    *("--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--ro-bind", "/dev/shm", "/dev/shm"),
    # A measured child would complain that it cannot write what it measured.
    *("--unsetenv", "COVERAGE_PROCESS_CONFIG", "--unsetenv", "COVERAGE_PROCESS_START"),
)
#: An ordinary user, who has no capability and is not the owner of anything that others own.
NOT_ROOT = ("--unshare-user", "--uid", "1000", "--gid", "1000", "--cap-drop", "ALL", "--dev-bind", "/", "/")


def processes_with(mark: str) -> list[int]:
    """List the processes whose command line holds a mark, other than this one."""
    pids = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if mark.encode() in line:
            pids.append(int(entry.name))
    return pids


def wait_until(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Look again and again until something holds; False when it did not in time."""
    limit = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > limit:
            return False
        time.sleep(0.01)
    return True


def _require(is_able: bool, found: Probe) -> None:
    require(is_able, f"what this test wants: {found.seal_reason or found.overlay_reason}")
