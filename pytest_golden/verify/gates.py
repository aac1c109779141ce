"""Start a gate or a setup as a child process, wait for it, read its report, and say why it broke down.

The head's gate is started before anything heavy is loaded: this module must load little.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import GoldenError
from pytest_golden.gate.state_folder import prepare_state_folder
from pytest_golden.redaction.passed_values import passed_literals
from pytest_golden.redaction.redactor import Redactor, redact
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.storage.folder import replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


# A gate that is interrupted ends its pipeline by a ladder of its own and records what it has.
_INTERRUPT_SECONDS = 20.0
_TERMINATE_SECONDS = 5.0
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>
_MOST_SHOWN_BYTES = 65_536
_LAST_LINES = 15
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
#: Git sets these for its hooks; they would make every other git command use that index.
VARIABLES_OF_HOOKS = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE")
# These are for the person's own gate: a verification sets them for each gate itself, or once for all.
_NOT_HANDED_ON = frozenset(
    {
        "GOLDEN_ATTEST",
        "GOLDEN_ATTEST_KEY",
        "GOLDEN_BASE",
        "GOLDEN_CHANGED",
        "GOLDEN_FLOOR",
        "GOLDEN_HTML",
        "GOLDEN_JSON",
        "GOLDEN_JUNIT",
        "GOLDEN_MANIFEST",
        "GOLDEN_PROJECTS",
        "GOLDEN_UPDATE",
        "GITHUB_ACTIONS",
        "GITHUB_STEP_SUMMARY",
        *VARIABLES_OF_HOOKS,
    }
)
_STORE_URL_VARIABLE = "GOLDEN_STORE_URL"
_JUDGE = "pytest_golden.verify.judge_child"
_INTERNAL = "INTERNALERROR>"
_PACKAGES = "site-packages"
_MOST_KEPT_BYTES = 1_048_576
_MOST_TOLD = 500
_LEAST_FREE_BYTES = 65_536
# An exception's class name, with or without its message.
_EXCEPTION = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Failed|Warning)\b(?:: |$)")
# How pytest, pip and git begin their final error line; the usage before it tells nothing.
_REFUSAL = re.compile(r"(?:[\w.-]+: )?(?:error|fatal): (?!usage:)", re.IGNORECASE)
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
# As pytest shortens the frames of a conftest that cannot be imported.
_SHORT_FRAME = re.compile(r"(?P<file>[^\s:]+\.py):(?P<line>\d+): in ")
_INTERRUPTED = 2
_LOOK_SECONDS = 0.2
#: How a gate ends that has judged: all passed, something failed, nothing was declared.
GATE_CODES = frozenset({0, 1, 5})


class StartedGate(NamedTuple):
    """A running gate. `report` is the file that it writes at its end, `folder` where it runs."""

    process: ChildProcess
    report: Path
    folder: Path


class HeadCommit(NamedTuple):
    """What is checked out; `commit` is None where there is no commit or no git."""

    commit: str | None
    dirty: bool | None


class BaseCommit(NamedTuple):
    """The given ref, the commit that it names (`ref_commit`), and the commit that the head is compared with.

    `manifest` is the base's manifest, as a path in the head's checkout: its old path if it was moved, None if it is new.
    """

    ref: str
    ref_commit: str
    commit: str
    manifest: Path | None


@dataclass(frozen=True, slots=True)
class GatePlace:
    """Where a side's gates run: its manifest, the interpreter that runs pytest, and the environment.

    `judged` is the checkout whose change is judged: none of its plug-ins is loaded, and Python is started with `flags`. None
    for a person's own gate.
    """

    manifest: Path
    environment: Mapping[str, str]
    python: str = sys.executable
    options: tuple[str, ...] = ()
    judged: Path | None = None
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GateReport:
    """A gate's report. `run_id` is its journal entry; None where nothing was recorded.

    `fails_for_skips` tells that something was skipped and the gate had to fail for it (`--golden-require`).
    """

    results: Mapping[str, GoldenProjectResult]
    weakened_floor: tuple[Mapping[str, Any], ...]
    environment: Mapping[str, Any]
    run_id: str | None
    exit_code: int
    fails_for_skips: bool = False

    @property
    def fails_unexplained(self) -> bool:
        """Tell whether the gate failed without a failed project or a weakened floor, such as for skipped projects."""
        is_explained = bool(self.weakened_floor) or any(result.is_regression for result in self.results.values())
        return self.exit_code == 1 and not is_explained


def start_gate(
    place: GatePlace, folder: Path, name: str, arguments: Sequence[str] = (), *, projects: Sequence[str] = ()
) -> StartedGate:
    """Start a side's gate with these projects, or with all of them when none is named."""
    report, manifest = folder / f"{name}.json", place.manifest
    options = (f"--golden-json={report}", "--maxfail=0")
    argv = make_command(place, [*options, *arguments, *(f"{manifest.name}::{one}" for one in projects)])
    log = folder / f"{name}.log"
    # It runs in the manifest's folder, as when a person runs it: pytest finds its configuration and conftest from there.
    process = ChildProcess(argv, cwd=manifest.parent, environment=place.environment, log=log)
    return StartedGate(process, report, manifest.parent)


