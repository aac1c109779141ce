from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.choice import find_runner_command
from pytest_golden.gateway.runners.runner import RunnerError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from tests.gateway.runners.conftest import MakePipeline


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
