"""`golden gate`: run one gate that is independent of the configuration of the repository's own tests.

Without --base, it is `pytest --golden` without the repository's ini file, conftests and plug-ins. Their settings, such as
`addopts = --cov`, are not meant for the gate. To load a plug-in that the gate needs, name it: `golden gate -- -p my_runner`.

With --base, the gate is judged from outside the checkout. The judge's code, configuration and conftests come from the commit
where this branch left REF, in a separate worktree. The pipelines, the manifest and the baselines come from the checkout. If they ask less
than those of REF, the gate fails.

Put arguments of pytest after `--`: `golden gate --base main -- -k sales --golden-junit report.xml`.

exit code: pytest's own: 0 passed, 1 failed, 5 nothing ran; 3 the judge cannot be set up, 2 bad input or interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.errors import GoldenError, ManifestError, SettingsError
from pytest_golden.history.base_files import find_checkout
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.report.attestation import Attestor, judge_report
from pytest_golden.settings import place_values
from pytest_golden.verify import gates
from pytest_golden.verify.base_worktree import PrivateFolder, find_base, open_judge, read_head

if TYPE_CHECKING:
    import argparse

    from pytest_golden.settings import GoldenSettings
    from pytest_golden.verify.gates import BaseCommit

_NO_JUDGE = 3
_OUR_PLUGIN = "golden_projects"
_OF_XDIST = ("-n", "--numprocesses", "--dist", "--maxprocesses")
_OF_PYTEST = frozenset({"PYTEST_ADDOPTS", "PYTEST_PLUGINS"})
_JSON = "--golden-json="
# What GitHub's runner says to a person's own gate is meant for this one.
_OF_GITHUB = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden gate`."""
    options.add_base_options(parser, is_required=False)
    parser.add_argument("arguments", metavar="ARGUMENT", nargs="*", help="Arguments of pytest, after `--`.")
    options.add_options(parser, "--manifest", "--store")


def run(arguments: argparse.Namespace) -> int:
    """Run the gate, and sign what it found."""
    if arguments.base is None:
        return _run_alone(arguments)
    return options.run_against_base(arguments, lambda settings, manifest: _run(arguments, settings, manifest))


def _run_alone(arguments: argparse.Namespace) -> int:
    """Become a pytest that reads nothing of the repository but the manifest."""
    if arguments.floor is not None:
        raise SettingsError("--floor is for a floor that is compared with that of --base REF: name the base too")
    settings = options.read_command_settings(arguments)
    manifest = options.find_manifest(arguments)
    words = ["-c", os.devnull, f"--rootdir={manifest.parent}", "--noconftest", "-p", _OUR_PLUGIN]
    if any(word.startswith(_OF_XDIST) for word in arguments.arguments):
        if find_spec("xdist") is None:
            raise SettingsError(
                "-n needs pytest-xdist, which is not installed here: `python -m pip install pytest-xdist`"
            )
        words += ["-p", "xdist"]
    words += ["--golden", f"--golden-manifest={manifest}"]
    words += [] if settings.store is None else [f"--golden-store={settings.store}"]
    words += [] if settings.attest is None else [f"--golden-attest={settings.attest}"]
    environment = {name: value for name, value in os.environ.items() if name not in _OF_PYTEST}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    command = [sys.executable, "-P", "-m", "pytest", *words, *arguments.arguments]
    os.execve(sys.executable, command, environment)


def _run(arguments: argparse.Namespace, settings: GoldenSettings, manifest: Path) -> int:
    attestor = None if settings.attest is None else Attestor(manifest, settings.attest)
    try:
        base = find_base(manifest, arguments.base, read_head(manifest.parent))
        code = _judge(arguments, settings, manifest, base, attestor)
    except (ManifestError, SettingsError):
        raise
    except GoldenError as error:
        options.say(str(error))
        return _NO_JUDGE
    if code is None or code < 0:
        options.say("the gate was killed, so nothing that it found counts")
        return _NO_JUDGE
    return code


def _judge(
    arguments: argparse.Namespace, settings: GoldenSettings, manifest: Path, base: BaseCommit, attestor: Attestor | None
) -> int | None:
    """Run the gate, sign what it found, and return its exit code."""
    checkout = find_checkout(manifest.parent)
    with PrivateFolder(outside=checkout) as private, ExitStack() as held:
        if base.manifest is None:
            options.say(f"the base {base.commit[:12]} has no manifest: the checkout judges itself")
        place, judge = open_judge(base, manifest, load_manifest(manifest), checkout, private.path, _make_environment())
        held.enter_context(judge)
        words, report = _place_arguments(arguments, settings, base, private.path)
        if settings.store is not None:
            place = gates.use_store(place, settings.store)
        if attestor is not None and report.is_file():
            # What an earlier gate reported must not be signed for this one.
            report.unlink()
        command = gates.make_command(place, words)
        process = gates.ChildProcess(command, cwd=place.manifest.parent, environment=place.environment, log=None)
        held.callback(process.end)
        code = process.wait()
        if attestor is not None and code in gates.GATE_CODES:
            _attest(attestor, report, base)
        return code


def _attest(attestor: Attestor, report: Path, base: BaseCommit) -> None:
    if not report.is_file():
        raise GoldenError(f"no statement is written: the gate left no report in {report}")
    attestor.write(
        judge_report(json.loads(report.read_text(encoding="utf-8"))), None if base.manifest is None else base.commit
    )


def _make_environment() -> dict[str, str]:
    """Return the environment of a gate that speaks to GitHub's runner itself."""
    told = {name: os.environ[name] for name in _OF_GITHUB if name in os.environ}
    return {**gates.clean_environment(os.environ), **told}


def _place_arguments(
    arguments: argparse.Namespace, settings: GoldenSettings, base: BaseCommit, private: Path
) -> tuple[list[str], Path]:
    """Return pytest's arguments, which mean the same in another folder, and where the gate report will be."""
    floor = arguments.floor or settings.floor
    reports = {"json": settings.json or private / "report.json", "junit": settings.junit, "html": settings.html}
    words = [f"--golden-{name}={path}" for name, path in reports.items() if path is not None]
    words += place_values(arguments.arguments, Path.cwd())
    if base.manifest is not None:
        words += [f"--golden-base={base.commit}", f"--golden-floor={floor}"]
    return words, Path(next(word for word in reversed(words) if word.startswith(_JSON)).removeprefix(_JSON))
