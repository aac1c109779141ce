"""How a golden project is expected to end, taken apart. Whether it did is judged elsewhere."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

_FORMS = "success, specific_error:<regular expression> or exit_code:<n>"


class ExpectedKind(StrEnum):
    """The three ways in which a golden project may be expected to end."""

    SUCCESS = "success"
    SPECIFIC_ERROR = "specific_error"
    EXIT_CODE = "exit_code"


@dataclass(frozen=True, slots=True)
class ExpectedOutcome:
    """`success`, `specific_error:<regular expression>` or `exit_code:<n>`, taken apart."""

    kind: ExpectedKind
    pattern: str | None = None
    exit_code: int | None = None

    @classmethod
    def parse(cls, text: str) -> ExpectedOutcome:
        """Take the manifest's text apart. Blanks right after the colon do not count.

        Raises:
            ValueError: the text is none of the three forms, the pattern is empty or no regular expression, or the
                exit code is not a whole number from 0 to 255.
        """
        return _parse(str(text))

    def __str__(self) -> str:
        """Return the manifest's text back."""
        if self.kind is ExpectedKind.SPECIFIC_ERROR:
            return f"{self.kind}:{self.pattern}"
        return f"{self.kind}:{self.exit_code}" if self.kind is ExpectedKind.EXIT_CODE else str(self.kind)


@lru_cache(maxsize=1024)
def _parse(text: str) -> ExpectedOutcome:
    kind, colon, rest = text.partition(":")
    if text == ExpectedKind.SUCCESS:
        return ExpectedOutcome(ExpectedKind.SUCCESS)
    if colon and kind == ExpectedKind.SPECIFIC_ERROR:
        return ExpectedOutcome(ExpectedKind.SPECIFIC_ERROR, pattern=_check_pattern(rest.lstrip()))
    if colon and kind == ExpectedKind.EXIT_CODE:
        return ExpectedOutcome(ExpectedKind.EXIT_CODE, exit_code=_read_exit_code(rest.strip()))
    message = f"{text[:60]!r} is not an expected outcome; write {_FORMS}"
    raise ValueError(message)


def _check_pattern(pattern: str) -> str:
    if not pattern:
        message = "specific_error: has no pattern; write a regular expression that the error must match"
        raise ValueError(message)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        message = (
            f"{pattern[:60]!r} is not a regular expression: {error}; put a backslash before what is meant literally"
        )
        raise ValueError(message) from None
    return pattern


def _read_exit_code(digits: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", digits) or int(digits) > 255:
        message = f"exit_code:{digits[:20]} is not an exit code; write a whole number from 0 to 255"
        raise ValueError(message)
    return int(digits)
