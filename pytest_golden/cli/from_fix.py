"""Draft a golden project from a fix: `golden init --from-fix REF`.

Each draft runs twice: as it is, and in a view in which the fix's changes to programs are undone. Its tests and its data stay. The drafts
are the pipelines of engines in whose folders the fix changed programs, and the tests that it added. A draft whose second run is red, by
its exit or by an output, would have caught the mistake. The working tree is not changed.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from pytest_golden.cli.drafting import DraftedProject, draft_found, write_draft
from pytest_golden.cli.finding_pipelines import find_pipelines, find_venv
from pytest_golden.cli.screen import show_status
from pytest_golden.cli.trial import shorten_reason, try_pipeline
from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.errors import SettingsError
from pytest_golden.gate.service import RegressionGuard
from pytest_golden.gateway import git
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.history.suspects import Fix, is_source, is_test_file, read_fix
from pytest_golden.manifest.model import slug, stem_name
from pytest_golden.manifest.reader import MANIFEST_NAME, parse_manifest
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import ResultStatus
from pytest_golden.values.shape import Shape
from pytest_golden.verify.strength_meter import StandInGateway

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.regression.model import GoldenProjectResult


_SHORT, _MOST_TRIED, _MOST_TESTS = 12, 5, 20
_NO_NAMES = frozenset({"", "test", "tests"})


@dataclass(frozen=True, slots=True)
class TriedDraft(Shape):
    """A draft that was tried. `protects`: it is red without the fix and green with it. `told` says why."""

    name: str
    protects: bool
    told: str


def draft_from_fix(
    ref: str, root: Path, view: str, known: Collection[str] = ()
) -> tuple[Fix, tuple[TriedDraft, ...], tuple[DraftedProject, ...]]:
    """Draft projects from a fix below the folder `root`. Return the fix, all tried drafts, and the projects that protect the fix.

    `known` are the files of pipelines that are already declared.

    Raises:
        KeyboardInterrupt: a trial was interrupted.
        SettingsError: nothing can be drafted from this commit; the message says why.
        GoldenError: git cannot answer.
    """
    fix = read_fix(root, ref)
    undone = undo_sources(fix, root)
    if not undone:
        raise SettingsError(
            f"--from-fix {ref}: {fix.commit[:_SHORT]} changed no program below {root} that can be undone there: nothing can be "
            "tried without it"
        )
    drafts = list_drafts(fix, root, known)
    if not drafts:
        raise SettingsError(
            f"--from-fix {ref}: {fix.commit[:_SHORT]} brought no test of Python, and no pipeline of an engine that is not "
            'declared yet has its programs: name what it mended, as in golden init --from "python etl.py"'
        )
    tried: list[TriedDraft] = []
    protecting: list[DraftedProject] = []
    for draft in drafts[:_MOST_TRIED]:
        # Tests have no outputs: their exit code is the answer.
        drafted = draft if draft.runner == "command" else try_pipeline(draft, root, view)
        told = try_without(drafted, undone, root, view)
        tried.append(told)
        if told.protects:
            comment = f"drafted from the fix {fix.commit[:_SHORT]} ({redact(fix.subject)}): {told.told}"
            protecting.append(replace(drafted, comment=comment))
    return fix, tuple(tried), tuple(protecting)


def list_drafts(fix: Fix, root: Path, known: Collection[str] = ()) -> tuple[DraftedProject, ...]:
    """Return drafts that may protect a fix: pipelines of engines in whose folders it changed programs, then the tests that it added."""
    sources = [path for path in _list_below(fix, root) if is_source(path)]
    found = [
        one
        for one in find_pipelines(root, known=known)
        if any(_is_below(path, one.project_dir or PurePosixPath(one.path).parent.as_posix()) for path in sources)
    ]
    tests = [path for path in _list_below(fix, root) if _is_python_test(path) and (root / path).is_file()]
    command = ("python", "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests[:_MOST_TESTS])
    drafted = draft_found(found, root)
    if not tests:
        return drafted
    name, venv = _name_tests(tests[0], root), find_venv(root, tests[0])
    return (*drafted, DraftedProject(name, tests[0], "command", "", command, ".", venv=venv))


def _name_tests(path: str, root: Path) -> str:
    name = stem_name(path).removeprefix("test_").removesuffix("_test")
    return (name if name not in _NO_NAMES else slug(root.resolve().name)) or "tests"


def undo_sources(fix: Fix, root: Path) -> dict[str, bytes]:
    """Return the programs of a fix as they would be without it, by path below `root`. Later changes stay.

    Files that the fix added or removed, and files in which later changes overlap it, are left out.
    """
    undone = {}
    prefix = _find_prefix(root)
    with tempfile.TemporaryDirectory(prefix="golden-fix-") as place:
        for path in _list_below(fix, root):
            file = root / path
            if not is_source(path) or not file.is_file() or file.is_symlink():
                continue
            sides = [git.read_blob(root, commit, f"{prefix}{path}") for commit in (fix.commit, fix.parent)]
            if None in sides:
                continue
            names = [Path(place, name) for name in ("with", "without")]
            for name, content in zip(names, sides, strict=True):
                name.write_bytes(content or b"")
            merged = git.run_git_raw(root, "merge-file", "-p", "-q", str(file), str(names[0]), str(names[1]))
            if merged.returncode == 0 and merged.stdout != file.read_bytes():
                undone[path] = merged.stdout
    return undone


def try_without(draft: DraftedProject, undone: Mapping[str, bytes], root: Path, view: str) -> TriedDraft:
    """Run a draft with the fix, accept its outputs for this trial, and judge it again with and without the fix."""
    (project,) = parse_manifest(write_draft([draft]), MANIFEST_NAME, root).projects
    project = replace(project, pass_env=())
    folder = draft.project_dir or PurePosixPath(draft.path).parent.as_posix()
    inside = {os.path.relpath(path, folder): content for path, content in undone.items() if _is_below(path, folder)}
    if not inside:
        return TriedDraft(draft.name, False, "the fixed programs are outside its folder")
    with (
        tempfile.TemporaryDirectory(prefix="golden-fix-") as baselines,
        show_status(draft.name, lambda: None),
        ExecutionGateway(root, view=view) as opened,
    ):
        gateway = StandInGateway(opened)
        for accepts in (True, False):
            guard = RegressionGuard(gateway, baselines=BaselineKeeper(Path(baselines), accepts=accepts))
            result = _judge(guard, project)
            if result.status is not ResultStatus.PASSED:
                told = "it does not pass with the fix" if accepts else "it passed with the fix once, and then failed"
                return TriedDraft(draft.name, False, f"{told}: {shorten_reason(result)}")
        gateway.stand_ins = inside
        without = _judge(guard, project)
    if without.status is ResultStatus.FAILED:
        return TriedDraft(draft.name, True, f"red without the fix: {shorten_reason(without)}")
    passes = without.status is ResultStatus.PASSED
    told = (
        "it also passes without the fix"
        if passes
        else f"it cannot be judged without the fix: {shorten_reason(without)}"
    )
    return TriedDraft(draft.name, False, told)


def _judge(guard: RegressionGuard, project: GoldenProjectConfig) -> GoldenProjectResult:
    result = guard.check_one(project, {})
    if result.is_interrupted:
        raise KeyboardInterrupt
    return result


def _list_below(fix: Fix, root: Path) -> Sequence[str]:
    """Return the files of a fix below `root`, relative to it."""
    prefix = _find_prefix(root)
    return [path.removeprefix(prefix) for path in fix.files if path.startswith(prefix)]


def _find_prefix(root: Path) -> str:
    return os.fsdecode(git.ask_git(root, "rev-parse", "--show-prefix", failing="git cannot tell its top folder")).strip(
        "\n"
    )


def _is_python_test(path: str) -> bool:
    return (
        is_test_file(path) and path.endswith(".py") and PurePosixPath(path).name not in {"conftest.py", "__init__.py"}
    )


def _is_below(path: str, place: str) -> bool:
    return place in {"", "."} or path == place or path.startswith(f"{place}/")
