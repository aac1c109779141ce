from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_golden.verify.gates import BrokenDownError, find_cause

if TYPE_CHECKING:
    from pathlib import Path

INTERNAL_ERROR = """\
INTERNALERROR> Traceback (most recent call last):
INTERNALERROR>   File "/python/site-packages/_pytest/main.py", line 283, in wrap_session
INTERNALERROR>     config._do_configure()
INTERNALERROR>   File "{checkout}/conftest.py", line 2, in pytest_configure
INTERNALERROR>     import orders
INTERNALERROR>   File "{checkout}/.venv/lib/site-packages/orders.py", line 9, in <module>
INTERNALERROR>     raise RuntimeError(f"no {{table}}")
INTERNALERROR> RuntimeError: no orders in {checkout}/data
"""
CONFTEST = """\
ImportError while loading conftest '{checkout}/sub/conftest.py'.
conftest.py:3: in <module>
    import nowhere
E   ModuleNotFoundError: No module named 'nowhere'
"""
USAGE = "ERROR: usage: __main__.py [options] [file_or_dir]\n__main__.py: error: unrecognized arguments: --golden\n  rootdir: /r\n"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "checkout"
    (folder / "sub").mkdir(parents=True)
    (folder / ".git").touch()
    return folder


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (INTERNAL_ERROR, "RuntimeError: no orders in data (conftest.py:2)"),
        (CONFTEST, "ModuleNotFoundError: No module named 'nowhere' (sub/conftest.py:3)"),
        (USAGE, "__main__.py: error: unrecognized arguments: --golden"),
        ("ERROR: no such package\n\n[notice] There is a newer pip\n", "ERROR: no such package"),
        ("one\npython: No module named pytest\n\n", "python: No module named pytest"),
        ("password=hunter2-and-more\n", "password=[REDACTED]"),
        ("", "it printed nothing"),
    ],
)
def test_cause_is_one_line_of_what_was_printed(checkout: Path, tmp_path: Path, printed: str, told: str) -> None:
    log = tmp_path / "log"
    log.write_text(printed.format(checkout=checkout))
    assert find_cause(log, checkout / "sub") == told


def test_all_that_was_printed_is_kept_without_secrets_and_never_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("one\npassword=hunter2-and-more\n")
    state, elsewhere = tmp_path / ".golden", tmp_path / "elsewhere"
    state.mkdir()
    elsewhere.write_text("mine")
    (state / "verify.log").symlink_to(elsewhere)
    told = BrokenDownError("it broke down", tmp_path / "log").keep(tmp_path, "verify.log", "Mend it")
    assert told == f"it broke down. Mend it. All that it printed is in {state / 'verify.log'}"
    assert (state / "verify.log").read_text() == "one\npassword=[REDACTED]\n"
    assert elsewhere.read_text() == "mine"


def test_log_that_cannot_be_kept_changes_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    (tmp_path / ".golden" / "verify.log").mkdir(parents=True)
    told = BrokenDownError("it broke down", tmp_path / "log").keep(tmp_path, "verify.log", "Mend it")
    assert told.startswith("it broke down. Mend it. What it printed cannot be kept: ")
    assert sorted(path.name for path in (tmp_path / ".golden").iterdir()) == [".gitignore", "verify.log"]
