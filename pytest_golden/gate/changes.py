"""What changed between a project's last pass and its present failure: git, manifest, versions, inputs, where the run parted."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pytest_golden.clock import iso_utc
from pytest_golden.gate.checkout import Checkout
from pytest_golden.gate.checkout_changes import CheckoutChanges, changes_between, count_commits
from pytest_golden.gate.declarations import compare_declarations
from pytest_golden.gate.input_changes import RunInputs, compare_inputs
from pytest_golden.gate.surroundings import compare_surroundings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from pytest_golden.gate.past import PastPass

_NO_CHECKOUT = "no checkout here, so the project's files are told as inputs"


@dataclass(frozen=True, slots=True)
class ChangedSincePass:
    """The last pass, and what is different now. `parted` says where the trajectory parted from that of the pass.

    `dirty` tells that it passed on edits that were not committed. Where it failed at an earlier commit already,
    `checkout` goes up to the first such one alone, and `later_commit_count` counts the commits since; else that is None.
    `inputs` are those that git does not hold; none, too, where nobody has looked at them.
    """

    passed_at: datetime
    run_id: str
    commit: str | None
    checkout: CheckoutChanges
    declaration: tuple[str, ...] = ()
    surroundings: tuple[str, ...] = ()
    parted: str | None = None
    dirty: bool = False
    later_commit_count: int | None = None
    inputs: tuple[str, ...] = ()
    is_input_known: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values."""
        return {
            "passed_at": iso_utc(self.passed_at),
            "run_id": self.run_id,
            "commit": self.commit,
            "dirty": self.dirty,
            "checkout": self.checkout.to_dict(),
            "later_commit_count": self.later_commit_count,
            "declaration": list(self.declaration),
            "surroundings": list(self.surroundings),
            "inputs": list(self.inputs),
            "parted": self.parted,
        }


@dataclass(frozen=True, slots=True)
class Present:
    """What the present run of a project runs in: to be compared with its last pass.

    `folder` lies in the checkout, `within` is the project's own folder, absolute. `declaration` and `inputs` are redacted.
    """

    folder: Path
    checkout: Checkout
    declaration: Mapping[str, Any]
    surroundings: Mapping[str, Any]
    within: Path | None = None
    inputs: RunInputs = field(default_factory=RunInputs)


def find_changes(past: PastPass, present: Present, parted: str | None = None) -> ChangedSincePass:
    """Compare the present with the last pass; `parted` is what `describe_parting` says of the two trajectories."""
    result = past.result
    checkout, later_commit_count = _compare_checkouts(past, present)
    is_input_known = past.inputs.is_known and present.inputs.is_known
    if is_input_known and present.checkout.root is None:
        checkout = replace(checkout, note=_NO_CHECKOUT)
    return ChangedSincePass(
        passed_at=result.created_at,
        run_id=result.run_id,
        commit=result.commit,
        checkout=checkout,
        declaration=compare_declarations(past.declaration, present.declaration),
        surroundings=compare_surroundings(
            past.surroundings, present.surroundings, venv=present.declaration.get("venv")
        ),
        parted=parted,
        dirty=result.dirty is True,
        later_commit_count=later_commit_count,
        inputs=tuple(map(str, compare_inputs(past.inputs, present.inputs, checkout.files))),
        is_input_known=is_input_known,
    )


def _compare_checkouts(past: PastPass, present: Present) -> tuple[CheckoutChanges, int | None]:
    """Compare up to the first failure where its commit is another one than both ends, else up to now."""
    result, first = past.result, past.first_failure
    before = Checkout(result.commit, result.branch, result.dirty, past.dirty_files)
    if first is not None and first.commit is not None and result.commit is not None:
        later = _count_later(first.commit, {result.commit}, present)
        if later is not None:
            broken = Checkout(first.commit, first.branch, first.dirty, first.dirty_files, root=present.checkout.root)
            checkout = changes_between(present.folder, before, broken, present.within)
            if checkout.is_known:
                return checkout, later
    return changes_between(present.folder, before, present.checkout, present.within), None


def _count_later(first: str, same: set[str], present: Present) -> int | None:
    now = present.checkout.commit
    return None if now is None or first in {now, *same} else count_commits(present.folder, first, now)
