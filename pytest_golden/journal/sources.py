"""Who speaks in a signal: the sources that mean something here, and which of them an outsider may not use."""

from __future__ import annotations

import unicodedata

from pytest_golden.manifest.unquoted import show
from pytest_golden.trajectory.vocabulary import check_text

HUMAN = "human"
GITHUB = "github"
#: What a scheduled check has found out.
CHECK = "check"
#: Sources whose word weighs more, or that only this program can know: no agent and no callback may speak as one of them.
RESERVED_SOURCES = frozenset({HUMAN, GITHUB, CHECK, "golden", "system"})


def check_free_source(source: object) -> str:
    """Give the source back when anybody may speak as it; letter case, spaces and invisible characters hide no name.

    Raises:
        ValueError: it is reserved, blank or no text.
    """
    checked = check_text("source", source)
    seen = "".join(letter for letter in unicodedata.normalize("NFKC", checked) if letter.isprintable())
    if "".join(seen.split()).casefold() in RESERVED_SOURCES:
        raise ValueError(
            f"source {show(checked)} is reserved: {', '.join(sorted(RESERVED_SOURCES))} cannot be spoken for; use a name of your own"
        )
    return checked
