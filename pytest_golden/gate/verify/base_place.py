"""Where the base's gates run: a worktree and its environment. Loaded only when the base is run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_golden.gate.verify.environment import BaseEnvironment, find_setup_seconds
from pytest_golden.gate.verify.gates import use_store
from pytest_golden.gate.verify.missing_inputs import Workspaces, find_missing_inputs
from pytest_golden.gate.verify.spooled import keep_spooled
from pytest_golden.gate.verify.worktree import BaseWorktree
from pytest_golden.manifest import load_manifest
from pytest_golden.settings import NO_STORE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    from pytest_golden.gate.verify.gates import GatePlace
    from pytest_golden.gate.verify.model import VerificationRequest
    from pytest_golden.regression.model import GoldenProjectResult


class BasePlace:
    """A worktree of the base, ready to be run. `gate` is where its gates run, `gaps` what the worktree lacks.

    `manifest` is its path in the checkout; `location` is the store, None for none. `held` removes the worktree when it
    ends, also when this could not be made.

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
        """Move what the store did not take of the gates here to the head's workspace; say what is lost instead."""
        return keep_spooled(self.gate.manifest, self._store, workspace_root)

    def find_missing(self, head_root: Path, failed: Iterable[GoldenProjectResult]) -> dict[str, str]:
        """Give, for each of these results whose project lacks an ignored file here, a sentence that names it."""
        base = load_manifest(self.gate.manifest)
        return find_missing_inputs(Workspaces(head_root, base.workspace_root), base.projects, failed)


def _say_store(place: GatePlace, location: str | Path | None, private: Path) -> GatePlace:
    store = NO_STORE if location is None else str(location)
    # What is learned from it is the head's business: the worktree will be gone.
    # By variables, which an older version at the base does not mind: its configuration may name the head's reports.
    reports = {f"GOLDEN_{kind.upper()}": str(private / f"aside.{kind}") for kind in ("junit", "html")}
    quiet = replace(place, environment={**place.environment, **reports}, options=("--golden-learning=off",))
    return use_store(quiet, store)
