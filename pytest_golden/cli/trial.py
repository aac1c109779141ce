"""Run a pipeline for `golden init` in a view, so that nothing real is touched, and draft its outputs from what it wrote."""

from __future__ import annotations

import glob
import os
import re
import shlex
from collections import Counter
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pytest_golden.cli.check import make_plan
from pytest_golden.cli.drafting import DraftedProject, choose_path, write_draft
from pytest_golden.cli.screen import show_status
from pytest_golden.compare.tables.database_outputs import is_database
from pytest_golden.compare.tables.delta_tables import DELTA_LOG, list_delta_tables
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.calibrating import calibrate_project
from pytest_golden.gateway import git
from pytest_golden.gateway.reads import ReadRecorder
from pytest_golden.gateway.runners.choice import list_runners
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.history.unchanged_paths import is_of_pipelines, is_passed_over
from pytest_golden.manifest.comparisons import holds_data, is_database_name, plain_suffix
from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig, slug, stem_name
from pytest_golden.manifest.reader import MANIFEST_NAME, parse_manifest
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.unexpected import find_unexpected, is_named, names_output
from pytest_golden.regression.wording import count_of, format_elapsed

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_golden.gate.calibrating import ProjectCalibration
    from pytest_golden.gateway.runners.runner import Runner
    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.regression.model import GoldenProjectResult

