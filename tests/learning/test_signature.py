from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.signature import (
    cause_of,
    digest_signature,
    error_signature,
    find_causes,
    find_main_cause,
    find_origin,
)
from tests.patience import without_hanging

FRAME = '  File "/srv/etl/load.py", line 3, in load\n    frame["amount"]\n    ^^^^^\n'
PANDAS = '  File "/x/site-packages/pandas/core/indexes/base.py", line 9, in get_loc\n    raise\n'
TRACEBACK = "Traceback (most recent call last):\n"
DIRECT = "\nThe above exception was the direct cause of the following exception:\n\n"
DURING = "\nDuring handling of the above exception, another exception occurred:\n\n"


@pytest.mark.parametrize(
    ("text", "signature"),
    [
        ("row 17 of 2,000 has -3.5e7", "row <n> of <n> has <n>"),
        ("KeyError: 'amount'", "KeyError: <value>"),
        ('column "x y" and `z`', "column <value> and <value>"),
        ("can't and won't 3", "can't and won't <n>"),
        ("No such file: /tmp/a-1/b.csv", "No such file: <path>"),
        ("in C:\\Users\\me\\x.py line 3", "in <path> line <n>"),
        ("at src/etl/load.py:17", "at <path>"),
        ("see https://host.example/a?b=1", "see <path>?b=<n>"),
        ("object at 0x7f3A2b", "object at <hex>"),
        ("commit 459c578d broke it", "commit <hex> broke it"),
        ("id 550e8400-e29b-41d4-a716-446655440000!", "id <uuid>!"),
        ("entry_01ARZ3NDEKTSV4RRFFQ69G5FAV is gone", "entry_<id> is gone"),
        ("2026-01-31T12:00:00.123Z ERROR", "<time> ERROR"),
        ("2026-01-31 12:00:00,5 +02:00 x", "<time> x"),
        ("on 2026-01-31 at 12:00:01", "on <time> at <time>"),
        ("\x1b[31mred\x1b[0m\n  two\tlines ", "red two lines"),
        ("", ""),
        ("plain words", "plain words"),
        ("ModuleNotFoundError: No module named 'x.y'", "ModuleNotFoundError: No module named 'x.y'"),
        ("pandas.errors.ParserError: row 3", "ParserError: row <n>"),
        ("_csv.Error: 3", "_csv.Error: <n>"),
        ("KeyError: \"['a', 'b'] not in index\"", "KeyError: [<value>] not in index"),
        ("KeyError: 'API_TOKEN'", "KeyError: <variable>"),
        ("'DataFrame' object has no attribute 'append'", "'DataFrame' object has no attribute 'append'"),
        ("'utf-8' codec can't decode byte 0xfc in position 9", "'utf-8' codec can't decode byte <hex> in position <n>"),
        ("'utf-8' codec can't decode byte 0xff in position 0", "'utf-8' codec can't decode byte 0xff in position 0"),
        ("not supported between instances of 'str' and 'int'", "not supported between instances of 'str' and 'int'"),
        ("404 Client Error: Not Found for url: https://h.example/a?b=1", "404 Client Error: Not Found for url: <path>"),
        ("HTTP Error 503: busy", "HTTP Error 503: busy"),
        ("no such table: orders", "no such table: <name>"),
        ("UNIQUE constraint failed: orders.id, orders.day", "UNIQUE constraint failed: <name>"),
        (
            'Table with name orders does not exist! Did you mean "x"? LINE 1: SELECT',
            "Table with name <name> does not exist!",
        ),
        ("Scalar Function with name foo does not exist!", "Scalar Function with name foo does not exist!"),
        ("Failure in test not_null_orders_id (m/s.yml)", "Failure in test not_null_<name> (<path>)"),
        ("Failure in test my_test (m/s.yml)", "Failure in test <name> (<path>)"),
        ("Runtime Error in model orders (m/o.sql)", "Runtime Error in model <name> (<path>)"),
        ("orders: Runtime Error in model orders (m/o.sql) x", "<name>: Runtime Error in model <name> (<path>) x"),
        ("step load_orders failed: invalid_grant", "step <name> failed: invalid_grant"),
        ("No such file or directory: 'psql'", "No such file or directory: 'psql'"),
        ("No such file or directory: 'a.csv'", "No such file or directory: <value>"),
        ("Command '['/bin/psql', '-c', 'x y']' returned non-zero", "Command 'psql' returned non-zero"),
        (
            "(sqlite3.OperationalError) locked [SQL: SELECT 1] (Background on this error at: https://x)",
            "(OperationalError) locked",
        ),
        ("Aborted('Remote end closed', 3)", "Aborted(Remote end closed, <n>)"),
        ("near 'SELECT a FROM b is not'", "near <value>"),
        ("orders.csv at db-1.internal has 3.2 GiB", "<path> at <host> has <n> B"),
        ("A: no such thi ...", "A: no such"),
    ],
)
def test_what_differs_from_run_to_run_is_taken_out(text: str, signature: str) -> None:
    assert error_signature(text) == signature


