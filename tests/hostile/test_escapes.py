"""Ways out of the seal that were once open, or nearly so, each tried from inside."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gateway.model import Ending, PatternVerdict, Problem
from pytest_golden.gateway.scratch import remove_tree
from tests.gateway.conftest import run_guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.gateway.model import PipelineOutcome
    from pytest_golden.gateway.service import ExecutionGateway
    from tests.gateway.conftest import MakeProject

    Run = Callable[..., PipelineOutcome]

in_both_views = pytest.mark.parametrize("view", ["overlay", "copy"])


@pytest.mark.usefixtures("sealing")
def test_switches_of_the_kernel_cannot_be_set(run: Run) -> None:
    outcome = run("""
        import os
        for name in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sys/fs/file-max"):
            try:
                os.close(os.open(name, os.O_WRONLY))
            except OSError:
                print("refused")
    """)
    assert outcome.stdout == "refused\n" * 3


@pytest.mark.usefixtures("sealing")
def test_devices_of_the_kernel_cannot_be_steered(run: Run) -> None:
    """The sandbox program covers these by itself, for root, who alone could write them."""
    outcome = run("""
        import itertools, os
        folders = ("irq", "bus", "acpi", "fs")
        files = (os.path.join(at, name) for top in folders for at, _, names in os.walk(f"/proc/{top}") for name in names)
        for path in itertools.chain(["/proc/sysrq-trigger"], files):
            try:
                os.close(os.open(path, os.O_WRONLY))
                print(path)
            except OSError:
                pass
    """)
    assert outcome.stdout == ""


@pytest.mark.usefixtures("sealing")
def test_namespaces_inside_the_seal_are_refused(run: Run) -> None:
    outcome = run("""
        import ctypes
        print(ctypes.CDLL(None).unshare(0x10000000))
    """)
    assert outcome.stdout == "-1\n"


@pytest.mark.usefixtures("sealing")
def test_variables_of_a_pipeline_do_not_reach_the_sandbox_program(run: Run, workspace: Path) -> None:
    """The loader of programs would load what LD_PRELOAD names into it, or write where LD_DEBUG_OUTPUT says."""
    variables = {"LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(workspace / "outside"), "SPACED": " a\nb ", "EMPTY": ""}
    outcome = run(
        """
        import os
        print(os.environ["LD_DEBUG"], repr(os.environ["SPACED"]), repr(os.environ["EMPTY"]))
        """,
        set_env=variables,
    )
    # It cannot write where it was told, and prints the rest here.
    assert "libs ' a\\nb ' ''\n" in outcome.stdout
    assert not list(workspace.glob("outside*"))


@pytest.mark.usefixtures("sealing")
def test_environment_larger_than_a_pipe_and_of_any_letters_is_handed_in(run: Run) -> None:
    outcome = run(
        "import os; print(len(os.environ['LONG']), ascii(os.environ['ODD']))",
        set_env={"LONG": "x" * 99_000, "ODD": "ü\udcff"},
    )
    assert outcome.stdout == "99000 '\\xfc\\udcff'\n"


@pytest.mark.usefixtures("sealing")
def test_memory_that_belongs_to_no_process_is_bounded(run: Run) -> None:
    outcome = run(
        """
        import os
        for folder in ("/dev/shm", "/run"):
            found = os.statvfs(folder)
            print(found.f_blocks * found.f_frsize <= 64 << 20)
        try:
            open("/dev/big", "w")
        except OSError:
            print("refused")
        """,
        memory_limit="64MiB",
    )
    assert outcome.stdout == "True\nTrue\nrefused\n"


@pytest.mark.usefixtures("sealing")
@in_both_views
def test_file_of_holes_is_an_error_that_names_it_and_not_a_hang(view: str, run: Run) -> None:
    outcome = run("echo x > small; truncate -s 900G big.bin; echo told; exit 4", view=view)
    assert (outcome.ending, outcome.exit_code, outcome.stdout) == (Ending.EXITED, 4, "told\n")
    assert outcome.problem is Problem.HARNESS
    assert "more than 16 GiB of holes, too many to hash: 'big.bin' of 966,367,641,600 bytes" in outcome.message
    assert "`after:`" in outcome.message
    assert outcome.write_set.created == ("big.bin", "small")
    assert outcome.write_set.files["big.bin"].sha256 == ""
    assert outcome.write_set.files["small"].sha256 != ""


@pytest.mark.usefixtures("sealing")
@in_both_views
def test_many_files_of_holes_are_bounded_together(view: str, run: Run) -> None:
    outcome = run("for n in 1 2 3 4 5 6 7; do truncate -s 20G $n; done", view=view)
    assert outcome.exit_code == 0
    assert "and 2 more" in outcome.message


@in_both_views
def test_file_of_few_holes_is_hashed_by_its_whole_content(view: str, run: Run) -> None:
    outcome = run("truncate -s 64M big.bin; printf x >> big.bin; truncate -s 65M big.bin", view=view)
    whole = bytes(64 << 20) + b"x" + bytes((1 << 20) - 1)
    assert outcome.problem is None
    assert outcome.write_set.files["big.bin"].sha256 == sha256(whole).hexdigest()


@pytest.mark.usefixtures("sealing")
@in_both_views
def test_mark_of_an_environment_hides_nothing(view: str, run: Run, project_dir: Path) -> None:
    (project_dir / "lib").mkdir()
    (project_dir / "lib" / "mod.py").write_text("x = 1\n")
    outcome = run(
        "mkdir out; touch out/pyvenv.cfg out/evil.sh; echo 'x = 2' > lib/mod.py; mkdir lib/bin; touch lib/pyvenv.cfg",
        view=view,
    )
    assert outcome.write_set.created == ("lib/pyvenv.cfg", "out/evil.sh", "out/pyvenv.cfg")
    assert outcome.write_set.changed == ("lib/mod.py",)


def test_errors_of_very_many_steps_are_searched(run: Run) -> None:
    outcome = run(
        """
        import json, os, sys
        with open(os.environ["GOLDEN_STEPS"], "w") as steps:
            for number in range(20_000):
                steps.write(json.dumps({"name": "load", "error": f"row {number} is bad"}) + "\\n")
        sys.exit(1)
        """,
        expected_outcome="specific_error:row 19999 is bad",
    )
    assert outcome.pattern_verdict is PatternVerdict.FOUND


def test_secret_that_names_a_step_is_redacted(run: Run) -> None:
    outcome = run(
        """
        import os
        with open(os.environ["GOLDEN_STEPS"], "w") as steps:
            steps.write('{"name": "load", "id": "%s"}\\n' % os.environ["MY_TOKEN"])
        """,
        set_env={"MY_TOKEN": "lion-mane-99"},
    )
    assert outcome.trajectory is not None
    assert len(outcome.trajectory.steps) == 1
    assert "lion" not in str(outcome.to_dict())


def test_colour_inside_a_secret_does_not_hide_it(run: Run) -> None:
    outcome = run(
        """
        import os, sys
        token = os.environ["MY_TOKEN"]
        sys.exit(f"refused: {token[:4]}\033[1;36m{token[4:]}")
        """,
        set_env={"MY_TOKEN": "lion-mane-99"},
    )
    assert outcome.exit_code == 1
    assert "REDACTED" in outcome.stderr
    assert "mane" not in str(outcome.to_dict())


def test_scratch_that_became_a_link_is_unlinked_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").touch()
    victim.chmod(0o500)
    link = tmp_path / "link"
    link.symlink_to(victim)
    remove_tree(link)
    assert not os.path.lexists(link)
    assert [path.name for path in victim.iterdir()] == ["precious"]
    assert victim.stat().st_mode & 0o777 == 0o500
    victim.chmod(0o700)


def test_kept_file_runs_with_nobodys_rights(
    open_gateway: Callable[..., ExecutionGateway], make_project: MakeProject
) -> None:
    gateway = open_gateway(view="copy", keep_if=lambda *_: True)
    outcome = run_guarded(
        gateway, make_project("touch tool; chmod 6755 tool; truncate -s 900G big; truncate -s 1G less")
    )
    assert outcome.kept_view is not None
    kept = Path(outcome.kept_view)
    assert (kept / "tool").stat().st_mode & 0o7777 == 0o755
    assert kept.stat().st_mode & 0o777 == 0o700
    assert not (kept / "big").exists()
    assert ((kept / "less").stat().st_size, (kept / "less").stat().st_blocks) == (1 << 30, 0)
