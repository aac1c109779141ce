from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.choice import find_runner_command
from pytest_golden.gateway.runners.runner import (
    RunnerError,
    find_missing_modules,
    find_script_python,
    find_tool_python,
)

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from pytest_golden.gateway.runners.runner import PipelineFile
    from tests.gateway.runners.conftest import MakePipeline


@pytest.fixture
def pipeline(make_pipeline: MakePipeline, tmp_path: Path) -> PipelineFile:
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    return make_pipeline("shop.yaml", path_variable=path)


def script(tmp_path: Path, head: str, name: str = "sometool") -> Path:
    folder = tmp_path / "bin"
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"{head}\nimport sys\n", encoding="utf-8")
    file.chmod(0o755)
    return file


def test_console_scripts_interpreter_is_found(tmp_path: Path, pipeline: PipelineFile) -> None:
    assert find_script_python(script(tmp_path, f"#!{sys.executable}"), pipeline) == sys.executable


def test_env_is_looked_through(tmp_path: Path, pipeline: PipelineFile) -> None:
    for head in ("#!/usr/bin/env python3", "#!/usr/bin/env -S python3 -I"):
        found = find_script_python(script(tmp_path, head), pipeline)
        assert found is not None
        assert Path(found).name == "python3"


@pytest.mark.parametrize("quote", ["", '"', "'"])
def test_polyglot_of_installers_is_looked_through(tmp_path: Path, pipeline: PipelineFile, quote: str) -> None:
    head = f"#!/bin/sh\n'''exec' {quote}{sys.executable}{quote} \"$0\" \"$@\"\n' '''"
    assert find_script_python(script(tmp_path, head), pipeline) == sys.executable


def test_relocatable_polyglot_means_the_python_beside_the_script(tmp_path: Path, pipeline: PipelineFile) -> None:
    head = "#!/bin/sh\n'''exec' \"$(dirname -- \"$(realpath -- \"$0\")\")\"/'python' \"$0\" \"$@\"\n' '''"
    tool = script(tmp_path, head)
    assert find_script_python(tool, pipeline) is None
    beside = tool.with_name("python")
    beside.symlink_to(sys.executable)
    assert find_script_python(tool, pipeline) == str(beside)


@pytest.mark.parametrize(
    "head", ["", "#!", "#!/bin/bash", "#!/usr/bin/env bash", "#!/bin/sh", "#!/bin/sh\nexec other", "#!/gone/python3"]
)
def test_no_python_script_is_none(tmp_path: Path, pipeline: PipelineFile, head: str) -> None:
    tool = script(tmp_path, head)
    if head == "#!/bin/sh":
        tool.write_text(head, encoding="utf-8")
    assert find_script_python(tool, pipeline) is None


def test_script_that_is_gone_is_none(tmp_path: Path, pipeline: PipelineFile) -> None:
    assert find_script_python(tmp_path / "gone", pipeline) is None


def test_tool_on_path_comes_first(tmp_path: Path, pipeline: PipelineFile) -> None:
    script(tmp_path, f"#!{sys.executable}")
    assert find_tool_python("sometool", "no_such_module", pipeline) == sys.executable


def test_tool_behind_a_symlink_is_found(tmp_path: Path, pipeline: PipelineFile) -> None:
    real = script(tmp_path, f"#!{sys.executable}", "real")
    real.with_name("sometool").symlink_to(real)
    assert find_tool_python("sometool", "no_such_module", pipeline) == sys.executable


def test_module_in_the_projects_interpreter_comes_second(pipeline: PipelineFile) -> None:
    assert find_tool_python("no-such-tool", "yaml", pipeline) == sys.executable


def test_missing_tool_is_refused_with_what_to_install(pipeline: PipelineFile) -> None:
    with pytest.raises(RunnerError) as caught:
        find_tool_python("no-such-tool", "no_such_module", pipeline)
    assert caught.value.problem is Problem.COMMAND_NOT_FOUND
    assert "`no-such-tool` is not on PATH" in str(caught.value)
    assert "install no_such_module" in str(caught.value)


