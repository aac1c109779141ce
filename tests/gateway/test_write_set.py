"""What a pipeline wrote, the same in an overlay, in a sealed copy and in a copy without a seal."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.model import WriteSet
from tests.gateway.conftest import VIEWS

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gateway.conftest import RunInView

pytestmark = pytest.mark.parametrize("view", VIEWS)


@pytest.fixture(autouse=True)
def project(project_dir: Path) -> None:
    """Fill the project: a file, a folder with files, links to both, and an executable."""
    (project_dir / "orders.csv").write_text("1\n")
    (project_dir / "runs" / "deep").mkdir(parents=True)
    (project_dir / "runs" / "a.csv").write_text("a\n")
    (project_dir / "runs" / "deep" / "b.csv").write_text("b\n")
    (project_dir / "other").mkdir()
    (project_dir / "other" / "a.csv").write_text("other\n")
    (project_dir / "latest").symlink_to("runs")
    (project_dir / "link.csv").symlink_to("orders.csv")
    (project_dir / "tool").write_text("#!/bin/sh\n")
    (project_dir / "tool").chmod(0o755)


def lists(write_set: WriteSet) -> tuple[list[str], list[str], list[str]]:
    assert list(write_set.files) == sorted({*write_set.created, *write_set.changed})
    assert WriteSet.from_dict(write_set.to_dict()) == write_set
    return list(write_set.created), list(write_set.changed), list(write_set.removed)


@pytest.mark.parametrize(
    ("script", "created", "changed", "removed"),
    [
        pytest.param("true", [], [], [], id="nothing"),
        pytest.param("cat orders.csv runs/a.csv latest/a.csv", [], [], [], id="only read"),
        pytest.param("echo x > new; mkdir -p d/e; echo y > d/e/f", ["d/e/f", "new"], [], [], id="created"),
        pytest.param("mkdir -p d/e", [], [], [], id="empty folders are no content"),
        pytest.param("echo 2 >> orders.csv", [], ["orders.csv"], [], id="changed"),
        pytest.param("echo 1 > orders.csv; touch tool", [], [], [], id="equal bytes"),
        pytest.param("rm orders.csv; echo 1 > orders.csv", [], [], [], id="removed and made with equal bytes"),
        pytest.param("echo x > new; rm new; mkdir d; touch d/x; rm -r d", [], [], [], id="made and removed"),
        pytest.param("rm orders.csv", [], [], ["orders.csv"], id="removed"),
        pytest.param("rm -r runs", [], [], ["runs/a.csv", "runs/deep/b.csv"], id="folder removed"),
        pytest.param("chmod 600 orders.csv; chmod 600 tool; chmod 755 tool", [], ["orders.csv"], [], id="mode"),
        pytest.param("chmod 700 runs", [], [], [], id="mode of a folder"),
        pytest.param("mv orders.csv sales.csv", ["sales.csv"], [], ["orders.csv"], id="renamed"),
        pytest.param("mv runs/a.csv orders.csv", [], ["orders.csv"], ["runs/a.csv"], id="renamed over another"),
        pytest.param(
            "mv runs jobs",
            ["jobs/a.csv", "jobs/deep/b.csv"],
            [],
            ["runs/a.csv", "runs/deep/b.csv"],
            id="folder renamed",
        ),
        pytest.param("ln -s orders.csv new", ["new"], [], [], id="link made"),
        pytest.param("ln -sfn other latest", [], ["latest"], [], id="link to a folder retargeted"),
        pytest.param("ln -sf tool link.csv", [], ["link.csv"], [], id="link to a file retargeted"),
        pytest.param("rm latest", [], [], ["latest"], id="link removed"),
        pytest.param("echo 2 > link.csv", [], ["orders.csv"], [], id="written through a link"),
        pytest.param("echo 2 > latest/a.csv", [], ["runs/a.csv"], [], id="written through a link to a folder"),
        pytest.param("rm orders.csv; ln -s tool orders.csv", [], ["orders.csv"], [], id="file becomes a link"),
        pytest.param("rm link.csv; echo 1 > link.csv", [], ["link.csv"], [], id="link becomes a file"),
        pytest.param(
            "rm orders.csv; mkdir orders.csv; echo x > orders.csv/x",
            ["orders.csv/x"],
            [],
            ["orders.csv"],
            id="file becomes a folder",
        ),
        pytest.param(
            "rm -r runs; echo x > runs", ["runs"], [], ["runs/a.csv", "runs/deep/b.csv"], id="folder becomes a file"
        ),
        pytest.param(
            "rm -r runs; ln -s other runs", ["runs"], [], ["runs/a.csv", "runs/deep/b.csv"], id="folder becomes a link"
        ),
        pytest.param(
            "rm latest; mkdir latest; cp runs/a.csv latest",
            ["latest/a.csv"],
            [],
            ["latest"],
            id="link to a folder becomes a folder with the same file",
        ),
        pytest.param(
            "rm -r runs; mkdir runs; echo n > runs/n", ["runs/n"], [], ["runs/a.csv", "runs/deep/b.csv"], id="opaque"
        ),
        pytest.param(
            "rm -r runs; mkdir -p runs/deep; echo b > runs/deep/b.csv; echo c > runs/deep/c",
            ["runs/deep/c"],
            [],
            ["runs/a.csv"],
            id="opaque with an old file made again",
        ),
        pytest.param(
            "rm -r runs; mkdir runs; rm -r other; mkdir other; mv other runs/x",
            [],
            [],
            ["other/a.csv", "runs/a.csv", "runs/deep/b.csv"],
            id="opaque and empty",
        ),
        pytest.param("rm orders.csv; mkfifo orders.csv; mkfifo new", [], [], ["orders.csv"], id="pipes"),
        pytest.param(
            "echo x > new; chmod 000 new; mkdir d; echo y > d/y; chmod 000 d; chmod 000 orders.csv",
            ["d/y", "new"],
            ["orders.csv"],
            [],
            id="modes that nobody may read",
        ),
        pytest.param("mkdir -p runs/__pycache__ .golden; touch runs/__pycache__/x .golden/x", [], [], [], id="caches"),
        pytest.param(
            "mkdir -p clone/.git env/bin; touch clone/.git/HEAD clone/a env/pyvenv.cfg env/bin/python",
            ["clone/a"],
            [],
            [],
            id="a clone and an environment made by the pipeline",
        ),
        pytest.param("touch 'a b' 'é' ./-n", ["-n", "a b", "é"], [], [], id="names"),
    ],
)
def test_write_set_is_exactly_what_was_written(
    view: str, script: str, created: list[str], changed: list[str], removed: list[str], run_in_view: RunInView
) -> None:
    done = run_in_view(view, f"set -e\n{script}\n")
    assert done.executed.exit.exit_code == 0, done.stderr
    assert lists(done.write_set) == (created, changed, removed)


def test_content_and_kind_of_what_was_written_are_told(view: str, run_in_view: RunInView) -> None:
    script = "printf new > new; ln -s orders.csv s; chmod 700 orders.csv; printf more >> tool"
    files = run_in_view(view, script).write_set.files
    assert {path: (file.kind, file.size_bytes, file.sha256) for path, file in files.items()} == {
        "new": ("file", 3, sha256(b"new").hexdigest()),
        "s": ("symlink", 10, sha256(b"orders.csv").hexdigest()),
        "orders.csv": ("mode", 2, sha256(b"1\n").hexdigest()),
        "tool": ("file", 14, sha256(b"#!/bin/sh\nmore").hexdigest()),
    }


def test_names_that_are_not_text_are_told(view: str, run_in_view: RunInView) -> None:
    done = run_in_view(view, "import os\nopen(b'\\xff', 'w').close()\n")
    assert [os.fsencode(path) for path in done.write_set.created] == [b"\xff"]


def test_original_is_untouched_whatever_is_done(view: str, run_in_view: RunInView, project_dir: Path) -> None:
    script = "chmod -R 000 runs; rm -rf tool orders.csv latest; echo 'rm -rf /' > pipeline.sh; mv other another"
    done = run_in_view(view, script)
    assert sorted(path.name for path in project_dir.iterdir()) == [
        "latest", "link.csv", "orders.csv", "other", "pipeline.sh", "runs", "tool",
    ]  # fmt: skip
    assert (project_dir / "pipeline.sh").read_text() == script
    assert (project_dir / "runs" / "a.csv").read_text() == "a\n"
    assert "pipeline.sh" in done.write_set.changed
