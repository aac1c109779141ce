"""The outputs that red runs kept, to be reviewed and accepted. `golden accept`, the web page and the agents' tools use this module.

The facts about an output are always computed from its copy, because the record beside it is only a file. Accepted outputs are listed in
`golden_baselines/ACCEPTED.md`, one line each, for the reviewer of the change.
"""

from __future__ import annotations

import lzma
import zlib
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from zipfile import BadZipFile, ZipFile

from pytest_golden.clock import utc_now
from pytest_golden.compare.accepting import Acceptance, find_trouble
from pytest_golden.compare.baselines import (
    ACCEPTED_NAME,
    WAITING_FOLDER,
    ExpectedFile,
    ProjectBaselines,
    find_baselines_folder,
)
from pytest_golden.compare.comparing import compare_with
from pytest_golden.compare.kept_outputs import MOST_BYTES
from pytest_golden.compare.showing import cut
from pytest_golden.compare.tables.profiles import is_profile
from pytest_golden.compare.waiting import (
    COPY_NAME,
    RECORD_NAME,
    RUN_AGAIN,
    Proposal,
    WaitingFolder,
    WaitingOutput,
    WaitingRun,
    digest_baseline,
    digest_entries,
    digest_file,
)
from pytest_golden.errors import BaselineError
from pytest_golden.gate.state_folder import find_state_folder
from pytest_golden.gateway.write_set import WrittenFiles
from pytest_golden.history.checkout import read_checkout
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.model import AcceptedOutput, OutputChange, ReasonKind
from pytest_golden.regression.unexpected import names_output
from pytest_golden.regression.wording import format_size, name_some, show_path
from pytest_golden.storage.folder import STATE_FOLDER, open_regular, replace_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from pytest_golden.journal.service import Journal
    from pytest_golden.manifest.model import GoldenProjectConfig, Manifest

_HEAD = """# Accepted outputs

Each line is an output that somebody made the baseline: review it together with the change of the file.

| day | project | output | change | rows | columns | reason | who |
|---|---|---|---|---|---|---|---|
"""
_LONGEST_REASON = 500
_LONGEST_CHANGE = 200
_SHORT = 10
_MOST_NAMED = 5
_MOST_REMEMBERED = 1000


