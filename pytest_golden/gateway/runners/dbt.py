"""dbt projects: `dbt build`, and the steps in its run results. A selection that matched nothing is not a pass (see `dbt_child.py`)."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.gateway.runners.runner import Runner, find_tool_python, load_yaml
from pytest_golden.trajectory.readers.engine_reports import (
    ReportReader,
    list_of,
    member_of,
    milliseconds_of,
    scalar_of,
)
from pytest_golden.trajectory.readers.model import StepDraft, order_by_start
from pytest_golden.trajectory.vocabulary import Importance, StepType
from pytest_golden.values.checking import as_mapping, parse_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_golden.gateway.runners.runner import PipelineFile
    from pytest_golden.manifest.model import GoldenProjectConfig

_CHILD = Path(__file__).with_name("dbt_child.py")


def _folder_in_view(pipeline: PipelineFile) -> str:
    """Return the dbt project's folder, relative to the working folder, where the view may lie at another path."""
    folder = pipeline.file.parent
    if folder.is_relative_to(pipeline.project_dir):
        return os.path.relpath(folder, pipeline.project_dir)
    return str(folder)


def _environment(pipeline: PipelineFile) -> Mapping[str, str]:
    environment = {
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "DO_NOT_TRACK": "1",
        "DBT_USE_COLORS": "false",
        "NO_COLOR": "1",
        "PYTHONUNBUFFERED": "1",
    }
    # dbt looks for profiles in the working folder and in HOME, not beside dbt_project.yml.
    if (pipeline.file.parent / "profiles.yml").is_file():
        environment["DBT_PROFILES_DIR"] = _folder_in_view(pipeline)
    return environment


def list_local_packages(file: Path) -> tuple[Path, ...]:
    """List the folders that a project names as packages by `local:`, whether they are there or not."""
    documents = [load_yaml(file.with_name(name)) for name in ("packages.yml", "dependencies.yml")]
    found = [as_mapping(entry).get("local") for document in documents for entry in list_of(document, "packages")]
    named = (Path(os.path.normpath(file.parent / local)) for local in found if isinstance(local, str))
    return tuple(package for package in named if package != file.parent)


def _find_folder(file: Path) -> Path:
    """Return the folder that holds a project and the packages that it names."""
    return Path(os.path.commonpath([file.parent, *list_local_packages(file)]))


# A file of dbt's graph, whose path stands for itself where dbt selects by paths.
_NODE = re.compile(r"[\w./-]+\.(?:sql|csv|py)")


def _find_narrowing(project: GoldenProjectConfig, file: Path) -> Callable[[str], bool] | None:
    """Return the test for files of dbt's graph: no macros and no generic tests, which can change any model.

    None if an output is not a model, or if the project has selectors of its own, since one of them may say what is built.
    """
    if not all(output.dbt for output in project.outputs) or file.with_name("selectors.yml").exists():
        return None
    document = as_mapping(load_yaml(file))
    kinds = (
        ("model-paths", "models"),
        ("seed-paths", "seeds"),
        ("snapshot-paths", "snapshots"),
        ("test-paths", "tests"),
    )
    folders = tuple(f"{folder}/" for key, usual in kinds for folder in list_of(document, key) or [usual])
    return lambda path: bool(_NODE.fullmatch(path)) and path.startswith(folders) and "/generic/" not in path


_FAILED_STATUSES = frozenset({"error", "fail", "runtime error", "partial success"})
_FIRST = datetime.min.replace(tzinfo=UTC)
_TEST_KINDS = frozenset({"test", "unit_test"})


def _read_run_results(document: Any) -> list[StepDraft | None]:
    invocation_id = scalar_of(member_of(document, "metadata").get("invocation_id"))
    drafts = [_read_result(result, invocation_id) for result in list_of(document, "results")]
    # dbt lists results as they end, in several threads.
    usable = order_by_start((draft for draft in drafts if draft is not None), lambda draft: draft.timestamp, _FIRST)
    return [*usable, *[None] * (len(drafts) - len(usable))]


def _read_result(result: Any, invocation_id: Any) -> StepDraft | None:
    if not isinstance(result, dict) or not isinstance(result.get("unique_id"), str) or not result["unique_id"].strip():
        return None
    status = scalar_of(result.get("status"))
    message = scalar_of(result.get("message"))
    metadata = {
        "reader": "dbt",
        "status": status,
        "message": message,
        "failures": scalar_of(result.get("failures")),
        "rows_affected": scalar_of(member_of(result, "adapter_response").get("rows_affected")),
        "invocation_id": invocation_id,
    }
    has_failed = status in _FAILED_STATUSES
    if has_failed:
        metadata["error"] = message or f"dbt reports status {status}"
    return StepDraft(
        content=result["unique_id"],
        type=StepType.OBSERVATION if result["unique_id"].split(".")[0] in _TEST_KINDS else StepType.ACTION,
        importance=Importance.CRITICAL if has_failed else Importance.HIGH if status == "warn" else Importance.MEDIUM,
        duration_ms=milliseconds_of(result.get("execution_time")),
        timestamp=_start_of(result),
        metadata=metadata,
    )


def _start_of(result: Mapping[str, Any]) -> datetime | None:
    """Return the start of the result's first phase; a skipped result has none."""
    timing = result.get("timing")
    try:
        return min(parse_time("started_at", phase["started_at"]) for phase in timing) if timing else None
    except (TypeError, KeyError, ValueError):
        return None


READERS = (
    ReportReader(
        "dbt",
        re.compile(r"(?:^|/)run_results\.json$"),
        _read_run_results,
        "dbt's",
        "results in dbt's run_results.json have no unique_id or no usable figures",
    ),
)
RUNNERS = (
    Runner(
        name="dbt",
        files="dbt_project.yml",
        suffixes=(".yml", ".yaml"),
        recognises=lambda pipeline: pipeline.file.stem == "dbt_project",
        find_start=lambda pipeline: (find_tool_python("dbt", "dbt", pipeline), str(_CHILD)),
        arguments=lambda pipeline: ("build", "--project-dir", _folder_in_view(pipeline)),
        environment=_environment,
        step_readers=("dbt",),
        program="dbt",
        is_sure=True,
        find_folder=_find_folder,
        list_packages=list_local_packages,
        distributions=("dbt-core", "dbt-"),
        find_narrowing=_find_narrowing,
    ),
)
