from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.session.workspace import Workspace

REDACTOR = "def pytest_golden_redactors(config):\n    return lambda text: text\n"
READER = "def pytest_golden_step_readers():\n    return object()\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--golden-update"], "*--golden-update cannot be used with --golden-gateway*"),
        (["--golden-reads"], "*--golden-reads cannot be used with --golden-gateway*"),
    ],
)
def test_what_no_fleet_can_do_is_refused(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, options: list[str], told: str
) -> None:
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    workspace.declare({"name": "one"})
    result = workspace.run("--golden-gateway=dask://127.0.0.1:1", *options)
    assert result.ret == 4
    result.stderr.fnmatch_lines([told])


@pytest.mark.xdist
def test_workers_of_xdist_and_a_fleet_do_not_go_together(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    result = workspace.run("--golden-gateway=dask://127.0.0.1:1", "-n2")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*-n cannot be used with --golden-gateway*in parallel*"])


@pytest.mark.parametrize("hook", [REDACTOR, READER])
def test_a_hook_whose_objects_cannot_travel_is_refused(workspace: Workspace, hook: str) -> None:
    workspace.pytester.makeconftest(hook)
    workspace.declare({"name": "one"})
    result = workspace.run("--golden-gateway=dask://127.0.0.1:1")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*pytest_golden_* is implemented here*cannot be sent to the workers*"])


def test_a_missing_dask_is_one_sentence(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    workspace.declare({"name": "one"})
    result = workspace.run("--golden-gateway=dask://127.0.0.1:1")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*pip install 'pytest-golden-projects?dask?'*"])
    assert "Traceback" not in result.stderr.str()


@pytest.mark.parametrize(
    ("url", "network", "told"),
    [
        ("dask://127.0.0.1:1", False, "*dask://127.0.0.1:1 is used without TLS (dask+tls://), and whoever reaches*"),
        ("dask+tls://127.0.0.1:1", True, "*runs pipelines with a network (one, two), which may reach it, and whoever*"),
        ("dask://127.0.0.1:1", True, "*without TLS * and runs pipelines with a network (one, two)*"),
    ],
)
def test_a_cluster_that_others_may_reach_is_refused_until_trusted(
    workspace: Workspace, url: str, network: bool, told: str
) -> None:
    workspace.declare(*({"name": name, "network": network} for name in ("one", "two")))
    result = workspace.run(f"--golden-gateway={url}")
    assert result.ret == 4
    result.stderr.fnmatch_lines([f"{told}type --golden-fleet-trusted*"])


def test_a_cluster_that_no_pipeline_reaches_needs_no_trust(workspace: Workspace) -> None:
    workspace.declare({"name": "one", "network": False})
    result = workspace.run("--golden-gateway=dask+tls://127.0.0.1:1")
    result.stderr.fnmatch_lines(["*dask+tls://127.0.0.1:1 needs certificates*"])


def test_trust_in_addopts_is_refused(workspace: Workspace) -> None:
    workspace.pytester.makeini("[pytest]\naddopts = --golden-fleet-trusted\n")
    workspace.declare({"name": "one"})
    result = workspace.run("--golden-gateway=dask://127.0.0.1:1")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--golden-fleet-trusted in addopts is refused*"])


@pytest.mark.parametrize(
    "url", ["tcp://host:8786", "dask://", "dask://host:0", "dask://user@host:1", "dask://host:1/x"]
)
def test_a_url_that_names_no_fleet_is_refused(workspace: Workspace, url: str) -> None:
    workspace.declare({"name": "one"})
    result = workspace.run(f"--golden-gateway={url}")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*names no fleet: give dask://HOST:PORT, or dask+tls://HOST:PORT.*"])


def test_nothing_of_dask_is_loaded_without_a_fleet(workspace: Workspace) -> None:
    workspace.pytester.makeconftest(
        "import sys\n"
        "def pytest_unconfigure(config):\n"
        "    assert not {name.partition('.')[0] for name in sys.modules} & {'dask', 'distributed'}\n"
        "    assert 'pytest_golden.fleet' not in sys.modules\n"
    )
    workspace.declare({"name": "one"})
    assert workspace.run_apart().ret == 0


def test_collecting_asks_no_fleet(workspace: Workspace) -> None:
    workspace.declare({"name": "one"})
    assert workspace.run("--golden-gateway=dask://127.0.0.1:1", "--collect-only").ret == 0