class WaitingOutputs:
    """The waiting outputs of a manifest's projects. With `is_foreign`, they come from another machine and are not changed."""

    def __init__(self, manifest: Manifest, folder: WaitingFolder, *, is_foreign: bool = False) -> None:
        self._manifest = manifest
        self._folder = folder
        self._is_foreign = is_foreign
        self._baselines = find_baselines_folder(manifest.path, manifest.workspace_root)

    def list_runs(self) -> tuple[WaitingRun, ...]:
        """Return the waiting outputs by project, in the manifest's order. An output that can no longer be accepted says why.

        Raises:
            BaselineError: a record cannot be read.
        """
        waiting = frozenset(self._folder.list_projects())
        runs = (self.find(project) for project in self._manifest.projects if project.name in waiting)
        return tuple(run for run in runs if run is not None)

    def find(self, project: GoldenProjectConfig) -> WaitingRun | None:
        """Return the waiting outputs of one project; None if there are none.

        Raises:
            BaselineError: its record cannot be read.
        """
        run = self._folder.read(project.name)
        if run is None:
            return None
        return replace(run, outputs=tuple(self._look_at(project, output) for output in run.outputs))

    def find_proposal(self, name: str) -> Proposal | None:
        """Return the proposal for a project; None if there is none.

        Raises:
            BaselineError: it cannot be read.
        """
        return self._folder.read_proposal(name)

    def propose(self, project: GoldenProjectConfig, paths: Collection[str], reason: str, who: str) -> tuple[str, ...]:
        """Record which outputs a caller who is not a person would accept, for a person to decide; return the paths of the outputs.

        Raises:
            BaselineError: nothing waits, the reason is not a sentence, or the proposal cannot be written.
        """
        chosen = self.choose(project, paths)[1]
        named = tuple(output.path for output in chosen)
        try:
            self._folder.propose(project.name, Proposal(redact(check_reason(reason)), utc_now(), named, who))
        except OSError as error:
            raise BaselineError(
                f"the proposal for {project.name} cannot be written: {error.strerror or error}"
            ) from None
        return named

    def accept(
        self, project: GoldenProjectConfig, paths: Collection[str], reason: str, who: str
    ) -> tuple[AcceptedOutput, ...]:
        """Make waiting outputs the baselines, those in `paths` or else all; return the result of each.

        Raises:
            BaselineError: none of them may be accepted, or they cannot be written.
        """
        reason = redact(check_reason(reason))
        run, chosen = self.choose(project, paths)
        noted = self._read_notes()
        acceptance = Acceptance(ProjectBaselines(self._baselines, project.name))
        refused = []
        try:
            for output in chosen:
                trouble = output.refused or self._prepare(acceptance, project.name, output)
                if trouble:
                    refused.append(AcceptedOutput(output.path, OutputChange.REFUSED, trouble))
            accepted, findings = acceptance.commit()
        finally:
            acceptance.discard()
        refused += [AcceptedOutput(str(one.path), OutputChange.REFUSED, one.message) for one in findings]
        done = {one.path for one in accepted if one.change is not OutputChange.REFUSED}
        if done:
            self._note(noted, project.name, [output for output in chosen if output.path in done], reason, who)
            if not self._is_foreign:
                self._folder.leave(replace(run, outputs=tuple(one for one in run.outputs if one.path not in done)))
        return (*accepted, *refused)

    def choose(
        self, project: GoldenProjectConfig, paths: Collection[str]
    ) -> tuple[WaitingRun, tuple[WaitingOutput, ...]]:
        """Return the waiting outputs of a project: those in `paths`, or else all.

        Raises:
            BaselineError: nothing waits, one of the paths does not wait, or nothing of the run may be accepted.
        """
        run = self.find(project)
        if run is None:
            told = f"nothing of {project.name} waits: its last run was not red for its outputs"
            raise BaselineError(f"{told}; {RUN_AGAIN}, or use `golden accept {project.name} --rerun`")
        if run.refused:
            raise BaselineError(f"nothing of {project.name} can be accepted: {run.refused}")
        known = {output.path for output in run.outputs}
        unknown = [path for path in paths if path not in known]
        if unknown:
            waits = name_some([*map(show_path, sorted(known))], _MOST_NAMED)
            raise BaselineError(f"{show_path(unknown[0])} of {project.name} does not wait; what waits is {waits}")
        return run, tuple(output for output in run.outputs if not paths or output.path in paths)

    def _look_at(self, project: GoldenProjectConfig, output: WaitingOutput) -> WaitingOutput:
        """Return an output with the facts from its copy, and the reason if it can no longer be accepted."""
        if output.refused:
            return output
        baselines = ProjectBaselines(self._baselines, project.name)
        if digest_baseline(baselines, output.path) != output.baseline_sha256:
            return replace(output, refused=f"its baseline has changed since that run: {RUN_AGAIN}")
        if output.change is OutputChange.REMOVED:
            return output
        entries = tuple(entry for entry in project.outputs if names_output(entry, output.path))
        if not entries or digest_entries(entries) != output.declared:
            return replace(output, refused=f"its entry in the manifest has changed since that run: {RUN_AGAIN}")
        try:
            file = ExpectedFile(output.path, entries, True)
            return self._compare(project.name, output, file, baselines.find(output.path))
        except OSError as error:
            return replace(output, refused=f"its copy cannot be read ({error.strerror or error}): {RUN_AGAIN}")

    def _compare(self, name: str, output: WaitingOutput, file: ExpectedFile, baseline: Path | None) -> WaitingOutput:
        place = self._folder.path / name / str(output.file)
        if digest_file(place) != output.sha256:
            return replace(output, refused=f"its copy has changed since that run: {RUN_AGAIN}")
        return _examine(place, output, file, baseline)

    def _prepare(self, acceptance: Acceptance, name: str, output: WaitingOutput) -> str:
        """Prepare one step; return the reason if it is not possible."""
        if output.change is OutputChange.REMOVED:
            acceptance.drop(output.path, output.message)
            return ""
        copy = acceptance.room.copy(self._folder.path / name / str(output.file))
        # From here on only the copy counts.
        if digest_file(copy) != output.sha256:
            return f"its copy has changed since that run: {RUN_AGAIN}"
        told = AcceptedOutput(output.path, output.change, output.message, output.allowed)
        kind = ReasonKind.BASELINE_MISSING if output.change is OutputChange.NEW else ReasonKind.OUTPUT_DIFFERS
        acceptance.take(copy, kind, told)
        return ""

    def _read_notes(self) -> str:
        """Return the content of the file of accepted outputs.

        Raises:
            BaselineError: it cannot be read, or is a symbolic link.
        """
        try:
            with open_regular(self._baselines / ACCEPTED_NAME) as stream:
                return stream.read().decode("utf-8", "backslashreplace")
        except FileNotFoundError:
            return _HEAD
        except OSError as error:
            told = f"{self._baselines.name}/{ACCEPTED_NAME} cannot be read: {error.strerror or error}"
            raise BaselineError(f"{told}; nothing was accepted") from None

    def _note(self, noted: str, name: str, outputs: Sequence[WaitingOutput], reason: str, who: str) -> None:
        """Add a line for each accepted output to the notes."""
        day = f"{utc_now():%Y-%m-%d}"
        for output in outputs:
            change = str(output.change)
            if output.change is OutputChange.CHANGED:
                change = cut(output.message.partition("\n")[0].removeprefix(f"{output.path} "), _LONGEST_CHANGE)
            figures = ["" if figure is None else f"{figure:,}" for figure in (output.rows, output.columns)]
            cells = (day, name, output.path, change, *figures, reason, who)
            noted += f"| {' | '.join(map(_cell, cells))} |\n"
        try:
            with replace_file(self._baselines / ACCEPTED_NAME) as stream:
                stream.write(noted)
        except OSError as error:
            told = f"the outputs are accepted, and {ACCEPTED_NAME} cannot be written: {error.strerror or error}"
            raise BaselineError(told) from None


