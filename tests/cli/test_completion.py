from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.commands import COMMANDS
from tests.requirement import require

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_names_every_command_and_is_understood_by_its_shell(golden: Golden, tmp_path: Path, shell: str) -> None:
    ran = golden("completion", shell)
    assert (ran.code, ran.err) == (0, "")
    assert [name for name in COMMANDS if name not in ran.out] == []
    if shutil.which(shell) is None:
        return
    script = tmp_path / "script"
    script.write_text(ran.out)
    subprocess.run([shell, "-n", script], check=True, timeout=30)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("golden", "ver"), ["verify"]),
        (("golden", "journal", "log-"), ["log-intent", "log-outcome"]),
        (("golden", "verify", "--rep"), ["--repeat"]),
    ],
)
def test_bash_completes_what_was_begun(golden: Golden, tmp_path: Path, words: tuple[str, ...], told: list[str]) -> None:
    require(shutil.which("bash") is not None, "bash")
    script = tmp_path / "script"
    asked = " ".join(words)
    script.write_text(
        golden("completion", "bash").out
        + f"""
COMP_WORDS=({asked}); COMP_CWORD={len(words) - 1}; COMP_LINE="{asked}"; COMP_POINT={len(asked)}
_shtab_golden
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    )
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=True, timeout=30)
    assert sorted(one.strip() for one in done.stdout.split()) == told


def test_unknown_shell_is_refused(golden: Golden) -> None:
    ran = golden("completion", "tcsh")
    assert (ran.code, ran.out) == (2, "")
    assert "tcsh" in ran.err
