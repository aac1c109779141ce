"""Which values of passed variables and files are hidden, and which are ordinary."""

from __future__ import annotations

import base64
import json

import pytest

from pytest_golden.redaction.passed_values import is_ordinary, is_word, literals_in_content, passed_literals
from pytest_golden.redaction.redactor import Redactor
from pytest_golden.redaction.rule import MARK
from tests.patience import count_calls

ORDINARY = [
    "production",
    "Production",
    "development",
    "staging",
    "localhost",
    "postgres",
    "snowflake",
    "analytics",
    "warning",
    "passed",
    "stdout",
    "true",
    "null",
    "none",
    "us-east-1",
    "us-gov-west-1",
    "eu-central-1",
    "europe-west4",
    "us-central1-a",
    "eastus2",
    "/usr/bin:/bin:/usr/local/bin",
    "/home/bob/shop",
    "/tmp",
    "./data/in",
    "../shared",
    "~/x",
    "C:\\Users\\bob",
    "12345",
    "1234567",
    "3.14159",
    "1,000,000",
    "0.000125",
    "2026-01-31",
    "20260131",
    "2026-01-31T10:00:00Z",
    "3.11.4",
    "v1.2.3",
    "1.2.0rc1",
    "500MB",
    "30seconds",
    "en_US.UTF-8",
    "C.UTF-8",
    "utf-8",
    "Europe/Berlin",
    "America/Argentina/Buenos_Aires",
    "http://localhost:5000",
    "http://127.0.0.1:8080/api/v",
    "localhost:5432",
    "0.0.0.0:80",
    "postgresql://localhost/shop",
    "github.com",
    "${DB_HOST}",
    "aaaaaaaa",
    "abc12",
]
TELLING = [
    "db.internal.example.org",
    "10.20.30.40",
    "48291735",
    "hunter2x",
    "/aB3xyzQQ+w==",
    "/services/T0/B0/xyz",
    "finance",
    "a@b.example",
    "https://api.example.org/v1",
    "Tr0ub4dor&3",
    "http://bob:pw@localhost",
    "production-7fQ",
    "http://localhost.example.org",
    "19991350",
    "~secret",
    ".hidden1",
    "correct-horse",
    "us-east-1x9",
]


def test_ordinary_values_are_told_from_others() -> None:
    assert [value for value in ORDINARY if not is_ordinary(value)] == []
    assert [value for value in TELLING if is_ordinary(value)] == []


def test_values_made_to_be_slow_are_not() -> None:
    for value in ("/tmp" + "/......." * 500, "..:" * 3000, "./" * 3000, "/usr/bin:" * 1000, "1" * 9000, "a-" * 3000):
        assert count_calls(lambda value=value: is_ordinary(f"{value}!")) < 50  # type: ignore[misc]
        is_ordinary(f"{value}!")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("finance", True), ("Finance", True), ("FINANCE", False), ("fiNance", False), ("fin2", False), ("größe", False)],
)
def test_plain_words_are_words(value: str, expected: bool) -> None:
    assert is_word(value) is expected


@pytest.mark.parametrize("name", ["PATH", "HOME", "TZ", "LANG", "LC_ALL", "Path", "USER", "PYTHONPATH", "TERM"])
def test_variables_that_everybody_has_are_ordinary(name: str) -> None:
    assert passed_literals({name: "xyzzy-1234-abc"}) == ()


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


VARIABLES = {
    "any name": ("s3cr3t-value", {"s3cr3t-value"}),
    "blanks": (" correct horse ", {"correct horse"}),
    "url": ("postgresql://etl:pw%40x1y2z@db.x/shop?token=abc123def", {"pw%40x1y2z", "pw@x1y2z", "abc123def"}),
    "list": ("tok1-abc,tok2-def;tok3-ghi", {"tok1-abc", "tok2-def", "tok3-ghi"}),
    "words in a list": ("apples,cherries", {"apples,cherries"}),
    "connection": ("host=db.x user=etl password='abc 123z' x=\"k9 k9 k9\"", {"abc 123z", "k9 k9 k9"}),
    "json": ('{"k": ["v-123-456", {"x": "w-789-012"}], "n": 48291735}', {"v-123-456", "w-789-012", "48291735"}),
    "json in json": (json.dumps({"a": json.dumps({"b": json.dumps(["deep-1-2-3"])})}), {"deep-1-2-3"}),
    "login": ("bob:s3cr3t-value", {"s3cr3t-value"}),
    "login in base64": (in_base64("$token:s3cr3t-value"), {"$token:s3cr3t-value", "s3cr3t-value"}),
    "json in base64": (in_base64('{"k": "v-123-456"}'), {"v-123-456"}),
    "lines": ("first line\nk9-Ab-77\nand more", {"first line\nk9-Ab-77\nand more", "k9-Ab-77"}),
    "no json": ('{"k": "v-123-456"', {'{"k": "v-123-456"'}),
}


