"""The execution gateway: the only way to execute a pipeline.

It prepares a view and a seal, has the supervisor run the commands, and returns the facts. It judges nothing, and nothing
that a project does makes it raise.
"""

from __future__ import annotations

import glob
import os
import sys
import threading
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GatewayError, GoldenError
from pytest_golden.gateway import git
from pytest_golden.gateway.execution import execute, next_log_file, read_present_step
from pytest_golden.gateway.limits import open_control_groups
from pytest_golden.gateway.machine import Machine
from pytest_golden.gateway.model import (
    Ending,
    PipelineOutcome,
    Problem,
    RunnerCommand,
    choose_request,
    require_execution,
)
from pytest_golden.gateway.outcome import Keeping, add_findings, build_outcome, explain_os_error, outcome_not_started
from pytest_golden.gateway.own_network import write_resolver
from pytest_golden.gateway.preparation import Prepared, build_path_variable, find_missing, list_hints, prepare
from pytest_golden.gateway.process import Supervisor
from pytest_golden.gateway.resolution import (
    ProjectUnusableError,
    ResolvedProject,
    explaining_uv,
    find_prefix,
    resolve_project,
)
from pytest_golden.gateway.runners.choice import find_reader, find_runner_command, list_readers
from pytest_golden.gateway.runners.runner import PipelineFile
from pytest_golden.gateway.scratch import remove_tree
from pytest_golden.gateway.seal import find_credentials, handing_in
from pytest_golden.gateway.view import is_below, write_kept
from pytest_golden.gateway.write_set import Fingerprint, find_differences, take_fingerprint
from pytest_golden.redaction.escapes import strip_escapes
from pytest_golden.redaction.literals import literals_in_file, secret_arguments, secret_literals
from pytest_golden.redaction.passed_values import literals_in_content, passed_literals
from pytest_golden.redaction.redactor import Redactor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pytest_golden.gateway.machine import Place
    from pytest_golden.gateway.model import AgentRole, GatewayAbilities, Permissions
    from pytest_golden.gateway.reads import ReadRecorder
    from pytest_golden.gateway.write_set import Examine
    from pytest_golden.manifest.model import GoldenProjectConfig
    from pytest_golden.trajectory.readers.model import StepReader

    FindCommand = Callable[[GoldenProjectConfig], RunnerCommand | None]
    KeepIf = Callable[[GoldenProjectConfig, PipelineOutcome], bool]

_OWN_FOLDER = ".golden"
# Our own steps file is always read, and spans wherever there is a receiver.
_READ_BESIDE = ("golden_steps", "otel")
_CREDENTIALS_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Order:
    """One project, ready to be prepared: its paths, its command, how what it prints is redacted, and its stand-ins."""

    project: ResolvedProject
    command: RunnerCommand
    redactor: Redactor
    stand_ins: Mapping[str, bytes] = field(default_factory=dict)
    examine: Examine | None = None


