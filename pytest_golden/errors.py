"""What can go wrong with the harness itself, one class for each party who must act.

A golden project that fails is a value (`GoldenProjectResult`), never an exception. An exception here means that the
harness could not do its job. Its message says what, where, and what to do; faces show it in one line.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class GoldenError(Exception):
    """The harness could not do its job."""


class ManifestProblem(NamedTuple):
    """One mistake in a manifest. Lines and columns count from 1; 0 where the text has none (an inline form)."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        """Return `FILE:LINE:COL: message`, the form that editors and terminals turn into a link."""
        if not self.line:
            return f"{self.file}: {self.message}"
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class ManifestError(GoldenError):
    """The manifest cannot be used. The person who wrote it must act; `problems` lists all mistakes in file order."""

    def __init__(self, problems: Iterable[ManifestProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class SettingsError(GoldenError):
    """An option, ini key or environment variable has a value that cannot be used."""


class LanguageModelError(GoldenError):
    """The language model gave nothing that can be used. It becomes a warning: nothing waits for a model."""


class GatewayError(GoldenError):
    """The execution gateway cannot be set up on this machine in the way that was demanded."""


class BaselineError(GoldenError):
    """Baselines cannot be read or written as a whole. One that is missing or differs is the project's news instead."""


class StorageTrouble(StrEnum):
    """What is wrong with a store, so that a caller can tell what may help."""

    LOCKED = "locked"
    FULL = "full"
    READ_ONLY = "read_only"
    CORRUPT = "corrupt"
    NEWER = "newer"
    OLDER = "older"
    GONE = "gone"
    UNREACHABLE = "unreachable"


class StorageError(GoldenError):
    """The store cannot be opened, read or written. The gate's verdict stays what it is."""

    def __init__(self, message: str, trouble: StorageTrouble = StorageTrouble.UNREACHABLE) -> None:
        self.trouble = trouble
        super().__init__(message)


class JournalError(GoldenError):
    """The journal has no such entry or expectation, or it is another agent's."""


class SignatureError(JournalError):
    """News from outside is not signed with the secret. Whoever sends it, or has set the secret, must act."""


class PayloadError(JournalError):
    """News from outside is signed, and yet it cannot be read or may not be said in this way."""


class PermissionDeniedError(GatewayError):
    """A request asks for more than the role may have."""
