"""What DuckDB says when a file is broken, as a sentence that goes on after the file's name. Pure but for `find_bad_line`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from pytest_golden.regression.baselines.showing import cut, show
from pytest_golden.regression.baselines.tables.model import Format

if TYPE_CHECKING:
    from pathlib import Path

_LINE = re.compile(r"CSV Error on Line: (\d+)")
_FIELDS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_PREFIX = re.compile(r"^(?:[A-Z]\w*(?: [A-Z]\w*)* Error: |Error: )+")
_FILE = re.compile(r"""(?:file )?["'][^"']*\.data["']:? ?""")
_LOOKED_AT = 5_000_000


def describe_trouble(error: Exception, form: Format, place: Path | None) -> str:
    """Say what is wrong with a file."""
    text = str(error)
    if text.startswith("Out of Memory"):
        return "cannot be compared within the memory that is granted to it: rows or columns are too large"
    if form is Format.DELIMITED:
        return _describe_delimited(text)
    if form is Format.JSON_LINES:
        return _describe_json(text, place)
    return f"is no sound {form} file: {_first_sentence(text)}"


def _describe_delimited(text: str) -> str:
    line, fields = _LINE.search(text), _FIELDS.search(text)
    where = f"line {int(line[1]):,}" if line else "a line"
    if fields:
        return f"is ragged: {where} has {_fields(int(fields[2]))}, the header has {fields[1]}"
    if "unterminated quote" in text:
        return f"is broken: {where} has a quoted field that is not closed, or goes on behind its quote"
    if "unicode" in text.lower():
        return f"is not UTF-8 in {where}"
    if "aximum line size" in text:
        return f"is no CSV that can be read: {where} is longer than 16 MiB"
    if "state machine" in text:
        return "is no sound CSV file: it ends some lines with CRLF and others with LF, or quotes are not as in RFC 4180"
    return f"is no sound CSV file: {_first_sentence(text)}"


def _fields(count: int) -> str:
    return "1 field" if count == 1 else f"{count:,} fields"


def _describe_json(text: str, place: Path | None) -> str:
    found = find_bad_line(place) if place is not None else None
    if found is not None:
        return f"is no JSON Lines file: line {found[0]:,} is {found[1]}"
    return f"is no sound JSON Lines file: {_first_sentence(text)}"


def find_bad_line(place: Path) -> tuple[int, str] | None:
    """Give number and trouble of the first line that is no JSON; DuckDB counts the lines of each of its threads."""
    with place.open("rb") as file:
        for number, line in zip(range(1, _LOOKED_AT), file, strict=False):
            try:
                if line.strip():
                    json.loads(line)
            except UnicodeDecodeError:
                return number, "not UTF-8"
            except json.JSONDecodeError as error:
                return number, f"no JSON (column {error.colno}: {error.msg})"
            except (ValueError, RecursionError):
                continue
    return None


def _first_sentence(text: str) -> str:
    """Give what DuckDB says before it advises, without the name that the file has for it."""
    said = _PREFIX.sub("", text.split("\n\n", maxsplit=1)[0].split("\nPossible", maxsplit=1)[0])
    return cut(show(_FILE.sub("", said).strip().replace("\n", "; ")), 200)
