from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from tests.engines.examples import EXAMPLES
from tests.gate_processes import WITHOUT_PLUGINS
from tests.postgres import run_server
from tests.warm_starts import starting_warm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.postgres import PostgresServer

pytest_plugins = ["pytester"]
# The SDK wants newer versions of others than their lower bounds.
collect_ignore = (
    [] if find_spec("mcp") is not None else ["mcp", "hostile/test_persons.py", "session/test_verdict_faces.py"]
)
# Only `tox -e plugins` installs them: they would be loaded in all other tests too.
collect_ignore += [] if find_spec("allure_pytest") is not None else ["plugins"]
# `tox -e engine-NAME` installs one of them; its versions are not those of the other tests.
collect_ignore += [] if any(find_spec(example.module) is not None for example in EXAMPLES) else ["engines"]
if find_spec("hypothesis") is not None:
    pytest_plugins.append("tests.drawn_examples")


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    # What tests start as processes of their own is not measured: that takes half as long again, and what they do is
    # measured where tests run it in this one.
    if hasattr(config, "workerinput"):
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    os.environ["PYTEST_ADDOPTS"] = " ".join(WITHOUT_PLUGINS)
    # Where the gate keeps its key and its token: not among those of the person who runs the tests.
    settings = tempfile.TemporaryDirectory(prefix="golden-settings-")
    config.add_cleanup(settings.cleanup)
    os.environ["XDG_CONFIG_HOME"] = settings.name
    # A shell lets what it starts in the background ignore Ctrl-C, and children inherit that; some tests send one.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # pytester forgets what an inner session has loaded. httpx2 knows its errors by the classes that it met first, and
    # importlib_metadata, which Dask imports, takes the standard library's finder of distributions away for good.
    for name in ("httpcore2", "importlib_metadata"):
        if find_spec(name) is not None:
            import_module(name)


def pytest_collection_finish() -> None:
    # Each session that a test runs with pytester ends with a full garbage collection. Twelve thousand collected tests
    # would make each of them half a second longer.
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how long the tests of each room took."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in (one for reports in terminalreporter.stats.values() for one in reports):
        if isinstance(report, pytest.TestReport):
            room = report.nodeid.partition("::")[0].split("/")[1:-1]
            seconds[room[0] if room else "the package"] += report.duration
    if len(seconds) > 1:
        terminalreporter.write_sep("=", "seconds of tests by room")
        terminalreporter.line(
            ", ".join(f"{room} {total:.0f}" for room, total in sorted(seconds.items(), key=lambda one: -one[1]))
        )


@pytest.fixture
def temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of this test's own."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture(scope="session")
def warm_starts() -> Iterator[Path]:
    """A folder with `pytest`, `golden` and `python` that start warm, for all tests of this process."""
    with starting_warm() as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server of PostgreSQL for all tests of this process."""
    yield from run_server()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """The URL of an empty store on a server."""
    url = postgres.make_database()
    yield url
    postgres.drop(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """The place of an empty store, on each database in turn."""
    if request.param == "sqlite":
        return tmp_path / "golden.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def warm_gates(warm_starts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gates and workers of pytest-xdist that are started from this process start warm."""

    class Popen(subprocess.Popen[Any]):
        def __init__(self, args: Any, *more: Any, **options: Any) -> None:
            if isinstance(args, list) and args[0] == sys.executable:
                args = [str(warm_starts / "python"), *args[1:]]
            super().__init__(args, *more, **options)

    monkeypatch.setattr(subprocess, "Popen", Popen)
