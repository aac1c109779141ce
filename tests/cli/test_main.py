from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.commands import COMMANDS

if TYPE_CHECKING:
    from tests.cli.conftest import Golden, GoldenProcess


def test_version_is_printed(golden: Golden) -> None:
    ran = golden("--version")
    assert ran.code == 0
    assert ran.out.startswith("golden 0.")


def test_help_names_every_command(golden: Golden) -> None:
    ran = golden("--help")
    assert ran.code == 0
    assert all(command in ran.out for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_help(golden: Golden, command: str) -> None:
    ran = golden(command, "--help")
    assert ran.code == 0
    assert ran.out.startswith(f"usage: golden {command}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "name a command"),
        (("chek",), "did you mean `golden check`?"),
        (("xyzzy",), "there are init, check"),
        (("check", "--jsn"), "unrecognized arguments: --jsn"),
        (("check", "--js"), "unrecognized arguments: --js"),
        (("run",), "NAME"),
        (("schema", "house"), "house"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(golden: Golden, words: tuple[str, ...], said: str) -> None:
    ran = golden(*words)
    assert ran.code == 2
    assert ran.out == ""
    assert said in ran.err
    assert ran.err.startswith("golden: ")
    assert ran.err.count("\n") == 1


def test_bad_input_with_json_gives_an_error_object(golden: Golden) -> None:
    ran = golden("run", "x", "--json")
    assert ran.code == 2
    assert "golden init" in ran.json["error"]


def test_wrong_environment_variable_is_bad_input(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDEN_SANDBOX", "bunker")
    ran = golden("doctor")
    assert ran.code == 2
    assert "GOLDEN_SANDBOX: 'bunker' is not one of auto, overlay, copy" in ran.err


def test_many_mistakes_in_a_manifest_are_still_one_sentence(golden: Golden, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {pth: a}\n  - {pth: b}\n")
    ran = golden("run", "a")
    assert ran.code == 2
    assert "golden_projects.yaml:2:5: the key path is missing" in ran.err
    assert "3 more problems: `golden check` lists them all" in ran.err
    assert ran.err.count("\n") == 1


def test_control_characters_in_a_complaint_are_shown_as_escapes(golden: Golden) -> None:
    assert "\x1b" not in golden("\x1b[31mcheck\x07").err


def test_file_that_cannot_be_written_is_a_sentence(golden: Golden, folder: Path) -> None:
    ran = golden("init", "--manifest", str(folder / ("x" * 300)))
    assert ran.code == 2
    assert "File name too long" in ran.err


def test_installed_command_and_module_are_the_same(golden_process: GoldenProcess, folder: Path) -> None:
    script = shutil.which("golden", path=str(Path(sys.executable).parent))
    assert script is not None
    done = subprocess.run([script, "--version"], cwd=folder, capture_output=True, text=True, check=True)
    assert golden_process("--version").out == done.stdout


def test_version_imports_neither_rich_nor_pydantic(folder: Path) -> None:
    code = "import sys; from pytest_golden.cli.main import main; main(['--version']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert not {"rich", "pydantic", "yaml"}.intersection(done.stdout.split())


def test_closed_pipe_is_quiet(folder: Path) -> None:
    command = f"{sys.executable} -m pytest_golden schema manifest"
    script = f"{command} | true; {command} | head -c 10 >&2"
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stderr == '{\n  "$sche'


def test_interrupt_ends_with_130_and_no_traceback(three_projects: Path, folder: Path) -> None:
    (folder / "marks").mkdir()
    (folder / "marked").mkdir()
    (folder / "marked" / "good.py").write_text(
        "import pathlib, time\npathlib.Path('../marks/begun').touch()\ntime.sleep(60)\n"
    )
    three_projects.write_text("golden_projects: [{path: marked/good.py, mounts: [{path: marks, mode: write}]}]\n")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest_golden", "run", "good"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("running good: ")
        while not (folder / "marks" / "begun").exists():
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "pytest_golden" not in err
    assert "Traceback" not in err
    assert out.startswith("ERROR good  ")
    assert "interrupted" in out


def test_output_in_another_encoding_does_not_fail(golden_process: GoldenProcess, folder: Path) -> None:
    (folder / "golden_projects.yaml").write_text("golden_projects:\n  - {name: u, path: übung.py}\n", encoding="utf-8")
    plain = golden_process("check", environment={"PYTHONIOENCODING": "ascii"})
    assert plain.code == 1
    assert "\\xfcbung.py" in plain.out
    as_json = golden_process("check", "--json", environment={"PYTHONIOENCODING": "ascii"})
    assert as_json.json["projects"][0]["path"] == "übung.py"


@pytest.mark.parametrize("words", [[], *([name] for name in COMMANDS), ["journal", "prune"], ["trajectory", "query"]])
def test_help_fits_into_a_terminal_of_80_columns(
    golden: Golden, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = golden(*words, "--help")
    assert (ran.code, ran.out != "") == (0, True)
    assert max(map(len, ran.out.splitlines())) <= 80
