"""How often a project failed in the same way, and when it passed again: one tally for each signature and project. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pytest_golden.learning.draft import MemoryDraft
from pytest_golden.learning.results.model import Occasion
from pytest_golden.learning.signature import cause_of, digest_signature, error_signature
from pytest_golden.learning.words import add_words
from pytest_golden.storage.text import storable

if TYPE_CHECKING:
    from collections.abc import Mapping

TALLIES = ("signatures", "golden")
_MOST_OF_MESSAGE, _MOST_WORDS = 500, 2_000


@dataclass(frozen=True, slots=True)
class Tally:
    """What is known of one way in which one project fails. `fixed` is the first pass after the failure before the last."""

    signature: str
    project: str
    message: str
    count: int
    first: Occasion
    last: Occasion
    fixed: Occasion | None = None
    words: str = ""

    @property
    def key(self) -> str:
        """The key of its memory: all projects with one signature stand beside each other."""
        return f"{digest_signature(self.signature)}/{self.project}"

    @classmethod
    def begin(cls, message: str, project: str, occasion: Occasion) -> Tally:
        """Count a failure as the first of its kind."""
        cause = cause_of(message)
        told = cause[:_MOST_OF_MESSAGE]
        words = storable(add_words(project, told, _MOST_WORDS))
        return cls(error_signature(cause), project, told, 1, occasion, occasion, words=words)

    def count_on(self, later: Tally, fixed: Occasion | None) -> Tally:
        """Add a later failure of the same kind; `fixed` is the first pass after this tally's last one, if there was one.

        One that was learned of late, as after stores were merged, is counted and leaves what came after it.
        """
        newest = self if later.last.at < self.last.at else later
        return replace(
            newest,
            count=self.count + later.count,
            first=min(self.first, later.first, key=lambda occasion: occasion.at),
            fixed=fixed or self.fixed,
            words=add_words(self.words, later.words, _MOST_WORDS),
        )

    def to_draft(self) -> MemoryDraft:
        """Give it as a memory to store."""
        value = {
            "signature": self.signature,
            "project": self.project,
            "message": self.message,
            "count": self.count,
            "first": self.first.to_dict(),
            "last": self.last.to_dict(),
            "fixed": None if self.fixed is None else self.fixed.to_dict(),
            "words": self.words,
        }
        return MemoryDraft(TALLIES, self.key, value, ("signature",), None, self.words)

    @classmethod
    def from_value(cls, value: Mapping[str, Any]) -> Tally:
        """Read back what `to_draft` stores."""
        fixed = value["fixed"]
        return cls(
            value["signature"],
            value["project"],
            value["message"],
            value["count"],
            Occasion.from_dict(value["first"]),
            Occasion.from_dict(value["last"]),
            None if fixed is None else Occasion.from_dict(fixed),
            value["words"],
        )