def make_command(place: GatePlace, arguments: Sequence[str]) -> list[str]:
    """Return the command line of a gate.

    Give options as `--name=value` in one word: without a configuration file pytest takes a separate path for a test path,
    and derives its rootdir from all of them.
    """
    pytest: tuple[str, ...] = ("-m", "pytest")
    if place.judged is not None:
        # What its ini file asks of the tests, such as `--cov`, is not meant for the gate: a plug-in may be missing here.
        pytest = (*place.flags, "-m", _JUDGE, str(place.judged), "--override-ini=addopts=")
    return [
        *(place.python, *pytest, "--golden", f"--golden-manifest={place.manifest}"),
        *(*place.options, *arguments),
    ]


def finish_gate(gate: StartedGate, named: str, show: Callable[[str], None] | None = None) -> GateReport:
    """Wait for a gate to end and return its report. `show` repeatedly receives the last line that it printed.

    If anything goes wrong, the gate is ended.

    Raises:
        BrokenDownError: it did not end as a gate does.
        KeyboardInterrupt: somebody interrupted it, or us.
    """
    try:
        return _await_report(gate, named, show)
    except BaseException:
        gate.process.end()
        raise


def result_of(report: GateReport, name: str) -> GoldenProjectResult:
    """Return a declared project's result; one that the configuration deselects is skipped."""
    found = report.results.get(name)
    if found is not None:
        return found
    reason = Reason(ReasonKind.SKIPPED_BY_PYTEST, "deselected")
    return GoldenProjectResult(
        name, "", ResultStatus.SKIPPED, error_message=reason.message, reasons=(reason,), attempts=0
    )


def _await_report(gate: StartedGate, named: str, show: Callable[[str], None] | None) -> GateReport:
    code = _wait(gate, show)
    if code == _INTERRUPTED:
        raise KeyboardInterrupt
    if code not in GATE_CODES or not gate.report.is_file():
        raise BrokenDownError(f"the gate of the {named} {_describe_end(gate, code)}", gate.process.log)
    try:
        report = _read_report(gate, code)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        told = f"the gate of the {named} left a report that cannot be read: {type(error).__name__}: {error}"
        raise BrokenDownError(told, gate.process.log) from None
    if any(result.is_interrupted for result in report.results.values()):
        raise KeyboardInterrupt
    return report


def _wait(gate: StartedGate, show: Callable[[str], None] | None) -> int | None:
    if show is None:
        return gate.process.wait()
    while (code := gate.process.wait(_LOOK_SECONDS)) is None:
        show(gate.process.read_end().rpartition("\n")[2])
    return code


def _read_report(gate: StartedGate, code: int) -> GateReport:
    plain: Mapping[str, Any] = json.loads(gate.report.read_text(encoding="utf-8"))
    facts = plain["gate"]
    if facts["not_run"]:
        told = ", ".join(facts["not_run"])
        raise BrokenDownError(f"a gate ended before the turn of {told}", gate.process.log)
    results = [GoldenProjectResult.from_dict(result) for result in plain["results"]]
    skipped = (one for one in results if one.status is ResultStatus.SKIPPED and not one.is_left_out_as_unchanged)
    return GateReport(
        results={result.name: result for result in results},
        weakened_floor=tuple(plain["weakened_floor"]),
        environment=facts["environment"],
        run_id=facts["entry_id"],
        exit_code=code,
        fails_for_skips=facts.get("require") is True and any(skipped),
    )


def _describe_end(gate: StartedGate, code: int | None) -> str:
    if code is None or code >= 0:
        return f"ended with exit code {code}: {find_cause(gate.process.log, gate.folder)}{_tell_full_disk(gate.process.log)}"
    # What it printed last does not explain the signal, and may even report success.
    by = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    return f"was killed from outside ({by}), so that nothing that it found counts"


def _tell_full_disk(log: Path) -> str:
    is_full = shutil.disk_usage(log.parent).free < _LEAST_FREE_BYTES
    return f"; no space is left in {log.parent}: free some, or set TMPDIR to another folder" if is_full else ""


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that are meant for one gate only."""
    return {name: value for name, value in environment.items() if name not in _NOT_HANDED_ON}


def use_store(place: GatePlace, store: str) -> GatePlace:
    """Return a place whose gates use a store. A server's URL goes into the environment: everybody can see a command line."""
    if "://" in store and not store.startswith("sqlite:"):
        return replace(place, environment={**place.environment, _STORE_URL_VARIABLE: store})
    return replace(place, options=(*place.options, f"--golden-store={store}"))


def keep_aside(folder: Path) -> tuple[str, ...]:
    """Return options that send the configured reports of a partial gate to `folder`, so that they replace no full report."""
    return (f"--golden-junit={folder / 'aside.xml'}", f"--golden-html={folder / 'aside.html'}")


