from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.session.workspace import Workspace

LOGGING = """
import logging

def pytest_runtest_teardown(item):
    logging.getLogger().warning("after %s", item.name)
"""


def test_log_that_pytest_writes_beside_the_pipelines_is_no_change_of_theirs(workspace: Workspace) -> None:
    for name in ("one", "two"):
        (workspace.path / f"{name}.sh").write_text("test ! -e pytest.log\n")
    workspace.declare(*({"name": name, "path": f"{name}.sh"} for name in ("one", "two")))
    workspace.pytester.makeconftest(LOGGING)
    workspace.run("--log-file=pytest.log").assert_outcomes(passed=2)
    assert "after one" in (workspace.path / "pytest.log").read_text()
