"""What lies between two results of a project: it asks git for the commits and files, and compares the rest as recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError
from pytest_golden.gate.checkout_changes import list_changed_files
from pytest_golden.gate.commits import list_commits
from pytest_golden.gate.declarations import compare_declarations
from pytest_golden.gate.input_changes import compare_inputs
from pytest_golden.gate.lessons.model import Difference
from pytest_golden.gate.surroundings import compare_surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.gate.lessons.model import State

_SHORT = 7


class Clone:
    """The checkout in which the gate runs. `root` is its top folder, `workspace` lies in it."""

    def __init__(self, root: Path, workspace: Path, *, longest_seconds: float) -> None:
        self.root = root
        self.longest_seconds = longest_seconds
        self._workspace = workspace

    def find_difference(self, before: State, now: State) -> Difference | None:
        """Give what is different in a later state; None where that is not known.

        It is not known outside git, where one of the two ran on edits that were not all kept, and where one of the
        commits is not in this clone.
        """
        if before.checkout.dirty is None or now.checkout.dirty is None:
            return None
        try:
            return self._compare(before, now)
        except GoldenError:
            return None

    def find_folder(self, declaration: Mapping[str, Any]) -> str:
        """Give the project's own folder relative to the root, ending with a slash; empty where that is all of it."""
        folder = declaration.get("project_dir")
        path = Path(str(folder)) if folder is not None else Path(str(declaration.get("path") or "")).parent
        place = self._workspace / path
        if not place.is_relative_to(self.root):
            return ""
        within = place.relative_to(self.root).as_posix()
        return "" if within == "." else f"{within}/"

    def _compare(self, before: State, now: State) -> Difference:
        then, present = before.checkout, now.checkout
        files = list_changed_files(self.root, then, present, longest_seconds=self.longest_seconds)
        folder = self.find_folder(now.declaration)
        edits = present.dirty_files or {}
        told = {*files, *(then.dirty_files or ()), *edits}
        difference = Difference(
            files=files,
            inside=tuple(file for file in files if file.startswith(folder)),
            edited=tuple(file for file in files if file in edits),
            blobs={file: edits[file] for file in files if file in edits},
            declaration=compare_declarations(before.declaration, now.declaration),
            surroundings=compare_surroundings(before.surroundings, now.surroundings, venv=now.declaration.get("venv")),
            inputs=compare_inputs(before.inputs, now.inputs, told),
        )
        if then.commit is None or present.commit is None or then.commit == present.commit:
            return difference
        return self._add_commits(difference, then.commit, present.commit, folder)

    def _add_commits(self, difference: Difference, before: str, now: str, folder: str) -> Difference:
        seconds = self.longest_seconds
        came = list_commits(self.root, before, now, longest_seconds=seconds)
        own = came
        if len(came) > 1 and folder:
            within = str(PurePosixPath(folder))
            own = list_commits(self.root, before, now, within=within, longest_seconds=seconds) or came
        return replace(
            difference,
            commit_range=f"{before[:_SHORT]}..{now[:_SHORT]}",
            commits=own,
            commit_count=len(came),
            lost_count=len(list_commits(self.root, now, before, longest_seconds=seconds)),
        )