@pytest.mark.parametrize("kind", VARIABLES)
def test_value_and_what_is_in_it_are_taken(kind: str) -> None:
    value, expected = VARIABLES[kind]
    found = passed_literals({"X": value})
    assert {value.strip(), *expected} <= {*found}
    assert passed_literals({"X": value, "Y": value}) == found


KEY = "-----BEGIN X-----\nk8-Ab-88\nk7-Ab-99\n"
FILES = {
    "toml": '[db]\nhost = "k9-Ab-77"\ninline = {a = ["k8-Ab-88"]}\ntext = """\nk7-Ab-99\n"""\n',
    "ini": "[db]\nhost = k9-Ab-77 ; old\nother: k8-Ab-88\nk7-Ab-99\n",
    "yaml": "db:\n  host: k9-Ab-77 # mine\n  others:\n    - k8-Ab-88\n    - {x: 'k7-Ab-99'}\n",
    "json": '{"db": {"host": "k9-Ab-77", "others": ["k8-Ab-88", [{"x": "k7-Ab-99"}]]}}',
    "json in json": json.dumps({"x": json.dumps({"y": ["k9-Ab-77", "k8-Ab-88"], "z": json.dumps(["k7-Ab-99"])})}),
    "lines": "k9-Ab-77\nk8-Ab-88\n\nk7-Ab-99",
    "docker": json.dumps(
        {"auths": {f"{n}.x": {"auth": in_base64(f"etl:k{n}")} for n in ("9-Ab-77", "8-Ab-88", "7-Ab-99")}}
    ),
    "netrc": "machine a login b password k9-Ab-77\nmachine c\n  login k8-Ab-88\n  password k7-Ab-99\n",
    "pgpass": "db.x:5432:shop:etl:k9-Ab-77\n*:*:*:k8:k8-Ab-88\nh:1:d:u:k7-Ab-99\n",
    "kubeconfig": f"users:\n- name: k9-Ab-77\n  user:\n    client-key-data: {in_base64(KEY)}\n",
    "env": "export A='k9-Ab-77'\nB=\"k8-Ab-88\"\nC=k7-Ab-99 # old\n",
    "xml": '<server id="k9-Ab-77">\n <password>k8-Ab-88</password><x>\n  k7-Ab-99\n </x>\n</server>\n',
    "yaml with tags and aliases": "a: &x !vault kM9AbAb77\nb: {c: kM8AbAb88, d: [*x, kM7AbAb99]}\n",
    "other marks": "bob|kM9AbAb77|x\nbob:kM8AbAb88:x:y\nAuthorization: Bearer kM7AbAb99\n",
    "broken": '{"a": "k9-Ab-77",\n"b": "k8-Ab-88",\nk7-Ab-99',
}


@pytest.mark.parametrize("kind", FILES)
def test_all_of_a_file_is_taken_by_line_and_by_value(kind: str) -> None:
    found = literals_in_content(FILES[kind])
    made_up = "kM9AbAb77" in FILES[kind]
    expected = {"kM9AbAb77", "kM8AbAb88", "kM7AbAb99"} if made_up else {"k9-Ab-77", "k8-Ab-88", "k7-Ab-99"}
    assert expected <= {*found}
    assert not {"localhost", "db", "host", "[db]", "db:", "users:", "password", "login"} & {*found}


def test_ordinary_lines_of_a_file_stay() -> None:
    text = "version: 1\n[default]\nuser: sales\ntype: postgres\nhost: localhost\nthreads: 4\n# see above\nregion: eu-west-1\n"
    assert literals_in_content(text) == ("# see above",)


def test_file_of_short_lines_is_hidden_as_a_whole() -> None:
    for text in ("ab1\ncd2\nef3", "a: 1\nb: 2"):
        assert Redactor(passed=literals_in_content(text)).text(f"x {text}") == f"x {MARK}"


def test_large_values_are_hidden_as_a_whole_only() -> None:
    value = "k: v-123-456\n" * 400
    assert passed_literals({"X": value}) == (value.strip(),)
    assert literals_in_content(value) == ()


def test_values_deep_in_each_other_end() -> None:
    value = "k9-Ab-77"
    for _ in range(8):
        value = in_base64(value)
    assert passed_literals({"X": value})[0] == value
