"""The secrets that the attempts of an agent were called with, taken out wherever an error repeats them. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pytest_golden.learning.limits import thaw
from pytest_golden.redaction import Redactor, literals_in_file

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pytest_golden.learning.lessons.model import Attempt


def make_redactor(attempts: Iterable[Attempt]) -> Redactor:
    """Give a redactor that knows the values of all secret-named arguments, at any depth."""
    found = (literals_in_file(json.dumps(thaw(one.arguments))) for one in attempts if one.arguments)
    return Redactor(tuple(dict.fromkeys(literal for literals in found for literal in literals)))
