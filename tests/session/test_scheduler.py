"""Golden projects beside ordinary tests under xdist: real workers, real crashes."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from pytest_golden.manifest.reader import parse_inline_manifest
from pytest_golden.session.declared import Declared
from pytest_golden.session.scheduler import _Worker
from tests.session.workspace import FAILS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.session.workspace import Workspace


pytestmark = pytest.mark.xdist

# `--dist loadfile` is `loadscope` with another name of the scope.
MODES = ["load", "worksteal", "loadscope", "loadgroup"]
# Each line of the log is one test that ran, or the beginning or the end of a pipeline, in the order of their times.
LOGGED = "echo {name} >> ../log/log.txt; sleep 0.1; echo {name}_ended >> ../log/log.txt"
TESTS = """
    import pathlib
    import pytest

    @pytest.mark.parametrize("number", range(8))
    def test_many(number):
        with open(pathlib.Path(__file__).parent / "log" / "log.txt", "a") as log:
            log.write(f"test{number}\\n")
"""


def declare_logged(workspace: Workspace, *names: str, **more: object) -> None:
    (workspace.path / "log").mkdir()
    mounts = [{"path": "log", "mode": "write"}]
    workspace.declare(*({"name": name, "script": LOGGED.format(name=name), "mounts": mounts, **more} for name in names))


def read_log(workspace: Workspace) -> list[str]:
    return (workspace.path / "log" / "log.txt").read_text().split()


# xdist's own schedulers by scope may hang after that (pytest-dev/pytest-xdist#1378).
@pytest.mark.parametrize("dist", ["load", "worksteal"])
def test_a_test_that_kills_its_worker_fails_alone_and_the_session_ends(workspace: Workspace, dist: str) -> None:
    workspace.declare({"name": "one"}, {"name": "two"}, {"name": "apart", "independent": True})
    workspace.pytester.makepyfile(
        test_them="""
        import os
        import pathlib
        import pytest

        @pytest.mark.parametrize("number", range(4))
        def test_before(number): pass

        def test_killer():
            killed = pathlib.Path(__file__).with_name("killed")
            if not killed.exists():
                killed.touch()
                os._exit(1)

        @pytest.mark.parametrize("number", range(4))
        def test_after(number): pass
        """
    )
    result = workspace.run("-n2", f"--dist={dist}", "test_them.py")
    assert result.ret == 1
    assert result.parseoutcomes() == {"failed": 1, "passed": 11}
    result.stdout.fnmatch_lines(
        ["worker 'gw?' crashed while running '*::test_killer'", "golden: FAILED: 3 passed, 1 other test failed"]
    )


@pytest.mark.parametrize("command", ["send_runtest_some", "send_steal"])
def test_worker_that_is_gone_is_lost_and_no_error_of_the_session(command: str) -> None:
    class Gone:
        shutting_down = False

        def send_runtest_some(self, indices: list[int]) -> None:
            raise OSError("cannot send (already closed?)")

        send_steal = send_runtest_some

    worker = _Worker(Gone())
    worker.shutdown()
    assert worker.is_ready
    getattr(worker, command)([1])
    assert worker.shutting_down
    assert not worker.is_ready


def test_workers_that_may_not_be_replaced_leave_the_rest_not_run(workspace: Workspace) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    workspace.pytester.makepyfile(test_them="import os\ndef test_killer(): os._exit(1)")
    result = workspace.run("-n1", "--max-worker-restart=0", "test_them.py")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["golden: * (partial: 2 not run)*", "*worker gw0 crashed and worker restarting disabled*"]
    )


@pytest.mark.parametrize("dist", MODES)
def test_dependent_projects_run_one_after_another_where_ordinary_tests_are_handed_out(
    workspace: Workspace, dist: str
) -> None:
    declare_logged(workspace, "zebra", "ant", "mole")
    workspace.pytester.makepyfile(test_them=TESTS, test_more="class TestIt:\n    def test_a(self): pass")
    result = workspace.run("-n2", f"--dist={dist}", "test_them.py", "test_more.py")
    result.assert_outcomes(passed=12)
    assert result.ret == 0
    log = read_log(workspace)
    assert sorted(one for one in log if one.startswith("test")) == [f"test{number}" for number in range(8)]
    in_order = [name for project in ("zebra", "ant", "mole") for name in (project, f"{project}_ended")]
    assert [one for one in log if not one.startswith("test")] == in_order
    result.stdout.fnmatch_lines_random(["golden: PASSED: 3 passed"])


def test_the_scheduler_of_another_plugin_keeps_the_ordinary_tests(workspace: Workspace) -> None:
    declare_logged(workspace, "zebra", "ant")
    workspace.pytester.makepyfile(test_them=TESTS)
    workspace.pytester.makeconftest(
        """
        import pytest
        from xdist.scheduler import LoadScheduling

        class Backwards(LoadScheduling):
            def _send_tests(self, node, num):
                self.pending.sort(reverse=True)
                super()._send_tests(node, num)

        @pytest.hookimpl(tryfirst=True)
        def pytest_xdist_make_scheduler(config, log):
            return Backwards(config, log)
        """
    )
    workspace.run("-n1", "test_them.py").assert_outcomes(passed=10)
    tests = [f"test{number}" for number in reversed(range(8))]
    assert read_log(workspace) == [*tests, "zebra", "zebra_ended", "ant", "ant_ended"]


def test_a_group_in_a_node_id_does_not_hide_a_project(tmp_path: Path) -> None:
    manifest = parse_inline_manifest("one:one.sh", tmp_path)
    (one,) = manifest.projects
    declared = Declared(manifest, {"one": one}, None, "golden_projects.yaml", tmp_path)
    assert declared.find_project("golden_projects.yaml::one@some_group") is one
    assert declared.find_project("test_it.py::one@some_group") is None


def test_project_that_kills_its_worker_is_an_error_is_not_run_again_and_the_rest_runs_elsewhere(
    workspace: Workspace,
) -> None:
    needs: dict[str, list[str]] = {"needy": ["killer"], "needs_early": ["early"]}
    workspace.declare(
        *(
            {"name": name, "independent": name.startswith("a"), "needs": needs.get(name, [])}
            for name in ("first", "killer", "needy", "early", "needs_early", "later", "apart", "aside")
        )
    )
    workspace.pytester.makepyfile(test_them=TESTS)
    (workspace.path / "log").mkdir()
    workspace.pytester.makeconftest(
        """
        import os
        from pytest_golden import Ending, PipelineOutcome

        class Crashing:
            def run_pipeline(self, project, *, role, permissions):
                if project.name == "killer":
                    os._exit(77)
                return PipelineOutcome(Ending.EXITED, 0)

        def pytest_golden_gateway(config):
            return Crashing()

        def pytest_runtest_call(item):
            if item.name == "early":
                os._exit(77)
        """
    )
    result = workspace.run("-n2", "--golden-json=out.json", "test_them.py")
    assert result.ret == 1
    result.assert_outcomes(passed=12, failed=2, errors=2)
    result.stdout.fnmatch_lines(["*_ ERROR at call of killer _*", "*worker 'gw?' crashed while running *::killer*"])
    result.stdout.fnmatch_lines(["golden: FAILED: 4 passed, 4 failed"])
    assert '"worker_crashed"' in (workspace.path / "out.json").read_text()


def test_failures_of_ordinary_tests_end_the_session_when_asked(workspace: Workspace) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    workspace.pytester.makepyfile(test_them="def test_a(): assert 0\ndef test_b(): assert 0\ndef test_c(): pass")
    result = workspace.run("-n1", "--maxfail=2", "test_them.py")
    assert result.ret == 2
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["golden: * (partial: 2 not run)*"])


def test_first_failure_of_a_test_stops_the_projects_on_another_worker(workspace: Workspace) -> None:
    workspace.declare(*({"name": f"p{number}", "script": "sleep 0.5"} for number in range(8)))
    workspace.pytester.makepyfile(test_them="import time\ndef test_a():\n    time.sleep(0.2)\n    assert 0")
    result = workspace.run("-n2", "-x", "test_them.py")
    result.stdout.fnmatch_lines(["not run: *p7*", "golden: * not run)*"])


def test_workers_that_collect_different_tests_run_nothing(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makepyfile(
        test_them="import os, pytest\n@pytest.mark.parametrize('worker', [os.environ['PYTEST_XDIST_WORKER']])\ndef test_a(worker): pass"
    )
    result = workspace.run("-n2", "test_them.py")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["Different tests were collected between gw? and gw?*", "golden: * (partial: 1 not run)*"]
    )


def test_replaced_worker_that_collects_other_projects_runs_none(workspace: Workspace) -> None:
    workspace.declare({"name": "killer"}, {"name": "one"})
    workspace.pytester.makeconftest(
        """
        import os

        def pytest_collection_modifyitems(items):
            if os.environ.get("PYTEST_XDIST_WORKER") == "gw1":
                del items[0]

        def pytest_runtest_call(item):
            if item.name == "killer":
                os._exit(1)
        """
    )
    result = workspace.run("-n1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["gw1 replaces a worker but collected different tests*"])
    result.stdout.fnmatch_lines(["golden: * (partial: 1 not run): 1 failed*"])


# Each notes when it began and ended in a folder that is really written to.
NOTED = "date +%s.%N > ../marks/{name}.begun; sleep 0.2; date +%s.%N > ../marks/{name}.ended"


def declare_noted(workspace: Workspace, *names: str, **more: object) -> None:
    (workspace.path / "marks").mkdir()
    mounts = [{"path": "marks", "mode": "write"}]
    workspace.declare(*({"name": name, "script": NOTED.format(name=name), "mounts": mounts, **more} for name in names))


def times(workspace: Workspace, name: str) -> tuple[float, float]:
    begun, ended = (float((workspace.path / "marks" / f"{name}.{what}").read_text()) for what in ("begun", "ended"))
    return begun, ended


def test_independent_projects_run_side_by_side(workspace: Workspace) -> None:
    declare_noted(workspace, "one", "two", "three", "four", independent=True)
    workspace.run("-n2").assert_outcomes(passed=4)
    spans = sorted(times(workspace, name) for name in ("one", "two", "three", "four"))
    assert any(later[0] < earlier[1] for earlier, later in pairwise(spans))


def test_results_texts_and_needs_travel_from_a_worker(workspace: Workspace) -> None:
    # Half a character travels as an escape.
    line = json.dumps({"name": "load \ud83d", "error": "boom \ud83d"})
    workspace.declare(
        {"name": "fine"},
        {"name": "broken", "script": FAILS},
        {"name": "needy", "needs": ["broken"]},
        {"name": "lost", "path": "nowhere.sh"},
        {"name": "absent", "skip_if_missing": ["no_such_program_here"]},
        {"name": "known", "script": FAILS, "quarantine": {"until": "2999-12-31", "reason": "flaky upstream"}},
        {"name": "half", "script": f"cat >> \"$GOLDEN_STEPS\" <<'END'\n{line}\nEND\nexit 3"},
        {"name": "unwanted"},
    )
    result = workspace.run("-n1", "-k", "not unwanted", "--golden-json=out.json", "--junitxml=out.xml")
    assert result.ret == 1
    result.assert_outcomes(passed=1, failed=3, errors=1, skipped=1, xfailed=1)
    result.stdout.fnmatch_lines(
        [
            "FAILED: exit code 3, expected 0*",
            "it broke",
            r"FAILED: exit code 3, expected 0: load \ud83d: boom \ud83d",
            "deselected: unwanted",
            "golden: FAILED (partial: 1 deselected): 1 passed, *",
            "FAILED golden_projects.yaml::broken - exit code 3, expected 0*",
        ]
    )
    assert (workspace.path / "out.json").exists()
    assert "exit code 3, expected 0" in (workspace.path / "out.xml").read_text()


def test_no_workers_at_all_is_a_plain_session(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.run("-n0").assert_outcomes(passed=1)


def test_every_worker_running_everything_is_refused(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    result = workspace.run("-n2", "--dist=each")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--dist each would run every golden project on every worker*"])


@pytest.mark.parametrize("workers", [1, 2])
def test_worker_that_is_gone_before_it_is_given_work_costs_nothing(workspace: Workspace, workers: int) -> None:
    names = ("first", "second", "alone", "apart")
    workspace.declare(*({"name": name, "independent": name.startswith("a")} for name in names))
    # In the controller, right before the work is spread.
    workspace.pytester.makeconftest(
        f"""
        known = []

        def pytest_xdist_node_collection_finished(node):
            known.append(node)
            if len(known) == {workers}:
                process = known[0].gateway._io.popen
                process.kill()
                process.wait()
        """
    )
    result = workspace.run(f"-n{workers}", "--golden-json=out.json")
    assert result.ret == 0
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["replacing crashed worker gw*", "golden: PASSED: 4 passed"])
    written = json.loads((workspace.path / "out.json").read_text())
    assert [(one["name"], one["status"]) for one in written["results"]] == [(name, "PASSED") for name in names]


def test_worker_that_crashes_after_it_told_a_result_leaves_that_result_alone(workspace: Workspace) -> None:
    workspace.declare({"name": "before"}, {"name": "told"}, {"name": "needy", "needs": ["told"]})
    workspace.pytester.makeconftest(
        """
        import os

        def pytest_runtest_teardown(item):
            if item.name == "told":
                os._exit(77)
        """
    )
    result = workspace.run("-n1", "--golden-json=out.json")
    assert result.ret == 0
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["replacing crashed worker gw0", "golden: PASSED: 3 passed"])
    written = json.loads((workspace.path / "out.json").read_text())
    assert [(one["name"], one["status"]) for one in written["results"]] == [
        (name, "PASSED") for name in ("before", "told", "needy")
    ]


def test_first_failure_ends_the_session_when_asked(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "script": FAILS}, {"name": "two"}, {"name": "three"})
    result = workspace.run("-n1", "-x")
    assert result.ret in {1, 2}
    result.stdout.fnmatch_lines(["golden: FAILED (partial: 2 not run): 1 failed"])