@lru_cache(_MOST_REMEMBERED)
def _examine(place: Path, output: WaitingOutput, file: ExpectedFile, baseline: Path | None) -> WaitingOutput:
    """Return an output with the facts from its copy. Its record holds the digests of both files, and they were verified.

    A server asks for this often, and a large table takes seconds.
    """
    # The record is only a file: whether this may be a baseline is asked once more.
    trouble, allowed = find_trouble(file, place, WrittenFiles(place.parent, (), redact))
    if trouble:
        return replace(output, refused=trouble)
    output = replace(output, allowed=allowed)
    if baseline is None:
        size = format_size(place.stat().st_size)
        return replace(output, message=f"{size}, a profile" if is_profile(place) else size)
    mismatch = compare_with(file, place, baseline, redact)
    return replace(output, message=mismatch.message if mismatch else output.message)


def open_waiting(manifest: Manifest) -> WaitingOutputs:
    """Return the waiting outputs in the state folder of a manifest's workspace."""
    return WaitingOutputs(manifest, WaitingFolder(find_state_folder(manifest.workspace_root) / WAITING_FOLDER))


def log_acceptance(journal: Journal, name: str, accepted: Iterable[AcceptedOutput], reason: str, who: str) -> None:
    """Record the accepted outputs in the journal, if there are any."""
    done = [output for output in accepted if output.change is not OutputChange.REFUSED]
    if done:
        intent = f"accept outputs of {name}: {' '.join(reason.split())} ({who})"
        entry = journal.log_intent(intent, "baselines_accepted", agent_id="golden")
        actions = [{"project": name, "output": output.path, "change": str(output.change)} for output in done]
        journal.log_outcome(entry.id, "success", actions=actions)


