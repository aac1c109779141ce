"""Run Snakemake in its own interpreter.

With `GOLDEN_CHANGED_FILES`, run only the jobs that depend on these files, and the jobs that those need. A file belongs to a job if it is
an input, an output or the script of the job, or is named in its shell command. If a file belongs to no job, or to more than jobs,
everything runs.

A standalone script: this package may be missing where it runs. It needs only the standard library and Snakemake.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from inspect import isasyncgenfunction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import narrowing_child as narrowing  # type: ignore[import-not-found]  # these stand beside this script
import steps_child as steps  # type: ignore[import-not-found]

if TYPE_CHECKING:
    from collections.abc import Iterator

LIST_JOBS = "--golden-list-jobs"
# The targets are arguments on the command line.
MOST_TARGETS = 5000
MOST_CODE = 1 << 20
CODE = (".py", ".R", ".r", ".Rmd", ".jl", ".sh", ".pl", ".rs", ".ipynb")
WORD = re.compile(r"[\w./-]+")


def run() -> None:
    """Run Snakemake with the arguments in `sys.argv`."""
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)


def list_jobs(place: str) -> None:
    """Write all jobs into a file, with the files that Snakemake opened to find them. Called where Snakemake would print its summary."""
    opened = narrowing.OpenedFiles()
    # Snakemake's modules import each other, and only this order works. Version 7 has no module for its command line.
    import_module("snakemake.cli" if find_spec("snakemake.cli") else "snakemake")
    graph = import_module("snakemake.dag").DAG

    def write(this: Any) -> None:
        jobs = [describe(job) for job in this.jobs]
        Path(place).write_text(json.dumps({"jobs": jobs, "opened": sorted(opened.end())}), encoding="utf-8")

    async def sum_up_later(this: Any, *_: Any, **__: Any) -> Any:
        write(this)
        yield ""

    def sum_up(this: Any, *_: Any, **__: Any) -> Any:
        write(this)
        return ()

    graph.summary = sum_up_later if isasyncgenfunction(graph.summary) else sum_up
    run()


def describe(job: Any) -> dict[str, Any]:
    """Return the facts about a job. Files are absolute. `targets` are its outputs as Snakemake names them, `logs` its other written files."""
    rule = job.rule
    files = [*job.input, *job.output]
    script = rule.script or rule.notebook
    # The wildcards and parameters of the command are filled in.
    words = f"{job.shellcmd or ''} {' '.join(list_words(getattr(rule.run_func, '__code__', None)))}"
    programs = {os.path.realpath(word) for word in WORD.findall(words) if os.path.isfile(word)}
    if script is not None:
        found = script if os.path.isabs(script) else rule.basedir.join(script)
        programs.add(os.path.realpath(getattr(found, "path", str(found))))
    is_elsewhere = any(getattr(file, "is_storage", False) or getattr(file, "is_remote", False) for file in files)
    return {
        "inputs": [os.path.realpath(file) for file in job.input],
        "outputs": [os.path.realpath(file) for file in job.output],
        "targets": [str(file) for file in job.output],
        "logs": [os.path.realpath(file) for file in (*job.log, job.benchmark) if file],
        "programs": sorted(programs),
        "words": words,
        "acts": not rule.norun,
        "is_unclear": bool(is_elsewhere or getattr(rule, "is_checkpoint", False) or "{" in str(script)),
    }


def list_words(code: Any) -> Iterator[str]:
    """Yield the names and texts that the body of a `run:` rule uses."""
    if code is None:
        return
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, str):
            yield one
        elif hasattr(one, "co_consts"):
            yield from list_words(one)


def read_jobs(arguments: list[str]) -> tuple[list[dict[str, Any]], set[str]]:
    """Let a second process list all jobs, and the files that Snakemake opened to find them.

    Raises:
        WholeError: it cannot list them. Snakemake reports the reason when it runs.
    """
    with tempfile.TemporaryDirectory(prefix="golden-snakemake-") as folder:
        place = os.path.join(folder, "jobs.json")
        command = [sys.executable, __file__, LIST_JOBS, place, *arguments, "--summary"]
        done = subprocess.run(command, capture_output=True, check=False)
        if done.returncode or not os.path.exists(place):
            raise narrowing.WholeError("Snakemake did not list its jobs")
        told = json.loads(Path(place).read_text(encoding="utf-8"))
    return told["jobs"], set(told["opened"])


def narrow(changed: list[str], arguments: list[str], here: str) -> tuple[list[str], list[str]]:
    """Return the files that must be made because of the changed ones, and the files that are left out.

    Raises:
        WholeError: everything must be made.
    """
    jobs, opened = read_jobs(arguments)
    if any(job["is_unclear"] or (job["acts"] and not job["outputs"]) for job in jobs):
        raise narrowing.WholeError(
            "a rule is a checkpoint, has no output, computes the name of its script, or has files outside the project"
        )
    beside = os.path.dirname(os.path.realpath(arguments[arguments.index("--snakefile") + 1]))
    origins: set[int] = set()
    for path in changed:
        # The path of a baseline is relative to the folder in which Snakemake was started.
        places = {os.path.realpath(os.path.join(folder, path)) for folder in (beside, here)}
        if not places.isdisjoint(opened):
            raise narrowing.WholeError(f"Snakemake reads {path} itself")
        found = {at for at, job in enumerate(jobs) if is_of_job(job, places)}
        if not found:
            raise narrowing.WholeError(f"{path} is that of no job")
        if is_named_elsewhere(jobs, found, places, os.path.basename(path), here):
            raise narrowing.WholeError(f"{path} is named by more than its own jobs")
        origins |= found
    # A rule that only lists targets is not a job.
    after = {at for at in walk(jobs, origins, "outputs", "inputs") if jobs[at]["outputs"]}
    needed = walk(jobs, after, "inputs", "outputs")
    inputs = {file for at in after for file in jobs[at]["inputs"]}
    last = [at for at in sorted(after) if inputs.isdisjoint(jobs[at]["outputs"])]
    targets = [target for at in last for target in jobs[at]["targets"]]
    if not targets or len(targets) > MOST_TARGETS:
        raise narrowing.WholeError(f"{len(targets)} files must be made")
    rest = {file for at, job in enumerate(jobs) if at not in needed for file in (*job["outputs"], *job["logs"])}
    return targets, [os.path.relpath(file, here) for file in rest]


def is_of_job(job: dict[str, Any], places: set[str]) -> bool:
    """Tell whether a file is one of these inputs, outputs or programs of jobs, or is in a folder that is one."""
    known = [*job["inputs"], *job["outputs"], *job["programs"]]
    return any(narrowing.is_below(place, file) for place in places for file in known)


def is_named_elsewhere(jobs: list[dict[str, Any]], found: set[int], places: set[str], name: str, here: str) -> bool:
    """Tell whether other code of the project names or imports a file, or whether a job's own lines import it."""
    own = places.union(*(jobs[at]["programs"] for at in found))
    code = set(list_code(here)).union(*({*job["programs"]}.difference(job["inputs"]) for job in jobs))
    texts = [read_beginning(file) for file in code - own]
    named = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
    if any(map(named.search, texts)):
        return True
    stem, suffix = os.path.splitext(name)
    if suffix not in CODE:
        return False
    imported = re.compile(rf"\b(?:import|from|source|include|library)\b.*\b{re.escape(stem)}\b")
    module = re.compile(rf"(?<![\w./-])(?:\w+\.)*{re.escape(stem)}(?![\w./-])")
    rest = (job["words"] for at, job in enumerate(jobs) if at not in found)
    return any(map(imported.search, texts)) or any(map(module.search, rest))


