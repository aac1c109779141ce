"""The written-down lists: every secret is hidden and every innocent stays, wherever they stand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_golden.redaction.redactor import redact
from tests.redaction.samples import Innocent, Secret, read_innocents, read_secrets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECRETS = read_secrets()
INNOCENTS = read_innocents()
# As much of a secret in one piece tells enough of it.
TELLING = 8
LOG = "2026-01-01 12:00:00,123 INFO  [main] loaded 1,204 rows from sales into bronze in 3.2 s"

TEXT_FRAMES: dict[str, Callable[[str], Any]] = {
    "alone": lambda text: text,
    "between lines": lambda text: f"{LOG}\n{text}\n{LOG}\n",
    "between lines of Windows": lambda text: "\r\n".join((LOG, *text.split("\n"), LOG)),
    "after a log's prefix": lambda text: f"2026-01-01 12:00:00,123 INFO  [main] {text}",
    "in the middle of a long text": lambda text: f"{LOG * 50} {text} {LOG * 50}",
    "in colour": lambda text: f"\x1b[31m{text}\x1b[0m",
    "indented": lambda text: "log: |\n    " + text.replace("\n", "\n    ") + "\nport: 1",
    "between tabs": lambda text: f"1\t{text}\tx",
    "in JSON": lambda text: json.dumps({"log": text, "n": 1}),
    "in indented JSON": lambda text: json.dumps({"steps": [{"log": text}]}, indent=2, ensure_ascii=False),
    "in JSON between lines": lambda text: json.dumps({"log": f"{LOG}\n{text}\n{LOG}"}),
    "in JSON in JSON": lambda text: json.dumps({"body": json.dumps({"log": text})}),
    "in JSON Lines": lambda text: json.dumps({"log": text}) + "\n" + json.dumps({"n": 2}) + "\n",
    "as Python writes it": lambda text: f"AssertionError: {text!r}",
    "as bytes": lambda text: text.encode(),
    "nested": lambda text: {"steps": [{"output": [text]}, ("x", text)]},
}
VALUE_FRAMES: dict[str, Callable[[Any], Any]] = {
    "alone": lambda value: value,
    "in JSON": json.dumps,
    "in indented JSON": lambda value: json.dumps(value, indent=2),
    "as Python writes it": repr,
    "nested": lambda value: {"steps": [{"output": value}]},
}


def _frames(value: Any) -> Iterator[tuple[str, Any]]:
    frames = TEXT_FRAMES if isinstance(value, str) else VALUE_FRAMES
    for name, frame in frames.items():
        yield name, frame(value)


def _show(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _pieces(secret: str) -> Iterator[str]:
    for line in secret.replace("\\n", "\n").split("\n"):
        length = min(TELLING, len(line))
        yield from (line[start : start + length] for start in range(len(line) - length + 1) if length)


def test_the_lists_are_long_enough() -> None:
    assert len(SECRETS) >= 60
    assert len(INNOCENTS) >= 60
    for kinds in ([sample.kind for sample in SECRETS], [sample.kind for sample in INNOCENTS]):
        assert len(kinds) == len(set(kinds))


@pytest.mark.parametrize("sample", SECRETS, ids=lambda sample: sample.kind)
def test_nothing_of_a_secret_is_left_wherever_it_stands(sample: Secret) -> None:
    for frame, framed in _frames(sample.value):
        redacted = redact(framed)
        shown = _show(redacted)
        assert [piece for piece in _pieces(sample.secret) if piece in shown] == [], frame
        assert type(redacted) is type(framed), frame
        assert redact(redacted) == redacted, frame
        if isinstance(framed, str) and "JSON" in frame:
            for line in shown.splitlines() if frame == "in JSON Lines" else [shown]:
                json.loads(line)


@pytest.mark.parametrize("sample", SECRETS, ids=lambda sample: sample.kind)
def test_what_stands_around_a_secret_stays(sample: Secret) -> None:
    shown = _show(redact(sample.value))
    for kept in sample.keeps:
        assert kept in shown


@pytest.mark.parametrize("sample", INNOCENTS, ids=lambda sample: sample.kind)
def test_an_innocent_stays_to_the_letter(sample: Innocent) -> None:
    for frame, framed in _frames(sample.value):
        assert redact(framed) == framed, frame


def test_all_secrets_in_one_text_are_hidden() -> None:
    texts = [sample for sample in SECRETS if isinstance(sample.value, str)]
    shown = redact("\n\n".join(sample.value for sample in texts))
    for sample in texts:
        assert [piece for piece in _pieces(sample.secret) if piece in shown] == [], sample.kind


ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from([*(sample.value for sample in SECRETS), *(sample.value for sample in INNOCENTS)])
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["password", "rows", "_auth"]), inner),
    max_leaves=6,
)


def _without_texts(value: Any) -> Any:
    """Return the value's bones: its containers, numbers and other things, and where a text was."""
    if isinstance(value, dict):
        return [_without_texts(item) for item in value.values()]
    if isinstance(value, list):
        return [_without_texts(item) for item in value]
    return "text" if isinstance(value, str) else value


@given(VALUES)
def test_numbers_and_structure_are_untouched_and_twice_is_once(value: Any) -> None:
    once = redact(value)
    assert _without_texts(once) == _without_texts(value)
    assert redact(once) == once


@given(st.lists(st.sampled_from([sample.value for sample in SECRETS if isinstance(sample.value, str)]), max_size=4))
@settings(max_examples=60)
def test_json_of_secrets_stays_json(texts: list[str]) -> None:
    text = json.dumps({"log": "\n".join(texts), "count": len(texts), "rows": [1.5, 1e300, None]})
    redacted = json.loads(redact(text))
    assert redacted["count"] == len(texts)
    assert redacted["rows"] == [1.5, 1e300, None]
