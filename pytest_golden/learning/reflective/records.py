"""The form of a reflective record: what went in, what came out, and what was wrong with it. Pure.

What a pipeline or an agent said stands in a record as data between marks: a record is put into a prompt as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pytest_golden.errors import GoldenError
from pytest_golden.learning.language_model.prompting import write_data
from pytest_golden.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_MOST_OF_BLOCK = 4_000
# GEPA fences all records by this, and a record must not end the fence.
_FENCE, _NO_FENCE = "```", "'''"


def make_record(
    inputs: Mapping[str, str | None],
    outputs: Mapping[str, object],
    verdict: str,
    findings: Mapping[str, object],
) -> dict[str, Any]:
    """Give a record with `Inputs`, `Generated Outputs` and `Feedback`, redacted; what is None or empty is left out.

    Args:
        inputs: what the component was used for, in our own words or the manifest's.
        outputs: what came of it, in the words of a pipeline or an agent.
        verdict: what is thought of it, in our own words.
        findings: what the verdict goes by, in the words of a pipeline or an agent.
    """
    feedback = [verdict, _quote(findings)]
    record: dict[str, Any] = {
        "Inputs": {name: _unfence(text) for name, text in inputs.items() if text},
        "Generated Outputs": _quote(outputs) or "nothing",
        "Feedback": "\n\n".join(part for part in feedback if part),
    }
    redacted: dict[str, Any] = redact(record)
    return redacted


def check_names(components: object) -> tuple[str, ...]:
    """Give the names of components, of a mapping or a sequence.

    Raises:
        GoldenError: there are none, or one is no plain text or stands there twice.
    """
    names = _list_names(components)
    if not names:
        raise GoldenError("no components: name at least one text that is to be improved")
    for name in names:
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise GoldenError(f"{name!r:.100} is no name of a component: give a line of text")
    if len(set(names)) < len(names):
        raise GoldenError(f"a component is named twice: {', '.join(names)}")
    return names


def _list_names(components: Any) -> tuple[str, ...]:
    if isinstance(components, (str, bytes)):
        raise GoldenError(f"components must be a mapping or a list of names, not the text {components!r:.100}")
    try:
        return tuple(components)
    except TypeError:
        raise GoldenError(f"components must be a mapping or a list of names, not {components!r:.100}") from None


def _quote(said: Mapping[str, object]) -> str:
    blocks = {title: _unfence(value) for title, value in said.items() if value is not None and value != ""}
    return write_data(blocks, most_of_block=_MOST_OF_BLOCK)


def _unfence(value: object) -> object:
    return value.replace(_FENCE, _NO_FENCE) if isinstance(value, str) else value


def join_lines(lines: Iterable[object]) -> str:
    """Give one line for each that says something."""
    return "\n".join(str(line) for line in lines if line)
