"""The redactor as a whole: types, JSON, idempotence, literals, speed."""

from __future__ import annotations

import base64
import json
from collections import OrderedDict, defaultdict
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.redaction.literals import is_worth_hiding
from pytest_golden.redaction.redactor import Redactor, redact
from pytest_golden.values.json_form import FrozenDict, FrozenList
from tests.patience import count_calls, without_hanging

MARK = "[REDACTED]"
PIECES = st.sampled_from(
    [
        "password",
        "password=",
        '"password": "',
        "token: ",
        "--secret ",
        "Bearer ",
        "Authorization: ",
        "postgres://bob:",
        "@host",
        "hunter22",
        "ghp_abcdefghijklmnop1234",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "[REDACTED]",
        "${X}",
        "\\n",
        "\n",
        '"',
        "'",
        "\\",
        ": ",
        "=",
        " ",
        "[",
        "]",
        "{",
        "}",
        ",",
        "eyJhbGciOi.eyJzdWIi.abc",
        "İ",
        "é",
        "7",
        "docker login -p",
        "curl -u bob:",
        "auth=('",
        "Cookie: sid=",
        "kind: Secret\ndata:\n  a: ",
        "name: DB_PASSWORD\nvalue: ",
        '("X-Api-Key", "',
        "password: >-\n  ",
    ]
)
TEXTS = st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=60)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)
LITERALS = st.text(min_size=6, max_size=30).filter(is_worth_hiding)


@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(JSON_VALUES)
def test_json_text_stays_json(value: Any) -> None:
    for text in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        assert type(json.loads(redact(text))) is type(value)


@given(JSON_VALUES, LITERALS)
def test_json_text_with_a_known_value_stays_json(value: Any, literal: str) -> None:
    redacted = Redactor(literals=(literal,)).text(json.dumps([value, {literal: literal}]))
    assert literal not in json.dumps(json.loads(redacted), ensure_ascii=False)


@given(JSON_VALUES)
def test_values_keep_their_type_and_are_settled_after_one_pass(value: Any) -> None:
    once = redact(value)
    assert type(once) is type(value)
    assert redact(once) == once


@given(TEXTS, TEXTS, LITERALS)
def test_no_known_value_survives(before: str, after: str, literal: str) -> None:
    redactor = Redactor(literals=(literal,))
    spelled = (literal, json.dumps(literal)[1:-1], quote(literal, safe="") if literal.isprintable() else literal)
    for form in spelled:
        redacted = redactor.text(before + form + after)
        assert literal not in redacted
        assert form not in redacted


@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("literal", ["correct horse battery", "p@ss/w+rd?&=é"])
def test_known_values_are_found_inside_base64(literal: str, shift: int) -> None:
    encoded = base64.b64encode(b"x" * shift + literal.encode() + b"yz").decode()
    redacted = Redactor(literals=(literal,)).text(f"data {encoded}.")
    assert MARK in redacted
    assert len(redacted) < len(f"data {encoded}.")


def test_known_values_are_found_url_encoded() -> None:
    literal = "p@ss word/+é"
    redactor = Redactor(literals=(literal,))
    for form in (quote(literal, safe=""), quote(literal), quote_plus(literal)):
        assert redactor.text(f"x {form} y") == f"x {MARK} y"


def test_each_long_line_of_a_known_value_is_hidden() -> None:
    literal = "first line of the secret\nsecond line of the secret\nshort"
    redacted = Redactor(literals=(literal,)).text("log: second line of the secret, short")
    assert redacted == f"log: {MARK}, short"


@pytest.mark.parametrize(
    "literal", ["", "abc", "postgres", "password", "1234567", "aaaaaaaa", "REDACTED", "${SECRET_X}"]
)
def test_values_that_are_ordinary_text_are_not_taken_as_known(literal: str) -> None:
    text = f"connect {literal} as postgres password 1234567 aaaaaaaa REDACTED"
    assert Redactor(literals=(literal,)).text(text) == text


class Pair(NamedTuple):
    name: str
    note: str


class Colour(StrEnum):
    RED = "password=hunter2"


