"""`golden accept`: review the outputs that red runs kept, and make them baselines without a second run.

Without a NAME, it lists the waiting outputs and their differences. With NAMEs, it accepts the waiting outputs of these projects, or only
those that --output names. It asks for the reason, unless --reason gives it, and writes it to golden_baselines/ACCEPTED.md. Commit that
file with the baselines. Only a person can accept: an agent or a script makes a proposal, and `golden accept --pending` shows proposals to
a person. --from accepts the outputs that CI kept: the folder or zip file of its artifact. --rerun runs the projects again and accepts
what they write. The command is refused in CI.

exit code: 0 everything was accepted, or listed; 1 an output was not accepted, or needs a person; 2 bad input;
with --rerun pytest's own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from pytest_golden.cli.options import (
    add_options,
    find_person,
    is_person,
    locate_manifest,
    open_store,
    read_command_settings,
    refusing_values,
    say,
)
from pytest_golden.cli.screen import ask_person, open_console, print_json, show_local, styled
from pytest_golden.errors import BaselineError, SettingsError
from pytest_golden.gate.state_folder import hold_gate_lock
from pytest_golden.gate.waiting_outputs import (
    WaitingOutputs,
    check_origin,
    log_acceptance,
    open_artifact,
    open_waiting,
)
from pytest_golden.journal.rules import check_free_name
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.model import AcceptedOutput, OutputChange
from pytest_golden.regression.wording import count_of
from pytest_golden.report.result_text import count_changes, describe_output
from pytest_golden.report.shell_command import accept_arguments
from pytest_golden.settings import NO_STORE, find_ci

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from pytest_golden.compare.waiting import WaitingOutput, WaitingRun
    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest

_KILLED = 128


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden accept`."""
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="A golden project's name (default: list the waiting outputs)."
    )
    parser.add_argument(
        "--output", metavar="PATH", action="append", default=[], help="Accept this output only; may be repeated."
    )
    parser.add_argument("--reason", metavar="TEXT", help="Why it is right, in a sentence for the reviewer.")
    parser.add_argument("--pending", action="store_true", help="Show the proposals, and ask about each.")
    parser.add_argument(
        "--from",
        dest="artifact",
        metavar="PATH",
        help="Accept the outputs in an artifact of CI: a folder or a zip file.",
    )
    parser.add_argument("--rerun", action="store_true", help="Run the projects again, and accept what they write.")
    add_options(parser, "--by", "--as-person", "--manifest", "--store", "--json")


def run(arguments: argparse.Namespace) -> int:
    """List, accept or propose the waiting outputs, or run the projects again."""
    _refuse_combinations(arguments)
    path = locate_manifest(read_command_settings(arguments))
    manifest = load_manifest(path)
    projects = [manifest.get_project(name) for name in dict.fromkeys(arguments.names)]
    if arguments.rerun:
        return _rerun(path, projects)
    with ExitStack() as stack:
        if arguments.artifact:
            folder = stack.enter_context(open_artifact(Path(arguments.artifact)))
            waiting = WaitingOutputs(manifest, folder, is_foreign=True)
        else:
            waiting = open_waiting(manifest)
        if arguments.pending:
            return _review(arguments, manifest, waiting)
        if not projects:
            return _list(arguments, waiting)
        _refuse_in_ci()
        if not is_person(arguments):
            return _propose(arguments, waiting, projects)
        return _accept(arguments, manifest, waiting, projects)


def _refuse_combinations(arguments: argparse.Namespace) -> None:
    if arguments.pending and (arguments.artifact or arguments.output or arguments.reason or arguments.names):
        raise SettingsError("--pending asks about all that is proposed: leave the names and the other options out")
    if arguments.rerun and (arguments.artifact or arguments.output or arguments.reason):
        raise SettingsError(
            "--rerun accepts all that the projects write: --output, --reason and --from do not go with it"
        )
    if (arguments.rerun or arguments.output or arguments.reason) and not arguments.names:
        raise SettingsError(
            "name the project, such as `golden accept sales`; without a name the command only lists the waiting outputs"
        )
    if arguments.json and (arguments.names or arguments.pending):
        raise SettingsError("--json prints the waiting outputs; give no name and no --pending with it")
    if arguments.output and len(set(arguments.names)) > 1:
        raise SettingsError("--output names an output of one project: name that project only")


