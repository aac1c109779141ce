from __future__ import annotations

from typing import TYPE_CHECKING

from tests.session.workspace import FAILS

if TYPE_CHECKING:
    from tests.session.workspace import Workspace


def test_plugged_in_gateway_executes(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "script": FAILS})
    workspace.pytester.makeconftest(
        """
        from pytest_golden import Ending, PipelineOutcome

        class Elsewhere:
            def run_pipeline(self, project, *, role, permissions):
                assert role == "regression_guard" and not permissions.can_edit_source
                return PipelineOutcome(Ending.EXITED, 0)

        def pytest_golden_gateway(config):
            return Elsewhere()
        """
    )
    result = workspace.run()
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["golden sandbox: a gateway from a plug-in*"])


def test_gateway_that_cannot_run_is_each_projects_error(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    workspace.pytester.makeconftest("def pytest_golden_gateway(config): return 'nothing'\n")
    result = workspace.run()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["ERROR: pytest_golden_gateway returned 'nothing', which has no run_pipeline*"])


def test_gateway_that_raises_hides_no_other_result(workspace: Workspace) -> None:
    workspace.declare({"name": "one"}, {"name": "two"})
    workspace.pytester.makeconftest(
        """
        from pytest_golden import Ending, PipelineOutcome

        class Shaky:
            def run_pipeline(self, project, *, role, permissions):
                if project.name == "one":
                    raise ValueError("a bug in somebody's gateway")
                return PipelineOutcome(Ending.EXITED, 0)

        def pytest_golden_gateway(config):
            return Shaky()
        """
    )
    result = workspace.run()
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["ERROR: ValueError: a bug in somebody's gateway"])


def test_further_judges_have_a_say(workspace: Workspace) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": FAILS})
    workspace.pytester.makeconftest(
        """
        from pytest_golden import Reason

        def pytest_golden_judge(project, outcome):
            if project.name == "one":
                return (Reason("too_quiet", "it said nothing"),)
        """
    )
    result = workspace.run()
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["FAILED: it said nothing", "FAILED: exit code 3, expected 0*"])


def test_plugged_in_runner_and_redactor_are_used(workspace: Workspace) -> None:
    (workspace.path / "plan.spell").write_text("say abracadabra\n")
    workspace.declare({"name": "magic", "path": "plan.spell"})
    workspace.pytester.makeconftest(
        """
        from pytest_golden import RunnerCommand

        def pytest_golden_runner(project):
            return RunnerCommand(("sh", "-c", "cat plan.spell; exit 1"))

        def pytest_golden_redactors(config):
            return lambda text: text.replace("abracadabra", "[the magic word]")

        def pytest_golden_step_readers():
            return ()
        """
    )
    result = workspace.run()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["say [[]the magic word[]]"])
    result.stdout.no_fnmatch_line("*abracadabra*")


def test_recorded_results_are_noticed(workspace: Workspace) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "script": FAILS})
    workspace.pytester.makeconftest(
        """
        noticed = []

        def pytest_golden_result_recorded(result, entry):
            noticed.append(f"{result.name} {result.status} {entry and entry.assessment}")

        def pytest_unconfigure():
            print("noticed:", *noticed)
        """
    )
    workspace.run().stdout.fnmatch_lines(["noticed: one PASSED success two FAILED failure"])
    workspace.run("--golden-store=none").stdout.fnmatch_lines(["noticed: one PASSED None two FAILED None"])


def test_exception_that_ends_the_item_from_outside_is_its_error_and_no_need_is_met(workspace: Workspace) -> None:
    workspace.declare({"name": "one"}, {"name": "two", "needs": ["one"]}, {"name": "three"})
    workspace.pytester.makeconftest(
        """
        import pytest
        from pytest_golden import Ending, PipelineOutcome

        class Stopped:
            def run_pipeline(self, project, *, role, permissions):
                if project.name == "one":
                    pytest.fail("Timeout from another plug-in")
                return PipelineOutcome(Ending.EXITED, 0)

        def pytest_golden_gateway(config):
            return Stopped()
        """
    )
    result = workspace.run()
    result.assert_outcomes(failed=2, passed=1)
    result.stdout.fnmatch_lines(["ERROR   one *", "*Failed: Timeout from another plug-in"])
