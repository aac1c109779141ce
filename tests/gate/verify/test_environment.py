from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_golden.errors import GoldenError
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.verify.base_worktree import (
    HEAD_VARIABLE,
    BaseEnvironment,
    find_setup_seconds,
    find_sources_below,
    site_packages_of,
)
from pytest_golden.verify.gates import clean_environment, move_below

ENVIRONMENT = {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The head's checkout, the base's worktree, and a private folder."""
    folders = (tmp_path / "head", tmp_path / "private" / "base", tmp_path / "private")
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return folders


def installed_below(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let an environment be found in which a folder is installed in editable form."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    (packages / "__editable__.thing-1.0.pth").write_text(f"{folder}\n")
    monkeypatch.setattr("site.getsitepackages", lambda: [str(packages)])


def test_without_a_setup_the_base_runs_in_the_heads_environment(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    place = BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", None)
    assert place.python == sys.executable
    assert place.environment == ENVIRONMENT


def test_python_path_leads_below_the_base(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    search = os.pathsep.join([str(head), str(head / "src"), f"{head}er", "", "/usr/lib/x"])
    environment = BaseEnvironment(head, base, private, {**ENVIRONMENT, "PYTHONPATH": search})
    moved = environment.prepare(base / "golden_projects.yaml", None).environment["PYTHONPATH"]
    assert [os.path.normpath(path) if path else "" for path in moved.split(os.pathsep)] == [
        str(base),
        str(base / "src"),
        f"{head}er",
        "",
        "/usr/lib/x",
    ]


def test_python_path_through_a_symlink_is_moved_too(sides: tuple[Path, Path, Path], tmp_path: Path) -> None:
    head, base, _ = sides
    (head / "src").mkdir()
    (tmp_path / "link").symlink_to(head)
    assert move_below(str(tmp_path / "link" / "src"), head, base) == str(base / "src")


def test_environment_in_which_the_head_is_installed_is_refused_without_a_setup(
    sides: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    head, base, private = sides
    (head / "src").mkdir()
    installed_below(head / "src", monkeypatch, tmp_path)
    assert find_sources_below(head) == (str(head / "src"),)
    assert find_sources_below(base) == ()
    with pytest.raises(GoldenError, match=r"the head's code is installed in this environment .*/head/src.* `setup: "):
        BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", None)


def test_copy_that_was_installed_from_the_head_is_found_too(
    sides: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    head, _, _ = sides
    for name, text in (
        ("thing", json.dumps({"url": head.as_uri(), "dir_info": {}})),
        ("elsewhere", json.dumps({"url": "https://example.com/x.whl"})),
        ("damaged", "{"),
        ("odd", "[]"),
    ):
        metadata = tmp_path / "site-packages" / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "direct_url.json").write_text(text)
    monkeypatch.setattr("site.getsitepackages", lambda: [str(tmp_path / "site-packages")])
    assert find_sources_below(head) == (str(head),)


def test_setup_installs_over_the_heads_environment_and_leaves_it_as_it_is(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    program = (
        "import os, sys, sysconfig, pytest\n"
        "from pathlib import Path\n"
        "assert os.getcwd() == sys.argv[1], os.getcwd()\n"
        f"assert os.environ['{HEAD_VARIABLE}'] == sys.argv[2]\n"
        "Path(sysconfig.get_path('purelib'), 'thing.py').write_text('made = True')\n"
    )
    setup = ("python", "-c", program, str(base), str(head))
    place = BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", setup)
    prefix = private / "environment"
    assert Path(site_packages_of(prefix), "thing.py").is_file()
    assert place.environment["VIRTUAL_ENV"] == str(prefix)
    look = "import thing, pytest, pytest_golden, sys; print(sys.prefix)"
    seen = subprocess.run([place.python, "-c", look], capture_output=True, text=True, check=True, cwd=base)
    assert seen.stdout.strip() == str(prefix)
    assert subprocess.run([sys.executable, "-c", "import thing"], capture_output=True, check=False).returncode


def test_pip_of_a_setup_installs_into_the_bases_environment(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    setup = ("sh", "-c", "pip --version > pip.txt; pip3 --version >> pip.txt")
    BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", setup)
    programs = {path.name for path in (private / "environment" / "bin").iterdir()}
    has_pip = bool((base / "pip.txt").read_text())
    assert ({"pip", "pip3"} <= programs) or not has_pip
    assert "environment" in (private / "environment" / "bin" / "pip").read_text()


@pytest.mark.parametrize(
    ("setup", "told"),
    [
        (("sh", "-c", "echo no such mirror >&2; exit 3"), "`setup:` ended with exit code 3: no such mirror"),
        (("false",), "`setup:` ended with exit code 1: it printed nothing"),
        (("/nowhere/to-be-found",), "`setup:` cannot be started: /nowhere/to-be-found: No such file"),
    ],
)
def test_setup_that_fails_is_said(sides: tuple[Path, Path, Path], setup: tuple[str, ...], told: str) -> None:
    head, base, private = sides
    with pytest.raises(GoldenError, match=told):
        BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", setup)


def test_setup_that_does_not_end_is_ended_and_said(sides: tuple[Path, Path, Path]) -> None:
    head, base, private = sides
    setup = ("sh", "-c", "echo waiting for a mirror; exec sleep 600")
    with pytest.raises(GoldenError, match="`setup:` did not end within 1 s, and was ended: waiting for a mirror"):
        BaseEnvironment(head, base, private, ENVIRONMENT).prepare(base / "golden_projects.yaml", setup, 1.0)


def test_setup_may_take_an_hour_or_as_long_as_a_project_may() -> None:
    projects = [GoldenProjectConfig("a", "a.sh", timeout=60.0), GoldenProjectConfig("b", "b.sh", timeout=7200.0)]
    assert [find_setup_seconds(some) for some in ((), projects[:1], projects)] == [3600, 3600, 7200]


def test_what_is_meant_for_one_gate_is_not_handed_on() -> None:
    given = {"GOLDEN_BASE": "main", "GOLDEN_SANDBOX": "copy", "GITHUB_ACTIONS": "true", "GIT_DIR": ".git", "HOME": "/h"}
    assert clean_environment(given) == {"GOLDEN_SANDBOX": "copy", "HOME": "/h"}
