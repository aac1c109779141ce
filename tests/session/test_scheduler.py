"""Golden projects beside ordinary tests under xdist: real workers, real crashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.manifest.inline import parse_inline_manifest
from pytest_golden.session.declared import Declared

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