def check_clean(manifest: Manifest) -> None:
    """Make sure that the checkout has no edits except in its baselines.

    Raises:
        BaselineError: it has other edits, or there is no checkout.
    """
    checkout = read_checkout(manifest.workspace_root)
    if checkout.root is None or checkout.dirty_files is None:
        raise BaselineError("nothing is accepted here outside a git checkout: use `golden accept`")
    folder = find_baselines_folder(manifest.path, manifest.workspace_root).resolve()
    edited = [path for path in checkout.dirty_files if not (checkout.root / path).resolve().is_relative_to(folder)]
    if edited:
        named = name_some([*map(show_path, edited)], _MOST_NAMED)
        raise BaselineError(
            f"the checkout has uncommitted edits ({named}): commit them and run the gate again, or use `golden accept`"
        )


def check_reason(reason: str) -> str:
    """Return a reason as one line.

    Raises:
        BaselineError: it is blank, or too long.
    """
    told = " ".join(reason.split())
    if not told:
        raise BaselineError("say in a sentence why this is right: --reason 'rounding was wrong before'")
    if len(told) > _LONGEST_REASON:
        raise BaselineError(f"the reason has {len(told)} characters; {_LONGEST_REASON} are enough")
    return told


def _cell(text: str) -> str:
    """Write a text as a cell of a table in Markdown."""
    return show_path(" ".join(text.split())).replace("\\", "\\\\").replace("|", "\\|")


def check_origin(run: WaitingRun, root: Path) -> None:
    """Make sure that outputs of another machine belong to the commit that is checked out.

    Raises:
        BaselineError: they come from another commit.
    """
    head = read_checkout(root).commit
    known = (run.origin.commit, *run.origin.parents)
    if head is not None and run.origin.commit is not None and head not in known:
        raise BaselineError(
            f"the outputs of {run.project} come from commit {run.origin.commit[:_SHORT]}, and {head[:_SHORT]} is checked out here: "
            f"check out the commit that CI ran, then accept them"
        )


@contextmanager
def open_artifact(place: Path) -> Iterator[WaitingFolder]:
    """Yield the waiting outputs in an artifact of CI: a folder, or the downloaded zip file.

    Raises:
        BaselineError: it is neither, or nothing waits in it.
    """
    with TemporaryDirectory(prefix="golden-waiting-") as name:
        folder = place if place.is_dir() else _unpack(place, Path(name))
        candidates = (folder, folder / WAITING_FOLDER, folder / STATE_FOLDER / WAITING_FOLDER)
        found = next((one for one in candidates if WaitingFolder(one).list_projects()), None)
        if found is None:
            raise BaselineError(f"{place} holds no outputs that wait: it has no PROJECT/{RECORD_NAME}")
        yield WaitingFolder(found)


def _unpack(place: Path, folder: Path) -> Path:
    """Extract only those files from a zip file that can belong to a waiting project."""
    try:
        with ZipFile(place) as packed:
            for member in packed.infolist():
                *_, project, name = ("", "", *member.filename.split("/"))
                if project in {"", ".", ".."} or not (name == RECORD_NAME or COPY_NAME.fullmatch(name)):
                    continue
                if member.file_size > MOST_BYTES:
                    raise BaselineError(
                        f"{place} holds {member.filename}, which is larger than any that the gate keeps"
                    )
                target = folder / project
                target.mkdir(exist_ok=True)
                with packed.open(member) as source, (target / name).open("wb") as file:
                    copyfileobj(source, file)
    except (OSError, EOFError, ValueError, RuntimeError, BadZipFile, zlib.error, lzma.LZMAError) as error:
        raise BaselineError(f"{place} is neither a folder nor a zip file that can be read: {error}") from None
    return folder
