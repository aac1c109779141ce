"""`golden run NAME`: run and judge one golden project as the gate does, or open a shell in its view.

It runs only this project, not those that it needs: for these, use `pytest --golden -k NAME`. Hooks of a conftest
(runners, step readers, redactors, judges, another gateway) work only inside pytest. GOLDEN_SANDBOX and GOLDEN_KEEP
work as for the gate.

exit code: 0 it passed (or was skipped or is in quarantine, as in the gate), 1 it did not pass, 2 bad input, 130 interrupted;
with --shell the exit code of the shell.
"""

from __future__ import annotations

import os
import shlex
import signal
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from pytest_golden.cli.check import make_plan
from pytest_golden.cli.options import add_options, locate_manifest, read_command_settings, say
from pytest_golden.cli.screen import STATUS_STYLES, open_console, print_json, print_list, show_status, styled
from pytest_golden.clock import new_id
from pytest_golden.compare.baselines import find_baselines_folder
from pytest_golden.compare.examination import BaselineKeeper
from pytest_golden.errors import SettingsError
from pytest_golden.gate.service import RegressionGuard, choose_keeping
from pytest_golden.gate.state_folder import (
    choose_log_folder,
    describe_origin,
    find_state_folder,
    find_store_place,
    hold_gate_lock,
    list_store_files,
    prepare_state_folder,
)
from pytest_golden.gateway.model import AgentRole, Permissions
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import ResultStatus
from pytest_golden.regression.slowdown import SlowdownJudge
from pytest_golden.regression.verdict import RegressionCheckResult, judge_run
from pytest_golden.regression.wording import format_elapsed, is_note_of_harness, name_some
from pytest_golden.report.gate_report import gate_report
from pytest_golden.report.result_text import LAST_LINES, explain_failure, summarize_reasons
from pytest_golden.report.shell_command import accept_command, shell_command

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from rich.console import Console

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.settings import GoldenSettings


