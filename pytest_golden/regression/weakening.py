"""What a weakened floor is made of: values. What weakens it is found in `floor.py` and `output_floor.py`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class WeakeningKind(StrEnum):
    """In what way the floor is weaker."""

    PROJECT_GONE = "project_gone"
    NOT_RUN = "not_run"
    REQUIREMENT = "requirement"
    EXPECTATION = "expectation"
    OUTPUT = "output"
    TOLERANCE = "tolerance"
    BASELINE = "baseline"
    LIMIT = "limit"
    RETRIES = "retries"
    SKIP_IF_MISSING = "skip_if_missing"
    NETWORK = "network"
    MOUNTS = "mounts"
    QUARANTINE = "quarantine"
    UNEXPECTED_FILES = "unexpected_files"
    COMMAND = "command"
    ARGS = "args"
    RUNNER = "runner"
    PATH = "path"
    PROJECT_DIR = "project_dir"
    ENVIRONMENT = "environment"
    DEPENDS_ON = "depends_on"


@dataclass(frozen=True, slots=True)
class Weakening:
    """One way in which the floor is weaker; `project` is None where the whole manifest is. `base` and `head` are text."""

    project: str | None
    kind: WeakeningKind
    message: str
    base: str | None = None
    head: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the same as JSON-safe text."""
        return {
            "project": self.project,
            "kind": str(self.kind),
            "message": self.message,
            "base": self.base,
            "head": self.head,
        }


@dataclass(frozen=True, slots=True)
class ChangedBaseline:
    """An accepted output of a project that is another one than at the base, or is gone.

    `path` is below its folder, empty where that folder as a whole is meant.
    """

    project: str
    path: str
    is_gone: bool = False
