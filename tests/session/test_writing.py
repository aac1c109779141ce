"""The page that a session writes by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.session.workspace import FAILS

if TYPE_CHECKING:
    import pytest

    from tests.session.workspace import Workspace


def test_the_page_says_what_the_terminal_says(workspace: Workspace) -> None:
    workspace.declare({"name": "fine"}, {"name": "broken", "script": FAILS})
    workspace.run("-q", "--golden-store", "none")
    assert workspace.run("--golden-html", "reports/gate.html").ret == 1
    page = (workspace.path / "reports" / "gate.html").read_text(encoding="utf-8")
    for told in ("FAILED", "1 passed, 1 failed", "exit code 3, expected 0", "it broke"):
        assert told in page
    assert "--golden-html reports/gate.html" in page


def test_a_page_that_cannot_be_written_is_no_success(workspace: Workspace) -> None:
    workspace.declare({"name": "fine"})
    result = workspace.run("--golden-html", ".", "--golden-store", "none")
    assert result.ret == 3
    result.stdout.fnmatch_lines(["WARNING: --golden-html *: the report cannot be written (*"])


def test_collecting_writes_no_page(workspace: Workspace) -> None:
    workspace.declare({"name": "fine"})
    workspace.run("--collect-only", "--golden-html", "gate.html")
    assert not (workspace.path / "gate.html").exists()


def test_secrets_on_the_command_line_stay_out_of_the_page(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAREHOUSE_PASSWORD", "correct-horse-battery")
    script = 'echo "cannot log in with $WAREHOUSE_PASSWORD" >&2; exit 1'
    workspace.declare({"name": "broken", "script": script, "pass_env": ["WAREHOUSE_PASSWORD"]})
    workspace.run("-k", "not correct-horse-battery", "--golden-html", "gate.html", "--golden-json", "gate.json")
    for name in ("gate.html", "gate.json"):
        text = (workspace.path / name).read_text(encoding="utf-8")
        assert "cannot log in with" in text
        assert "correct-horse-battery" not in text


def test_what_a_report_says_is_in_the_store_by_then(workspace: Workspace) -> None:
    workspace.declare({"name": "fine"})
    workspace.pytester.makeconftest(
        """
        import pathlib, sqlite3, sys

        def look(event, arguments):
            if event == "os.rename" and str(arguments[1]).endswith("gate.json"):
                with sqlite3.connect(".golden/golden.db") as connection:
                    ended = connection.execute("SELECT final_status FROM gate_runs").fetchall()
                connection.close()
                pathlib.Path("seen").write_text(repr(ended))

        sys.addaudithook(look)
        """
    )
    assert workspace.run_apart("--golden-json", "gate.json").ret == 0
    assert (workspace.path / "seen").read_text() == "[('passed',)]"


def test_nothing_is_left_of_a_report_where_the_next_one_breaks_the_session(workspace: Workspace) -> None:
    workspace.declare({"name": "fine"})
    workspace.pytester.makeconftest(
        """
        import platform

        def broken():
            raise RuntimeError("no machine")

        def pytest_sessionfinish():
            platform.machine = broken
        """
    )
    result = workspace.run_apart("--golden-junit", "out/a.xml", "--golden-json", "out/b.json")
    assert "RuntimeError: no machine" in result.stderr.str() + result.stdout.str()
    assert list((workspace.path / "out").iterdir()) == []


def test_plug_in_that_sums_up_before_the_session_ends_shows_the_results(workspace: Workspace) -> None:
    workspace.pytester.makeconftest(
        "import pytest\n"
        "@pytest.hookimpl(tryfirst=True)\n"
        "def pytest_sessionfinish(session):\n"
        "    reporter = session.config.pluginmanager.get_plugin('terminalreporter')\n"
        "    hook = session.config.hook.pytest_terminal_summary\n"
        "    hook(terminalreporter=reporter, exitstatus=1, config=session.config)\n"
    )
    workspace.declare({"name": "fine"}, {"name": "broken", "script": FAILS})
    told = "golden: FAILED: 1 passed, 1 failed"
    lines = workspace.run().outlines
    assert lines.count(told) == 2
    assert not any("NOTHING RAN" in line for line in lines)
