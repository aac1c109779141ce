"""The gateway as its callers use it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from pytest_golden.errors import GatewayError, PermissionDeniedError
from pytest_golden.gateway.model import (
    AgentRole,
    Ending,
    PatternVerdict,
    Permissions,
    PipelineOutcome,
    Problem,
    RunnerCommand,
)
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.model import GoldenProjectConfig, Mount
from pytest_golden.trajectory.readers.model import StepReading
from tests.gateway.conftest import run_guarded, wait_until
from tests.patience import PATIENCE_SECONDS, without_hanging
from tests.repository import git

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.conftest import MakeProject


Run = Any
in_both_views = pytest.mark.parametrize("view", ["auto", "copy"])


@in_both_views
def test_facts_of_a_run_are_given(view: str, run: Run, project_dir: Path) -> None:
    outcome: PipelineOutcome = run("echo hello; echo oh >&2; echo x > out.csv; exit 3", view=view)
    assert (outcome.ending, outcome.exit_code, outcome.problem, outcome.message) == (Ending.EXITED, 3, None, "")
    assert (outcome.stdout, outcome.stdout_bytes) == ("hello\n", 6)
    assert (outcome.stderr, outcome.stderr_bytes) == ("oh\n", 3)
    assert outcome.write_set.created == ("out.csv",)
    assert outcome.command[-1].endswith("/pipeline.sh")
    assert outcome.duration_seconds > 0
    assert 0 < outcome.prepare_seconds < PATIENCE_SECONDS
    assert 0 < outcome.compare_seconds < PATIENCE_SECONDS
    assert outcome.trajectory is not None
    assert outcome.trajectory.outcome == "failure"
    assert not (project_dir / "out.csv").exists()


def test_project_that_changes_between_two_runs_is_run_as_it_is(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway = open_gateway()
    for code in (0, 3, 0):
        outcome = run_guarded(gateway, make_project(f"exit {code}"))
        assert (outcome.exit_code, outcome.problem) == (code, None)


def test_project_that_appears_later_is_found_then(
    open_gateway: Callable[..., ExecutionGateway], project_dir: Path
) -> None:
    gateway = open_gateway()
    project = GoldenProjectConfig("late", "project/late.sh")
    assert run_guarded(gateway, project).problem is Problem.PATH_NOT_FOUND
    (project_dir / "late.sh").touch()
    assert run_guarded(gateway, project).exit_code == 0


def test_frozen_paths_stay_what_they_were(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, workspace: Path
) -> None:
    gateway = open_gateway()
    there, late = make_project("echo first"), GoldenProjectConfig("late", "other/late.sh")
    gateway.freeze([late, there])
    (workspace / "other").mkdir()
    (workspace / "other" / "late.sh").touch()
    assert run_guarded(gateway, late).problem is Problem.PATH_NOT_FOUND
    assert run_guarded(gateway, there).stdout == "first\n"
    other = GoldenProjectConfig("late", "project/pipeline.sh")
    assert run_guarded(gateway, other).stdout == "first\n"


def test_neighbours_share_a_look_and_a_change_between_them_is_found_out(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, project_dir: Path
) -> None:
    gateway = open_gateway()
    project = make_project("true")
    gateway.freeze([project])
    assert run_guarded(gateway, project).problem is None
    assert run_guarded(gateway, project).problem is None
    (project_dir / "data").touch()
    outcome = run_guarded(gateway, project)
    assert (outcome.problem, outcome.changed_underneath) == (Problem.PROJECT_CHANGED, ("data",))


@in_both_views
def test_project_that_others_change_while_it_runs_is_found_out(
    view: str, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, project_dir: Path
) -> None:
    (project_dir / "data").write_text("1")
    (project_dir.parent / "marks").mkdir()
    gateway = open_gateway(view=view)
    project = make_project(
        """
        import time
        from pathlib import Path
        while not Path("../marks/edited").exists():
            time.sleep(0.01)
    """,
        mounts=(Mount("marks"),),
    )

    def edit() -> None:
        assert wait_until(lambda: gateway._running is not None)
        (project_dir / "data").write_text("2")
        (project_dir / "new").touch()
        (project_dir.parent / "marks" / "edited").touch()

    thread = threading.Thread(target=edit)
    thread.start()
    outcome = run_guarded(gateway, project)
    thread.join()
    assert (outcome.exit_code, outcome.problem) == (0, Problem.PROJECT_CHANGED)
    assert outcome.changed_underneath == ("data", "new")


@pytest.mark.usefixtures("sealing")
def test_what_a_writable_mount_changes_is_no_tampering(run: Run, project_dir: Path) -> None:
    (project_dir / "state").mkdir()
    (project_dir / "state" / "x").write_text("old")
    outcome = run("echo new > state/x; echo y > beside", mounts=[{"path": "project/state", "mode": "write"}])
    assert (outcome.problem, outcome.changed_underneath) == (None, ())
    assert (project_dir / "state" / "x").read_text() == "new\n"
    assert outcome.write_set.created == ("beside",)


@pytest.mark.parametrize(
    ("role", "permissions"),
    [
        (AgentRole.REGRESSION_GUARD, Permissions(can_edit_source=True)),
        (AgentRole.OBSERVER, Permissions()),
        (AgentRole.REGRESSION_GUARD, Permissions(can_execute_tasks=False)),
    ],
)
def test_request_for_more_than_a_role_may_have_is_refused(
    role: AgentRole, permissions: Permissions, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway, project = open_gateway(), make_project("touch ran")
    with pytest.raises(PermissionDeniedError):
        gateway.run_pipeline(project, role=role, permissions=permissions)
    with pytest.raises(PermissionDeniedError):
        gateway.open_shell(project, role=role, permissions=permissions, announce=lambda *_: None)


@pytest.mark.parametrize(
    ("path", "keys", "problem"),
    [
        ("gone.sh", {}, Problem.PATH_NOT_FOUND),
        ("/etc/passwd", {"project_dir": "project"}, Problem.PATH_NOT_ALLOWED),
        ("project/data.bin", {}, Problem.RUNNER_UNKNOWN),
        ("project/data.bin", {"command": ["no-such-tool-anywhere"]}, Problem.COMMAND_NOT_FOUND),
        ("project/data.bin", {"skip_if_missing": ["no_such_module"]}, Problem.SKIP_IF_MISSING),
        ("project/data.bin", {"skip_if_missing": ["no_such_module", "nor_that"]}, Problem.SKIP_IF_MISSING),
        ("project/data.bin", {"command": ["true"], "pass_files": ["project"]}, Problem.HARNESS),
    ],
)
def test_project_that_cannot_be_run_is_a_fact_and_leaves_a_trajectory(
    path: str, keys: dict[str, Any], problem: Problem, open_gateway: Callable[..., ExecutionGateway], project_dir: Path
) -> None:
    (project_dir / "data.bin").touch()
    outcome = run_guarded(open_gateway(), GoldenProjectConfig("a", path, **keys))
    assert (outcome.ending, outcome.exit_code, outcome.problem) == (Ending.NOT_STARTED, None, problem)
    assert outcome.message
    assert "\n" not in outcome.message
    assert "Traceback" not in outcome.message
    assert outcome.trajectory is not None
    (step,) = outcome.trajectory.steps
    assert (step.importance, outcome.trajectory.outcome) == ("critical", "error")


@in_both_views
def test_context_is_clean(view: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "PYTHONPATH", "EDITOR", "PYTEST_CURRENT_TEST", "COVERAGE_PROCESS_START"):
        monkeypatch.setenv(name, "from outside")
    script = """
        import os, sys
        print(sorted(set(os.environ) - {"VIRTUAL_ENV", "LC_CTYPE"}), os.environ["DATABASE_URL"], os.environ["TZ"])
        print(repr(sys.stdin.read()), os.getcwd())
    """
    passed = {"pass_env": ["DATABASE_URL", "UNSET"], "not_secret": ["DATABASE_URL"]}
    outcome = run(script, view=view, **passed, set_env={"TZ": "Europe/Vienna"})
    names = [
        "DATABASE_URL", "GOLDEN_STEPS", "HOME", "LC_ALL", "PATH", "PYTHONHASHSEED", "SOURCE_DATE_EPOCH", "TMPDIR", "TZ",
    ]  # fmt: skip
    assert [name for name in names if repr(name) not in outcome.stdout] == []
    assert "EDITOR" not in outcome.stdout
    assert "from outside Europe/Vienna" in outcome.stdout
    assert "'' " in outcome.stdout


def test_secrets_of_variables_and_files_are_hidden_everywhere(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch, workspace: Path
) -> None:
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "Zx81-hidden-one")
    (home / "profiles.yml").write_text("password: Zx82-hidden-two\nuser: sales\n")
    script = """
        echo $WAREHOUSE_PASSWORD $API_TOKEN; cat ~/profiles.yml >&2
        echo "{\\"name\\": \\"connect Zx81-hidden-one\\", \\"error\\": \\"bad Zx82-hidden-two\\"}" >> $GOLDEN_STEPS
        exit 1
    """
    outcome: PipelineOutcome = run(
        script,
        pass_env=["WAREHOUSE_PASSWORD"],
        set_env={"API_TOKEN": "Zx83-hidden-three"},
        pass_files=["~/profiles.yml"],
        after=["sh -c 'echo Zx83-hidden-three; exit 1'"],
        args=["--password", "Zx81-hidden-one"],
    )
    assert outcome.trajectory is not None
    shown = f"{outcome!r} {outcome.trajectory.to_dict()!r}"
    assert "hidden-" not in shown
    assert "user: sales" in outcome.stderr
    assert len(outcome.trajectory.steps) == 1


def test_passed_values_of_any_name_are_hidden_but_for_those_that_are_not_secret(
    run: Run, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"DB_HOST": "db7.example.org", "SCHEMA": "finance", "SHOWN": "shown-9-value", "NAMED": "totals_2026"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    (workspace / "hidden.yml").write_text("host: mq7.example.org\n")
    (workspace / "shown.yml").write_text("host: mq8.example.org\npassword: Zx82-hidden-two\n")
    outcome = run(
        """
        echo "$DB_HOST $SCHEMA.orders $SHOWN $NAMED"; cat ~/hidden.yml ~/shown.yml
        touch totals_2026.csv
        """,
        pass_env=[*given],
        pass_files=["hidden.yml", "shown.yml"],
        not_secret=["SHOWN", "shown.yml"],
        outputs=[{"path": "totals_2026.csv", "compare": "exists"}],
    )
    assert outcome.stdout.splitlines() == [
        "[REDACTED] [REDACTED].orders shown-9-value totals_2026",
        "[REDACTED]",
        "host: mq8.example.org",
        "password: [REDACTED]",
    ]
    assert outcome.write_set.created == ("totals_2026.csv",)


@in_both_views
@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("echo 'ValueError: no rows' >&2; exit 1", PatternVerdict.FOUND),
        ("echo 'ValueError: no rows'; exit 1", PatternVerdict.FOUND),
        ('echo \'{"name": "load", "error": "ValueError: no rows"}\' >> $GOLDEN_STEPS; exit 1', PatternVerdict.FOUND),
        ("echo 'KeyError' >&2; exit 1", PatternVerdict.ABSENT),
        ("echo 'ValueError: no rows' >&2; exit 0", None),
    ],
)
def test_expected_error_is_searched_in_output_and_steps(
    view: str, script: str, verdict: PatternVerdict | None, run: Run
) -> None:
    assert run(script, view=view, expected_outcome="specific_error:^ValueError: no").pattern_verdict is verdict


def test_expected_error_is_found_before_redaction(run: Run) -> None:
    script = "echo 'refused: password=Zx91-hidden' >&2; exit 1"
    outcome = run(script, expected_outcome="specific_error:password=Zx91-hidden")
    assert outcome.pattern_verdict is PatternVerdict.FOUND
    assert "Zx91" not in outcome.stderr


def test_steps_of_the_pipeline_make_its_trajectory(run: Run) -> None:
    outcome: PipelineOutcome = run("""
        echo '{"name": "load", "id": "1", "rows": 3}' >> $GOLDEN_STEPS
        echo '{"name": "join", "parent": "1", "type": "tool_call"}' >> $GOLDEN_STEPS
        echo 'no step' >> $GOLDEN_STEPS
    """)
    assert outcome.trajectory is not None
    assert [step.content for step in outcome.trajectory.steps] == ["load", "join"]
    assert outcome.trajectory.outcome == "success"
    assert len(outcome.warnings) == 1


class Reader:
    name = "own"

    def read(self, view: Any, outcome: Any) -> StepReading:
        found = view.find_file("steps.txt")
        return StepReading(warnings=() if found is None else (found.read_text().strip(),))


@pytest.mark.parametrize(("steps", "warnings"), [("auto", ("read me",)), (["own"], ("read me",)), ([], ())])
def test_plugged_in_readers_are_asked_unless_others_are_named(
    steps: Any, warnings: tuple[str, ...], open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway = open_gateway(step_readers=iter([Reader()]))
    keys = {} if steps == [] else {"steps": steps}
    project = make_project("echo read me > steps.txt" if steps else "true", **keys)
    assert run_guarded(gateway, project).warnings == warnings


def test_plugged_in_runner_is_asked_first_and_redactors_are_used(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway = open_gateway(
        find_command=lambda project: RunnerCommand(("echo", "customer 4711", "{path}"), {"ADDED": "1"}),
        redactors=[lambda text: text.replace("4711", "***")],
    )
    assert run_guarded(gateway, make_project("exit 9")).stdout.startswith("customer *** /")


@pytest.mark.parametrize(("exit_code", "told"), [(0, ()), (3, ("the engine is old",))])
def test_hint_of_a_runner_is_told_only_if_the_pipeline_fails(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, exit_code: int, told: tuple[str, ...]
) -> None:
    command = RunnerCommand(("sh", "-c", f"exit {exit_code}"), hint="the engine is old")
    gateway = open_gateway(find_command=lambda _: command)
    assert run_guarded(gateway, make_project("true")).warnings == told


def test_present_step_is_told_while_a_pipeline_runs_and_without_its_secrets(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway = open_gateway()
    script = 'echo "{\\"name\\": \\"connect $TOKEN\\"}" >> $GOLDEN_STEPS; sleep 1'
    project = make_project(script, set_env={"TOKEN": "Zx77-very-hidden"})
    assert gateway.present_step() is None
    seen: list[str | None] = []

    def look() -> None:
        def is_told() -> bool:
            seen.append(gateway.present_step())
            return seen[-1] is not None

        wait_until(is_told)

    thread = threading.Thread(target=look)
    thread.start()
    run_guarded(gateway, project)
    thread.join()
    assert seen[-1] is not None
    assert seen[-1].startswith("connect ")
    assert "hidden" not in seen[-1]
    assert gateway.present_step() is None


def test_all_scratch_is_gone_after_closing(
    workspace: Path, make_project: MakeProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    with ExecutionGateway(workspace) as gateway:
        run_guarded(gateway, make_project("mkdir -p a/b; touch a/b/c; chmod 000 a/b a"))
        (scratch,) = (tmp_path / "temporary").iterdir()
        assert wait_until(lambda: [path.name for path in scratch.iterdir()] == ["alive.lock"])
    assert list((tmp_path / "temporary").iterdir()) == []


@in_both_views
def test_interrupt_stops_the_pipeline_and_is_a_fact(
    view: str, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway = open_gateway(view=view)
    project = make_project("""
        import os, time
        print(os.environ["GOLDEN_STEPS"] and "running", flush=True)
        open(os.environ["GOLDEN_STEPS"], "w").write('{"name": "waiting"}\\n')
        try:
            time.sleep(300)
        except KeyboardInterrupt:
            print("stopped by hand")
    """)

    with without_hanging():
        outcome = run_and_interrupt(gateway, project)
        assert outcome.ending is Ending.INTERRUPTED
        assert outcome.stdout == "running\nstopped by hand\n"


def test_failed_after_is_not_the_error_of_a_trajectory_that_failed_before_it(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway = open_gateway(view="copy")
    failed, passed = (run_guarded(gateway, make_project(f"exit {code}", after=["false"])) for code in (3, 0))
    assert (failed.exit_code, failed.problem) == (3, Problem.AFTER_FAILED)
    assert failed.trajectory is not None
    assert (failed.trajectory.outcome, failed.trajectory.error) == ("failure", None)
    assert passed.trajectory is not None
    assert "`after:` command `false` failed" in str(passed.trajectory.error)


def test_request_may_use_the_names_of_the_document(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway = open_gateway(view="copy")
    project = make_project("echo done")
    request: dict[str, Any] = {"agent_role": AgentRole.REGRESSION_GUARD, "agent_permissions": Permissions()}
    assert gateway.run_pipeline(project, **request).stdout == "done\n"
    with pytest.raises(TypeError, match="not both"):
        gateway.run_pipeline(project, **request, role=AgentRole.REGRESSION_GUARD)
    with pytest.raises(TypeError, match="needs a role and permissions"):
        gateway.run_pipeline(project)


@in_both_views
def test_interrupt_while_after_runs_ends_the_gate_too(
    view: str, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    waiting = ["sh", "-c", """echo '{"name": "waiting"}' > $GOLDEN_STEPS; exec sleep 30"""]
    outcome = run_and_interrupt(open_gateway(view=view), make_project("echo done", after=[waiting]))
    assert (outcome.ending, outcome.problem) == (Ending.INTERRUPTED, Problem.AFTER_FAILED)
    assert outcome.stdout == "done\n"


def run_and_interrupt(gateway: ExecutionGateway, project: GoldenProjectConfig) -> PipelineOutcome:
    """Run a project and send this process a Ctrl-C once it says that it waits."""

    def interrupt() -> None:
        assert wait_until(lambda: gateway.present_step() == "waiting")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    outcome = run_guarded(gateway, project)
    thread.join()
    return outcome


def test_interrupt_while_a_run_is_prepared_is_a_fact(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    def interrupted(_: GoldenProjectConfig) -> RunnerCommand:
        raise KeyboardInterrupt

    outcome = run_guarded(open_gateway(find_command=interrupted), make_project("true"))
    assert (outcome.ending, outcome.problem) == (Ending.INTERRUPTED, None)


def test_supervisor_that_was_killed_costs_one_run(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway, project = open_gateway(view="copy"), make_project("true", network="host")
    before = set(psutil.Process().children())
    assert run_guarded(gateway, project).ending is Ending.EXITED
    (supervisor,) = set(psutil.Process().children()) - before
    supervisor.kill()
    assert wait_until(lambda: supervisor.status() == psutil.STATUS_ZOMBIE)
    lost = run_guarded(gateway, project)
    assert (lost.ending, lost.problem) == (Ending.NOT_STARTED, Problem.HARNESS)
    assert run_guarded(gateway, project).ending is Ending.EXITED


def test_gateway_leaves_no_process_and_no_descriptor(workspace: Path, make_project: MakeProject) -> None:
    make_project("true")
    code = """