@cache
def read_beginning(file: str) -> str:
    """Return the beginning of a file of code. A longer file is data that a command names."""
    with open(file, encoding="utf-8", errors="replace") as text:
        return text.read(MOST_CODE)


def list_code(folder: str) -> Iterator[str]:
    """Yield the real paths of all code files below a folder, without hidden folders and virtual environments."""
    for place, folders, names in os.walk(folder):
        is_installed = "pyvenv.cfg" in names or "conda-meta" in folders
        folders[:] = [] if is_installed else [name for name in folders if not name.startswith(".")]
        yield from (os.path.realpath(os.path.join(place, name)) for name in names if name.endswith(CODE))


def walk(jobs: list[dict[str, Any]], origins: set[int], from_key: str, to_key: str) -> set[int]:
    """Return these jobs and all jobs that can be reached from them, by following one kind of file to the other kind."""
    reached: dict[str, list[int]] = {}
    for at, job in enumerate(jobs):
        for file in job[to_key]:
            reached.setdefault(file, []).append(at)
    todo, seen = list(origins), set(origins)
    while todo:
        for file in jobs[todo.pop()][from_key]:
            new = [at for at in reached.get(file, ()) if at not in seen]
            seen.update(new)
            todo += new
    return seen


def main() -> None:
    """Run Snakemake with this script's arguments."""
    steps.forget_own_folder()
    if sys.argv[1:2] == [LIST_JOBS]:
        place = sys.argv[2]
        sys.argv = ["snakemake", *sys.argv[3:]]
        list_jobs(place)
        return
    changed, told = narrowing.take_changed(), Path(narrowing.LEFT_OUT).absolute()
    if not changed:
        run()
        return
    left_out: list[str] = []
    try:
        targets, left_out = narrow(changed, sys.argv[1:], os.path.realpath(os.curdir))
        sys.argv += targets
    except Exception as error:
        narrowing.explain_whole(error)
    try:
        run()
    finally:
        narrowing.tell_left_out(told, left_out)


if __name__ == "__main__":
    main()