def move_below(paths: str, old: Path, new: Path) -> str:
    """Return a list of paths in the form of PYTHONPATH, with those below `old` moved below `new`."""
    moved = []
    for path in paths.split(os.pathsep):
        real = Path(os.path.realpath(path))
        moved.append(str(new / real.relative_to(old)) if path and real.is_relative_to(old) else path)
    return os.pathsep.join(moved)


class ChildProcess:
    """A started process. It has its own process group, so a terminal's Ctrl-C reaches only us.

    Its output goes into the file `log`, or where ours goes if that is None.
    """

    def __init__(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], log: Path | None) -> None:
        self.log = Path(os.devnull) if log is None else log
        with nullcontext(None) if log is None else log.open("wb") as output:
            self._process = subprocess.Popen(
                argv,
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # Safe beside threads: it takes no lock, and all it allocates is a small integer.
                preexec_fn=None if _LIBC is None else _die_with_parent,  # noqa: PLW1509
            )

    def wait(self, seconds: float | None = None) -> int | None:
        """Wait up to `seconds` for it to end and return the exit code; None if it still runs."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._signal(signal.SIGKILL)  # what it left behind in its group
        return code

    def end(self) -> None:
        """End it, by an interrupt first, so that a gate can stop its pipeline and report. A Ctrl-C meanwhile kills it."""
        try:
            for number, seconds in ((signal.SIGINT, _INTERRUPT_SECONDS), (signal.SIGTERM, _TERMINATE_SECONDS)):
                if self._process.poll() is None:
                    self._signal(number)
                    self.wait(seconds)
        finally:
            self._signal(signal.SIGKILL)
            self._process.wait()

    def read_end(self) -> str:
        """Return the last lines of its output."""
        return "\n".join(_read_end(self.log, _MOST_SHOWN_BYTES).rstrip().splitlines()[-_LAST_LINES:])

    def _signal(self, number: int) -> None:
        # Called right after the leader ended: the id of an empty group may be used again.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)


def _die_with_parent() -> None:
    """Ask the kernel to end this process with its parent, which cannot do so itself when it is killed by SIGKILL."""
    if _LIBC is not None:
        _LIBC.prctl(_PARENT_DEATH_SIGNAL, signal.SIGTERM)


class BrokenDownError(GoldenError):
    """A gate or the setup did not end as it should; `log` holds what it printed."""

    def __init__(self, told: str, log: Path) -> None:
        super().__init__(told)
        self.log = log

    def keep(self, workspace_root: Path, name: str, advice: str) -> str:
        """Copy the log to the workspace's state folder; return what broke down, what to do and where the log is."""
        try:
            kept = prepare_state_folder(workspace_root) / name
            # Replaced instead of overwritten: the path may be a link that a change brought in.
            with replace_file(kept) as stream:
                stream.write(redact(_read_end(self.log)))
        except OSError as error:
            return f"{self}. {advice}. What it printed cannot be kept: {error.strerror or error}"
        return f"{self}. {advice}. All that it printed is in {kept}"


def hide_in_log(log: Path, passed: Mapping[str, str]) -> None:
    """Leave of a log what is kept of it, without the values of passed variables."""
    log.write_text(Redactor(passed=passed_literals(passed)).text(_read_end(log)), encoding="utf-8")


def find_cause(log: Path, folder: Path) -> str:
    """Return the line of an output that tells why it ended, and the last line of the checkout's own code that it names."""
    checkout = next((place for place in (folder, *folder.parents) if (place / ".git").exists()), folder)
    lines = [line.strip() for line in _read_end(log).splitlines() if line.strip()]
    internal = [line.removeprefix(_INTERNAL).strip() for line in lines if line.startswith(_INTERNAL)]
    shown = [line.removeprefix("E ").strip() for line in lines if line.startswith("E ")]
    refused = [line for line in lines if _REFUSAL.match(line)]
    told = _choose(internal) or _choose(shown) or (refused or lines or ["it printed nothing"])[-1]
    told = told.replace(f"{checkout}{os.sep}", "")
    place = _find_place(internal or lines, folder, checkout)
    return redact(told[:_MOST_TOLD]).rstrip(".") + (f" ({place})" if place and place not in told else "")


def _choose(lines: Sequence[str]) -> str | None:
    exceptions = [line for line in lines if _EXCEPTION.match(line)]
    return (exceptions or lines)[-1] if lines else None


def _find_place(lines: Iterable[str], folder: Path, checkout: Path) -> str | None:
    """Return the innermost frame in the checkout's own files."""
    place = None
    for line in lines:
        found = _FRAME.search(line) or _SHORT_FRAME.match(line)
        file = None if found is None else folder / found["file"]
        if found is not None and file is not None and file.is_relative_to(checkout) and _PACKAGES not in file.parts:
            place = f"{file.relative_to(checkout)}:{found['line']}"
    return place


def _read_end(log: Path, most_bytes: int = _MOST_KEPT_BYTES) -> str:
    with log.open("rb") as stream:
        stream.seek(max(0, log.stat().st_size - most_bytes))
        return stream.read().decode("utf-8", "replace")
