"""What a manifest declares, as frozen values. No file is read here; see `reader.py` and `inline.py`."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, field
from datetime import date  # noqa: TC003 - pydantic resolves it at run time
from enum import StrEnum
from typing import Any, Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

_FROZEN = ConfigDict(extra="forbid", strict=False)


class ExpectedKind(StrEnum):
    """The three ways in which a golden project may be expected to end."""

    SUCCESS = "success"
    SPECIFIC_ERROR = "specific_error"
    EXIT_CODE = "exit_code"


@dataclass(frozen=True)
class ExpectedOutcome:
    """`success`, `specific_error:<regular expression>` or `exit_code:<n>`, taken apart."""

    kind: ExpectedKind
    pattern: str | None = None
    exit_code: int | None = None

    @classmethod
    def parse(cls, text: str) -> ExpectedOutcome:
        """Take the manifest's text apart.

        Raises:
            ValueError: the text is none of the three forms, the pattern is empty or no regular expression, or the
                exit code is not a whole number from 0 to 255.
        """
        raise NotImplementedError