def _refuse_in_ci() -> None:
    ci = find_ci(os.environ)
    if ci is not None:
        raise SettingsError(
            f"outputs are not accepted in CI ({ci} is set): take the artifact home with `golden accept --from`"
        )


def _list(arguments: argparse.Namespace, waiting: WaitingOutputs) -> int:
    runs = waiting.list_runs()
    if arguments.json:
        print_json({"projects": [{**run.to_dict(), "proposal": _proposal(waiting, run)} for run in runs]})
        return 0
    console = open_console()
    if not runs:
        console.print(styled("nothing waits: no project's last run was red for its outputs"))
    for number, run in enumerate(runs):
        if number:
            console.print()
        _show(console, run, run.outputs)
        proposal = waiting.find_proposal(run.project)
        if proposal is not None:
            console.print(styled(f"  proposed by {proposal.who}: {proposal.reason}"))
    if runs:
        console.print()
        console.print(styled(f"to accept: golden accept {runs[0].project}   (--output PATH for a part of it)"))
    return 0


def _proposal(waiting: WaitingOutputs, run: WaitingRun) -> object:
    proposal = waiting.find_proposal(run.project)
    return None if proposal is None else proposal.to_dict()


def _show(console: Console, run: WaitingRun, outputs: Sequence[WaitingOutput]) -> None:
    commit = f" at {run.origin.commit[:10]}{' with edits' if run.origin.dirty else ''}" if run.origin.commit else ""
    verb = "waits" if len(outputs) == 1 else "wait"
    count = count_of(len(outputs), "output")
    console.print(Text.assemble(f"{run.project}: {count} {verb}, from ", show_local(run.origin.at), commit))
    if run.refused:
        console.print(styled(f"  nothing of it can be accepted: {run.refused}"))
    for output in outputs:
        lines, difference = describe_output(_as_accepted(output))
        for line in (*lines, *difference):
            console.print(styled(line))
    if run.omitted:
        console.print(styled(f"  {run.omitted} more outputs are not kept: --rerun accepts them"))


def _as_accepted(output: WaitingOutput) -> AcceptedOutput:
    if output.refused:
        return AcceptedOutput(output.path, OutputChange.REFUSED, output.refused)
    sizes = [] if output.rows is None else [f"{output.rows:,} rows, {output.columns} columns"]
    if output.change is not OutputChange.NEW:
        return AcceptedOutput(output.path, output.change, output.message, output.allowed)
    return AcceptedOutput(output.path, output.change, ", ".join([output.message, *sizes]), output.allowed)


@dataclass(frozen=True, slots=True)
class _Wish:
    """Which outputs of a project are to be accepted, why, and by whom; no paths are all outputs."""

    project: GoldenProjectConfig
    paths: tuple[str, ...]
    reason: str
    who: str


def _accept(
    arguments: argparse.Namespace, manifest: Manifest, waiting: WaitingOutputs, projects: Sequence[GoldenProjectConfig]
) -> int:
    who = find_person(arguments, "accepting outputs")
    is_done = True
    for project in projects:
        try:
            run, chosen = waiting.choose(project, arguments.output)
            if arguments.artifact:
                check_origin(run, manifest.workspace_root)
        except BaselineError as error:
            say(str(error))
            is_done = False
            continue
        reason = arguments.reason
        if reason is None:
            _show(open_console(), run, chosen)
            reason = _ask(f"why is this right? ({project.name}; Ctrl-C accepts nothing) ")
        is_done &= _take(arguments, manifest, waiting, _Wish(project, tuple(arguments.output), reason, who))
    return 0 if is_done else 1