def test_tool_of_a_moved_environment_is_refused_with_its_path(tmp_path: Path, pipeline: PipelineFile) -> None:
    tool = script(tmp_path, "#!/gone/bin/python3")
    with pytest.raises(RunnerError, match="names a Python that does not exist") as caught:
        find_tool_python("sometool", "no_such_module", pipeline)
    assert str(tool) in str(caught.value)


def test_missing_modules_are_told_from_present_ones() -> None:
    assert find_missing_modules(sys.executable, ("json", "no_such_module", "yaml")) == ("no_such_module",)


def test_modules_of_another_environment_are_found_without_running_it(tmp_path: Path) -> None:
    prefix = tmp_path / "env"
    packages, linked = prefix / "lib" / "python3.11" / "site-packages", tmp_path / "src"
    for folder in (packages / "whole", packages / "remains", linked / "beside", tmp_path / "mapped", prefix / "bin"):
        folder.mkdir(parents=True)
    for file in (packages / "whole", linked / "beside", tmp_path / "mapped"):
        (file / "__init__.py").touch()
    for name in ("single.py", "binary.cpython-311-x86_64-linux-gnu.so", "stable.abi3.so"):
        (packages / name).touch()
    (packages / "_linked.pth").write_text(f"import this\n{linked}\n")
    (packages / "__editable___mapped_finder.py").write_text(f"MAPPING = {{'mapped': '{tmp_path / 'mapped'}'}}\n")
    (prefix / "pyvenv.cfg").write_text("include-system-site-packages = false\n")
    python = script(prefix, f"#!/bin/sh\ntouch {tmp_path}/was-run")
    here = ("whole", "single", "binary", "stable", "beside", "mapped", "sys")
    assert find_missing_modules(str(python), (*here, "remains", "gone")) == ("remains", "gone")
    assert not (tmp_path / "was-run").exists()


def test_environment_with_the_packages_of_its_system_has_them(tmp_path: Path) -> None:
    for share, missing in (("true", ()), ("false", ("pytest",))):
        prefix, base = tmp_path / share, tmp_path / f"base-{share}"
        (base / "lib" / "python3.12" / "site-packages" / "pytest").mkdir(parents=True)
        (base / "lib" / "python3.12" / "site-packages" / "pytest" / "__init__.py").touch()
        (base / "lib" / "python3.12" / "csv.py").touch()
        for folder in (prefix / "bin", base / "bin"):
            folder.mkdir(parents=True)
        (prefix / "bin" / "python").symlink_to(script(base, "#!/bin/false"))
        (prefix / "pyvenv.cfg").write_text(f"include-system-site-packages = {share}\n")
        assert find_missing_modules(str(prefix / "bin" / "python"), ("pytest", "csv")) == missing


def test_interpreter_that_does_not_start_has_no_modules() -> None:
    assert find_missing_modules("/nowhere/python", ("json",)) == ("json",)


def executable(make_pipeline: MakePipeline, content: str) -> None:
    make_pipeline("report.sh", content).file.chmod(0o755)


