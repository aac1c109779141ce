"""`golden init`: write a first manifest, from pipelines that are found or from a command that is run once.

Without --from it declares the projects of engines, and the notebooks, below the manifest's folder.
With --from it runs the command there twice, in a copy-on-write view, and declares it with the files that it wrote, those with data as
outputs with the rules that make them stable (see `golden calibrate`):

    golden init --from "python etl.py --day 2026-01-01"

--no-calibrate runs it once and declares no outputs.

exit code: 0 written, 1 the command failed and nothing was written, 2 bad input (such as a manifest that exists).
"""

from __future__ import annotations

import glob
import os
import re
import shlex
import sys
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import yaml

from pytest_golden.cli import pytest_workflow
from pytest_golden.cli.check import make_plan
from pytest_golden.cli.finding_pipelines import MOST_FOUND, PASSED_OVER, FoundPipeline, find_pipelines, find_venv
from pytest_golden.cli.options import add_limit_option, add_options, read_command_settings, read_limit
from pytest_golden.cli.screen import answer, print_list, show_status, styled
from pytest_golden.compare.tables.database_outputs import is_database
from pytest_golden.compare.tables.delta_tables import DELTA_LOG, list_delta_tables
from pytest_golden.errors import SettingsError
from pytest_golden.gate.calibrating import calibrate_project
from pytest_golden.gateway.runners.choice import list_runners
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.amending import add_projects, rewrite_manifest, write_value
from pytest_golden.manifest.comparisons import COMPRESSED_SUFFIXES
from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig, slug, stem_name
from pytest_golden.manifest.reader import MANIFEST_NAME, load_manifest, parse_manifest
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.unexpected import find_unexpected, is_named, names_output
from pytest_golden.regression.wording import count_of, format_elapsed
from pytest_golden.report.result_text import explain_failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rich.console import Console

    from pytest_golden.gate.calibrating import ProjectCalibration
    from pytest_golden.gateway.write_set import WrittenFiles
    from pytest_golden.manifest.model import Manifest
    from pytest_golden.regression.model import GoldenProjectResult