class ExecutionGateway:
    """Runs golden projects one at a time, each in a view of its own.

    Args:
        workspace_root: the folder that relative paths resolve against.
        view: `auto`, `overlay` or `copy`.
        roots: further folders that must stay readable in the seal.
        environ: where `pass_env` and PATH are taken from; the process's own by default.
        find_command: gives a runner's command, or None to leave it to the built-in runners.
        step_readers: readers of steps beside the built-in ones.
        redactors: callables text -> text, applied before the built-in redaction.
        log_folder: where logs are kept; nowhere by default.
        keep_if: tells whether what a run wrote is kept below `.golden/kept`, given its outcome.
        python: runs the projects that declare no `venv`; the gate's own by default.
        unwatched: paths that belong to no project and are not copied: the gate itself writes there.
        growing: files that this process writes while projects run, which are treated likewise; and files with the same
            name, a dot and more, such as coverage.py writes.
        hidden: files that are not copied either and that no sealed pipeline sees, such as the store.
        reads: records which files each pipeline reads, into its trajectory's metadata; closed with the gateway.
        list_tracked: tells which files below a folder git tracks, by default by asking git; None outside a checkout.
    """

    def __init__(
        self,
        workspace_root: Path | str,
        *,
        view: str = "auto",
        roots: Iterable[Path] = (),
        environ: Mapping[str, str] | None = None,
        find_command: FindCommand | None = None,
        step_readers: Iterable[StepReader] = (),
        redactors: Iterable[Callable[[str], str]] = (),
        log_folder: Path | None = None,
        keep_if: KeepIf | None = None,
        python: str = sys.executable,
        unwatched: Iterable[Path] = (),
        growing: Iterable[Path] = (),
        hidden: Iterable[Path] = (),
        reads: ReadRecorder | None = None,
        list_tracked: Callable[[Path], frozenset[str] | None] = git.list_tracked,
    ) -> None:
        self.workspace_root = Path(os.path.realpath(workspace_root))
        self._python = python
        self._roots = (self.workspace_root, *roots, *([] if python == sys.executable else [find_prefix(python)]))
        self._environ = os.environ if environ is None else environ
        self._find_command = find_command
        self._plugged_readers = {reader.name: reader for reader in step_readers}
        self._redactors = tuple(redactors)
        self._log_folder = log_folder
        self._keep_if = keep_if
        concealed = (*map(os.path.realpath, hidden), *find_credentials(os.path.realpath(os.path.expanduser("~"))))
        self._unwatched = (*map(os.path.realpath, unwatched), *concealed)
        self._growing = tuple(map(os.path.realpath, growing))
        self._reads = reads
        self._list_tracked = list_tracked
        self._machine = Machine(view, self._roots, concealed)
        self._supervisor = Supervisor()
        self._online = Supervisor(own_network=True)
        self._online_lock = threading.Lock()
        self._why_not_online: str | None = None
        self._network_thread: threading.Thread | None = None
        self._frozen: dict[str, tuple[GoldenProjectConfig, ResolvedProject | ProjectUnusableError]] = {}
        self._last_look: tuple[Path, Fingerprint] | None = None
        self._running: tuple[Path, Redactor] | None = None
        self._making: str | None = None
        self._known: dict[str, tuple[tuple[Any, ...], Redactor]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the supervisor and remove all scratch; safe to call twice."""
        if self._network_thread is not None:
            self._network_thread.join()
        self._supervisor.close()
        self._online.close()
        self._machine.close()
        if self._reads is not None:
            self._reads.close()

    def interrupt(self) -> None:
        """Stop the pipeline that runs now, if one does; may be called from another thread."""
        self._supervisor.interrupt()
        self._online.interrupt()

    def describe(self) -> GatewayAbilities:
        """Say which view, seal and network are used on this machine, why, and how to get better."""
        is_wanted = not self._frozen or any(project.network is True for project, _ in self._frozen.values())
        if is_wanted:
            self._begin_network()
        abilities = self._machine.describe()
        if open_control_groups():
            abilities = replace(abilities, limits_by="cgroup")
        if abilities.seal == "none" or not is_wanted:
            return abilities
        trouble = self._open_network()
        return replace(abilities, network="host" if trouble else "own", network_reason=trouble)

    def present_step(self) -> str | None:
        """Return the step that the running pipeline has reached; may be called from another thread."""
        if self._making is not None:
            return self._making
        if (running := self._running) is None:
            return None
        steps_file, redactor = running
        step = read_present_step(steps_file)
        return None if step is None else redactor.text(step)

    def redact(self, project: GoldenProjectConfig, text: str) -> str:
        """Redact a text as this project's output is redacted."""
        files: Iterable[Path | None]
        try:
            files = self._resolve(project).pass_files
        except (ProjectUnusableError, OSError):
            named = (self.workspace_root / os.path.expanduser(name) for name in project.pass_files)
            files = (file if os.access(file, os.R_OK) and file.is_file() else None for file in named)
        return self._project_redactor(project, files).text(text)

    def freeze(self, projects: Iterable[GoldenProjectConfig]) -> None:
        """Resolve all paths now, so that nothing can lead them elsewhere later.

        From now on no project may change between two runs either: the fingerprint after one run is that before the next.
        """
        for project in projects:
            try:
                self._frozen[project.name] = project, resolve_project(project, self.workspace_root, self._python)
            except ProjectUnusableError as problem:
                self._frozen[project.name] = project, problem
        if any(project.network is True for project, _ in self._frozen.values()):
            self._begin_network()

    def run_pipeline(
        self,
        project: GoldenProjectConfig,
        *,
        role: AgentRole | None = None,
        permissions: Permissions | None = None,
        stand_ins: Mapping[str, bytes] | None = None,
        examine: Examine | None = None,
        agent_role: AgentRole | None = None,
        agent_permissions: Permissions | None = None,
    ) -> PipelineOutcome:
        """Execute one golden project and return the facts; never raises for what the project does.

        `role` and `permissions` are required. `agent_role` and `agent_permissions` are other names for them.
        `stand_ins` are contents that this one view has in the place of the project's own files, by path below
        project_dir. They are not in the write set. `examine` is called with the written files while the view still
        exists, after `after:`, whenever the pipeline was started; what it returns is redacted.

        Raises:
            PermissionDeniedError: the permissions ask for more than the role may have.
            TypeError: role or permissions are missing, or given under both names.
        """
        require_execution(*choose_request(role, permissions, agent_role, agent_permissions))
        redactor = self._redactor()
        try:
            began = monotonic_seconds()
            order = replace(self._order(project), stand_ins=stand_ins or {}, examine=examine)
            redactor = order.redactor
            outcome = self._run(order)
            took = monotonic_seconds() - began - outcome.duration_seconds - outcome.compare_seconds
            return replace(outcome, prepare_seconds=max(0.0, took))
        except ProjectUnusableError as error:
            return outcome_not_started(error.problem, str(error), redactor)
        except OSError as error:
            return outcome_not_started(*explain_os_error(error), redactor)
        except GoldenError as error:
            return outcome_not_started(Problem.HARNESS, str(error), redactor)
        except KeyboardInterrupt:
            stopped = outcome_not_started(Problem.HARNESS, "interrupted while it was being prepared", redactor)
            return replace(stopped, ending=Ending.INTERRUPTED, problem=None)

    def open_shell(
        self,
        project: GoldenProjectConfig,
        *,
        role: AgentRole,
        permissions: Permissions,
        announce: Callable[[tuple[str, ...], str], None],
    ) -> int:
        """Open an interactive shell in a project's view and seal; return its exit code.

        `announce` gets the pipeline's command and its folder just before the shell starts. `before:` commands have run.

        Raises:
            PermissionDeniedError: the permissions ask for more than the role may have.
            GatewayError: the view cannot be prepared, or a `before:` command failed.
        """
        from pytest_golden.gateway import shell_terminal

        require_execution(role, permissions)
        order = self._order(project)
        with self._prepared(order, self._machine.choose_place(order.project.project_dir)) as (prepared, _):
            supervisor = self._online if prepared.own_network else self._supervisor
            ready = execute(prepared, ("true",), supervisor, after=False)
            if ready.problem is not None:
                raise GatewayError(order.redactor.text(ready.message))
            announce(prepared.fill_in(order.command.argv), prepared.view.seen_at)
            environment = {**prepared.environment, "TERM": self._environ.get("TERM", "dumb")}
            shell = (sys.executable, "-I", "-S", shell_terminal.__file__, self._environ.get("SHELL", "/bin/sh"))
            beside = supervisor.pid if prepared.own_network else None
            command, folder = prepared.wrap(shell), prepared.host_folder
            if not prepared.is_sealed:
                return shell_terminal.run_in_terminal(command, folder, environment, beside)
            with handing_in(command, prepared.filter, environment) as (argv, _):
                return shell_terminal.run_in_terminal(argv, folder, {}, beside)

    def _begin_network(self) -> None:
        """Have the network made by a thread: that takes as long as trying the view, and neither needs the other."""
        if self._network_thread is None and sys.platform == "linux":
            self._network_thread = threading.Thread(target=self._open_network, name="golden-network", daemon=True)
            self._network_thread.start()

    def _open_network(self) -> str:
        """Have the network of `network: true` made, once; return an empty text, or why pipelines get this machine's."""
        with self._online_lock:
            if self._why_not_online is None:
                try:
                    self._online.start()
                    self._why_not_online = ""
                except GatewayError as error:
                    self._why_not_online = str(error)
            return self._why_not_online

    def _resolve(self, project: GoldenProjectConfig) -> ResolvedProject:
        config, known = self._frozen.get(project.name, (None, None))
        if known is None or config != project:
            return resolve_project(project, self.workspace_root, self._python)
        if isinstance(known, ProjectUnusableError):
            raise known
        return known

    def _order(self, project: GoldenProjectConfig) -> _Order:
        resolved = self._resolve(project)
        self._make_environment(resolved)
        path_variable = build_path_variable(resolved, self._environ)
        missing = find_missing(resolved, path_variable)
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            raise ProjectUnusableError(f"{', '.join(missing)} {verb} not installed here", Problem.SKIP_IF_MISSING)
        command = self._find_command(project) if self._find_command is not None else None
        if command is None:
            file = PipelineFile(project, resolved.file, resolved.project_dir, path_variable, resolved.python)
            command = find_runner_command(file)
        return _Order(resolved, command, self._project_redactor(project, resolved.pass_files))

    def _make_environment(self, project: ResolvedProject) -> None:
        """Have uv make the environment that a project names by its lock file, if it is not there."""
        if project.uv_project is None or project.venv is None:
            return
        from pytest_golden.gateway.uv_environment import make_environment

        self._making = "uv sync"
        try:
            with explaining_uv(str(project.config.venv)):
                make_environment(project.uv_project, project.venv, project.gate_python)
        finally:
            self._making = None

    def _project_redactor(self, project: GoldenProjectConfig, files: Iterable[Path | None]) -> Redactor:
        """Return what hides the secrets of a project. `files` are those that it names, in that order; None for an unreadable one."""
        passed = {name: self._environ[name] for name in project.pass_env if name in self._environ}
        contents = ["" if file is None else _read_credentials(file) for file in files]
        given = (project, passed, contents)
        # It is asked for with every text, and files take time to be understood.
        if self._known.get(project.name, ((), None))[0] != given:
            literals, known = _find_values(project, passed, contents)
            # What is said in clear is known to everybody, and a file must keep its name to be recognized.
            outputs = (output.path for output in project.outputs)
            said = (
                str(self.workspace_root),
                project.name,
                project.path,
                project.project_dir or "",
                *project.writes,
                *outputs,
            )
            known = [value for value in known if value not in "\n".join(said)]
            self._known[project.name] = given, self._redactor(literals, known)
        return self._known[project.name][1]

    def _redactor(self, literals: Iterable[str] = (), passed: Iterable[str] = ()) -> Redactor:
        # A colour in the middle of a secret would hide it here and be taken out where it is shown.
        return Redactor(tuple(literals), (strip_escapes, *self._redactors), tuple(passed))

    def _run(self, order: _Order) -> PipelineOutcome:
        place = self._machine.choose_place(order.project.project_dir)
        overlay = self._machine.uses_overlay(place, order.project.project_dir)
        outcome = self._run_in_view(order, place, overlay=overlay)
        if self._machine.view != "auto" or not place.probe.overlay:
            return outcome
        if not overlay:
            return _warned(
                outcome, "ran in a copy: its folder belongs to another user or group, and no overlay can change that"
            )
        if outcome.problem is not Problem.SANDBOX_UNAVAILABLE:
            return outcome
        # The probe's overlay worked and this folder's does not: its file system cannot be a lower layer.
        again = self._run_in_view(order, place, overlay=False)
        return _warned(again, f"ran in a copy, because an overlay failed: {outcome.message}")

    def _run_in_view(self, order: _Order, place: Place, *, overlay: bool) -> PipelineOutcome:
        config = order.project.config
        with self._prepared(order, place, overlay=overlay) as (prepared, before), ExitStack() as stack:
            readers, warnings = self._choose_readers(order)
            if "otel" in config.steps:
                from pytest_golden.gateway.span_reader import receive_spans

                prepared, found, told = stack.enter_context(receive_spans(prepared))
                readers, warnings = (*found, *readers), (*warnings, *told)
            take_lines: Callable[[], tuple[str, ...]] = tuple
            if config.coverage:
                from pytest_golden.gateway.line_coverage import count_lines

                prepared, take_lines = count_lines(prepared)
            self._running = prepared.steps_file, order.redactor
            inside = self._begin_reads(prepared, stack)
            try:
                supervisor = self._online if prepared.own_network else self._supervisor
                executed = execute(prepared, order.command.argv, supervisor)
            finally:
                self._running = None
            ended = monotonic_seconds()
            noted = {} if self._reads is None else _note_reads(self._reads, inside, prepared)
            warnings = (*warnings, *take_lines(), *(self._reads.take_warnings() if self._reads else ()))
            log_file = None if self._log_folder is None else next_log_file(self._log_folder, config.name)
            keeping = Keeping(order.redactor, log_file, noted)
            outcome = build_outcome(prepared, executed, prepared.fill_in(order.command.argv), readers, keeping)
            outcome = replace(outcome, engine_files=order.command.engine_files)
            is_odd = bool(outcome.exit_code) and config.expected_outcome == "success"
            told = list_hints(prepared, outcome.stdout + outcome.stderr if overlay else "") if is_odd else ()
            outcome = replace(outcome, warnings=(*warnings, *outcome.warnings, *map(order.redactor.text, told)))
            outcome = self._prove_untouched(order, outcome, before)
            outcome = add_findings(order.examine, prepared.view, outcome, order.redactor)
            outcome = self._keep(prepared, outcome)
            return replace(outcome, compare_seconds=monotonic_seconds() - ended)

    def _begin_reads(self, prepared: Prepared, stack: ExitStack) -> ReadRecorder | None:
        """Begin to record what is read; return the recorder of a copy that the pipeline reads in the place of its folder."""
        if self._reads is None:
            return None
        self._reads.begin()
        if prepared.view.untouched_copy is None:
            return None
        recorder = self._reads.open_for_copy(prepared.view.untouched_copy)
        stack.callback(recorder.close)
        recorder.begin()
        return recorder

    @contextmanager
    def _prepared(
        self, order: _Order, place: Place, *, overlay: bool | None = None
    ) -> Iterator[tuple[Prepared, Fingerprint]]:
        project = order.project
        if overlay is None:
            overlay = self._machine.uses_overlay(place, project.project_dir)
        folder = place.scratch.new_folder()
        try:
            before = self._look_before(project.project_dir)
            is_online = project.config.network is True and place.probe.seal is not None and not self._open_network()
            tracked = self._find_tracked(order)
            prepared = prepare(
                project,
                order.command,
                folder=folder,
                seal=place.probe.seal,
                overlay=overlay,
                fingerprint=before,
                masked_roots=(*self._roots, project.project_dir),
                environ=self._environ,
                stand_ins=order.stand_ins,
                resolver=write_resolver(folder) if is_online else None,
                tracked=tracked,
            )
            yield prepared, before
        finally:
            place.scratch.discard(folder)

    def _find_tracked(self, order: _Order) -> frozenset[str] | None:
        """Return the files that the view shows, relative to the project's folder; None for all.

        Raises:
            ProjectUnusableError: git does not know the project, which declares that it sees what git tracks.
        """
        project = order.project
        wanted = project.config.view
        if not order.command.sees_tracked_files(wanted):
            return None
        try:
            tracked = self._list_tracked(project.project_dir)
            why = f"{project.project_dir} is not in a git repository"
        except GoldenError as error:
            tracked, why = None, str(error)
        own = project.file.relative_to(project.project_dir).as_posix()
        if tracked is not None and own not in tracked and project.file.is_file():
            tracked, why = None, f"git does not track {own}: `git add` it"
        if tracked is None and wanted == "tracked":
            raise ProjectUnusableError(f"`view: tracked` shows what git tracks, but {why}")
        if tracked is None:
            return None
        folder, list_data = project.project_dir, order.command.list_data
        places = [] if list_data is None else [folder / name for name in list_data(folder, tracked)]
        for pattern in project.config.depends_on:
            matches = glob.iglob(pattern, root_dir=self.workspace_root, recursive=True, include_hidden=True)
            places += [self.workspace_root / match for match in matches]
        return tracked | _list_inside(folder, places)

    def _look_before(self, project_dir: Path) -> Fingerprint:
        if self._frozen and self._last_look is not None and self._last_look[0] == project_dir:
            return self._last_look[1]
        return self._look_at(project_dir)

    def _look_at(self, project_dir: Path) -> Fingerprint:
        look = take_fingerprint(str(project_dir))
        root = str(project_dir)
        ours = tuple(f"{os.path.relpath(path, root)}/" for path in self._unwatched if is_below(path, root))
        grows = [os.path.relpath(path, root) for path in self._growing if is_below(path, root)]
        ours += tuple(f"{path}{end}" for path in grows for end in "/.")
        if not ours:
            return look
        marks = {path: mark for path, mark in look.marks.items() if not f"{path}/".startswith(ours)}
        return Fingerprint(marks, tuple(path for path in look.withheld if not f"{path}/".startswith(ours)))

    def _prove_untouched(self, order: _Order, outcome: PipelineOutcome, before: Fingerprint) -> PipelineOutcome:
        project = order.project
        after = self._look_at(project.project_dir)
        self._last_look = (project.project_dir, after)
        writable = [mount.path for mount in project.mounts if mount.mode == "write"]
        changed = tuple(
            path
            for path in find_differences(before, after)
            if not any((project.project_dir / path).is_relative_to(mount) for mount in writable)
        )
        if not changed:
            return outcome
        shown = tuple(map(order.redactor.text, changed))
        return replace(outcome, changed_underneath=shown, problem=outcome.problem or Problem.PROJECT_CHANGED)

    def _choose_readers(self, order: _Order) -> tuple[tuple[StepReader, ...], tuple[str, ...]]:
        """Return the readers of a run, and a warning for each that is declared and unknown."""
        declared = order.project.config.steps
        names = (*order.command.step_readers, *self._plugged_readers) if declared == "auto" else tuple(declared)
        names = tuple(dict.fromkeys(name for name in names if name not in _READ_BESIDE))
        if not names:
            return (), ()
        readers = {name: self._plugged_readers.get(name) or find_reader(name) for name in names}
        unknown = [name for name, reader in readers.items() if reader is None]
        known = [reader.name for reader in list_readers()] if unknown else []
        told = ", ".join([*known, *self._plugged_readers, "otel"])
        return (
            tuple(reader for reader in readers.values() if reader is not None),
            tuple(f"no step reader is called {name!r}; known are {told}" for name in unknown),
        )

    def _keep(self, prepared: Prepared, outcome: PipelineOutcome) -> PipelineOutcome:
        config = prepared.project.config
        if self._keep_if is None or not self._keep_if(config, outcome):
            return outcome
        folder = self.workspace_root / _OWN_FOLDER / "kept" / config.name
        try:
            remove_tree(folder)
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            write_kept(prepared.view, folder)
        except OSError as error:
            return replace(outcome, warnings=(*outcome.warnings, f"its view could not be kept in {folder}: {error}"))
        return replace(outcome, kept_view=str(folder))


def _find_values(
    project: GoldenProjectConfig, passed: Mapping[str, str], contents: Iterable[str]
) -> tuple[list[str], list[str]]:
    """Return the values that are secret by their names, and those that are passed under other names."""
    commands = (project.args, project.command or (), *project.before, *project.after)
    literals = [
        *secret_literals({**passed, **project.set_env}),
        *chain.from_iterable(map(secret_arguments, commands)),
    ]
    known = [*passed_literals({name: value for name, value in passed.items() if name not in project.not_secret})]
    for name, content in zip(project.pass_files, contents, strict=True):
        literals += literals_in_file(content)
        known += () if name in project.not_secret else literals_in_content(content)
    return literals, known


def _list_inside(folder: Path, places: Iterable[Path]) -> frozenset[str]:
    """List what of these files and folders lies in a project's folder, relative to it."""
    found: set[Path] = set()
    for place in places:
        inside = [place, *place.rglob("*")] if place.is_dir() and not place.is_symlink() else [place]
        found.update(path for path in inside if path.is_relative_to(folder))
    return frozenset(path.relative_to(folder).as_posix() for path in found)


def _note_reads(reads: ReadRecorder, of_copy: ReadRecorder | None, prepared: Prepared) -> dict[str, Any]:
    """Return which files of the checkout a pipeline opened: in its own folder too, if its view is an overlay."""
    folder = prepared.project.project_dir
    outside = reads.end(folder)
    if of_copy is None:
        return {"reads": outside, "reads_inside": None if prepared.view.is_copied else reads.inside}
    of_copy.end(of_copy.root)
    place = os.path.relpath(folder, reads.root)
    inside = None if of_copy.inside is None else [os.path.normpath(f"{place}/{path}") for path in of_copy.inside]
    return {"reads": outside, "reads_inside": inside}


def _read_credentials(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(_CREDENTIALS_BYTES).decode("utf-8", "replace")


def _warned(outcome: PipelineOutcome, warning: str) -> PipelineOutcome:
    return replace(outcome, warnings=(*outcome.warnings, warning))