# Words that may be part of a project's name: no option, number or date.
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_SHELL_SIGNS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1"})
_MOST_FILES = 10
_DBT_MANIFEST = "target/manifest.json"
_ALL_TABLES = "*"
_MOST_OUTPUTS = 50
_FEW_ALIKE = 2
_STAMP = re.compile(r"\d[\dT:._-]*(?<=\d)")
_MOST_SAID = 160
_RUNS_TO_COMPARE = 2
_COVERED_PERCENT = 90
_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_LONGEST_TEXT = 1 << 20
_PARQUET = b"PAR1"
# Texts that are not results: logs, code, and what programs keep for themselves.
_NO_DATA = frozenset(
    {".log", ".err", ".lock", ".pid", ".py", ".r", ".sql", ".sh", ".ipynb", ".toml", ".cfg", ".ini", ".crc"}
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")


def try_command(text: str, folder: Path, view: str, *, runs: int = 1) -> tuple[GoldenProjectResult, DraftedProject]:
    """Run a command in a view of the folder; return its first result and a draft, usable only if the result is PASSED.

    With two runs, the files with data become outputs, with the rules that make them stable.

    Raises:
        SettingsError: the text is not a command.
    """
    command = split_command(text)
    path = choose_path(command, folder)
    words = [Path(word).name for word in command if _WORD.fullmatch(Path(word).name)]
    name = stem_name(path) if path != "." else slug("_".join(words[:2]))
    try:
        project = GoldenProjectConfig(name or "project", path, command=command, project_dir=".")
    except ValueError:
        raise SettingsError(
            f"--from {text!r} cannot be declared; give a plain command such as 'python etl.py'"
        ) from None
    tried = _try(project, text, folder, view, runs)
    runner = make_plan(project, folder).runner or "command"
    drafted = DraftedProject(project.name, path, runner, "", command, ".")
    result = tried.results[0]
    took = format_elapsed(result.execution_time_seconds)
    comment = f"drafted from {count_of(tried.runs, 'run')} of its command; the first took {took}"
    return result, replace(_add_files(drafted, tried, folder), comment=comment)


def try_pipeline(drafted: DraftedProject, folder: Path, view: str) -> DraftedProject:
    """Run a drafted project twice in a view, and return it with the files that it wrote, or with a comment that says why it failed.

    It gets none of the variables that it asks for: nobody has looked at it yet, and it could send a secret away. If it keeps its
    tables in memory, it is tried again with its tables in a file, and declared so if that passes.
    """
    try:
        tried = _try_drafted(drafted, folder, view)
        with_file = _keep_tables(drafted, tried, folder)
        if with_file is not None:
            again = _try_drafted(with_file, folder, view)
            if again.failed is None and _wrote_database(again):
                drafted, tried = with_file, again
    except GoldenError as error:
        return replace(drafted, told=(*drafted.told, f"no outputs: {error}"))
    result = tried.results[0]
    if result.status is not ResultStatus.PASSED:
        told = f"did not pass: {shorten_reason(result).removeprefix(f'{drafted.name}: ')}"
        return replace(drafted, comment=f"{drafted.comment}; when tried it {told}", told=(*drafted.told, f"it {told}"))
    took = format_elapsed(result.execution_time_seconds)
    place = folder / (drafted.project_dir or PurePosixPath(drafted.path).parent)
    comment = f"{drafted.comment}; it took {took} when tried"
    return replace(_add_files(drafted, tried, place), comment=comment, code=_list_code(result, folder))


def _list_code(result: GoldenProjectResult, folder: Path) -> dict[str, int] | None:
    """Return the programs that a run read, with their sizes."""
    metadata = {} if result.trajectory is None else result.trajectory["metadata"]
    outside, inside = metadata.get("reads"), metadata.get("reads_inside")
    if outside is None or inside is None:
        return None
    root = ReadRecorder(folder).root
    code = {path: root / path for path in (*outside, *inside) if is_of_pipelines(path) and not holds_data(path)}
    return {path: file.stat().st_size for path, file in code.items() if file.is_file()}


def find_covered(drafted: Sequence[DraftedProject]) -> dict[str, int]:
    """Find projects to leave out, and the share of their code that the others still read, in percent.

    They are tried one after another, the one that reads least code first. One is left out if the others still read 90 % of the
    bytes of its code, and of the code of each that is already left out. So none of the others can be left out too. A project
    whose code is not known stays.
    """
    known = {project.name: project.code for project in drafted if project.code and any(project.code.values())}
    staying, covered = dict(known), dict[str, int]()
    for name in sorted(known, key=lambda one: sum(known[one].values())):
        others = {path for other, code in staying.items() if other != name for path in code}
        shares = {each: _share(known[each], others) for each in (*covered, name)}
        if min(shares.values()) >= _COVERED_PERCENT:
            covered = shares
            del staying[name]
    return covered


def _share(code: Mapping[str, int], read: Collection[str]) -> int:
    """Return which percentage of the bytes of code is in files that were read, rounded down."""
    return 100 * sum(size for path, size in code.items() if path in read) // sum(code.values())


def _try_drafted(drafted: DraftedProject, folder: Path, view: str) -> ProjectCalibration:
    (project,) = parse_manifest(write_draft([drafted]), MANIFEST_NAME, folder).projects
    return _try(replace(project, pass_env=()), drafted.name, folder, view, _RUNS_TO_COMPARE)


def _keep_tables(drafted: DraftedProject, tried: ProjectCalibration, folder: Path) -> DraftedProject | None:
    """Return the draft with its tables in a file, if its engine supports that and a passing run wrote no database."""
    runner = _find_runner(tried.project, folder)
    has_passed = tried.results[0].status is ResultStatus.PASSED
    if runner is None or not runner.keep_tables or not has_passed or _wrote_database(tried):
        return None
    told = "it keeps its tables in memory, where they cannot be compared: `set_env` puts them into a file"
    return replace(drafted, keys={**drafted.keys, "set_env": dict(runner.keep_tables)}, told=(*drafted.told, told))


def _wrote_database(tried: ProjectCalibration) -> bool:
    write_set = tried.results[0].write_set
    return any(is_database_name(path) for path in (*write_set.created, *write_set.changed))


def shorten_reason(result: GoldenProjectResult) -> str:
    """Return the first line of why a result is not PASSED, cut."""
    line = (result.error_message or result.status.value).partition("\n")[0]
    return line if len(line) <= _MOST_SAID else f"{line[:_MOST_SAID]}..."


def _add_files(drafted: DraftedProject, tried: ProjectCalibration, folder: Path) -> DraftedProject:
    """Add the files that the first of its runs wrote below a folder: stable `outputs`, `writes`, and notes about the others."""
    result = tried.results[0]
    written = sorted({*result.write_set.created, *result.write_set.changed})
    outputs, told = choose_outputs(tried, written)
    engine_files = [pattern for one in list_runners() if one.name == drafted.runner for pattern in one.engine_files]
    unnamed = find_unexpected(written, [*engine_files, *(output.path for output in outputs if output.path)])
    writes = generalise_writes(unnamed, folder)
    told = (*drafted.told, *told, *filter(None, [tried.told]))
    clock = {} if tried.moved_by_day is None else {"clock": tried.project.clock}
    return replace(drafted, outputs=outputs, writes=writes, told=told, keys={**drafted.keys, **clock})


def _try(project: GoldenProjectConfig, text: str, folder: Path, view: str, runs: int) -> ProjectCalibration:
    present: list[ExecutionGateway] = []
    data = _list_data(project, folder)

    def watch(_: int, gateway: ExecutionGateway) -> None:
        present[:] = [gateway]

    with show_status(text, lambda: present[0].present_step() if present else None):
        return calibrate_project(
            project,
            lambda: ExecutionGateway(folder, view=view, reads=ReadRecorder(folder)),
            runs=runs,
            watch=watch,
            draft=lambda written: draft_outputs(written, data),
        )


def _list_data(project: GoldenProjectConfig, folder: Path) -> frozenset[str]:
    """List what the engine of a project tracks beside git: its inputs, even if it writes them again."""
    plan = make_plan(project, folder)
    runner = _find_runner(project, folder)
    if plan.folder is None or runner is None:
        return frozenset()
    try:
        tracked = git.list_tracked(plan.folder)
    except GoldenError:
        # Without git there is nothing beside it.
        tracked = None
    return frozenset() if runner.list_data is None else frozenset(runner.list_data(plan.folder, tracked or ()))


def _find_runner(project: GoldenProjectConfig, folder: Path) -> Runner | None:
    name = make_plan(project, folder).runner
    return next((one for one in list_runners() if one.name == name), None)


def draft_outputs(written: WrittenFiles, data: Collection[str] = ()) -> tuple[DeclaredOutput, ...]:
    """Make an entry for each written file that holds data: tables, JSON, texts for people, and pictures; for many, only the first.

    The models of dbt are one entry, and so are the tables of each database, and the Delta tables below a folder. `data` are inputs,
    which get no entry.
    """
    expected = [path for path in find_unexpected(written.paths, ()) if path not in data]
    databases = [path for path in expected if is_database_name(path) and is_database(path, written)]
    if _DBT_MANIFEST in written.paths and databases:
        of_tables = [DeclaredOutput(dbt=(_ALL_TABLES,))]
    else:
        of_tables = [DeclaredOutput(glob.escape(path), tables=(_ALL_TABLES,)) for path in databases]
    folders = list_delta_tables(written.paths)
    # A folder stands for all that is below it.
    above = [place for place in folders if place and not any(place.startswith(f"{other}/") for other in folders)]
    of_tables += [DeclaredOutput(glob.escape(place), tables=(_ALL_TABLES,)) for place in above]
    inside = {path.partition(f"/{DELTA_LOG}/")[0] for path in written.paths if f"/{DELTA_LOG}/" in path}
    found = [path for path in expected if not any(str(one) in inside for one in PurePosixPath(path).parents)]
    of_files = filter(None, (_draft_file(path, written) for path in found))
    return (*of_tables, *islice(of_files, _MOST_OUTPUTS))


def _draft_file(path: str, written: WrittenFiles) -> DeclaredOutput | None:
    """Make an entry for a file that holds data: by its suffix, otherwise by its first bytes."""
    if is_passed_over(path):
        return None
    if holds_data(path):
        return DeclaredOutput(glob.escape(path), header=_has_header(written, path))
    beginning = _read_beginning(written, path)
    if beginning.startswith(_PARQUET):
        return DeclaredOutput(glob.escape(path), compare="table")
    is_text = plain_suffix(path) not in _NO_DATA and 0 < len(beginning) < _LONGEST_TEXT and _is_text(beginning)
    return DeclaredOutput(glob.escape(path), compare="text") if is_text else None


def _is_text(content: bytes) -> bool:
    try:
        return content.decode().replace("\t", "").replace("\n", "").replace("\r", "").isprintable()
    except UnicodeDecodeError:
        return False


def _read_beginning(written: WrittenFiles, path: str) -> bytes:
    """Return the first bytes of a regular file; nothing if it cannot be read."""
    try:
        file = os.open(written.locate(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as stream:
            return stream.read(_LONGEST_TEXT)
    except OSError:
        return b""


def _has_header(written: WrittenFiles, path: str) -> bool:
    """Tell whether a text table begins with names: no numbers, except years, and 0, 1, 2 as pandas writes."""
    separator = _SEPARATORS.get(PurePosixPath(path).suffix.lower())
    if separator is None:
        return True
    line = _read_beginning(written, path).partition(b"\n")[0].decode("utf-8", "replace")
    cells = [cell.strip(' "\r') for cell in line.split(separator)]
    numbers = [cell for cell in cells if _NUMBER.fullmatch(cell)]
    are_years = len(set(numbers)) == len(numbers) and all(map(_YEAR.fullmatch, numbers))
    return are_years or cells == [str(number) for number in range(len(cells))]


def choose_outputs(
    tried: ProjectCalibration, written: Sequence[str]
) -> tuple[tuple[DeclaredOutput, ...], tuple[str, ...]]:
    """Return the drafted outputs that are stable by their rules, patterns for those without rules, and notes about the others."""
    found = tried.found
    if tried.runs < _RUNS_TO_COMPARE:
        return (), ()
    if found is None:
        told = "its inputs changed between two runs"
        if tried.failed:
            conditions = "a second run, with another hash seed, one thread and perhaps at another time, did not pass"
            told = f"{conditions}: {shorten_reason(tried.failed)}"
        return (), (f"no outputs: {told}; `golden calibrate` says more once they are declared",)
    moving = {file.path: file.unsolved for file in found.files if file.unsolved}
    above = {parent for path in found.missing for parent in PurePosixPath(path).parents}
    stable = [
        output
        for output in found.outputs
        if not any(names_output(output, path) for path in (*moving, *found.missing))
        and not _is_index(output.path, above)
    ]
    moved = [f"no output: {path}: {why[0]}" for path, why in sorted(moving.items())]
    if found.missing:
        # Files of single runs, such as reports with a time in their path, are described by what their paths have in common.
        shapes = sorted({_STAMP.sub("*", path) for path in found.missing})
        others = f" and {len(shapes) - 1} more like it" if len(shapes) > 1 else ""
        moved.append(f"no output: {shapes[0]}{others}: only one of two runs wrote it")
    more = (f"no output: {len(moved) - _MOST_FILES} more",) if len(moved) > _MOST_FILES else ()
    return _join_outputs(stable, [*written, *moving]), (*moved[:_MOST_FILES], *more)


def _is_index(path: str, above_runs: Collection[PurePosixPath]) -> bool:
    """Tell whether a file is a page about runs: HTML in a folder that has files of single runs below it."""
    pure = PurePosixPath(path)
    return pure.suffix.lower() in {".html", ".htm"} and pure.parent in above_runs


def _join_outputs(outputs: Sequence[DeclaredOutput], written: Sequence[str]) -> tuple[DeclaredOutput, ...]:
    """Name files of one folder and suffix by one pattern if they have the same rules and the pattern names no other file."""
    groups: dict[DeclaredOutput, list[DeclaredOutput]] = {}
    joined = [output for output in outputs if output.is_of_tables]
    for output in (one for one in outputs if not one.is_of_tables):
        pure = PurePosixPath(output.path)
        # A file with versions is in a folder of its own name.
        parts = [f"*{pure.suffix}" if part == pure.name else part for part in pure.parts]
        groups.setdefault(replace(output, path="/".join(parts)), []).append(output)
    # A file that was written with the same content is not a change, but an output.
    known = {*written, *(output.path for output in outputs)}
    for pattern_of_all, some in groups.items():
        named = (path for path in known if is_named(path, pattern_of_all.path))
        is_exact = all(any(is_named(path, output.path) for output in some) for path in named)
        joined += [pattern_of_all] if is_exact and len(some) >= _FEW_ALIKE else some
    return tuple(joined)


def split_command(text: str) -> tuple[str, ...]:
    """Split a command as a shell would.

    Raises:
        SettingsError: it is empty, a quote is not closed, or it needs a shell.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise SettingsError(f"--from {text!r} cannot be split into words: {error}") from None
    if not words:
        raise SettingsError("--from has no command; give one such as 'python etl.py'")
    signs = sorted(_SHELL_SIGNS.intersection(words))
    if signs:
        raise SettingsError(
            f"--from runs a program without a shell, so {signs[0]!r} has no meaning; write: sh -c '...'"
        )
    return words


def generalise_writes(written: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return patterns for written files: one for each new folder; other files one by one, unless they are many."""
    patterns = [_generalise(path, folder) for path in written]
    crowds = Counter(str(PurePosixPath(pattern).parent) for pattern in patterns if not pattern.endswith("/**"))
    for index, pattern in enumerate(patterns):
        parent = str(PurePosixPath(pattern).parent)
        if not pattern.endswith("/**") and crowds[parent] > _MOST_FILES:
            patterns[index] = "*" if parent == "." else f"{parent}/*"
    return tuple(dict.fromkeys(patterns))


def _generalise(path: str, folder: Path) -> str:
    for parent in reversed(PurePosixPath(path).parents[:-1]):
        if not (folder / parent).is_dir():
            return f"{glob.escape(str(parent))}/**"
    return glob.escape(path)