_MOST_DECLARED = 10_000
# What is written when nothing is found; what is found stands in the place of its example.
_FIRST_MANIFEST = Path(__file__).with_name("first_manifest.yaml")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_/-]*(\.[A-Za-z0-9_/-]+)*")
# What may be in a project's name; no option, number or date.
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.]*")
_SHELL_SIGNS = frozenset({"|", "||", "&&", "&", ";", ">", ">>", "<", "2>", "2>&1"})
_MOST_FILES = 10
_NAMED_BY_FILE = frozenset({"odibi", "notebook"})
# What is worth a baseline: tables, JSON, texts for people, pictures, genome data. Logs and models are not.
_DATA_SUFFIXES = frozenset(
    {
        *(".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".json", ".geojson", ".xml", ".yaml", ".yml"),
        *(".txt", ".md", ".html", ".png", ".svg"),
        *(".vcf", ".bed", ".gff", ".gff3", ".gtf"),
    }
)
_NO_RULES = DeclaredOutput("*")
# What may be a database: its first bytes tell.
_DATABASE_SUFFIXES = frozenset({".duckdb", ".ddb", ".sqlite", ".sqlite3", ".db"})
_DBT_MANIFEST = "target/manifest.json"
_ALL_TABLES = "*"
_MOST_OUTPUTS = 50
_MOST_ALIKE = 3
_RUNS_TO_COMPARE = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden init`."""
    parser.add_argument(
        "--from",
        dest="command",
        metavar="COMMAND",
        help="Run this command twice, and declare it with the files that it wrote; or `pytest-workflow`: translate its tests.",
    )
    parser.add_argument("--no-calibrate", action="store_true", help="With --from: run it once, and declare no outputs.")
    parser.add_argument("--add", action="store_true", help="Add what it lacks to a manifest that is there.")
    parser.add_argument(
        "--manifest",
        metavar="PATH",
        help=f"The file to write (default: env GOLDEN_MANIFEST, else {MANIFEST_NAME} in this folder).",
    )
    add_limit_option(parser, MOST_FOUND, "The most projects to declare")
    add_options(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Write the manifest."""
    most_found = read_limit(arguments.limit, _MOST_DECLARED)
    settings = read_command_settings(arguments)
    path = settings.manifest or Path.cwd() / MANIFEST_NAME
    declared = load_manifest(path) if arguments.add else None
    if declared is None:
        _require_free(path)
    root = path.parent if declared is None else declared.workspace_root
    taken = {project.name for project in declared.projects} if declared else set()
    if arguments.command is None:
        found = find_pipelines(root, most_found=most_found, known=_list_declared(declared))
        drafted = draft_found(found, root, taken)
    elif arguments.command == pytest_workflow.NAME:
        drafted = draft_tests(root, taken)
    else:
        runs = 1 if arguments.no_calibrate else 2
        result, project = try_command(arguments.command, root, settings.sandbox, runs=runs)
        if result.status is not ResultStatus.PASSED:
            told = {"error": result.error_message, "exit_code": result.exit_code, "output": result.output_summary}
            answer(arguments, told, lambda console: _show_failure(console, result))
            return 1
        drafted = (replace(project, name=_choose_free(project.name, taken)),)
    if declared is None:
        _write(path, write_draft(drafted))
    elif drafted:
        _complete(path, drafted)
    projects = [
        {
            "name": each.name,
            "path": each.path,
            "runner": each.runner,
            "outputs": [output.path for output in each.outputs],
        }
        for each in drafted
    ]
    facts = {"manifest": str(path), "projects": projects}
    return answer(arguments, facts, lambda console: _show(console, path, drafted, most_found, is_added=arguments.add))


def _list_declared(declared: Manifest | None) -> frozenset[str]:
    """Return the files of the pipelines that a manifest declares already."""
    if declared is None:
        return frozenset()
    root = declared.workspace_root
    return frozenset(os.path.realpath(root / Path(one.path).expanduser()) for one in declared.projects)


def _complete(path: Path, drafted: Sequence[DraftedProject]) -> None:
    """Add projects to a manifest that is there."""
    text = add_projects(path.read_text(encoding="utf-8"), [list(_project_lines(project)) for project in drafted])
    rewrite_manifest(path, text)


def _require_free(path: Path) -> None:
    if path.is_symlink() or path.exists():
        raise SettingsError(f"{path} exists and is not overwritten; edit it, or name another file with --manifest")
    if not path.parent.is_dir():
        raise SettingsError(f"the folder {path.parent} does not exist; create it, or name another file with --manifest")


def _write(path: Path, text: str) -> None:
    parse_manifest(text, path.name, path.parent)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        _require_free(path)


def _show_failure(console: Console, result: GoldenProjectResult) -> None:
    console.print(styled("the command did not pass, so nothing was written", "bold red"))
    console.print(styled(explain_failure(result, shell_command=None)))


def _show(console: Console, path: Path, drafted: Sequence[DraftedProject], most_found: int, *, is_added: bool) -> None:
    count = len(drafted)
    shown = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    told = (
        f"added {count_of(count, 'golden project')} to {shown}"
        if is_added
        else f"wrote {shown} with {count_of(count, 'golden project')}"
    )
    console.print(styled(told, "bold"))
    print_list(console, [(project.name, f"{project.runner}  {project.path}") for project in drafted])
    for project in drafted:
        print_list(console, [(" ", told) for told in project.told])
    if count == most_found:
        console.print(styled(f"there may be more: it stops at {most_found}; `golden init --add` goes on"))
    if not drafted and is_added:
        console.print(styled("every pipeline that is recognized with certainty is declared already"))
        return
    if not drafted:
        console.print(styled("no pipeline was recognized with certainty: declare one as the comments in the file show"))
    first = drafted[0].name if drafted else "NAME"
    is_default = shown == Path(MANIFEST_NAME)
    ours, pytests = ("", "") if is_default else (f" --manifest {shown}", f" --golden-manifest {shown}")
    console.print(styled("next:"))
    moves = {
        f"golden check{ours}": "see what would be run, and what is missing here",
        f"golden run {first}{ours}": "run one",
        f"pytest --golden{pytests}": "run the gate",
    }
    if any(project.outputs for project in drafted):
        moves[f"golden accept {first}{ours}"] = "accept its first outputs as baselines"
    print_list(console, moves.items())


@dataclass(frozen=True, slots=True)
class DraftedProject:
    """One project of the draft; `comment` stands above it. `told` is what else is said of its outputs."""

    name: str
    path: str
    runner: str
    comment: str
    command: tuple[str, ...] = ()
    project_dir: str | None = None
    writes: tuple[str, ...] = ()
    outputs: tuple[DeclaredOutput, ...] = ()
    told: tuple[str, ...] = ()
    venv: str | None = None
    keys: Mapping[str, Any] = field(default_factory=dict)


def draft_found(
    found: Sequence[FoundPipeline], folder: Path | None = None, taken: Collection[str] = ()
) -> tuple[DraftedProject, ...]:
    """Draft one project for each pipeline, each with a name that is not `taken`, and with its environment if `folder` has one."""
    drafted: list[DraftedProject] = []
    for pipeline in found:
        name = _choose_name(pipeline, {*taken, *(project.name for project in drafted)})
        venv = None if folder is None else find_venv(folder, pipeline.path)
        drafted.append(
            DraftedProject(
                name, pipeline.path, pipeline.runner, f"run by {pipeline.runner}", venv=venv, keys=pipeline.keys
            )
        )
    return tuple(drafted)


def draft_tests(folder: Path, taken: Collection[str] = ()) -> tuple[DraftedProject, ...]:
    """Draft one project for each test of pytest-workflow below a folder.

    Raises:
        SettingsError: there are none.
    """
    drafted: list[DraftedProject] = []
    for test in pytest_workflow.translate_tests(folder):
        name = _choose_free(test.name, {*taken, *(project.name for project in drafted)})
        drafted.append(
            DraftedProject(
                name,
                _choose_path(test.command, folder),
                "command",
                "a test of pytest-workflow",
                test.command,
                ".",
                outputs=test.outputs,
                told=test.told,
                keys=test.keys,
            )
        )
    return tuple(drafted)


def _choose_name(pipeline: FoundPipeline, taken: Collection[str]) -> str:
    """Return a project's name: its file's, or its folder's if all files of its engine have one name; the path's if that is taken."""
    pure = PurePosixPath(pipeline.path)
    if pipeline.runner in _NAMED_BY_FILE or pipeline.args is not None:
        name = stem_name(pipeline.path) or "project"
    else:
        name = slug(pure.parent.name) or pipeline.runner
    if name in taken:
        place = pure.parent if name == slug(pure.parent.name) else pure.with_suffix("")
        name = slug(str(place).replace("/", "_")) or "project"
    return _choose_free(name, taken)


def _choose_free(wanted: str, taken: Collection[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def write_draft(projects: Iterable[DraftedProject]) -> str:
    """Return the manifest's text."""
    head, heading, rest = _FIRST_MANIFEST.read_text(encoding="utf-8").partition("golden_projects:\n")
    example, _, further = rest.partition("\n\n")
    body = ["".join(f"  {line}\n" for line in _project_lines(project)) for project in projects] or [f"{example}\n"]
    return "".join([head, heading, "\n".join(body), "\n", further])


def _project_lines(project: DraftedProject) -> Iterator[str]:
    yield f"# {project.comment}"
    yield f"- name: {quote(project.name)}"
    yield f"  path: {quote(project.path)}"
    if project.command:
        yield f"  command: [{', '.join(quote(word) for word in project.command)}]"
    if project.venv is not None:
        yield f"  venv: {quote(project.venv)}"
    if project.project_dir is not None:
        yield f"  project_dir: {quote(project.project_dir)}"
    if project.outputs:
        yield "  outputs:"
        yield from (f"    - {{{', '.join(_list_rules(output))}}}" for output in project.outputs)
    if project.writes:
        yield "  writes: # seen in one run; a file that no pattern names gives a warning"
        yield from (f"    - {quote(pattern)}" for pattern in project.writes)
    if (project.outputs or project.writes) and not project.keys:
        yield "  unexpected_files: warn # or fail"
    yield from (f"  {key}: {_write_key(value)}" for key, value in project.keys.items())


def _write_key(value: Any) -> str:
    if not isinstance(value, dict):
        return write_value(value)
    return f"{{{', '.join(f'{key}: {write_value(each)}' for key, each in value.items())}}}"


def _list_rules(output: DeclaredOutput) -> Iterator[str]:
    if output.path:
        yield f"path: {quote(output.path)}"
    given = {field.name: getattr(output, field.name) for field in fields(output)}
    plain = vars(_NO_RULES)
    yield from (
        f"{name}: {write_value(value)}" for name, value in given.items() if name != "path" and value != plain[name]
    )


def quote(text: str) -> str:
    """Return a text as a YAML scalar, quoted unless it is certainly plain."""
    readable = "".join("?" if "\ud800" <= sign <= "\udfff" else sign for sign in text)
    if _PLAIN.fullmatch(readable) and yaml.safe_load(readable) == readable:
        return readable
    quoted: str = yaml.safe_dump(readable, default_style='"', allow_unicode=True, width=sys.maxsize)
    return quoted.rstrip("\n")


def try_command(text: str, folder: Path, view: str, *, runs: int = 1) -> tuple[GoldenProjectResult, DraftedProject]:
    """Run a command in a view of the folder; return its first result and a draft, usable only if the result is PASSED.

    With two runs, the files with data become outputs, with the rules that make them stable.

    Raises:
        SettingsError: the text is not a command.
    """
    command = split_command(text)
    path = _choose_path(command, folder)
    words = [Path(word).name for word in command if _WORD.fullmatch(Path(word).name)]
    name = stem_name(path) if path != "." else slug("_".join(words[:2]))
    try:
        project = GoldenProjectConfig(name or "project", path, command=command, project_dir=".")
    except ValueError:
        raise SettingsError(
            f"--from {text!r} cannot be declared; give a plain command such as 'python etl.py'"
        ) from None
    tried = _try(project, text, folder, view, runs)
    result = tried.results[0]
    took = format_elapsed(result.execution_time_seconds)
    comment = f"drafted from {count_of(tried.runs, 'run')} of its command; the first took {took}"
    written = sorted({*result.write_set.created, *result.write_set.changed})
    outputs, told = choose_outputs(tried, written)
    runner = make_plan(project, folder).runner or "command"
    engine_files = [pattern for one in list_runners() if one.name == runner for pattern in one.engine_files]
    unnamed = find_unexpected(written, [*engine_files, *(output.path for output in outputs if output.path)])
    writes = generalise_writes(unnamed, folder)
    return result, DraftedProject(project.name, path, runner, comment, command, ".", writes, outputs, told)


def _try(project: GoldenProjectConfig, text: str, folder: Path, view: str, runs: int) -> ProjectCalibration:
    present: list[ExecutionGateway] = []

    def watch(_: int, gateway: ExecutionGateway) -> None:
        present[:] = [gateway]

    with show_status(text, lambda: present[0].present_step() if present else None):
        return calibrate_project(
            project, lambda: ExecutionGateway(folder, view=view), runs=runs, watch=watch, draft=draft_outputs
        )


def draft_outputs(written: WrittenFiles) -> tuple[DeclaredOutput, ...]:
    """Make an entry for each written file that holds data: tables, JSON, texts for people and pictures; the first of many.

    The models of dbt are one entry, and so are the tables of each database, and the Delta tables below a folder.
    """
    expected = find_unexpected(written.paths, ())
    databases = [
        path
        for path in expected
        if PurePosixPath(path).suffix.lower() in _DATABASE_SUFFIXES and is_database(path, written)
    ]
    if _DBT_MANIFEST in written.paths and databases:
        of_tables = [DeclaredOutput(dbt=(_ALL_TABLES,))]
    else:
        of_tables = [DeclaredOutput(glob.escape(path), tables=(_ALL_TABLES,)) for path in databases]
    folders = list_delta_tables(written.paths)
    # A folder names all that is below it.
    above = [place for place in folders if place and not any(place.startswith(f"{other}/") for other in folders)]
    of_tables += [DeclaredOutput(glob.escape(place), tables=(_ALL_TABLES,)) for place in above]
    inside = {path.partition(f"/{DELTA_LOG}/")[0] for path in written.paths if f"/{DELTA_LOG}/" in path}
    found = [
        path
        for path in expected
        if _holds_data(path) and not any(str(one) in inside for one in PurePosixPath(path).parents)
    ]
    return (*of_tables, *(DeclaredOutput(glob.escape(path)) for path in found[:_MOST_OUTPUTS]))


def _holds_data(path: str) -> bool:
    pure = PurePosixPath(path)
    suffixes = [suffix.lower() for suffix in pure.suffixes if suffix.lower() not in COMPRESSED_SUFFIXES]
    is_ours = not any(part.startswith(".") or part in PASSED_OVER or part == "logs" for part in pure.parts)
    return is_ours and bool(suffixes) and suffixes[-1] in _DATA_SUFFIXES


def choose_outputs(
    tried: ProjectCalibration, written: Sequence[str]
) -> tuple[tuple[DeclaredOutput, ...], tuple[str, ...]]:
    """Return the drafted outputs that are stable by their rules, those without rules by patterns, and what is said of the others."""
    found = tried.found
    if tried.runs < _RUNS_TO_COMPARE:
        return (), ()
    if found is None:
        told = "its inputs changed between two runs"
        if tried.failed:
            conditions = "a second run, with another hash seed, one thread and perhaps at another time, did not pass"
            headline = (tried.failed.error_message or "").partition("\n")[0]
            told = f"{conditions}: {headline}"
        return (), (f"no outputs: {told}; `golden calibrate` says more once they are declared",)
    moving = {file.path: file.unsolved for file in found.files if file.unsolved}
    moving |= dict.fromkeys(found.missing, ("only one of two runs wrote it",))
    above = {parent for path in found.missing for parent in PurePosixPath(path).parents}
    stable = [
        output
        for output in found.outputs
        if not any(names_output(output, path) for path in moving) and not _is_index(output.path, above)
    ]
    moved = [f"no output: {path}: {why[0]}" for path, why in sorted(moving.items())]
    more = (f"no output: {len(moved) - _MOST_FILES} more",) if len(moved) > _MOST_FILES else ()
    return _join_outputs(stable, written), (*moved[:_MOST_FILES], *more)


def _is_index(path: str, above_runs: Collection[PurePosixPath]) -> bool:
    """Tell whether a file is a page about runs: HTML in a folder that has files of single runs below it."""
    pure = PurePosixPath(path)
    return pure.suffix.lower() in {".html", ".htm"} and pure.parent in above_runs


def _join_outputs(outputs: Sequence[DeclaredOutput], written: Sequence[str]) -> tuple[DeclaredOutput, ...]:
    """Name files of one folder and suffix by one pattern where they are many, have the same rules and the pattern names no other."""
    groups: dict[DeclaredOutput, list[DeclaredOutput]] = {}
    joined = [output for output in outputs if output.is_of_tables]
    for output in (one for one in outputs if not one.is_of_tables):
        pure = PurePosixPath(output.path)
        groups.setdefault(replace(output, path=str(pure.with_name(f"*{pure.suffix}"))), []).append(output)
    for pattern_of_all, some in groups.items():
        count = sum(is_named(path, pattern_of_all.path) for path in written)
        joined += [pattern_of_all] if _MOST_ALIKE < len(some) == count else some
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


def _choose_path(command: Sequence[str], folder: Path) -> str:
    """Return the first file that a command names, relative to the folder; `.` if it names none."""
    for word in command:
        path = os.path.relpath(folder / word, folder)
        if not path.startswith(os.pardir) and (folder / path).is_file():
            return Path(path).as_posix()
    return "."


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
