from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.runners.choice import find_runner_command
from pytest_golden.gateway.runners.runner import RunnerError
from tests.gateway.runners.conftest import needs

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.gateway.runners.conftest import MakePipeline

    Run = Callable[..., subprocess.CompletedProcess[str]]


def notebook(*sources: str, language: str = "python") -> str:
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "source": source, "outputs": [], "execution_count": None}
        if not source.startswith("#")
        else {"cell_type": "markdown", "metadata": {}, "source": source}
        for source in sources
    ]
    kernel = {"name": "no-such-kernel", "display_name": "No such kernel", "language": language}
    return json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {"kernelspec": kernel}, "cells": cells})


def test_environment_without_nbclient_is_refused_with_what_to_install(make_pipeline: MakePipeline) -> None:
    with pytest.raises(RunnerError, match="-m pip install nbclient ipykernel") as caught:
        find_runner_command(make_pipeline("analysis.ipynb", python="/nowhere/python"))
    assert caught.value.problem is Problem.COMMAND_NOT_FOUND


@needs("nbclient")
@needs("ipykernel")
class TestRealNotebook:
    def test_command_is_the_script_with_the_notebook(self, make_pipeline: MakePipeline) -> None:
        command = find_runner_command(make_pipeline("analysis.ipynb"))
        assert (command.argv[0], Path(command.argv[1]).name) == (sys.executable, "notebook_child.py")
        assert command.argv[2:] == ("{path}",)

    def test_cells_run_in_order_in_the_projects_folder_and_their_outputs_are_printed(
        self, make_pipeline: MakePipeline, run: Run, tmp_path: Path
    ) -> None:
        cells = (
            "import os, sys\nprint('out')\nprint('err', file=sys.stderr)",
            "# prose",
            "",
            "1 / 0",
            "x = 6 * 7",
            "x",
            "print(os.getcwd(), sys.executable, sep='\\n')",
            "from IPython.display import Image\nImage(data=b'1', format='png')",
        )
        content = json.loads(notebook(*cells))
        # A cell that may raise is not a failure.
        content["cells"][3]["metadata"]["tags"] = ["raises-exception"]
        pipeline = make_pipeline("sub/analysis.ipynb", json.dumps(content))
        before = pipeline.file.read_bytes()
        # A kernel's socket would not fit into it.
        temporary = tmp_path / ("t" * 120)
        temporary.mkdir()
        ended = run(pipeline, {"TMPDIR": str(temporary)})
        assert ended.returncode == 0
        assert ended.stderr.startswith("err\n")
        assert ended.stderr.endswith("ZeroDivisionError: division by zero\n")
        expected = f"out\n42\n{pipeline.project_dir}\n{sys.executable}\n<IPython.core.display.Image"
        assert ended.stdout.startswith(expected)
        assert pipeline.file.read_bytes() == before
        assert list(temporary.iterdir()) == []

    def test_module_that_a_cell_would_have_installed_is_told_with_the_fix(
        self, make_pipeline: MakePipeline, run: Run
    ) -> None:
        cells = ("# Set-up", "%pip --version\nprint('ready')", "import no_such_module_anywhere")
        assert "venv:" not in run(make_pipeline("plain.ipynb", notebook(*cells))).stderr
        cells = (cells[0], "if False:\n    !pip install -q no-such-module", cells[2])
        ended = run(make_pipeline("installs.ipynb", notebook(*cells)))
        assert ended.returncode == 1
        told = "(`!pip install -q no-such-module` cannot install into the view: install beforehand into the project's environment"
        assert f"ModuleNotFoundError: No module named 'no_such_module_anywhere' {told}" in ended.stderr

    def test_failing_cell_is_named_with_source_and_traceback_and_each_cell_leaves_a_step(
        self, make_pipeline: MakePipeline, run: Run, tmp_path: Path
    ) -> None:
        long = (
            "def load():\n    raise ValueError('no rows')\n" + "\n".join(f"x{n} = {n}" for n in range(20)) + "\nload()"
        )
        steps = tmp_path / "steps.jsonl"
        pipeline = make_pipeline("a.ipynb", notebook("# Title", "\nimport json", long, "print('never')"))
        ended = run(pipeline, {"GOLDEN_STEPS": str(steps)})
        assert ended.returncode == 1
        assert "never" not in ended.stdout
        assert "cell 3 of 4 failed: ValueError: no rows\n    def load():\n" in ended.stderr
        assert "    ... 15 more lines" in ended.stderr
        assert "Traceback (most recent call last)" in ended.stderr
        assert "\x1b" not in ended.stderr
        *_, first, second = (json.loads(line) for line in steps.read_text(encoding="utf-8").splitlines())
        assert (first["name"], first["type"], "error" in first) == ("cell 2: import json", "action", False)
        assert (second["name"], second["error"]) == ("cell 3: def load():", "ValueError: no rows")
        assert first["duration_ms"] >= 0

    def test_kernel_that_a_signal_ended_ends_the_process_alike(self, make_pipeline: MakePipeline, run: Run) -> None:
        ended = run(make_pipeline("a.ipynb", notebook("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)")))
        assert ended.returncode == -signal.SIGKILL
        assert "the kernel died in cell 1 of 1" in ended.stderr

    @pytest.mark.parametrize(
        ("number", "code", "said"),
        [
            (signal.SIGTERM, 143, ""),
            (signal.SIGINT, 1, "cell 2 of 2 failed: KeyboardInterrupt"),
        ],
    )
    def test_nothing_is_left_when_it_is_stopped(
        self, make_pipeline: MakePipeline, tmp_path: Path, number: signal.Signals, code: int, said: str
    ) -> None:
        pipeline = make_pipeline("a.ipynb", notebook("import os, time", "print(os.getpid())\ntime.sleep(600)"))
        argv = [word.replace("{path}", str(pipeline.file)) for word in find_runner_command(pipeline).argv]
        environment = {"PATH": pipeline.path_variable, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
        with subprocess.Popen(
            argv, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            kernel = int(process.stdout.readline())
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
        assert process.returncode == code
        assert said in errors
        assert not Path(f"/proc/{kernel}/cmdline").exists()
        assert list(tmp_path.glob("nb*")) == []

    @pytest.mark.parametrize(
        ("content", "said"),
        [("{", "cannot be read as a notebook"), (notebook("1", language="R"), "is written in R: give `command:`")],
    )
    def test_file_that_cannot_be_executed_is_explained(
        self, make_pipeline: MakePipeline, run: Run, content: str, said: str
    ) -> None:
        ended = run(make_pipeline("a.ipynb", content))
        assert ended.returncode == 1
        assert said in ended.stderr
        assert "Traceback" not in ended.stderr

    def test_arguments_are_refused(self, make_pipeline: MakePipeline, run: Run) -> None:
        ended = run(make_pipeline("a.ipynb", notebook("1"), args=("--fast",)))
        assert ended.returncode == 2
        assert "remove `args`" in ended.stderr
