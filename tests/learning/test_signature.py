from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.learning.signature import cause_of, digest_signature, error_signature
from tests.patience import without_hanging


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