def test_nested_values_keep_their_kind() -> None:
    given_value: dict[Any, Any] = {
        "password": "hunter2",
        "list": ["--password", "hunter2", "token=hunter2"],
        "tuple": ("Bearer hunter2hunter2",),
        "pair": Pair("x", "secret=hunter2"),
        "set": {"password=hunter2"},
        "frozen": frozenset({"password=hunter2"}),
        "bytes": b"password=hunter2 \xff",
        "ordered": OrderedDict(api_key="hunter2"),
        "default": defaultdict(str, {"token": "hunter2"}),
        "env": [{"name": "DB_PASSWORD", "value": "hunter2"}, {"name": "TZ", "value": "UTC"}],
        "secret": ["hunter2", 7, {"plain": "x"}],
        "client_secret": b"hunter2",
        "Authorization": "Bearer hunter2",
        b"key": 1,
        "count": 5,
        "colour": Colour.RED,
        "none": None,
    }
    redacted = redact(given_value)
    assert "hunter2" not in repr({key: value for key, value in redacted.items() if key != "colour"})
    assert redacted["Authorization"] == f"Bearer {MARK}"
    assert redacted["list"] == ["--password", MARK, f"token={MARK}"]
    assert redacted["env"][1] == {"name": "TZ", "value": "UTC"}
    assert redacted["secret"] == [MARK, 7, {"plain": "x"}]
    assert redacted["bytes"] == b"password=[REDACTED] \xff"
    assert redacted["count"] == 5
    assert redacted["colour"] is Colour.RED
    assert isinstance(redacted["pair"], Pair)
    assert isinstance(redacted["ordered"], OrderedDict)
    assert isinstance(redacted["default"], defaultdict)
    assert redacted["default"].default_factory is str
    assert given_value["password"] == "hunter2"


def test_frozen_containers_of_a_trajectory_stay_frozen() -> None:
    frozen = FrozenDict(steps=FrozenList(["password=hunter2"]), token="hunter2")
    redacted = redact(frozen)
    assert redacted == {"steps": [f"password={MARK}"], "token": MARK}
    assert isinstance(redacted, FrozenDict)
    assert isinstance(redacted["steps"], FrozenList)


def test_numbers_under_secret_names_stay() -> None:
    value = {"password": 12345, "token": 7, "secret": None, "api_key": True}
    assert redact(value) == value


def test_keys_that_hold_secrets_are_redacted_and_none_is_lost() -> None:
    literals = ("first-secret-value", "other-secret-value")
    redacted = Redactor(literals=literals).value({"first-secret-value": 1, "other-secret-value": 2, "x": 3})
    assert sorted(redacted.values()) == [1, 2, 3]
    assert not any("secret-value" in key for key in redacted)


def test_a_value_inside_itself_ends() -> None:
    loop: list[Any] = ["password=hunter2"]
    loop.append(loop)
    assert "hunter2" not in repr(redact(loop))


def test_json_lines_stay_json_line_by_line() -> None:
    lines = '{"a": 12345678}\n{"b": "password=hunter2"}\n{"c": 87654321}'
    redacted = Redactor(literals=("12345678",)).text(lines)
    assert [json.loads(line) for line in redacted.splitlines()] == [
        {"a": MARK},
        {"b": f"password={MARK}"},
        {"c": 87654321},
    ]


def test_further_rules_are_applied() -> None:
    redactor = Redactor(extra=(lambda text: text.replace("ACME-1", MARK),))
    assert redactor.text("id ACME-1 password=x1y2") == f"id {MARK} password={MARK}"


def test_a_redactor_does_not_show_what_it_hides() -> None:
    redactor = Redactor(literals=("correct horse battery",))
    assert "correct" not in repr(redactor)


MEBIBYTE = 1 << 20


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "Bearer ",
        "://",
        "password=",
        'password="',
        "password",
        "--password ",
        "eyJ",
        "1meyJ",
        "sk-",
        "-----BEGIN PRIVATE KEY-----",
        "://a:b@",
        "://a:b",
        "\\",
        "token.",
        "secret: |\n  a\n",
        '"token": ["a",',
        "password=${",
        "Authorization: Bearer ",
        "password" + " " * 20,
        "aws ",
        '{"password": "x"}\n',
        "curl -u a",
        "docker login x ",
        "mysql -p",
        "Cookie: a=",
        "cookies={",
        "kind: Secret\ndata:\n  a: b\n",
        '"passwords": {"a": "b"',
        "name: token\n",
        '("token", "a',
        "create user identified by ",
        "login a password ",
        "jdbc:oracle:thin:a/",
        "a:5432:b:c:",
        "Private-Lines: 2\nabc\n",
        "Authorization: Digest a=b, ",
        "password: >\\n  a\\n",
        "password={a",
        "sqlplus a/",
        "signedheaders=a;",
        "auth=('a', '",
        "echo a | ",
        "token is a",
        "set_password('a",
    ],
)
def test_no_text_makes_redaction_slow(piece: str) -> None:
    text = piece * (MEBIBYTE // 4 // len(piece))
    with without_hanging():
        redact(text)


def test_lines_without_secrets_are_not_looked_at_one_by_one() -> None:
    line = "2026-01-01 12:00:00 INFO loaded 1204 rows from sales into bronze in 3.2 s, tokens: 5\n"
    count = MEBIBYTE // len(line)
    assert redact(line * count) == line * count
    assert count_calls(lambda: redact(line * count)) < count / 10
