"""Which changed files no project claims, so that any project that does not say what it reads may read them. Pure text.

A pipeline sees the whole workspace. A file in the folder of another project, or one that somebody's `depends_on` names, is
known to be of someone; a file that is for people only is read by nobody. Of the rest nobody knows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pytest_golden.gate.changed.paths import find_beginning
from pytest_golden.regression.unexpected import is_named

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from pytest_golden.gate.changed.paths import PathIndex
    from pytest_golden.gate.changed.places import InputPlaces

_FOR_PEOPLE = re.compile(
    r"(?:docs?|\.github|\.gitlab|\.vscode|\.idea)/.*|(?:.*/)?(?:[^/]*\.(?:md|rst|adoc)|(?:README|CHANGELOG|LICENSE|NOTICE|AUTHORS"
    r"|CODEOWNERS)(?:\.[^/]*)?|\.gitignore|\.editorconfig|\.pre-commit-config\.yaml|\.gitlab-ci\.yml|mkdocs\.yml)",
    re.DOTALL,
)


class Claims:
    """What all projects of a manifest claim together.

    `kept` are further places that are nobody's input, such as the manifest, which is compared by its entries.
    """

    def __init__(self, everyone: Collection[InputPlaces], kept: Iterable[str] = ()) -> None:
        folders = {places.folder for places in everyone if places.folder is not None}
        # A folder that holds those of others is no claim to what else is in it.
        holding = {above for folder in folders for above in _list_above(folder)}
        self._places = {*(folders - holding), *kept}
        self._patterns: dict[str, set[str]] = {}
        for pattern in {pattern for places in everyone for pattern in places.patterns}:
            self._patterns.setdefault(find_beginning(pattern), set()).add(pattern)
        self._known: dict[int, tuple[PathIndex, str | None]] = {}

    def find_unclaimed(self, index: PathIndex) -> str | None:
        """Give the first path that nobody claims; each index is looked through once."""
        if id(index) not in self._known:
            # The index is kept too, since an id may be given again.
            self._known[id(index)] = index, next(iter(self.leave_unclaimed(index.paths)), None)
        return self._known[id(index)][1]

    def leave_unclaimed(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Give the paths that nobody claims."""
        return tuple(path for path in paths if not self._is_claimed(path))

    def _is_claimed(self, path: str) -> bool:
        if _FOR_PEOPLE.fullmatch(path):
            return True
        return any(place in self._places or self._is_named(path, place) for place in (path, *_list_above(path)))

    def _is_named(self, path: str, beginning: str) -> bool:
        return any(is_named(path, pattern) for pattern in self._patterns.get(beginning, ()))


def _list_above(path: str) -> Iterator[str]:
    """Give the folders that hold a path, the root's place last."""
    place = path.rstrip("/")
    while place:
        place = place.rpartition("/")[0]
        yield place