import os, sys
from pytest_golden.gateway.model import *
from pytest_golden.gateway.service import *
from pytest_golden.manifest.model import GoldenProjectConfig
def descriptors():
    return sorted(os.listdir("/proc/self/fd"))
before = descriptors()
for _ in range(3):
    with ExecutionGateway(sys.argv[1]) as gateway:
        for keys in ({}, {"command": ["/no/such"], "before": ["true"]}):
            project = GoldenProjectConfig("a", "project/pipeline.sh", **keys)
            gateway.run_pipeline(project, role="regression_guard", permissions=Permissions())
assert descriptors() == before, descriptors()
try:
    os.waitpid(-1, os.WNOHANG)
except ChildProcessError:
    print("clean")
"""
    command = [sys.executable, "-W", "error", "-c", code, str(workspace)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("clean\n", "")


def test_secret_in_a_file_name_is_redacted(run: Callable[..., PipelineOutcome]) -> None:
    outcome = run("import os; open('f-' + os.environ['MY_TOKEN'], 'w').close()", set_env={"MY_TOKEN": "lion-mane-99"})
    assert len(outcome.write_set.created) == 1
    assert "lion" not in json.dumps(outcome.to_dict())


def test_logs_are_kept_by_attempt(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, tmp_path: Path
) -> None:
    gateway = open_gateway(log_folder=tmp_path / "logs")
    project = make_project("echo hello")
    first, second = run_guarded(gateway, project), run_guarded(gateway, project)
    assert (first.log_path, second.log_path) == (str(tmp_path / "logs/sales.log"), str(tmp_path / "logs/sales.2.log"))
    assert "hello" in (tmp_path / "logs" / "sales.log").read_text()
    assert run_guarded(gateway, make_project("true")).log_path is None


def test_log_that_cannot_be_written_costs_the_log_and_not_the_result(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, tmp_path: Path
) -> None:
    (tmp_path / "logs").touch()
    outcome = run_guarded(open_gateway(log_folder=tmp_path / "logs"), make_project("echo hello"))
    assert (outcome.exit_code, outcome.log_path, outcome.stdout) == (0, None, "hello\n")


def test_views_are_kept_for_people_when_asked(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, workspace: Path
) -> None:
    gateway = open_gateway(keep_if=lambda _, outcome: outcome.exit_code != 0)
    kept = run_guarded(gateway, make_project("echo x > out; exit 1"))
    assert kept.kept_view == str(workspace / ".golden" / "kept" / "sales")
    assert (workspace / ".golden" / "kept" / "sales" / "out").read_text() == "x\n"
    assert run_guarded(gateway, make_project("true")).kept_view is None
    again = run_guarded(gateway, make_project("echo y > other; exit 1"))
    assert [path.name for path in Path(str(again.kept_view)).iterdir()] == ["other"]


def test_view_that_cannot_be_kept_is_a_warning(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, workspace: Path
) -> None:
    (workspace / ".golden").touch()
    outcome = run_guarded(open_gateway(keep_if=lambda *_: True), make_project("true"))
    assert (outcome.exit_code, outcome.kept_view) == (0, None)
    assert "its view could not be kept" in outcome.warnings[0]


@pytest.mark.usefixtures("sealing")
def test_shell_opens_in_the_view_with_the_seal_around_it(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, tmp_path: Path, project_dir: Path
) -> None:
    shell = tmp_path / "shell"
    shell.write_text("#!/bin/sh\npwd; cat seed; echo x > out; echo $TERM\ntouch /etc/golden 2>/dev/null; exit 7\n")
    shell.chmod(0o755)
    environ = {**os.environ, "SHELL": str(shell), "TERM": "vt100"}
    gateway = open_gateway(environ=environ, roots=[tmp_path])
    said: list[object] = []
    code = gateway.open_shell(
        make_project("true", before=["sh -c 'echo seed > seed'"], after=["touch after"]),
        role=AgentRole.USER,
        permissions=Permissions(),
        announce=lambda argv, folder: said.extend([argv[-1], folder]),
    )
    assert code == 7
    assert said == [str(project_dir / "pipeline.sh"), str(project_dir)]
    assert [path.name for path in project_dir.iterdir()] == ["pipeline.sh"]


def test_shell_is_not_opened_when_before_fails(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    project = make_project("true", before=["sh -c 'echo no seed; exit 1'"])
    with pytest.raises(GatewayError, match="no seed"):
        open_gateway().open_shell(project, role=AgentRole.USER, permissions=Permissions(), announce=lambda *_: None)


SHELL_IN_A_TERMINAL = """
import os, pty, sys
code = '''
import sys
from pytest_golden.gateway.model import *
from pytest_golden.gateway.service import *
from pytest_golden.manifest.model import GoldenProjectConfig
with ExecutionGateway(sys.argv[1]) as gateway:
    sys.exit(gateway.open_shell(GoldenProjectConfig("a", "project/pipeline.sh"), role=AgentRole.USER,
        permissions=Permissions(), announce=lambda *_: None))
'''
sys.exit(os.waitstatus_to_exitcode(pty.spawn([sys.executable, "-c", code, sys.argv[1]])))
"""


@pytest.mark.usefixtures("sealing")
def test_shell_has_the_terminal_and_an_interrupt_reaches_what_runs_in_it(
    make_project: MakeProject, workspace: Path
) -> None:
    make_project("true")
    shell = workspace / "shell"
    shell.write_text(
        "#!/bin/sh\ntest -t 0 && echo terminal\ntrap 'echo interrupted; exit 5' INT\nsleep 0.3; kill -INT 0\n"
    )
    shell.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", SHELL_IN_A_TERMINAL, str(workspace)],
        env={**os.environ, "SHELL": str(shell)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split()) == (5, ["terminal", "interrupted"])


def track(workspace: Path, *paths: str) -> None:
    git(workspace, "init", "-q")
    git(workspace, "add", "-f", *paths)


@in_both_views
def test_tracked_view_shows_what_git_tracks_and_what_the_pipeline_writes_is_new(
    view: str, open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, project_dir: Path
) -> None:
    (project_dir / "data").mkdir()
    for name in ("data/orders.csv", "data/own.csv", "data/asked.csv", "total.txt"):
        (project_dir / name).write_text("from yesterday\n")
    script = "ls * data; echo from yesterday > total.txt; echo more >> data/orders.csv"
    project = make_project(script, view="tracked", depends_on=("project/data/as*.csv",))
    track(project_dir.parent, "project/data/orders.csv", "project/pipeline.sh")
    outcome = run_guarded(open_gateway(view=view), project)
    shown = {word for word in outcome.stdout.split() if ":" not in word}
    assert shown == {"pipeline.sh", "orders.csv", "asked.csv"}
    # It has the content of a file that the view does not show, and is new all the same.
    assert outcome.write_set.created == ("total.txt",)
    assert outcome.write_set.changed == ("data/orders.csv",)
    assert (outcome.exit_code, outcome.problem, outcome.warnings) == (0, None, ())
    assert (project_dir / "data" / "orders.csv").read_text() == "from yesterday\n"


def test_failure_in_a_tracked_view_says_what_was_left_out(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, project_dir: Path
) -> None:
    (project_dir / "model.pkl").touch()
    # The manifest and the baselines are not inputs.
    (project_dir / "golden_projects.yaml").touch()
    (project_dir / "golden_baselines").mkdir()
    (project_dir / "golden_baselines" / "ACCEPTED.md").touch()
    project = make_project("cat model.pkl", view="tracked")
    track(project_dir.parent, "project/pipeline.sh")
    outcome = run_guarded(open_gateway(), project)
    assert outcome.exit_code == 1
    (warning,) = outcome.warnings
    assert "shows only what git tracks, without model.pkl: if the pipeline needs them" in warning


def test_engine_that_leaves_out_what_is_done_sees_what_git_tracks_where_git_knows_the_project(
    open_gateway: Callable[..., ExecutionGateway], project_dir: Path
) -> None:
    (project_dir / "Makefile").write_text("total.txt:\n\techo new > $@\n")
    (project_dir / "total.txt").write_text("old\n")
    declared = {name: GoldenProjectConfig("total", "project/Makefile", view=name) for name in ("auto", "all")}
    gateway = open_gateway()
    assert "up to date" in run_guarded(gateway, declared["auto"]).stdout
    git(project_dir, "init", "-q")
    assert "up to date" in run_guarded(gateway, declared["auto"]).stdout
    git(project_dir, "add", "Makefile")
    assert run_guarded(gateway, declared["auto"]).write_set.created == ("total.txt",)
    assert "up to date" in run_guarded(gateway, declared["all"]).stdout


def test_data_that_the_engine_tracks_beside_git_is_seen(
    open_gateway: Callable[..., ExecutionGateway], project_dir: Path
) -> None:
    files = {
        "dvc.yaml": "stages: {}\n",
        "data/raw.csv.dvc": "outs:\n- path: raw.csv\n- path: parts\n- path: ../../outside.csv\n",
        "broken.dvc": "outs: [{path: [\n",
        "odd.dvc": "outs: text\n",
        "nameless.dvc": "outs: [{md5: 1}]\n",
    }
    for name, text in {**files, "data/raw.csv": "", "data/parts/one.csv": "", "data/yesterday.csv": ""}.items():
        (project_dir / name).parent.mkdir(exist_ok=True, parents=True)
        (project_dir / name).write_text(text)
    (project_dir / "endless.dvc").symlink_to("/dev/zero")
    (project_dir / "deep.dvc").write_text("[" * 20_000)
    track(project_dir.parent, *(f"project/{name}" for name in (*files, "endless.dvc", "deep.dvc")))
    command = ("find", "data", "-name", "*.csv")
    project = GoldenProjectConfig("data", "project/dvc.yaml", runner="dvc", command=command)
    outcome = run_guarded(open_gateway(), project)
    assert sorted(outcome.stdout.split()) == ["data/parts/one.csv", "data/raw.csv"]


@pytest.mark.usefixtures("sealing")
@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to any group")
def test_failure_where_no_overlay_can_write_says_so(run: Run, project_dir: Path) -> None:
    (project_dir / "data").mkdir()
    os.chown(project_dir / "data", -1, 12345)
    outcome: PipelineOutcome = run("echo 1 > data/new.txt")
    assert outcome.exit_code not in {0, None}
    assert any("give these files and folders to your user and its first group" in told for told in outcome.warnings)
    assert run("echo 1 > data/new.txt", view="copy").exit_code == 0
    os.chown(project_dir, -1, 12345)
    shared: PipelineOutcome = run("echo 1 > data/new.txt")
    assert (shared.exit_code, shared.write_set.created) == (0, ("data/new.txt",))
    assert any("another user or group" in told for told in shared.warnings)


def test_tracked_view_of_what_git_does_not_know_is_refused(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject, project_dir: Path
) -> None:
    project = make_project("true", view="tracked")
    outside = run_guarded(open_gateway(), project)
    assert outside.problem is not None
    assert "is not in a git repository" in outside.message
    git(project_dir, "init", "-q")
    assert "git does not track pipeline.sh: `git add` it" in run_guarded(open_gateway(), project).message