def test_traceback_has_the_signature_of_its_exception() -> None:
    frames = 'Traceback (most recent call last):\n  File "/a/b.py", line 3, in load\n    x()\n'
    assert error_signature(f"{frames}etl.LoadError: 'a.csv' is empty\n") == "LoadError: <value> is empty"
    assert error_signature(f"{frames}etl.LoadError: 'a.csv' is empty\n") == error_signature(
        "LoadError: 'b.csv' is empty"
    )


def test_same_failure_in_two_runs_has_one_signature() -> None:
    first = "2026-01-31 10:00:01 load failed: '/tmp/g-1/a.csv' has 17 rows (run 0xfe12)"
    second = "2026-02-01 22:13:59 load failed: '/tmp/g-924/b.csv' has 1,204 rows (run 0x77)"
    assert error_signature(first) == error_signature(second)
    assert digest_signature(error_signature(first)) == digest_signature(error_signature(second))
    assert error_signature("load failed: 1 row") != error_signature("save failed: 1 row")


@given(st.text(alphabet=st.characters() | st.sampled_from("'\"`/\\-:.0123456789abcdef TZ<>\n"), max_size=200))
def test_any_text_has_a_signature_that_is_short_and_digestible(text: str) -> None:
    signature = error_signature(text)
    assert len(signature) <= 1000
    assert "\n" not in signature
    assert len(digest_signature(signature)) == 32


PIECES = (
    *(
        "'",
        '"',
        "`",
        "/",
        "\\",
        "-",
        ":",
        ".",
        "0",
        "12",
        "a",
        "f",
        " ",
        "\n",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        "_",
        "in test ",
    ),
    *("not_null_", "Error: ", "KeyError: ", "No module named ", "Command ", "returned", "with name ", "does not exist"),
    *(
        "has no attribute ",
        "no such table: ",
        "404 ",
        "Client Error",
        "HTTP 500",
        "LINE 1: ",
        "Did you mean",
        "?",
        "\ue041",
    ),
    *(
        "x.csv",
        "host.com",
        "Traceback (most recent call last):\n",
        '  File "a", line 1\n',
        " ...",
        "is not a",
        ", column 1: ^",
    ),
)


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_signature_of_any_signature_is_itself(text: str) -> None:
    assert error_signature(error_signature(text)) == error_signature(text)


@pytest.mark.parametrize("text", ["row 17: 'a' in /x/y at 0xff", "'a' b' c'", "\"x\" '1' 2026-01-01"])
def test_signature_of_a_signature_is_itself(text: str) -> None:
    assert error_signature(error_signature(text)) == error_signature(text)


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "/",
        "a/",
        "'",
        '"',
        "1,",
        "deadbee1",
        "1-",
        ":",
        "http:",
        "a.",
        "'a ",
        "a_",
        "(",
        "> ",
        "[SQL: ",
        "Command '",
    ],
)
def test_hostile_text_takes_no_time(part: str) -> None:
    with without_hanging():
        error_signature(part * 20_000)


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("exit code 1, expected 0: load: no such column", "load: no such column"),
        ("exit code 127 (command not found), expected 0: sh: x: not found", "sh: x: not found"),
        ("exit code 2: boom, but `specific_error:y` was expected", "boom, but `specific_error:y` was expected"),
        ("exit code 3, expected 0", "exit code 3, expected 0"),
        ("timed out after 10m", "timed out after 10m"),
        ("exit code 1, expected 0: boom (and 1 more reason)", "boom"),
        ("timed out (and 12 more reasons)", "timed out"),
    ],
)
def test_cause_stands_without_the_exit_code(message: str, cause: str) -> None:
    assert cause_of(message) == cause


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