def test_executable_script_is_run_by_its_first_line(
    make_pipeline: MakePipeline, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    executable(make_pipeline, "#!/usr/bin/env bash\nset -o pipefail\necho ${BASH_VERSION:+bash} $1\n")
    pipeline = make_pipeline("report.sh", args=("daily",))
    assert find_runner_command(pipeline).argv == ("{path}", "daily")
    assert run(pipeline).stdout == "bash daily\n"


def test_script_that_is_not_executable_is_run_by_sh(
    make_pipeline: MakePipeline, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    pipeline = make_pipeline("report.sh", "#!/nowhere/zsh\necho done\n")
    assert find_runner_command(pipeline).argv[0].endswith("/sh")
    assert run(pipeline).stdout == "done\n"


def test_executable_without_a_first_line_is_run_by_sh(make_pipeline: MakePipeline) -> None:
    executable(make_pipeline, "echo done\n")
    assert find_runner_command(make_pipeline("report.sh")).argv[0].endswith("/sh")


def test_missing_shell_is_named(make_pipeline: MakePipeline) -> None:
    with pytest.raises(RunnerError, match="`sh` is not on PATH") as caught:
        find_runner_command(make_pipeline("report.sh", "echo\n", path_variable="/nowhere"))
    assert caught.value.problem is Problem.COMMAND_NOT_FOUND


@pytest.mark.parametrize(
    ("first_line", "said"),
    [
        ("#!/bin/sh\r\n", "has Windows line endings"),
        ("#!/nowhere/zsh\n", "names /nowhere/zsh, which does not exist"),
        ("#!\n", "names nothing, which does not exist"),
        ("#!/usr/bin/env no-such-shell -e\n", "wants `no-such-shell`, which is not on PATH"),
    ],
)
def test_first_line_that_the_kernel_would_refuse_is_explained(
    make_pipeline: MakePipeline, first_line: str, said: str
) -> None:
    executable(make_pipeline, first_line)
    with pytest.raises(RunnerError, match=said) as caught:
        find_runner_command(make_pipeline("report.sh"))
    assert "line 1 of" in str(caught.value)
    assert caught.value.problem is Problem.COMMAND_NOT_FOUND


@pytest.mark.parametrize("first_line", ["#!/usr/bin/env -S sh -e\n", "#!/bin/sh -eu\n", "#!/usr/bin/env sh\n"])
def test_first_line_with_options_is_left_alone(make_pipeline: MakePipeline, first_line: str) -> None:
    executable(make_pipeline, first_line)
    assert find_runner_command(make_pipeline("report.sh")).argv == ("{path}",)


def test_script_that_cannot_be_read_is_a_denied_permission(make_pipeline: MakePipeline) -> None:
    pipeline = make_pipeline("report.sh")
    pipeline.file.unlink()
    with pytest.raises(RunnerError, match="cannot be read") as caught:
        find_runner_command(pipeline)
    assert caught.value.problem is Problem.PERMISSION_DENIED


def test_what_was_printed_before_a_crash_is_not_lost(
    make_pipeline: MakePipeline, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ended = run(make_pipeline("etl.py", "import os\nprint('loaded 10 rows')\nos.abort()\n"))
    assert (ended.returncode, ended.stdout) == (-6, "loaded 10 rows\n")


def test_script_gets_its_arguments_and_exit_code(
    make_pipeline: MakePipeline, run: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    ended = run(make_pipeline("etl.py", "import sys\nprint(sys.argv[1:])\nsys.exit(3)\n", args=("--day", "a b")))
    assert (ended.returncode, ended.stdout) == (3, "['--day', 'a b']\n")


@pytest.mark.parametrize(("version", "is_old"), [("5.32.2", True), ("7.31.9", True), ("7.32.0", False), ("9.0", False)])
def test_an_engine_older_than_the_oldest_one_tested_is_named_if_its_pipeline_fails(
    make_pipeline: MakePipeline, tmp_path: Path, version: str, is_old: bool
) -> None:
    packages = tmp_path / "lib/python3.11/site-packages"
    (packages / "snakemake").mkdir(parents=True)
    (packages / "snakemake/__init__.py").touch()
    (packages / f"snakemake-{version}.dist-info").mkdir()
    script(tmp_path, "", "python")
    pipeline = make_pipeline("Snakefile", path_variable="/nowhere", python=str(tmp_path / "bin/python"))
    expected = f"snakemake {version} in {tmp_path} is older than 7.32, the oldest version that is known to work"
    assert find_runner_command(pipeline).hint.startswith(expected) == is_old
    assert (find_runner_command(pipeline).hint == "") != is_old
