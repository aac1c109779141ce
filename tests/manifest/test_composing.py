from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.manifest import composing
from pytest_golden.manifest.composing import Document, UnusableTextError
from pytest_golden.manifest.kinds import UNREADABLE
from pytest_golden.manifest.units import bare

if TYPE_CHECKING:
    from collections.abc import Callable

    Compose = Callable[[str], Document]


@pytest.fixture(scope="module", params=[yaml.CSafeLoader, yaml.SafeLoader], ids=["libyaml", "pure"])
def compose(request: pytest.FixtureRequest) -> Compose:
    """Read with each of PyYAML's two parsers."""
    return partial(composing.compose, parser=request.param)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else bare(value)


def _mistakes(compose: Compose, text: str) -> list[tuple[int, int, str]]:
    try:
        mistakes = compose(text).mistakes
    except UnusableTextError as error:
        mistakes = error.mistakes
    return [(*mistake.spot, mistake.message) for mistake in mistakes]


@pytest.mark.parametrize("opened", ["[", "{a: "])
def test_nesting_beyond_the_limit_of_the_parser_is_refused_in_the_same_words(compose: Compose, opened: str) -> None:
    [(line, _, message)] = _mistakes(compose, opened * 200_000)
    assert line == 1
    assert "nested more than 50 levels deep" in message


def _bomb(levels: int) -> str:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, levels)]
    return "\n".join(lines)


def test_values_are_plain_and_blocks_keep_their_text(compose: Compose) -> None:
    document = compose("a: 1\nb: [x, 'no', no]\nc: |\n  one\n  two\nd: {e: 1.5}\n")
    assert _plain(document.value) == {"a": 1, "b": ["x", "no", False], "c": "one\ntwo\n", "d": {"e": 1.5}}
    assert document.mistakes == ()


def test_places_of_keys_and_values_are_found(compose: Compose) -> None:
    document = compose("é: {x: [ü, b]}\nc:\n  - d: 1\n")
    assert document.find_spot(("é", "x", 1)) == (1, 12)
    assert document.find_spot(("é", "x"), at_key=True) == (1, 5)
    assert document.find_spot(("c", 0)) == (3, 5)
    assert document.find_spot(("c", 0, "d")) == (3, 8)


def test_what_is_not_there_is_placed_at_the_nearest_whole(compose: Compose) -> None:
    document = compose("a:\n  - b: 1\n")
    assert document.find_spot(("a", 0, "c")) == (2, 5)
    assert document.find_spot(("a", 7, "c")) == (2, 3)
    assert document.find_spot(("a", 0, "b", "deeper")) == (2, 8)
    assert compose("").find_spot(("x",)) == (1, 1)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_text_is_an_empty_document(compose: Compose, text: str) -> None:
    assert bare(compose(text).value) is None


def test_anchors_aliases_and_merge_keys_work(compose: Compose) -> None:
    document = compose("a: &A {x: 1, y: 2}\nb: {<<: *A, y: 3}\nc: {<<: [*A, {x: 7, z: 8}]}\nd: *A\ne: &E hi\n*E : 5\n")
    assert document.mistakes == ()
    assert _plain(document.value) == {
        "a": {"x": 1, "y": 2},
        "b": {"y": 3, "x": 1},
        "c": {"x": 1, "y": 2, "z": 8},
        "d": {"x": 1, "y": 2},
        "e": "hi",
        "hi": 5,
    }
    assert document.find_spot(("b", "x")) == (1, 11)