_INTERRUPTED = 130
_MOST_NAMED = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden run`."""
    parser.add_argument("name", metavar="NAME", help="The golden project's name.")
    parser.add_argument(
        "--shell", action="store_true", help="Open a shell in its view instead; nothing written there is kept."
    )
    parser.add_argument("--keep", action="store_true", help="Keep its written files in .golden/kept.")
    add_options(parser, "--manifest", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Run the project, or open the shell."""
    settings = read_command_settings(arguments)
    if arguments.shell and (arguments.json or arguments.keep):
        raise SettingsError("--shell cannot be used with --json or --keep: a shell has no result and keeps nothing")
    path = locate_manifest(settings)
    manifest = load_manifest(path)
    project = manifest.get_project(arguments.name)
    if arguments.shell:
        return open_shell(project, manifest.workspace_root, settings)
    if arguments.keep:
        settings.keep = "all"
    console = None if arguments.json else open_console()
    if console is not None and not console.is_terminal:
        _announce(console, project, manifest)
    result = _check(project, manifest, settings)
    if console is None:
        verdict = judge_run((result,), is_interrupted=result.is_interrupted)
        gate = {"command": f"golden run {project.name}"}
        print_json(gate_report(RegressionCheckResult((result,)), verdict=verdict, gate=gate))
    else:
        _show(console, result, shell_command(result.name, path, Path.cwd(), os.environ))
    if result.is_interrupted:
        return _INTERRUPTED
    return 1 if result.is_regression else 0


def _check(project: GoldenProjectConfig, manifest: Manifest, settings: GoldenSettings) -> GoldenProjectResult:
    root = manifest.workspace_root
    state_folder = prepare_state_folder(root)
    logs = choose_log_folder(state_folder, new_id("gate"))
    hidden = list_store_files(find_store_place(settings.store, state_folder))

    @cache
    def read_slowdowns() -> SlowdownJudge:
        return _read_slowdowns(project, manifest, settings, gateway)

    with (
        hold_gate_lock(root, say),
        ExecutionGateway(
            root,
            view=settings.sandbox,
            log_folder=logs,
            keep_if=choose_keeping(settings.keep, read_slowdowns),
            hidden=hidden,
        ) as gateway,
        show_status(project.name, gateway.present_step),
    ):
        command = accept_command(manifest.path or locate_manifest(settings), Path.cwd(), os.environ)
        keeper = BaselineKeeper(
            find_baselines_folder(manifest.path, root),
            accept_command=command,
            state_folder=state_folder,
            describe_run=describe_origin(root),
        )
        return RegressionGuard(gateway, baselines=keeper, slowdowns=read_slowdowns()).check_one(project, {})


def _read_slowdowns(
    project: GoldenProjectConfig, manifest: Manifest, settings: GoldenSettings, gateway: ExecutionGateway
) -> SlowdownJudge:
    """Read from the gate's store how long the project usually takes; do not create a missing store."""
    if project.max_slowdown is None:
        return SlowdownJudge(is_off=True)
    from pytest_golden.gate.run_record import find_slowdown_judge

    return find_slowdown_judge(settings.store, manifest, gateway.describe())


def _announce(console: Console, project: GoldenProjectConfig, manifest: Manifest) -> None:
    """Print what runs, for a log, which has no live line: a reader should see what it is waiting for."""
    plan = make_plan(project, manifest.workspace_root)
    told = f"running {project.name}: {plan.shown_command()}" if plan.command else f"running {project.name}"
    told += ", seeing what git tracks" if plan.is_narrow else ""
    console.print(styled(told))
    console.file.flush()


def _show(console: Console, result: GoldenProjectResult, command: str) -> None:
    took = format_elapsed(result.execution_time_seconds)
    console.print(
        Text.assemble(
            (str(result.status), f"bold {STATUS_STYLES[result.status]}"), " ", (result.name, "bold"), f"  {took}"
        )
    )
    if result.quarantined is not None:
        console.print(styled(f"quarantined: {result.quarantined}", "yellow"))
    if result.status is ResultStatus.PASSED:
        lines = _describe_pass(result)
    elif result.status is ResultStatus.SKIPPED:
        lines = iter([summarize_reasons(result)])
    else:
        lines = iter([explain_failure(result, shell_command=command).removeprefix(f"{result.status}: ")])
    for line in lines:
        console.print(styled(line))


def _describe_pass(result: GoldenProjectResult) -> Iterator[str]:
    if result.is_flaky:
        yield f"flaky: passed on attempt {result.attempts}"
    writes = result.write_set
    steps = [str(step.get("content", "?")) for step in result.steps if not _is_note_of_harness(step)]
    lists = (("steps", steps), ("created", writes.created), ("changed", writes.changed), ("removed", writes.removed))
    for told, items in lists:
        if items:
            yield f"{told}: {name_some(items, _MOST_NAMED)}"
    output = result.output_summary.rstrip().splitlines()[-LAST_LINES:]
    if output:
        yield "last output:"
        yield from (f"  {line}" for line in output)
    yield from (f"note: {warning}" for warning in result.warnings)
    if result.log_path:
        yield f"full log: {result.log_path}"
    if result.kept_view:
        yield f"kept view: {result.kept_view}"


def _is_note_of_harness(step: Mapping[str, Any]) -> bool:
    error = (step.get("metadata") or {}).get("error")
    return error is not None and is_note_of_harness(step.get("type"), step.get("content"), error)


def open_shell(project: GoldenProjectConfig, workspace_root: Path, settings: GoldenSettings) -> int:
    """Open a shell in a project's view and return its exit code. It may stay open for long, so it does not hold the gate's lock.

    Raises:
        SettingsError: stdin or stdout is not a terminal.
        GatewayError: the view cannot be prepared.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError("--shell needs a terminal on stdin and stdout; run it from one, without a pipe")

    def announce(command: tuple[str, ...], folder: str) -> None:
        console = open_console()
        console.print(styled(f"{project.name}: a shell in its view. Nothing that is written here is kept.", "bold"))
        print_list(
            console,
            [("its folder", folder), ("its command", shlex.join(redact(command))), ("to leave", "exit, or Ctrl-D")],
        )
        console.file.flush()
        # Ctrl-C is for what runs in the shell. SIGINT gets a handler: if it were ignored, the shell would inherit that.
        signal.signal(signal.SIGINT, lambda *_: None)

    before = signal.getsignal(signal.SIGINT)
    try:
        hidden = list_store_files(find_store_place(settings.store, find_state_folder(workspace_root)))
        with ExecutionGateway(workspace_root, view=settings.sandbox, hidden=hidden) as gateway:
            code = gateway.open_shell(project, role=AgentRole.USER, permissions=Permissions(), announce=announce)
            return code if code >= 0 else 128 - code
    finally:
        signal.signal(signal.SIGINT, before)
