"""Which scratch, view and seal a project gets on this machine, found out once a session and kept.

Looks and decides; runs nothing but the probe.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import GatewayError, SettingsError
from pytest_golden.gateway.model import GatewayAbilities, Problem
from pytest_golden.gateway.probe import Probe, probe
from pytest_golden.gateway.resolution import ProjectUnusableError
from pytest_golden.gateway.scratch import Scratch, list_places
from pytest_golden.gateway.visibility import find_git_folders, is_below

if TYPE_CHECKING:
    from collections.abc import Iterable

VIEWS = ("auto", "overlay", "copy")
_LIMITS = ("timeout", "memory_limit", "cpu_limit", "no process left behind")


@dataclass(frozen=True, slots=True)
class Place:
    """A scratch folder and what works with it."""

    scratch: Scratch
    probe: Probe


class Machine:
    """The places for scratch on this machine, probed when they are first needed."""

    def __init__(self, view: str, roots: Iterable[Path]) -> None:
        if view not in VIEWS:
            raise SettingsError(f"unknown view {view!r}; choose one of {', '.join(VIEWS)}")
        self.view = view
        self._roots = tuple(roots)
        self._candidates = list_places()
        self._places: dict[Path, Place] = {}

    def choose_place(self, project_dir: Path) -> Place:
        """Give the best place outside a project's folder.

        Raises:
            ProjectUnusableError: the project's folder holds every place there is.
            GatewayError: scratch can be made nowhere.
        """
        fallback: Place | None = None
        trouble: GatewayError | None = None
        for folder in self._candidates:
            if is_below(str(folder), str(project_dir)):
                continue
            try:
                place = self._open(folder)
            except GatewayError as error:
                trouble = error
                continue
            if place.probe.overlay or self.view == "copy" or place.probe.seal is None:
                return place
            fallback = fallback or place
        if fallback is not None:
            return fallback
        if trouble is not None:
            raise trouble
        raise ProjectUnusableError(
            Problem.PATH_NOT_ALLOWED,
            f"project_dir {project_dir} holds every folder that scratch could lie in; set TMPDIR to one outside it",
        )

    def uses_overlay(self, place: Place, project_dir: Path) -> bool:
        """Tell whether a project gets an overlay there.

        Inside a user namespace a folder of another user cannot be written, not even by root; its private copy can.

        Raises:
            ProjectUnusableError: an overlay is demanded and does not work here.
        """
        if self.view == "overlay" and not place.probe.overlay:
            reason = place.probe.overlay_reason or place.probe.seal_reason
            raise ProjectUnusableError(
                Problem.SANDBOX_UNAVAILABLE,
                f"--golden-sandbox=overlay is demanded and does not work here ({reason}); {place.probe.advice}",
            )
        if self.view == "copy" or not place.probe.overlay:
            return False
        return self.view == "overlay" or project_dir.stat().st_uid == os.getuid()

    def describe(self) -> GatewayAbilities:
        """Say what is used for a project that lies anywhere but in scratch."""
        place = self.choose_place(Path(os.devnull))
        found = place.probe
        overlay = found.overlay and self.view != "copy"
        return GatewayAbilities(
            view="overlay" if overlay else "copy",
            seal="namespaces" if found.seal else "none",
            limits=_LIMITS,
            scratch=str(place.scratch.root.parent),
            view_reason=self._explain_view(found),
            seal_reason="" if found.seal else f"pipelines are not sealed: {found.seal_reason}",
            advice="" if self.view == "copy" and found.seal else found.advice,
        )

    def close(self) -> None:
        """Remove all scratch."""
        for place in self._places.values():
            place.scratch.close()
        self._places.clear()

    def _explain_view(self, found: Probe) -> str:
        if self.view == "copy":
            return "a copy was asked for"
        return "" if found.overlay else f"an overlay does not work here: {found.overlay_reason or found.seal_reason}"

    def _open(self, folder: Path) -> Place:
        if folder not in self._places:
            scratch = Scratch(folder)
            visible = [str(root) for root in self._roots]
            visible += [path for root in self._roots for path in find_git_folders(root)]
            self._places[folder] = Place(scratch, probe(scratch.root, visible))
        return self._places[folder]
