from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.gateway.preparation import (
    FIXED,
    build_environment,
    build_path_variable,
    find_missing,
    passed_variables,
)
from pytest_golden.gateway.resolution import ResolvedProject
from pytest_golden.manifest.model import GoldenProjectConfig

if TYPE_CHECKING:
    from collections.abc import Mapping


def project(venv: Path | None = None, **keys: Any) -> ResolvedProject:
    python = sys.executable if venv is None else str(venv / "bin" / "python")
    return ResolvedProject(GoldenProjectConfig("a", "a.sh", **keys), Path("/p/a.sh"), Path("/p"), venv, python, (), ())


def build(resolved: ResolvedProject, environ: Mapping[str, str], **runner: str) -> dict[str, str]:
    return build_environment(
        resolved, environ=environ, home="/home/me", temporary="/tmp", steps_file="/tmp/steps", runner=runner
    )


def test_environment_is_built_from_nothing() -> None:
    built = build(project(), {"PATH": "/usr/bin", "PYTHONPATH": "/x", "SECRET": "x", "LANG": "de_DE"})
    assert set(built) - {"VIRTUAL_ENV"} == {"PATH", "HOME", "TMPDIR", "GOLDEN_STEPS", *FIXED}
    assert built["HOME"] == "/home/me"
    assert {name: built[name] for name in FIXED} == FIXED
    assert FIXED["TZ"] == "UTC"


def test_only_declared_variables_pass_and_set_ones_win() -> None:
    resolved = project(pass_env=["ONE", "GONE", "TWO"], set_env={"TWO": "set", "TZ": "Asia/Tokyo"})
    built = build(resolved, {"ONE": "1", "TWO": "2", "THREE": "3"}, COLUMNS="200", TWO="runner")
    assert (built["ONE"], built["TWO"], built["TZ"], built["COLUMNS"]) == ("1", "set", "Asia/Tokyo", "200")
    assert "GONE" not in built
    assert "THREE" not in built
    assert passed_variables(resolved, {"ONE": "1", "X": "2"}) == {"ONE": "1"}


def test_windows_keeps_what_it_needs_to_run_at_all() -> None:
    assert build(project(), {"SYSTEMROOT": r"C:\Windows"})["SYSTEMROOT"] == r"C:\Windows"


def test_path_begins_with_the_projects_environment_then_the_gates() -> None:
    environ = {"PATH": os.pathsep.join(["/usr/bin", ".", "", "relative/bin", "/usr/bin", "/bin"])}
    own = build_path_variable(project(Path("/venvs/dbt")), environ).split(os.pathsep)
    assert own == ["/venvs/dbt/bin", str(Path(sys.executable).parent), "/usr/bin", "/bin"]
    assert build_path_variable(project(), {}).split(os.pathsep)[0] == str(Path(sys.executable).parent)


def test_virtual_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build(project(Path("/venvs/dbt")), {})["VIRTUAL_ENV"] == "/venvs/dbt"
    monkeypatch.setattr(sys, "prefix", "/venvs/gate")
    assert build(project(), {})["VIRTUAL_ENV"] == "/venvs/gate"
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert "VIRTUAL_ENV" not in build(project(), {})


def test_missing_programs_and_modules_are_named() -> None:
    resolved = project(skip_if_missing=["sh", "json", "xml.dom", "no_such_module", "no-such-program"])
    assert find_missing(resolved, os.defpath) == ("no_such_module", "no-such-program")


def test_modules_are_looked_for_in_the_projects_own_environment(tmp_path: Path) -> None:
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "pyvenv.cfg").write_text(f"home = {Path(os.path.realpath(sys.executable)).parent}\n")
    (tmp_path / "env" / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    resolved = project(tmp_path / "env", skip_if_missing=["json", "pytest_golden"])
    assert find_missing(resolved, os.defpath) == ("pytest_golden",)


@pytest.mark.parametrize("name", ["__main__", "a b", "..x", "x..y"])
def test_odd_names_are_missing_and_no_crash(name: str) -> None:
    try:
        resolved = project(skip_if_missing=[name])
    except ValueError:
        return
    assert set(find_missing(resolved, os.defpath)) <= {name}
