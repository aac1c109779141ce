"""The events that a gate run records, the removal of secrets from them, and the spool files in which they wait.

A run records its beginning, its results, their explanations and its end. Each event is one line of a spool file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pytest_golden.errors import StorageError
from pytest_golden.redaction.literals import secret_arguments, secret_literals
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import GoldenProjectResult, OutputChange, ReasonKind, ResultStatus
from pytest_golden.storage.folder import make_folder
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from pytest_golden.manifest.model import GoldenProjectConfig

#: The agent of a gate's entries.
GATE_AGENT = "golden"
#: The key in a recorded run's facts for whether another gate found it killed.
FOUND_KILLED = "found_killed"


@dataclass(frozen=True, slots=True)
class RunBegun(Shape):
    """A gate run begins. `expectations` gives the id of each selected project's expectation, in declaration order.

    `moment` is milliseconds since the epoch. `checkout` is `Checkout.to_dict()`, `surroundings` what is installed.
    """

    run_id: str
    moment: int
    workspace_root: str
    manifest: str
    command_line: tuple[str, ...]
    checkout: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    host: str
    pid: int
    expectations: Mapping[str, str]
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ResultJudged(Shape):
    """A project's result. `fails` tells whether it fails the gate. `declaration` holds its manifest keys, redacted.

    `inputs` describes what it read outside git, as `InputReader` returns it; empty if that was not looked at.
    """

    run_id: str
    entry_id: str
    signal_id: str
    moment: int
    expectation_id: str | None
    fails: bool
    declaration: Mapping[str, Any]
    result: GoldenProjectResult
    inputs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FailureExplained(Shape):
    """What earlier runs know about a recorded failure: `{kind, lines, ...}` each, redacted."""

    run_id: str
    entry_id: str
    known: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class RunEnded(Shape):
    """A gate run ends. `immediate_result` is a word of the journal; `facts` say what was deselected and the like.

    `verdict` is what `RunVerdict.to_dict` returned. `is_correction` means that the run has recorded its end before.

    `news` are signals about the run as a whole, `{id, signal_type, summary, data}` each. `dirty_files` is as in
    `Checkout.to_dict()`, given where the run itself has changed it since it began.
    """

    run_id: str
    moment: int
    immediate_result: str
    notes: str
    verdict: Mapping[str, Any]
    facts: Mapping[str, Any]
    news: tuple[Mapping[str, Any], ...] = ()
    is_correction: bool = False
    dirty_files: Mapping[str, str | None] | None = None


GateEvent = RunBegun | ResultJudged | FailureExplained | RunEnded
_KINDS: Mapping[str, type[GateEvent]] = {
    "begun": RunBegun,
    "judged": ResultJudged,
    "explained": FailureExplained,
    "ended": RunEnded,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def write_event(event: GateEvent) -> dict[str, Any]:
    """Return an event as JSON-safe values."""
    return {"event": _NAMES[type(event)], **event.to_dict()}


def read_event(told: Mapping[str, Any]) -> GateEvent:
    """Read back what `write_event` returned.

    Raises:
        ValueError: it is not an event, or one of a newer form.
    """
    kind = _KINDS.get(str(told.get("event")))
    if kind is None:
        raise ValueError(f"{told.get('event')!r} is not an event of a gate run")
    if newer := told.keys() - {"event", *kind.__slots__}:
        raise ValueError(f"an event of a gate run that another version has written, with {', '.join(sorted(newer))}")
    try:
        return kind.from_dict(told)
    except ValueError as error:
        raise ValueError(f"an event of a gate run that cannot be read: {error}") from None


def was_found_killed(facts: Any) -> bool:
    """Tell from a run's facts whether another gate found it unfinished and closed it."""
    return isinstance(facts, dict) and facts.get(FOUND_KILLED) is True


