"""Known values in every spelling in which programs print them."""

from __future__ import annotations

import ast
import base64
import html
import json
import shlex
import textwrap
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.redaction.known_values import KnownValues
from pytest_golden.redaction.literals import is_worth_hiding
from pytest_golden.redaction.redactor import Redactor
from tests.patience import count_calls

if TYPE_CHECKING:
    from collections.abc import Callable

MARK = "[REDACTED]"
AWKWARD = "kX9\"fr\\esh+42/ä 'one' & <two> 100% $HOME|`x`"


def in_lines(text: str, width: int = 5) -> list[str]:
    return [text[start : start + width] for start in range(0, len(text), width)]


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "json": json.dumps,
    "json in json in json": lambda text: json.dumps(json.dumps(json.dumps(text))),
    "json with its letters": lambda text: json.dumps(text, ensure_ascii=False).replace("/", "\\/"),
    "repr": repr,
    "bytes": lambda text: repr(text.encode()),
    "ascii in a list": lambda text: ascii([text]),
    "yaml": lambda text: yaml.safe_dump({"k": text}),
    "shell": shlex.quote,
    "shell in quotation marks": lambda text: "'" + text.replace("'", "'\\''") + "'",
    "html": html.escape,
    "xml": lambda text: html.escape(text).encode("ascii", "xmlcharrefreplace").decode(),
    "url": quote,
    "url in lower case": lambda text: quote(text, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
    "url twice": lambda text: quote(quote(text, safe=""), safe=""),
    "form": quote_plus,
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal in capitals": lambda text: text.encode().hex().upper(),
    "base64 in a URL": lambda text: quote(base64.b64encode(text.encode()).decode(), safe=""),
    "base64 in lines": lambda text: base64.encodebytes(b"something before it, then " * 2 + text.encode()).decode(),
    "base64 in lines in json": lambda text: json.dumps(
        base64.encodebytes(b"before, then " * 5 + text.encode()).decode()
    ),
    "lines": lambda text: "\n".join(in_lines(text)),
    "lines of Windows": lambda text: "\r\n".join(in_lines(text)),
    "indented lines": lambda text: "\n        ".join(in_lines(text)),
    "lines of a shell": lambda text: "\\\n".join(in_lines(text)),
    "lines in json": lambda text: json.dumps("\n".join(in_lines(text, 6))),
    "box": lambda text: "\n".join(f"\u2502 {line:<9} \u2502" for line in in_lines(text)),
    "lines of a difference": lambda text: "\n".join(f"+{line}" for line in in_lines(text)),
    "lines of a mail": lambda text: "\n".join(f"> {line}" for line in in_lines(text)),
    "texts of a program": lambda text: "(\n" + "\n".join(f"    {line!r}" for line in in_lines(text)) + "\n)",
    "lines of quoted-printable": lambda text: "=\n".join(in_lines(text)),
    "wrapped": lambda text: "\n".join(textwrap.wrap(text, 12)),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "value", [AWKWARD, "correct horse battery staple", "k9-Ab_zz.77", "漢字ä😀é-ß", "a\tb\x1f\x00-end"]
)
def test_value_is_found_in_every_spelling(value: str, spelling: str) -> None:
    spelled = SPELLINGS[spelling](value)
    hidden = KnownValues((value,)).hide(f"before {spelled} after")
    assert MARK in hidden
    assert hidden.startswith("before ")
    assert hidden.endswith(" after")
    # Only quotation marks, and what stands beside the value, may be left.
    beside = "something before it, then " * 2 if "base64 in lines" in spelling else ""
    assert len(hidden) <= len("before  after") + len(MARK) + 14 + 2 * len(beside)


@pytest.mark.parametrize("alphabet", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("value", ["k9Ab77", "k9Ab77z", "k9Ab77zq", "?>?>~~ÿÿ", "correct horse"])
def test_value_is_found_at_each_offset_of_base64(value: str, shift: int, alphabet: Callable[[bytes], bytes]) -> None:
    encoded = alphabet(b"xyz"[:shift] + value.encode() + b"uvw").decode()
    hidden = KnownValues((value,)).hide(encoded)
    assert MARK in hidden
    assert len(hidden) <= len(MARK) + 10


# Not those that can be taken for a border, or for the blank of a broken line, where a value is short.
SIGNS = st.text(st.sampled_from("abcXYZ0189!#$%&()*,-./:;<?@[]^_`{}~äß漢😀"), min_size=6, max_size=40)


@given(SIGNS.filter(is_worth_hiding), st.sampled_from(sorted(SPELLINGS)))
def test_any_value_is_found_in_any_spelling(value: str, spelling: str) -> None:
    spelled = SPELLINGS[spelling](value.strip())
    assert MARK in KnownValues((value,)).hide(f"before {spelled} after")


def test_colours_inside_hide_no_value() -> None:
    redactor = Redactor(passed=("k9-Ab_zz.77",))
    assert redactor.text("it is \x1b[31mk9-\x1b[0m\x1b[1mAb_zz.77\x1b[0m!") == f"it is {MARK}!"
    assert redactor.text('{"m": "it is \\u001b[31mk9-\\u001b[0mAb_zz.77"}') == f'{{"m": "it is {MARK}"}}'


def test_value_that_begins_in_one_window_and_ends_in_the_next_is_found() -> None:
    known = KnownValues((AWKWARD, *(f"unused-{number}-value" for number in range(200))))
    for before in range(4080, 4100):
        for spelled in (AWKWARD, json.dumps(AWKWARD)[1:-1], "\n".join(in_lines(AWKWARD))):
            assert known.hide("." * before + spelled + "." * 5000) == "." * before + MARK + "." * 5000


def test_every_piece_of_a_very_long_value_is_hidden() -> None:
    value = "".join(f"{number:x}-" for number in range(10_000, 14_000))
    assert MARK in KnownValues((value,)).hide(value[4096:])
    assert len(KnownValues((value,)).hide(f"a {value} b")) < 20


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("finance", MARK),
        ("db.finance.orders", f"db.{MARK}.orders"),
        ("refinance, finances, finance_2026, 2finance", "refinance, finances, finance_2026, 2finance"),
        ('{"a": "one\\nfinance\\ntwo"}', f'{{"a": "one\\n{MARK}\\ntwo"}}'),
        ("a%20finance", f"a%20{MARK}"),
        ("ZmluYW5jZQ==", MARK),
        (f"finance\n{'.' * 9000} finance", f"{MARK}\n{'.' * 9000} {MARK}"),
    ],
)
def test_word_is_hidden_where_it_is_a_word_of_its_own(text: str, hidden: str) -> None:
    assert KnownValues((), ("finance",)).hide(text) == hidden


