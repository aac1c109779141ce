"""`coverage: true`: coverage.py counts the lines that a pipeline runs, if it measures this process, as under `pytest --cov`.

A variable tells coverage.py to count in each Python process of the pipeline. Their data lies in the private `/tmp`, and is
added to that of this process afterwards. https://coverage.readthedocs.io/en/latest/subprocess.html
"""

from __future__ import annotations

import configparser
import stat
import sys
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_golden.gateway.preparation import Prepared

_FOLDER, _CONFIG, _DATA = "golden-coverage", "coveragerc", "lines"
_SWITCH = "COVERAGE_PROCESS_START"
# What both must count alike.
_SAME = ("branch", "relative_files", "source_pkgs", "omit", "include", "plugins", "concurrency", "timid")
# The pipeline's output must stay what it is.
_QUIET = """couldnt-parse trace-changed module-not-python module-not-imported no-data-collected module-not-measured
 include-ignored no-sysmon already-imported no-ctracer"""
_MOST_FILES, _MOST_BYTES = 1000, 64 << 20


def count_lines(prepared: Prepared) -> tuple[Prepared, Callable[[], tuple[str, ...]]]:
    """Return what to launch so that its lines are counted, and a function that adds them afterwards and returns warnings."""
    measuring = find_measuring()
    if measuring is None:
        return prepared, tuple
    if prepared.view.seen_at != str(prepared.project.project_dir):
        return prepared, lambda: ("its lines are not counted: without a seal it runs in a folder of another name",)
    folder = prepared.steps_file.parent / _FOLDER
    # `set_env` may set another TMPDIR.
    inside = str(Path(prepared.environment["GOLDEN_STEPS"]).with_name(_FOLDER))
    folder.mkdir()
    _write_config(measuring, folder / _CONFIG, f"{inside}/{_DATA}")
    environment = {_SWITCH: f"{inside}/{_CONFIG}", **prepared.environment}
    return replace(prepared, environment=environment), partial(_add, measuring, folder)


def find_measuring() -> Any:
    """Return the `Coverage` that measures this process; None if none does."""
    coverage = sys.modules.get("coverage")
    return None if coverage is None else coverage.Coverage.current()


def _write_config(measuring: Any, place: Path, data: str) -> None:
    settings = configparser.RawConfigParser()
    told = {"parallel": "true", "sigterm": "true", "data_file": data, "disable_warnings": "\n".join(_QUIET.split())}
    for name in _SAME:
        value = measuring.get_option(f"run:{name}")
        if value:
            told[name] = "\n".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
    # The pipeline starts in another folder.
    source = [
        str(Path(one).absolute()) if Path(one).is_dir() else one for one in measuring.get_option("run:source") or ()
    ]
    if source:
        told["source"] = "\n".join(source)
    settings["run"] = told
    with place.open("w", encoding="utf-8") as stream:
        settings.write(stream)


def _add(measuring: Any, folder: Path) -> tuple[str, ...]:
    """Add the data of all processes; the pipeline may have left anything in its place."""
    from coverage import CoverageData
    from coverage.exceptions import CoverageException

    found = list(_list_data(folder))
    if not found:
        return ("no line of it was counted: install coverage (7.10 or later) where its Python finds it",)
    try:
        with warnings.catch_warnings():
            # coverage.py warns when this process itself has run no line yet.
            warnings.simplefilter("ignore")
            own = measuring.get_data()
        for path in found:
            data = CoverageData(basename=str(path))
            data.read()
            own.update(data)
            data.close()
    except (CoverageException, OSError) as error:
        return (f"its lines could not be added: {error}",)
    return ()


def _list_data(folder: Path) -> Iterator[Path]:
    if folder.is_symlink():
        return
    left = _MOST_BYTES
    for path in sorted(folder.glob(f"{_DATA}.*"))[:_MOST_FILES]:
        look = path.lstat()
        left -= look.st_size
        if stat.S_ISREG(look.st_mode) and left >= 0:
            yield path
