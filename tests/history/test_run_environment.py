from __future__ import annotations

import importlib.metadata
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.history import run_environment
from pytest_golden.history.run_environment import compare_surroundings, describe_surroundings, read_distributions
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_gate_is_described() -> None:
    found = describe_surroundings([], Path.cwd())
    assert json.loads(json.dumps(found)) == found
    assert found["python"] == platform.python_version()
    assert found["implementation"] == platform.python_implementation()
    assert platform.machine() in found["platform"]
    assert found["golden"] == importlib.metadata.version("pytest-golden-projects")
    assert "pytest-golden-projects" not in found["distributions"]
    assert found["venvs"] == {}


def test_names_and_versions_are_those_of_importlib() -> None:
    found = read_distributions(sys.path)
    for name in ("pytest", "pydantic", "pyyaml", "sqlalchemy", "pytest-golden-projects"):
        assert found[name] == importlib.metadata.version(name)
    assert len(found) == len({d.metadata["Name"].lower().replace("_", "-").replace(".", "-") for d in importlib.metadata.distributions()})  # fmt: skip


def test_every_form_of_metadata_is_read(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (
        first / "zope.Interface-5.0.dist-info",
        first / "my_pkg-1.0+cu118.dist-info",
        first / "old-2.0-py3.11.egg-info",
        first / "~ip-1.0.dist-info",
        first / "no_dash.egg-info",
        second / "my_pkg-0.9.dist-info",
        second / "in_place.egg-info",
    ):
        folder.mkdir(parents=True)
    (second / "in_place.egg-info" / "PKG-INFO").write_text(
        "Metadata-Version: 2.1\nName: in-place\nVersion: 3.1\n\nVersion: 9"
    )
    (second / "a_file-1.5.egg-info").write_text("Metadata-Version: 1.0\n")
    (second / "file.egg-info").write_text("Name: file\nVersion: 4.0\n")
    (second / "package.zip").touch()
    found = read_distributions(
        [str(first), str(second), str(second), str(tmp_path / "gone"), str(second / "package.zip")]
    )
    assert found == {
        "a-file": "1.5",
        "file": "4.0",
        "in-place": "3.1",
        "my-pkg": "1.0+cu118",
        "no-dash": "unknown",
        "old": "2.0",
        "zope-interface": "5.0",
    }
    assert list(found) == sorted(found)


def test_venvs_of_projects_are_described(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    site = next((tmp_path / "venv").glob("[Ll]ib/**/site-packages"))
    (site / "pandas-2.2.3.dist-info").mkdir()
    (tmp_path / "conda" / "lib" / "python3.9" / "site-packages").mkdir(parents=True)
    projects = [
        GoldenProjectConfig("a", "a.py", venv="venv"),
        GoldenProjectConfig("b", "b.py", venv="conda"),
        GoldenProjectConfig("c", "c.py", venv="gone"),
        GoldenProjectConfig("d", "d.py", venv="venv"),
        GoldenProjectConfig("e", "e.py"),
        GoldenProjectConfig("f", "f.py", venv="uv:locked"),
        GoldenProjectConfig("g", "g.py", venv="uv:gone"),
    ]
    (tmp_path / "locked").mkdir()
    (tmp_path / "locked" / "uv.lock").write_text(
        '[[package]]\nname = "dbt-core"\nversion = "1.10"\n[[package]]\nname = "own"\n'
    )
    own = platform.python_version()
    assert describe_surroundings(projects, tmp_path)["venvs"] == {
        "conda": {"python": "3.9", "distributions": {}},
        "gone": {"python": None, "distributions": {}},
        "uv:gone": {"python": own, "distributions": {}},
        "uv:locked": {"python": own, "distributions": {"dbt-core": "1.10"}},
        "venv": {"python": platform.python_version(), "distributions": {"pandas": "2.2.3"}},
    }


def test_version_of_a_virtualenv_is_read(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "pyvenv.cfg").write_text("home = /usr/bin\nversion_info = 3.12.1.final.0\n")
    found = describe_surroundings([GoldenProjectConfig("a", "a.py", venv="v")], tmp_path)
    assert found["venvs"]["v"]["python"] == "3.12.1"


def test_distributions_are_told_from_their_names_alone(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"package_{number}-1.{number}.dist-info").mkdir()
        (tmp_path / f"package_{number}").mkdir()
    found = read_distributions([str(tmp_path)])
    assert (len(found), found["package-7"]) == (300, "1.7")


def test_differences_are_told_with_both_versions() -> None:
    before = {
        "python": "3.11.2",
        "golden": "0.1.0",
        "view": "overlay",
        "distributions": {"pandas": "2.2.3", "gone": "1"},
        "venvs": {"v": {"python": "3.9.1", "distributions": {"dbt": "1.0"}}, "w": {"python": "3.9.1"}},
    }
    now = {
        "python": "3.12.1",
        "golden": "0.2.0",
        "view": "copy",
        "distributions": {"new": "2", "pandas": "2.3.0"},
        "venvs": {"v": {"python": "3.9.2", "distributions": {"dbt": "1.1"}}},
    }
    lines = (
        "python 3.11.2 -> 3.12.1",
        "pytest-golden-projects 0.1.0 -> 0.2.0",
        "view overlay -> copy",
        "new 2 added",
        "pandas 2.2.3 -> 2.3.0",
        "gone 1 removed",
    )
    assert compare_surroundings(before, now) == lines
    own = ("python 3.9.1 -> 3.9.2 (in v)", "dbt 1.0 -> 1.1 (in v)")
    assert compare_surroundings(before, now, venv="v") == (*own, *lines)
    assert compare_surroundings(now, now, venv="v") == ()
    assert compare_surroundings({}, {}, venv="v") == ()


@pytest.fixture
def fresh_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    run_environment._read_key.cache_clear()
    yield tmp_path / "config" / "pytest-golden" / "key"
    run_environment._read_key.cache_clear()


def describe_passed(workspace: Path) -> dict[str, str]:
    project = GoldenProjectConfig("a", "a.sh", pass_env=("DB_HOST", "UNSET_HERE"), pass_files=("db.toml", "none.toml"))
    told: dict[str, str] = describe_surroundings([project], workspace, search_path=())["passed"]
    return told


def test_passed_values_are_told_by_digests_of_this_users_key(
    tmp_path: Path, fresh_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert describe_surroundings([GoldenProjectConfig("a", "a.sh")], tmp_path, search_path=())["passed"] == {}
    assert not fresh_key.exists()
    monkeypatch.setenv("DB_HOST", "db.internal")
    (tmp_path / "db.toml").write_text("host = 1")
    first = describe_passed(tmp_path)
    assert first.keys() == {"DB_HOST", "file db.toml"}
    assert fresh_key.stat().st_mode & 0o777 == 0o600
    run_environment._read_key.cache_clear()
    assert describe_passed(tmp_path) == first
    monkeypatch.setenv("DB_HOST", "db.other")
    (tmp_path / "db.toml").write_text("host = 2")
    second = describe_passed(tmp_path)
    assert all(second[name] != first[name] for name in first)
    monkeypatch.delenv("DB_HOST")
    assert describe_passed(tmp_path).keys() == {"file db.toml"}


def test_where_no_key_can_be_kept_each_process_has_its_own(
    tmp_path: Path, fresh_key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh_key.parent.parent.write_text("a file in its place")
    monkeypatch.setenv("DB_HOST", "db.internal")
    first = describe_passed(tmp_path)
    assert describe_passed(tmp_path) == first
    run_environment._read_key.cache_clear()
    assert describe_passed(tmp_path) != first
