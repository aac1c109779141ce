"""`golden calibrate [NAME...]`: find the unstable parts of outputs, and propose the fewest rules that make them stable.

Each project runs twice. The second run has another time of day (if libfaketime is installed), another hash seed, another temporary folder
and one thread. The outputs of both runs are compared, and the rules are shown as a change of the manifest. If no rule is enough because
the result depends on the date, a `clock:` is tried.
--write writes the rules into the manifest, with the observed differences as comments. Baselines are neither read nor changed.

exit code: 0 all outputs are stable, or --write made them so; 1 an output is unstable, or a run did not end as expected;
2 bad input; 130 interrupted.
"""

from __future__ import annotations

from difflib import unified_diff
from itertools import chain
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.options import add_options, locate_manifest, read_command_settings, read_limit, say
from pytest_golden.cli.screen import open_console, print_json, print_list, show_status, styled
from pytest_golden.compare.noise import KnownMovements
from pytest_golden.errors import SettingsError
from pytest_golden.gate.calibrating import calibrate_project, list_uncalibrated
from pytest_golden.gate.state_folder import find_store_place, hold_gate_lock, list_store_files, prepare_state_folder
from pytest_golden.gateway.project_clock import HOW_TO_INSTALL, find_faketime
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.amending import Amendment, NotInTextError, amend, rewrite_manifest
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.unexpected import put_run
from pytest_golden.regression.wording import count_of, name_some, show_path
from pytest_golden.report.result_text import explain_failure

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from pytest_golden.compare.calibration import Calibration
    from pytest_golden.gate.calibrating import ProjectCalibration
    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.settings import GoldenSettings

