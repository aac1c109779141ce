"""What `--golden-changed` came to: which projects are left out, and why the others run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pytest_golden.manifest.model import GoldenProjectConfig


@dataclass(frozen=True, slots=True)
class Selection:
    """The projects that are left out as unchanged since `ref`; `why` says of each other one why it runs.

    `commit` is where this branch left the ref, None outside git. `forewarnings` are lines of what these changes broke before.
    """

    ref: str
    commit: str | None = None
    left_out: frozenset[str] = frozenset()
    why: Mapping[str, str] = field(default_factory=dict)
    forewarnings: tuple[str, ...] = ()

    def make_result(self, project: GoldenProjectConfig) -> GoldenProjectResult | None:
        """Give the result of a project that is left out; None for one that runs."""
        if project.name not in self.left_out:
            return None
        reason = Reason(ReasonKind.UNCHANGED, f"unchanged since {self.ref}")
        return GoldenProjectResult(
            name=project.name,
            path=str(project.path),
            status=ResultStatus.SKIPPED,
            error_message=reason.message,
            reasons=(reason,),
            attempts=0,
        )

    def to_dict(self) -> dict[str, Any]:
        """Give JSON-safe values, for the process that runs the projects."""
        return {"ref": self.ref, "commit": self.commit, "left_out": sorted(self.left_out)}

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Selection:
        """Read back what `to_dict` gave."""
        return cls(str(mapping["ref"]), mapping["commit"], frozenset(mapping["left_out"]))