def _ask(question: str) -> str:
    """Ask a person at the terminal.

    Raises:
        SettingsError: nobody can answer.
    """
    answer = ask_person(question)
    if answer is None:
        raise SettingsError("nobody can be asked for the reason here: give it with --reason")
    if not answer:
        raise SettingsError("no reason was given, and nothing was accepted")
    return answer


def _take(arguments: argparse.Namespace, manifest: Manifest, waiting: WaitingOutputs, wish: _Wish) -> bool:
    """Accept what is wished for, and show what became of it; tell whether all of it was accepted."""
    with hold_gate_lock(manifest.workspace_root, say):
        accepted = waiting.accept(wish.project, wish.paths, wish.reason, wish.who)
    console = open_console()
    console.print(styled(f"{wish.project.name}: {count_changes(accepted)}"))
    for output in accepted:
        for line in describe_output(output)[0]:
            console.print(styled(line))
    done = [output for output in accepted if output.change is not OutputChange.REFUSED]
    if done:
        _log(arguments, wish, done)
        console.print(styled("commit golden_baselines: its ACCEPTED.md says what was accepted, and why"))
    return len(done) == len(accepted)


def _log(arguments: argparse.Namespace, wish: _Wish, done: Iterable[AcceptedOutput]) -> None:
    if read_command_settings(arguments).store == NO_STORE:
        return
    from pytest_golden.journal.service import Journal

    with open_store(arguments, makes=True) as store:
        log_acceptance(Journal(store), wish.project.name, done, wish.reason, wish.who)


def _propose(arguments: argparse.Namespace, waiting: WaitingOutputs, projects: Sequence[GoldenProjectConfig]) -> int:
    if arguments.artifact:
        raise SettingsError("an artifact of CI is accepted by a person: nobody is at a terminal here")
    if not arguments.reason:
        raise SettingsError("nobody is at a terminal here, so this is a proposal: say why it is right with --reason")
    with refusing_values():
        who = check_free_name(arguments.by, "--by") if arguments.by else "somebody without a terminal"
    for project in projects:
        waiting.propose(project, arguments.output, arguments.reason, who)
        say(f"{project.name}: proposed, and not accepted: a person confirms it with `golden accept --pending`")
    return 1


def _review(arguments: argparse.Namespace, manifest: Manifest, waiting: WaitingOutputs) -> int:
    """Show each proposal to a person, and accept what is confirmed."""
    proposed = [(run, waiting.find_proposal(run.project)) for run in waiting.list_runs()]
    console = open_console()
    if not any(proposal for _, proposal in proposed):
        console.print(styled("nothing is proposed"))
        return 0
    who = find_person(arguments, "confirming a proposal")
    _refuse_in_ci()
    is_done = True
    for run, proposal in proposed:
        if proposal is None:
            continue
        project = manifest.get_project(run.project)
        _show(console, run, [output for output in run.outputs if output.path in proposal.paths])
        console.print(styled(f"proposed by {proposal.who}: {proposal.reason}"))
        answer = _ask("accept this? [y/N] ").strip().lower()
        if answer not in {"y", "yes"}:
            say(f"{run.project}: nothing was accepted")
            is_done = False
            continue
        reason = f"{proposal.reason} (proposed by {proposal.who})"
        is_done &= _take(arguments, manifest, waiting, _Wish(project, proposal.paths, reason, who))
    return 0 if is_done else 1


def _rerun(path: Path, projects: Sequence[GoldenProjectConfig]) -> int:
    """Run the gate over the projects with `--golden-update`, and return its exit code."""
    words = accept_arguments([project.name for project in projects], path, Path.cwd())
    with subprocess.Popen([sys.executable, "-m", "pytest", *words]) as gate:
        code = _wait(gate)
    return _KILLED - code if code < 0 else code


def _wait(gate: subprocess.Popen[bytes]) -> int:
    """Wait for the gate to end. Ctrl-C reaches the gate too, and it cleans up before it ends."""
    while True:
        try:
            return gate.wait()
        except KeyboardInterrupt:
            continue
