"""Where the base's gates run: a worktree and its environment. Loaded only when the base is run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.manifest.reader import load_manifest
from pytest_golden.settings import NO_STORE
from pytest_golden.verify.base_worktree import (
    BaseEnvironment,
    BaseWorktree,
    Workspaces,
    find_missing_inputs,
    find_setup_seconds,
)
from pytest_golden.verify.gates import use_store
from pytest_golden.verify.verification_record import keep_spooled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from pytest_golden.regression.model import GoldenProjectResult
    from pytest_golden.verify.gates import GatePlace
    from pytest_golden.verify.model import VerificationRequest


class BasePlace:
    """A worktree of the base, ready to run. `gate` is where its gates run, `gaps` what the worktree lacks.

    `manifest` is its path in the checkout; `location` is the store, None for none. `held` removes the worktree when it is
    closed, also when this constructor fails.

    Raises:
        GoldenError: the commit cannot be checked out, or its `setup:` fails.
    """

    def __init__(
        self,
        request: VerificationRequest,
        manifest: str,
        setup: Sequence[str] | None,
        *,
        location: str | Path | None,
        say: Callable[[str], None],
        held: ExitStack,
    ) -> None:
        say(f"base: checking {request.base.commit[:12]} out in a worktree")
        tree = BaseWorktree(request.checkout, request.private, request.base.commit)
        held.callback(tree.close)
        environment = BaseEnvironment(request.checkout, tree.root, request.private, request.environment)
        if setup is not None:
            say("base: running its `setup:`")
        file = tree.root / manifest
        longest = find_setup_seconds(() if setup is None else load_manifest(file).projects)
        place = environment.prepare(file, setup, longest)
        self._store = request.store
        self.gate = _say_store(place, location, request.private)
        self.gaps = tree.find_gaps()
        for gap in self.gaps:
            say(f"base: {gap}")

    def keep_spooled(self, workspace_root: Path) -> str | None:
        """Move results that the store did not take to the head's workspace; return what is lost, None if nothing is."""
        return keep_spooled(self.gate.manifest, self._store, workspace_root)

    def find_missing(self, head_root: Path, failed: Iterable[GoldenProjectResult]) -> dict[str, str]:
        """Return, by project, a sentence that names the ignored files that these failed projects lack here."""
        base = load_manifest(self.gate.manifest)
        return find_missing_inputs(Workspaces(head_root, base.workspace_root), base.projects, failed)


def _say_store(place: GatePlace, location: str | Path | None, private: Path) -> GatePlace:
    store = NO_STORE if location is None else str(location)
    # The head learns; the worktree will be gone.
    # The base's configuration may name the head's reports. Variables, unlike options, do not fail an older version there.
    reports = {f"GOLDEN_{kind.upper()}": str(private / f"aside.{kind}") for kind in ("junit", "html")}
    quiet = replace(place, environment={**place.environment, **reports}, options=("--golden-learning=off",))
    return use_store(quiet, store)
