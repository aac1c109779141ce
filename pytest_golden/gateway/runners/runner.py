"""What a runner is, what it receives, and how it finds its programs. Runs no pipeline."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pytest_golden.gateway.content import SCRIPT_HEAD_BYTES, read_shebang
from pytest_golden.gateway.model import Problem
from pytest_golden.gateway.resolution import ProjectUnusableError
from pytest_golden.gateway.view import find_linked_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from pytest_golden.manifest.model import GoldenProjectConfig

#: The variable with the files that have changed, a JSON list of paths relative to the folder of the pipeline's file.
CHANGED_FILES = "GOLDEN_CHANGED_FILES"
#: The file in which an engine's script lists what it left out: a JSON list of tables (`schema.name`), and of files and folders that
#: were not written (relative to the folder in which it was started).
LEFT_OUT_FILE = ".golden-left-out.json"
_PROBE_SECONDS = 60
_BEGINNING_BYTES = 1 << 20
_SYSTEM_PACKAGES = re.compile(r"^include-system-site-packages\s*=\s*true", re.MULTILINE | re.IGNORECASE)
# What installers write where `#!` cannot hold the path (too long, or with a space): the second line of a file that sh
# and Python both understand. uv's relocatable form computes the folder and names only the file.
_POLYGLOT_EXEC = re.compile(
    r"""^'''exec'\s+(?P<folder>"\$\(dirname[^/]*/)?(?P<quote>["']?)(?P<python>[^"']+?)(?P=quote)\s+"\$0\""""
)


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A pipeline that needs a command, with its location on the host.

    `file` and `project_dir` are absolute and exist. `path_variable` is the PATH that the pipeline will have, with the bin folder of
    its own virtual environment first. `python` is the interpreter of that environment, else that of the gate.
    """

    config: GoldenProjectConfig
    file: Path
    project_dir: Path
    path_variable: str
    python: str


@dataclass(frozen=True, slots=True)
class Runner:
    """One engine: how its pipelines are recognized and started, and how their traces are read.

    A file that ends in one of `suffixes`, and that `recognises` accepts, is a pipeline of this engine; `files` describes such files in
    words. The command is `find_start` (the start of the program), then `arguments`. `program` is the name that people type
    for it. A `command:` that begins with this name is also started by `find_start`, so that it is judged in the same way.

    `engine_files` are patterns of the engine's own files, as in `writes:`. They are never unexpected, and never outputs.
    `is_incremental` means that the engine skips work that is already done. `list_data` is as in `RunnerCommand`.
    `is_sure` means that every recognized file is a pipeline, so that `golden init` declares it. `find_in_script` returns the `args:` of
    a project if the text of a Python script is certainly a pipeline of this engine, else None. `find_folder` returns the folder
    from which people start a pipeline. `list_packages` returns the folders of packages that it uses and that are not pipelines themselves.
    `golden doctor` shows the versions of `distributions`; a name that ends in `-` is a prefix. `oldest` is the oldest version of the first
    one that is known to work; if a pipeline fails in an older one, the failure says so. `keep_tables` are the
    variables that make a project put its in-memory tables into a file, where they can be compared.
    `find_narrowing` takes a project and its pipeline's file, and returns a test for paths relative to the file's folder: does a change of this
    path affect only what depends on it? If all changed paths pass, the engine receives them (`CHANGED_FILES`) and skips the rest. None: the
    project always runs whole, for example because an output can depend on everything that runs.
    """

    name: str
    files: str
    suffixes: tuple[str, ...]
    find_start: Callable[[PipelineFile], tuple[str, ...]]
    arguments: Callable[[PipelineFile], tuple[str, ...]] = lambda _: ("{path}",)
    environment: Callable[[PipelineFile], Mapping[str, str]] = lambda _: {}
    recognises: Callable[[PipelineFile], bool] = lambda _: True
    step_readers: tuple[str, ...] = ()
    engine_files: tuple[str, ...] = ()
    is_incremental: bool = False
    list_data: Callable[[Path, Collection[str]], Iterable[str]] | None = None
    program: str | None = None
    is_sure: bool = False
    find_in_script: Callable[[str], tuple[str, ...] | None] = lambda _: None
    find_folder: Callable[[Path], Path] = lambda file: file.parent
    list_packages: Callable[[Path], tuple[Path, ...]] = lambda _: ()
    distributions: tuple[str, ...] = ()
    oldest: str = ""
    keep_tables: Mapping[str, str] = field(default_factory=dict)
    find_narrowing: Callable[[GoldenProjectConfig, Path], Callable[[str], bool] | None] = lambda _project, _file: None


def is_started_beside(project: GoldenProjectConfig) -> bool:
    """Tell whether a project starts in the folder of its pipeline's file."""
    return project.project_dir is None or Path(project.project_dir) == Path(project.path).parent


class RunnerError(ProjectUnusableError):
    """There is no command for a pipeline; the message says why."""

    def __init__(self, problem: Problem, pipeline: PipelineFile, message: str) -> None:
        super().__init__(f"{pipeline.config.name}: {message}", problem)


def find_program(
    program: str, pipeline: PipelineFile, advice: str = "install it, or give `command:`"
) -> tuple[str, ...]:
    """Find a program on the pipeline's PATH.

    Raises:
        RunnerError: the program does not exist.
    """
    found = shutil.which(program, path=pipeline.path_variable)
    if found is None:
        message = f"`{program}` is not on PATH ({pipeline.path_variable}): {advice}"
        raise RunnerError(Problem.COMMAND_NOT_FOUND, pipeline, message)
    return (found,)


def find_tool_python(program: str, module: str, pipeline: PipelineFile) -> str:
    """Find an interpreter that has a Python tool: that of `program` on PATH, else the pipeline's own.

    Raises:
        RunnerError: neither has it.
    """
    script = shutil.which(program, path=pipeline.path_variable)
    python = find_script_python(Path(script), pipeline) if script else None
    if python is not None:
        return python
    if not find_missing_modules(pipeline.python, (module,)):
        return pipeline.python
    where = (
        f"`{program}` on PATH ({script}) names a Python that does not exist"
        if script
        else f"`{program}` is not on PATH"
    )
    advice = f"install {module}, name its environment with `venv:`, or give `command:`"
    message = f"{where}, and {pipeline.python} has no module {module}: {advice}"
    raise RunnerError(Problem.COMMAND_NOT_FOUND, pipeline, message)


def explain_closed(pipeline: PipelineFile, error: OSError) -> RunnerError:
    """Return the error for a pipeline whose file cannot be read."""
    message = f"{pipeline.file} cannot be read ({error.strerror}): make it readable"
    return RunnerError(Problem.PERMISSION_DENIED, pipeline, message)


def read_beginning(pipeline: PipelineFile) -> bytes:
    """Return the first MiB of a pipeline's file.

    Raises:
        RunnerError: it cannot be read.
    """
    try:
        with pipeline.file.open("rb") as stream:
            return stream.read(_BEGINNING_BYTES)
    except OSError as error:
        raise explain_closed(pipeline, error) from error


def find_above_package(file: Path) -> Path:
    """Return the folder from which a Python file is imported: the first folder above it that is not a package."""
    return next(folder for folder in file.parents if not (folder / "__init__.py").is_file())


def name_module(pipeline: PipelineFile) -> str:
    """Return the name under which a pipeline's Python file is imported from its project's folder."""
    return ".".join(pipeline.file.relative_to(pipeline.project_dir).with_suffix("").parts)


def read_regular(file: Path, most_bytes: int = _BEGINNING_BYTES) -> bytes | None:
    """Return the first bytes of a regular file; None for a symlink, a pipe or a device, and for an unreadable file."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as stream:
            return stream.read(most_bytes) if stat.S_ISREG(os.fstat(handle).st_mode) else None
    except OSError:
        return None


def load_yaml(file: Path) -> Any:
    """Return the content of an engine's YAML file; None if it cannot be read or parsed."""
    try:
        return yaml.safe_load(read_regular(file) or b"")
    except (ValueError, RecursionError, yaml.YAMLError):
        return None


def find_script_python(script: Path, pipeline: PipelineFile) -> str | None:
    """Find the interpreter of a console script; None if it is not a Python script."""
    try:
        words = read_shebang(script)
    except OSError:
        return None
    if not words:
        return None
    named = Path(words[0])
    if named.name == "env" and len(words) > 1:
        word = words[1].removeprefix("-S ").split()[0]
        return shutil.which(word, path=pipeline.path_variable) if _is_python(word) else None
    if named.name == "sh":
        return _polyglot_python(script)
    return _existing(named) if _is_python(named.name) else None


def explain_old(runner: Runner, python: str) -> str:
    """Say that the engine in an interpreter's environment is older than the oldest version that is known to work; empty if it is not."""
    if not runner.oldest:
        return ""
    name = runner.distributions[0]
    pattern = f"{name.replace('-', '_')}-*.dist-info"
    found = [folder.name for place in _list_import_places(Path(python)) for folder in place.glob(pattern)]
    version = found[0].removesuffix(".dist-info").partition("-")[2] if found else ""
    if not version or _list_numbers(version) >= _list_numbers(runner.oldest):
        return ""
    return (
        f"{name} {version} in {Path(python).parent.parent} is older than {runner.oldest}, the oldest version that is known"
        " to work: update it"
    )


def _list_numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)[:3]]


@lru_cache(maxsize=256)
def find_missing_modules(python: str, modules: tuple[str, ...]) -> tuple[str, ...]:
    """Return the top-level modules that an interpreter cannot import; all of them if there is no interpreter.

    Only our own interpreter is executed. A change may have replaced any other one, and that must not run outside a
    seal, so its packages are searched for by name.
    """
    if python != sys.executable:
        places = _list_import_places(Path(python))
        return tuple(module for module in modules if not any(_holds_module(place, module) for place in places))
    question = "import importlib.util as u, sys; print(*['-'] + [m for m in sys.argv[1:] if not getattr(u.find_spec(m), 'loader', 0)])"
    try:
        answer = subprocess.run(
            [python, "-c", question, *modules],
            cwd=Path(python).parent,
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return modules
    return tuple(answer.stdout.split()[1:])


def _list_import_places(python: Path) -> tuple[Path, ...]:
    """List the folders from which an interpreter imports, including those of linked packages."""
    if not python.is_file():
        return ()
    prefix, base = python.parent.parent, Path(os.path.realpath(python)).parent.parent
    settings = prefix / "pyvenv.cfg"
    is_closed = settings.is_file() and not _SYSTEM_PACKAGES.search(settings.read_text(errors="replace"))
    environments = (prefix,) if is_closed else (prefix, base, base / "local")
    folders = [folder for found in environments for folder in found.glob("lib*/python3*/*-packages")]
    linked = (Path(source) for folder in folders for source in find_linked_sources(folder))
    return (*folders, *linked, *base.glob("lib*/python3*"))


def _holds_module(place: Path, module: str) -> bool:
    """Tell whether a folder contains a top-level module or is it. A folder without an `__init__.py` may be a leftover of one."""
    if module in sys.builtin_module_names or (place / module / "__init__.py").is_file():
        return True
    if place.name == module and (place / "__init__.py").is_file():
        return True
    return (place / f"{module}.py").is_file() or any(place.glob(f"{module}.*so"))


def _polyglot_python(script: Path) -> str | None:
    head = script.read_bytes()[:SCRIPT_HEAD_BYTES].decode("utf-8", "replace").splitlines()
    match = _POLYGLOT_EXEC.match(head[1]) if len(head) > 1 else None
    if match is None:
        return None
    python = Path(match["python"])
    return _existing(script.resolve().parent / python.name if match["folder"] else python)


def _is_python(name: str) -> bool:
    return name.lower().startswith(("python", "pypy"))


def _existing(python: Path) -> str | None:
    return str(python) if python.is_file() else None