class Spool:
    """The spool files of a workspace for one store, one a gate run, in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def append(self, *events: GateEvent) -> Path:
        """Write events of one run durably, all or none, and return the file.

        Raises:
            StorageError: the file cannot be written.
        """
        path = self._folder / f"{events[0].run_id}.jsonl"
        lines = "".join(json.dumps(write_event(event), separators=(",", ":")) + "\n" for event in events)
        try:
            make_folder(self._folder)
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                _write_whole(handle, lines.encode("ascii"))
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageError(f"the spool file {path} cannot be written: {error.strerror}") from error
        return path

    def files(self) -> tuple[Path, ...]:
        """Return the files that wait, oldest run first."""
        return tuple(sorted(self._folder.glob("*.jsonl"))) if self._folder.is_dir() else ()


def read_spool(path: Path) -> Iterator[GateEvent]:
    """Return the events of a spool file in order; skip a torn last line, which a killed process leaves.

    Raises:
        StorageError: the file cannot be read, or a whole line of it is not an event.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise StorageError(f"the spool file {path} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines[:-1], 1):
        try:
            yield read_event(json.loads(line))
        except ValueError as error:
            raise StorageError(f"the spool file {path}, line {number}: {error}; move it away") from None


def _write_whole(handle: int, content: bytes) -> None:
    """Write all or nothing: half a line would make the next one unreadable too."""
    start = os.fstat(handle).st_size
    try:
        while content:
            content = content[os.write(handle, content) :]
    except OSError:
        with suppress(OSError):
            os.ftruncate(handle, start)
        raise


_T = TypeVar("_T")


_WORDS = frozenset({*ResultStatus, *ReasonKind, *OutputChange})


def _is_term(text: str) -> bool:
    """Tell whether a text has the form of our keys."""
    return text.isascii() and text.islower() and text.replace("_", "a").isalpha()


class SecretHider:
    """Removes secrets by the general rules and by what a gateway knows about its projects.

    `redact_own` removes a project's secrets from a text, as `ExecutionGateway.redact` does, or returns None if it cannot.
    """

    def __init__(
        self, redact_own: Callable[[GoldenProjectConfig, str], str | None], projects: Iterable[GoldenProjectConfig]
    ) -> None:
        self._redact_own = redact_own
        self._secretive = _find_secretive(projects)

    def hide_for_all(self, plain: _T) -> _T | None:
        """Remove the secrets of all projects from JSON-safe values: the text of one project may hold a secret of another.

        Return None if that is not possible.
        """
        redacted: _T | None = redact(plain)
        for project in self._secretive:
            redacted = None if redacted is None else self._hide(project, redacted)
        return redacted

    def hide_names(self, names: Sequence[str]) -> Sequence[str] | None:
        """Remove secrets from many names; fast if there are none. Return None if that is not possible."""
        together = "\n".join(names)
        return names if self.hide_for_all(together) == together else self.hide_for_all(list(names))

    def hide_in_result(self, result: GoldenProjectResult) -> GoldenProjectResult:
        """Remove the secrets of the other projects from a result; its own are removed already, if it ran."""
        others = [project for project in self._secretive if project.name != result.name or not result.command]
        plain: dict[str, Any] | None = result.to_dict() if others else None
        for project in others:
            plain = None if plain is None else self._hide(project, plain)
        return result if plain is None else replace(GoldenProjectResult.from_dict(plain), name=result.name)

    def _hide(self, project: GoldenProjectConfig, plain: _T) -> _T | None:
        """Remove one project's secrets from each text. A secret can be a word of ours, such as a status: our words stay."""

        def hide(value: Any) -> Any:
            if isinstance(value, dict):
                return {key if _is_term(key) else hide(key): hide(inner) for key, inner in value.items()}
            if isinstance(value, list | tuple):
                return [hide(inner) for inner in value]
            return self._redact_own(project, value) if isinstance(value, str) and value not in _WORDS else value

        try:
            told = json.dumps(plain)
            # Most values hold no secret, and one search for all of their texts is fast.
            return plain if self._redact_own(project, told) in {told, None} else cast("_T", hide(plain))
        except Exception:
            # A plugged-in gateway may raise anything. Then nothing is kept of what it should have redacted.
            return None


def _find_secretive(projects: Iterable[GoldenProjectConfig]) -> tuple[GoldenProjectConfig, ...]:
    """Return one project of each set of secrets."""
    found: dict[Any, GoldenProjectConfig] = {}
    for project in projects:
        commands = (project.args, project.command or (), *project.before, *project.after)
        arguments = tuple(literal for command in commands for literal in secret_arguments(command))
        secrets = project.pass_env, secret_literals(project.set_env), project.pass_files, arguments, project.not_secret
        if any(secrets):
            found.setdefault(secrets, project)
    return tuple(found.values())
