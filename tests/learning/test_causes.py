from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.signature import error_signature, find_causes, find_main_cause, find_origin
from tests.patience import without_hanging

FRAME = '  File "/srv/etl/load.py", line 3, in load\n    frame["amount"]\n    ^^^^^\n'
PANDAS = '  File "/x/site-packages/pandas/core/indexes/base.py", line 9, in get_loc\n    raise\n'
TRACEBACK = "Traceback (most recent call last):\n"
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", ""),
        (" \n ", ""),
        ("KeyError: 'amount'", "KeyError: 'amount'"),
        (f"{TRACEBACK}{FRAME}KeyError: 'amount'\n", "KeyError: 'amount'"),
        (f"noise\n{TRACEBACK}{FRAME}KeyError: 'amount'\n\nbye", "KeyError: 'amount'"),
        (f"  | {TRACEBACK}  | {FRAME}".replace("\n  File", "\n  |   File"), None),
        (f"{TRACEBACK}{FRAME}E: one\n  two\nthree\n\nfour", "E: one two three"),
        (f"{TRACEBACK}{FRAME}KeyError: 1\n{DIRECT}{TRACEBACK}{FRAME}LoadError: no\n", "KeyError: 1 > LoadError: no"),
        (
            f"{TRACEBACK}{FRAME}KeyError: 'x y'\n{DURING}{TRACEBACK}{FRAME}LoadError: 'x y' is bad\n",
            "LoadError: 'x y' is bad",
        ),
        (f"{TRACEBACK}{FRAME}One: 1\n{TRACEBACK}{FRAME}Two: 2", "Two: 2"),
        ("started\nERROR load: no such thing\nBye\n", "load: no such thing Bye"),
        (
            "12:00:01  Database Error in model a (m/a.sql)\n  no such\n12:00:02  Done.",
            "Database Error in model a (m/a.sql) no such",
        ),
        ("a\nValueError: one\n\nb\nOSError: two\n\nWARNING old error: x", "OSError: two"),
        ("[X] Node failed: NodeError: n\n\n  Error: why\n\nbye", "[X] Node failed: NodeError: n Error: why"),
        ("one\ncopy: permission denied\ntwo", "copy: permission denied two"),
        ("one\ntwo", "one\ntwo"),
    ],
)
def test_part_that_tells_most_is_found(text: str, cause: str | None) -> None:
    assert cause is None or find_main_cause(text) == cause


def test_chain_is_told_whole_then_by_its_ends() -> None:
    text = f"{TRACEBACK}{FRAME}KeyError: 1\n{DIRECT}{TRACEBACK}{FRAME}LoadError: no\nmore\n"
    assert find_causes(text) == (
        "KeyError: 1 > LoadError: no more",
        "LoadError: no more",
        "KeyError: 1",
        "LoadError: no",
    )


def test_group_of_exceptions_is_read_within_its_margin() -> None:
    text = (
        "  + Exception Group Traceback (most recent call last):\n"
        '  |   File "/srv/a.py", line 1, in <module>\n'
        "  | ExceptionGroup: two (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n"
        "    | Traceback (most recent call last):\n"
        '    |   File "/srv/a.py", line 2, in f\n'
        "    | ValueError: inner\n"
        "    +------------------------------------\n"
    )
    assert find_main_cause(text).startswith("ValueError: inner")


@pytest.mark.parametrize(
    ("text", "origin"),
    [
        ("KeyError: 'amount'", None),
        (f"{TRACEBACK}{FRAME}KeyError: 'amount'", ""),
        (f"{TRACEBACK}{FRAME}{PANDAS}KeyError: 'amount'", "pandas"),
        (f"{TRACEBACK}{PANDAS}KeyError: 1\n{DIRECT}{TRACEBACK}{FRAME}KeyError: 1", ""),
        (f'{TRACEBACK}{FRAME}  File "/usr/lib/python3.12/json/decoder.py", line 1, in x\nJSONDecodeError: no', "json"),
        (f'{TRACEBACK}{FRAME}  File "C:\\Python312\\Lib\\csv.py", line 1, in x\nError: no', "csv"),
        (f'{TRACEBACK}{FRAME}  File "<frozen os>", line 679, in __getitem__\nKeyError: no', "os"),
        (f"{TRACEBACK}nothing\n", None),
        (f"{TRACEBACK}{FRAME}", None),
    ],
)
def test_origin_is_the_package_that_raised(text: str, origin: str | None) -> None:
    assert find_origin(text) == origin


def test_failure_is_looked_for_at_the_end_of_a_long_text() -> None:
    with without_hanging():
        assert find_main_cause("x y z\n" * 2_000_000 + f"{TRACEBACK}{FRAME}KeyError: 'amount'") == "KeyError: 'amount'"


@given(
    st.lists(
        st.sampled_from([TRACEBACK, FRAME, PANDAS, DIRECT, DURING, "KeyError: 1\n", "ERROR x\n", "\n", " | ", "a\x00b"])
    )
)
def test_any_text_has_few_causes(parts: list[str]) -> None:
    causes = find_causes("".join(parts))
    assert len(causes) <= 12
    assert all(cause.strip() for cause in causes)
    assert causes or set("".join(parts).replace(TRACEBACK, "")) <= set(" |\n")


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):",
        "  Traceback (most recent call last)\n",
        "Traceback (most recent call last):\n\n  Traceback (most recent call last):",
        "  + Exception Group Traceback (most recent call last):",
    ],
)
def test_first_line_of_a_traceback_alone_tells_nothing(text: str) -> None:
    assert find_causes(text) == ()
    assert error_signature(text) == ""


def test_traceback_that_was_cut_off_is_told_by_what_is_left() -> None:
    assert find_causes(f"{TRACEBACK}job died")[0] == "job died"
