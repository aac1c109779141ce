"""A dict and a list that refuse to be written, equal to the plain ones, for values that are kept; and sets of words.

Only the container itself is frozen; what freezes all that is in it is `trajectory/vocabulary.py`.
"""

from __future__ import annotations

from typing import Any, NoReturn


def _refuse(self: object, *_args: object, **_kwargs: object) -> NoReturn:
    raise TypeError(f"a kept {type(self).__mro__[1].__name__} cannot be written; make a copy and write that")


class FrozenDict(dict[Any, Any]):
    """A dict that cannot be written after it is made."""

    __slots__ = ()
    __setitem__ = __delitem__ = clear = pop = popitem = setdefault = update = _refuse
    __ior__ = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (), dict(self)

    def __setstate__(self, items: dict[Any, Any]) -> None:
        """Fill a new copy, which may be part of a cycle; pickle and copy call it."""
        if self:
            _refuse(self)
        dict.update(self, items)


class FrozenList(list[Any]):
    """A list that cannot be written after it is made."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (), list(self)

    def __setstate__(self, items: list[Any]) -> None:
        """Fill a new copy, which may be part of a cycle; pickle and copy call it."""
        if self:
            _refuse(self)
        list.extend(self, items)


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())