_MOST_RUNS = 100
_INTERRUPTED = 130
_OF_OTHERS = "numbers of other outputs differ in their last digits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden calibrate`."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="Golden projects (default: all with outputs).")
    parser.add_argument("--runs", metavar="N", default="2", help="How often to run each project (default 2).")
    parser.add_argument("--write", action="store_true", help="Write the proposed rules into the manifest.")
    add_options(parser, "--manifest", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Run the projects, and show or write what is proposed."""
    settings = read_command_settings(arguments)
    runs = read_limit(arguments.runs, _MOST_RUNS, "--runs")
    if runs == 1:
        raise SettingsError("--runs 1 has nothing to compare with; write 2 or more")
    path = locate_manifest(settings)
    manifest = load_manifest(path)
    projects = _choose(manifest, arguments.names)
    try:
        found = tuple(_calibrate(projects, manifest, settings, runs, is_quiet=arguments.json))
    except KeyboardInterrupt:
        say("interrupted: nothing was written")
        return _INTERRUPTED
    _keep(manifest, found)
    text = path.read_text(encoding="utf-8")
    proposed, by_hand = _amend(text, manifest, found)
    if arguments.write and proposed != text:
        rewrite_manifest(path, proposed)
    diff = "".join(unified_diff(text.splitlines(True), proposed.splitlines(True), path.name, path.name))
    is_written = bool(arguments.write and diff)
    if arguments.json:
        print_json(
            {"projects": [_facts(each) for each in found], "diff": diff, "written": is_written, "by_hand": by_hand}
        )
    else:
        _show(open_console(), found, diff, by_hand, is_written=is_written)
    is_solved = all(each.found is not None and each.found.is_solved for each in found) and not by_hand
    return 0 if is_solved and (is_written or not diff) else 1


def _choose(manifest: Manifest, names: Sequence[str]) -> tuple[GoldenProjectConfig, ...]:
    chosen = tuple(manifest.get_project(name) for name in dict.fromkeys(names)) or manifest.projects
    without = list_uncalibrated(chosen)
    if names and without:
        told = f"{name_some(without, 5)} declares no output that is compared with a baseline"
        raise SettingsError(f"{told}, so there is nothing to calibrate; add `outputs:` first")
    return tuple(project for project in chosen if project.name not in without)


def _calibrate(
    projects: Sequence[GoldenProjectConfig], manifest: Manifest, settings: GoldenSettings, runs: int, *, is_quiet: bool
) -> Iterator[ProjectCalibration]:
    root = manifest.workspace_root
    hidden = list_store_files(find_store_place(settings.store, prepare_state_folder(root)))
    if find_faketime() is None and projects and not is_quiet:
        say(f"libfaketime is not installed, so all runs use the real time: {HOW_TO_INSTALL}")

    def open_gateway() -> ExecutionGateway:
        return ExecutionGateway(root, view=settings.sandbox, hidden=hidden)

    with hold_gate_lock(root, say):
        for project in projects:
            yield _calibrate_one(project, open_gateway, runs)


def _calibrate_one(project: GoldenProjectConfig, open_gateway: Any, runs: int) -> ProjectCalibration:
    present: list[Any] = [1, None]

    def watch(number: int, gateway: ExecutionGateway) -> None:
        present[:] = [number, gateway]

    def step() -> str:
        running = present[1].present_step() if present[1] is not None else None
        return f"run {present[0]} of {runs}" + (f": {running}" if running else "")

    with show_status(project.name, step):
        return calibrate_project(project, open_gateway, runs=runs, watch=watch)


def _keep(manifest: Manifest, found: Sequence[ProjectCalibration]) -> None:
    """Keep what moves for the gate, which names the rule where an output differs in nothing else."""
    known = {
        each.project.name: {each.found.outputs[at].path: rules for at, rules in each.found.rules.items()}
        for each in found
        if each.found is not None
    }
    try:
        KnownMovements(prepare_state_folder(manifest.workspace_root)).keep(known)
    except OSError as error:
        say(f"the findings could not be stored for the gate: {error.strerror}")


def _amend(text: str, manifest: Manifest, found: Sequence[ProjectCalibration]) -> tuple[str, tuple[str, ...]]:
    """Return the manifest's text with the proposed rules, and what has to be written by hand."""
    places = {project.name: place for place, project in enumerate(manifest.projects)}
    by_hand = []
    amendments: list[Amendment] = []
    for each in found:
        calibration = each.found
        if calibration is None:
            continue
        for amendment in _list_amendments(each, calibration, places[each.project.name]):
            try:
                amend(text, [amendment])
            except NotInTextError as error:
                at = amendment.output
                what = "clock" if at is None else show_path(calibration.outputs[at].path)
                by_hand.append(f"{each.project.name}, {what}: {error}")
            else:
                amendments.append(amendment)
    return amend(text, amendments), tuple(by_hand)


def _list_amendments(each: ProjectCalibration, calibration: Calibration, place: int) -> Iterator[Amendment]:
    if each.moved_by_day is not None:
        seen = f"the result depends on the date: {each.moved_by_day}"
        yield Amendment(place, None, {"clock": each.project.clock}, [seen])
    for position, rules in calibration.rules.items():
        entry = calibration.outputs[position]
        comments = [f"seen in {each.runs} runs: {told}" for told in _list_seen(calibration, position)] or [_OF_OTHERS]
        yield Amendment(place, position, {name: getattr(entry, name) for name in rules}, comments)


def _list_seen(calibration: Calibration, position: int) -> Iterator[str]:
    """Yield what was seen in the files of one entry."""
    for file in calibration.files:
        if position in file.entries:
            place = "" if file.path == calibration.outputs[position].path else f"{show_path(file.path)}: "
            yield from (f"{place}{told}" for told in file.seen)


def _facts(each: ProjectCalibration) -> dict[str, Any]:
    found = each.found
    return {
        "name": each.project.name,
        "runs": each.runs,
        "varied": list(each.varied),
        "stable": found is not None and found.is_stable,
        "files": [{"path": file.path, "seen": file.seen, "unsolved": file.unsolved} for file in found.files]
        if found is not None
        else [],
        "missing": list(found.missing) if found is not None else [],
        "rules": [
            {"output": each.project.outputs[position].path, "rules": rules} for position, rules in found.rules.items()
        ]
        if found is not None
        else [],
        "error": each.failed.error_message if each.failed is not None else None,
        "changed_inputs": list(each.changed_inputs),
        "failed_by_clock": each.failed_by_clock,
        "clock": each.project.clock if each.moved_by_day is not None else None,
    }


def _show(
    console: Console, found: Sequence[ProjectCalibration], diff: str, by_hand: Sequence[str], *, is_written: bool
) -> None:
    for each in found:
        _show_project(console, each)
    for told in by_hand:
        console.print(styled(told, "yellow"))
    if not found:
        console.print(styled("no golden project declares an output that is compared with a baseline"))
    if diff:
        console.print()
        for line in diff.splitlines():
            style = {"+": "green", "-": "red"}.get(line[:1], "")
            console.print(styled(line, style), soft_wrap=True)
        told = "written: run the gate, and accept the baselines again" if is_written else "to write this: add --write"
        console.print(styled(told, "bold"))


def _show_project(console: Console, each: ProjectCalibration) -> None:
    head = f"{each.project.name}: {count_of(each.runs, 'run')}"
    if each.failed is not None:
        console.print(styled(f"{head}; the last one did not end as expected, so nothing is proposed", "bold red"))
        console.print(styled(explain_failure(each.failed, shell_command=None)))
        return
    if each.found is None:
        told = f"what it reads changed between the runs ({name_some(each.changed_inputs, 5)}); run this again"
        console.print(styled(f"{head}; {told}", "bold yellow"))
        return
    style = "green" if each.found.is_stable else "bold yellow"
    told = "its outputs are stable" if each.found.is_stable else "not all of its outputs are stable"
    if each.moved_by_day is not None:
        told = f"{told} with `clock: {each.project.clock}`"
    console.print(styled(f"{head}, {told}", style))
    by_day = None if each.moved_by_day is None else f"the result depends on the date: {each.moved_by_day}"
    print_list(console, [(" ", told) for told in (each.told, by_day) if told])
    for file in each.found.files:
        lines = chain(file.seen, (f"no rule for this: {told}" for told in file.unsolved))
        console.print(styled(f"  {show_path(file.path)}"))
        print_list(console, [("   ", told) for told in lines])
    for path in each.found.missing:
        console.print(styled(f"  {show_path(path)}: not every run wrote it{_suggest_run(path, each.found.missing)}"))


def _suggest_run(path: str, missing: Sequence[str]) -> str:
    """Say which pattern names a file of which one part of the path is another in each run; empty if none does."""
    stable = next(filter(None, (put_run(path, other) for other in missing)), None)
    return "" if stable is None else f"; declare `path: {show_path(stable)}`"