def test_word_at_the_end_of_a_window_is_seen_with_what_follows() -> None:
    known = KnownValues((), ("finance",))
    for before in range(4000, 4200):
        text = "." * before + "financed" + "." * 5000 + " finance"
        assert known.hide(text) == text.removesuffix("finance") + MARK


def test_values_that_overlap_have_one_mark() -> None:
    known = KnownValues(("postgresql://etl:k9-Ab-77@db/shop", "k9-Ab-77"))
    assert known.hide("to postgresql://etl:k9-Ab-77@db/shop with k9-Ab-77") == f"to {MARK} with {MARK}"


def test_text_that_is_no_unicode_is_searched_too() -> None:
    known = KnownValues(tuple(f"k9-Ab-{number:04}" for number in range(900)))
    text = "\udc80\udcff" + "." * 70_000 + " k9-Ab-0777 " + "\udc81"
    assert known.hide(text) == text.replace("k9-Ab-0777", MARK)


def test_value_without_letters_is_found() -> None:
    value = "§±°¿¡«»"
    known = KnownValues((value,))
    assert known.hide(f"x {value} y") == f"x {MARK} y"
    assert known.hide(f"x {value[:3]}\n{value[3:]} y") == f"x {MARK} y"


@pytest.mark.parametrize("ellipsis", ["\u2026", "...", "'+22"])
def test_beginning_of_a_longer_value_is_hidden_before_an_ellipsis(ellipsis: str) -> None:
    known = KnownValues(("correct-horse-battery-staple",))
    assert known.hide(f"value = 'correct-horse-battery{ellipsis}") == f"value = '{MARK}{ellipsis}"
    boxed = f"\u2502 'correct-horse-bat \u2502\n\u2502 tery{ellipsis} \u2502"
    assert known.hide(boxed) == f"\u2502 '{MARK}{ellipsis} \u2502"
    assert known.hide("correct-horse-battery it is") == "correct-horse-battery it is"


def test_short_value_needs_all_of_its_signs() -> None:
    known = KnownValues(("k''>>+1",))
    assert known.hide("k1 and k''>>+1") == f"k1 and {MARK}"


def test_nothing_known_changes_nothing() -> None:
    for literals in ((), ("",), (" \n",)):
        assert KnownValues(literals).hide("a\nb") == "a\nb"


@pytest.mark.parametrize("count", [10, 1000])
def test_time_is_nearly_the_same_for_any_number_of_values(count: int) -> None:
    known = KnownValues(tuple(f"k9-Ab-{number:05}-zz" for number in range(count)))
    text = "2026-01-01 12:00:00 INFO loaded 1204 rows\n" * 10_000
    known.hide(text)
    assert count_calls(lambda: known.hide(text)) < 100_000


# Documents in documents, and signs that an escape may stand for: how they are divided up is never tried in all ways.
ALIKE = {
    "json in json": json.dumps(
        {"a": json.dumps({f"key{number}": f"v{number}" for number in range(30)}), "z": "k9Ab77"}
    ),
    "escaped quotation marks": 'abcdef123456\\"' + '\\"' * 40 + "x",
    "quotation marks": "abcdef" + "\"'" * 40 + "x",
    "doubled signs": "abcdef" + "$" * 40 + "%" * 40 + "x",
    "borders and blanks": "abcdef" + "|>+= " * 40 + "1234567890",
    "escaped lines": "abcdef" + "\\n\\r\\ " * 40 + "1234567890",
}


@pytest.mark.parametrize("kind", ALIKE)
def test_text_that_differs_at_its_end_is_soon_told_from_a_value(kind: str) -> None:
    value = ALIKE[kind]
    known = KnownValues((value,))
    for spell in (str, json.dumps, lambda text: json.dumps(json.dumps(text)), quote):
        spelled = spell(value)
        known.hide(spelled[:-9] + "?" * 9)
        assert MARK in known.hide(spelled)


@pytest.mark.parametrize("value", ["pw%25x1", "a''b12", "1 + 1 = 2", 'k\\"7\\"z9', "%%%%ab1", 'k9""\\\'7'])
def test_value_that_looks_like_an_escape_of_itself_is_found(value: str) -> None:
    for spell in (str, json.dumps, quote, quote_plus, lambda text: quote(json.dumps(text))):
        assert MARK in KnownValues((value,)).hide(f"it is {spell(value)}.")


def test_redacted_python_stays_python() -> None:
    hidden = KnownValues((AWKWARD,)).hide(repr({"a": [AWKWARD]}))
    assert ast.literal_eval(hidden) == {"a": [MARK]}