def test_a_quoted_merge_sign_is_a_key(compose: Compose) -> None:
    assert _plain(compose('"<<": 1\n').value) == {"<<": 1}


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("a: {b: 1, b: 2}\n", 1, 11, "a duplicate of the one in line 1"),
        ("a: 1\nb: 2\n'a': 3\n", 3, 1, "a duplicate of the one in line 1"),
        ("a: !foo 1\n", 1, 4, "tags such as !foo"),
        ("a: ! 1\n", 1, 4, "tags such as !"),
        ("a: !!python/object/apply:os.system [x]\n", 1, 4, "tags such as !!python/object"),
        ("- !!map {a: 1}\n", 1, 3, "tags such as !!map"),
        ("!x a: 1\n", 1, 1, "tags such as !x"),
        ("a: *x\n", 1, 4, "no anchor that ends before it"),
        ("a: &x [*x]\n", 1, 8, "no anchor that ends before it"),
        ("a: 1\n---\nb: 2\n", 2, 1, "a second document"),
        ("? [x]\n: 1\n", 1, 3, "a key must be a text, not a list"),
        ("{x: {{ a }}}\n", 1, 6, "a key must be a text, not a mapping"),
        ("<<: 1\n", 1, 5, "<< merges"),
        ("<<: [1]\n", 1, 5, "<< merges"),
        ("<<: [{a: 1}, 1]\n", 1, 5, "<< merges"),
        ("a: b: c\n", 1, 5, "quote a text that contains"),
        ("a:\n\t- x\n", 2, 1, "not tabs"),
        ("a: @x\n", 1, 4, "begins with %, @"),
        ("a: [**/x]\n", 1, 6, "begins with *"),
        ("a: 1\nb: 'x\nc: 1\n", 2, 4, "unexpected end of stream"),
        ("a: [1, 2\nb: 3\n", 2, 2, "close the open bracket or brace"),
        ("a: 1\nb: [1, 2\n\n", 2, 4, "close the open bracket or brace"),
        ("a: 1\nb: {c: 1", 2, 4, "close the open bracket or brace"),
        ("a: 1\n\x07", 2, 1, "U+0007"),
        ("a: \ud800\n", 1, 4, "U+D800"),
        ("a: " + "[" * 60, 1, 53, "nested more than 50"),
        ("[" * 900, 1, 51, "nested more than 50"),
        ("{a: " * 900, 1, 201, "nested more than 50"),
        (_bomb(12), 6, 25, "repeat more than"),
        ("%YAML 2.0\n---\na: 1\n", 1, 1, "incompatible"),
    ],
)
def test_what_a_manifest_must_not_use_is_refused_at_its_place(
    compose: Compose, text: str, line: int, column: int, part: str
) -> None:
    found = _mistakes(compose, text)
    assert [(at_line, at_column) for at_line, at_column, message in found if part in message] == [(line, column)]


def test_a_refused_value_is_marked_and_the_rest_is_read(compose: Compose) -> None:
    document = compose("a: !x 1\nb: !y {c: 1}\nd: 2\n? !z e\n: 3\n<<: !w {f: 1}\n")
    assert document.value["a"] is UNREADABLE
    assert document.value["b"] is UNREADABLE
    assert bare(document.value["d"]) == 2
    assert len(document.mistakes) == 4


def test_mistakes_before_the_end_are_kept(compose: Compose) -> None:
    assert len(_mistakes(compose, "a: 1\na: 2\nb: [\n")) == 2


def test_an_error_without_a_place_is_put_at_the_beginning() -> None:
    error = yaml.YAMLError("odd")
    assert composing._place_broken(error, "a: 1\n") == 0
    assert "odd" in composing._say_broken(error)


def test_many_aliases_of_something_small_are_allowed(compose: Compose) -> None:
    text = "a: &A {x: 1, y: [1, 2, 3]}\nb:\n" + "- {<<: *A}\n" * 5_000
    assert len(compose(text).value["b"]) == 5_000


_VALUES = st.recursive(
    st.one_of(st.integers(-(10**9), 10**9), st.booleans(), st.text("abc: -#'\"\n", max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text("abxy", min_size=1), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_VALUES, st.booleans())
def test_what_pyyaml_writes_is_read_back(compose: Compose, value: Any, flow: bool) -> None:
    document = compose(yaml.safe_dump({"top": value}, default_flow_style=flow, allow_unicode=True))
    assert _plain(document.value) == {"top": value}


@given(st.text("a:- []{},&*!|>'\"%@`\n\t#?<~", max_size=40))
def test_any_text_is_a_document_or_refused(compose: Compose, text: str) -> None:
    try:
        assert isinstance(compose(text), Document)
    except UnusableTextError as error:
        assert error.mistakes  # noqa: PT017 - either outcome is right
