"""`golden strength [NAME...]`: measure how much a golden project would notice.

Make small wrong changes to the pipeline's own files (another comparison, a constant off by one, another join kind, a dropped filter, a
lost row, swapped columns), one per run, each in its own view. Your files are not touched. A change that turns the project red is caught.
A change that alters the output but stays green has survived, and the report says what would catch it. The score is the share of caught
changes, with its 95 % interval. One change of each kind in each file comes first. The same command continues where an earlier one stopped.
SQL needs the extra `strength`, Parquet the extra `tables`.

exit code: 0 done; 1 a project is weaker than its `min_strength` or --fail-under; 2 bad input; 3 an unchanged project is not green;
130 interrupted.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.bisect import KnownRuns
from pytest_golden.cli.coverage import make_badge, write_beside
from pytest_golden.cli.screen import answer, print_indented, show_status, styled
from pytest_golden.errors import SettingsError
from pytest_golden.gate.state_folder import find_store_place, hold_gate_lock, list_store_files, prepare_state_folder
from pytest_golden.gateway.reads import ReadRecorder
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.wording import count_of
from pytest_golden.verify.strength_meter import NotGreenError, Noticed, ProjectStrength, StrengthMeter, TriedMutant

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest
    from pytest_golden.settings import GoldenSettings

_DEFAULT_MINUTES, _MOST_MINUTES = 10.0, 7 * 24 * 60.0
_WEAK, _NOT_GREEN, _INTERRUPTED = 1, 3, 130
_MOST_SHOWN, _MOST_REASONS = 20, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden strength`."""
    parser.add_argument("names", metavar="NAME", nargs="*", help="Golden projects (default: all).")
    parser.add_argument(
        "--minutes",
        metavar="N",
        type=float,
        default=_DEFAULT_MINUTES,
        help=f"The time limit for each project (default {_DEFAULT_MINUTES:g}).",
    )
    parser.add_argument(
        "--allow-outside",
        action="store_true",
        help="Give the changed pipelines their network and their writable mounts, even without a seal.",
    )
    parser.add_argument("--fresh", action="store_true", help="Ignore the results of earlier runs of this command.")
    parser.add_argument("--fail-under", metavar="PERCENT", type=int, default=0, help="Exit with 1 below this score.")
    parser.add_argument("--html", metavar="PATH", type=Path, help="Write it as one HTML page too.")
    parser.add_argument("--badge", metavar="PATH", type=Path, help="Write a badge (SVG) of the weakest project too.")
    options.add_options(parser, "--manifest", "--store", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Measure, and show what was found."""
    if not 0 < arguments.minutes <= _MOST_MINUTES:
        raise SettingsError(f"--minutes {arguments.minutes:g}: give a number above 0, {_MOST_MINUTES:g} at most")
    if not 0 <= arguments.fail_under <= 100:
        raise SettingsError(f"--fail-under {arguments.fail_under}: give a number from 0 to 100")
    settings = options.read_command_settings(arguments)
    path = options.locate_manifest(settings)
    manifest = load_manifest(path)
    projects = tuple(manifest.get_project(name) for name in dict.fromkeys(arguments.names)) or manifest.projects
    if not projects:
        raise SettingsError(f"{path.name} declares no golden project")
    found: list[ProjectStrength] = []
    try:
        with options.raise_when_ended():
            found.extend(_measure(arguments, settings, path, manifest, projects))
    except KeyboardInterrupt:
        options.say("interrupted: the same command continues from here")
        return _INTERRUPTED
    if arguments.html is not None:
        write_beside(arguments.html, _make_page(found))
    scores = [one.score for one in found if one.score is not None]
    if arguments.badge is not None:
        write_beside(arguments.badge, make_badge("golden strength", min(scores, default=0)))
    answer(arguments, {"projects": [one.to_dict() for one in found]}, lambda console: _show(console, found))
    asked = {project.name: max(arguments.fail_under, project.min_strength or 0) for project in projects}
    weak = [one for one in found if (one.score or 0) < asked[one.name]]
    for one in weak:
        known = "no score is known, where" if one.score is None else f"{one.score} % is less than the"
        options.say(f"{one.name}: {known} {asked[one.name]} % {'is' if one.score is None else 'that is'} asked for")
    return _NOT_GREEN if len(found) < len(projects) else _WEAK if weak else 0


def _contain(project: GoldenProjectConfig) -> GoldenProjectConfig:
    """Return the project without a network, and with copies instead of writable mounts."""
    mounts = tuple(replace(mount, mode="copy") if mount.mode == "write" else mount for mount in project.mounts)
    return replace(project, network=False, mounts=mounts)


def _measure(
    arguments: argparse.Namespace,
    settings: GoldenSettings,
    path: Path,
    manifest: Manifest,
    projects: Iterable[GoldenProjectConfig],
) -> Iterator[ProjectStrength]:
    root = manifest.workspace_root
    hidden = list_store_files(find_store_place(settings.store, prepare_state_folder(root)))
    with hold_gate_lock(root, options.say):
        for project in projects:
            recorder = ReadRecorder(root)
            with ExecutionGateway(root, view=settings.sandbox, hidden=hidden, reads=recorder) as gateway:
                if gateway.describe().seal == "none" and not arguments.allow_outside:
                    told = "pipelines cannot be sealed on this machine (see golden doctor)"
                    raise SettingsError(f"{told}: a wrong change could do harm; add --allow-outside to run it anyway")
                used = project if arguments.allow_outside else _contain(project)
                try:
                    yield _measure_one(arguments, used, gateway, recorder.root, (path, manifest))
                except NotGreenError as error:
                    contained = " (it ran without a network, and with copies of its mounts; --allow-outside gives it what it declares)"
                    options.say(f"{error}{'' if used == project else contained}")


def _measure_one(
    arguments: argparse.Namespace,
    project: GoldenProjectConfig,
    gateway: ExecutionGateway,
    reads_from: Path,
    declared: tuple[Path, Manifest],
) -> ProjectStrength:
    done = [0, 0]

    def watch(*counts: int) -> None:
        done[:] = counts

    def told() -> str:
        return f"{done[0]} of {done[1]} changes" if done[1] else "as it is"

    meter = StrengthMeter(
        project, gateway, manifest=declared[0], seconds=60 * arguments.minutes, reads_from=reads_from, watch=watch
    )
    with show_status(project.name, told):
        files = meter.look()
        if find_spec("sqlglot") is None and any(one.endswith(".sql") for one in files):
            options.say("SQL is left alone without sqlglot: pip install 'pytest-golden-projects[strength]'")
        content = hashlib.sha256()
        for name in sorted(files):
            content.update(name.encode("utf-8", "surrogateescape") + b"\0" + files[name] + b"\0")
        kept = KnownRuns("strength.json", *declared, project.name, content.hexdigest())
        known = {} if arguments.fresh else {one.mutant.id: one for one in kept.read(TriedMutant)}
        return meter.measure(files, known, kept.keep)


def _describe(found: ProjectStrength) -> str:
    if found.score is None or found.interval is None:
        return f"{found.name}: no change made a difference ({count_of(len(found.tried), 'change')} tried)"
    low, high = found.interval
    counts = ", ".join(f"{found.count(kind)} {kind}" for kind in Noticed if found.count(kind))
    rest = found.total - len(found.tried)
    left = f"; {count_of(rest, 'change')} not tried yet" if rest else ""
    return f"{found.name}: {found.score} % ({low} to {high}): {counts}{left}"


def _list_survivors(found: ProjectStrength) -> list[TriedMutant]:
    return [one for one in found.tried if one.found is Noticed.SURVIVED]


def _show(console: Console, found: list[ProjectStrength]) -> None:
    for one in found:
        console.print(styled(_describe(one), "bold"))
        survivors = _list_survivors(one)
        for tried in survivors[:_MOST_SHOWN]:
            mutant = tried.mutant
            console.print(styled(f"  {mutant.path}:{mutant.line}: {mutant.kind}"))
            for sign, text, style in (("-", mutant.before, "red"), ("+", mutant.after, "green")):
                console.print(styled(f"    {sign} {text}", style))
            print_indented(console, tried.why, 4)
        if len(survivors) > _MOST_SHOWN:
            console.print(styled(f"  and {len(survivors) - _MOST_SHOWN} more that survived: --json lists all"))
        unclear = Counter(tried.why for tried in one.tried if tried.found is Noticed.UNCLEAR)
        for why, count in unclear.most_common(_MOST_REASONS):
            print_indented(console, f"unclear after {count_of(count, 'change')}: {why}", 2)


def _make_page(found: list[ProjectStrength]) -> str:
    from pytest_golden.report.html_page import make_page, tag

    sections = []
    for one in found:
        rows = [
            tag(
                "li",
                f"{tried.mutant.path}:{tried.mutant.line}: {tried.mutant.kind}",
                tag("pre", f"- {tried.mutant.before}\n+ {tried.mutant.after}"),
                tried.why,
            )
            for tried in _list_survivors(one)
        ]
        listed = tag("ul", *rows) if rows else tag("p", "Nothing survived.")
        sections.append(tag("section", tag("h2", one.name), tag("p", _describe(one)), listed))
    return make_page("Golden strength", [tag("main", tag("h1", "Golden strength"), *sections)])
