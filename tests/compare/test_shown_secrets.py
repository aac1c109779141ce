"""What is shown of a difference holds no secret, and no part of one that a cut made unrecognizable."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.compare.comparing import compare_files
from pytest_golden.manifest.model import DeclaredOutput
from pytest_golden.redaction.redactor import redact

if TYPE_CHECKING:
    from tests.compare.files import Files

TOKEN = "ghp_16C7e42F292c6912E7710c838347Ae178B4"
KEY_LINES = [f"MIIEpAIBAAKCAQEA7bq3Zkq0w{number}kJ8Yb2mN5vQ1xR7tL4cW9dF6hG3sA0pZ" for number in range(20)]


def key_of(lines: list[str]) -> str:
    return "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *lines, "-----END RSA PRIVATE KEY-----", ""])


def tell(files: Files, name: str, output: object, baseline: object, **rules: Any) -> str:
    declared = DeclaredOutput(path=name, **rules)
    actual, accepted = files.write("view", name, output), files.write("baselines", name, baseline)
    found = compare_files(declared, actual, accepted, shown_as=name, redact=redact)
    assert found is not None
    return redact(found.message)


@pytest.mark.parametrize("unordered", [False, True])
@pytest.mark.parametrize("before", ["", "x" * 50 + " ", "x" * 190 + " ", "x " * 5000])
def test_no_line_shows_a_part_of_a_secret(files: Files, before: str, *, unordered: bool) -> None:
    output, baseline = (f"first\n{before}token={TOKEN}{end}\n" for end in "ab")
    told = tell(files, "a.txt", output, baseline, unordered=unordered)
    assert "16C7" not in told
    assert "78B4" not in told


@pytest.mark.parametrize("changed", [0, 10, 19])
def test_lines_of_a_secret_are_not_shown_one_by_one_either(files: Files, changed: int) -> None:
    others = [*KEY_LINES[:changed], KEY_LINES[changed][::-1], *KEY_LINES[changed + 1 :]]
    told = tell(files, "a.txt", f"new\n{key_of(others)}", f"old\n{key_of(KEY_LINES)}", unordered=True)
    assert told.splitlines()[1:] == [
        "- old",
        "- [... not shown: redaction finds a secret there ...]",
        "+ new",
        "+ [... not shown: redaction finds a secret there ...]",
    ]
    wide = [b"plain\n" * 1000 + f"\n{key_of(lines)}".encode("utf-16-be") for lines in (others, KEY_LINES)]
    told = tell(files, "a.txt", *wide, unordered=True).replace("\\x00", "")
    assert "MIIE" not in told
    assert told.count("[... not shown") == 2


@pytest.mark.parametrize("changed", [0, 10, 19])
def test_around_a_secret_of_several_lines_nothing_is_shown(files: Files, changed: int) -> None:
    others = [*KEY_LINES[:changed], KEY_LINES[changed][::-1], *KEY_LINES[changed + 1 :]]
    told = tell(files, "a.txt", f"a\n{key_of(others)}", f"a\n{key_of(KEY_LINES)}")
    assert told.endswith("[... not shown: redaction finds a secret there ...]")
    assert "MII" not in told
    assert "AIIM" not in told


def test_both_values_of_a_telling_key_are_redacted(files: Files) -> None:
    output = {
        "db": {"password": "hunter2secret", "port": 1},
        "list": {"api_key": ["swordfish99"]},
        "t": "x" * 70 + TOKEN + "a",
    }
    baseline = {"db": {"password": "hunter3secret", "port": 2}, "list": {}, "t": "x" * 70 + TOKEN + "b"}
    told = tell(files, "a.json", output, baseline)
    assert "$.db.port: 2 -> 1" in told
    for secret in ("hunter", "swordfish", "16C7"):
        assert secret not in told


def test_bytes_in_a_secret_are_not_shown(files: Files) -> None:
    output, baseline = (
        b"\0" * 1000 + f"password={word}".encode() + b"\0" * 1000 for word in ("hunter2sec", "hunter3sec")
    )
    told = tell(files, "a.bin", output, baseline)
    assert "first at byte 1,015 " in told
    assert told.endswith("[... not shown: redaction finds a secret there ...]")


@pytest.mark.parametrize("name", ["a.bin", "a.txt"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16", "utf-32-le", "utf-32-be", "utf-32"])
def test_secret_in_wide_text_is_not_shown(files: Files, name: str, encoding: str) -> None:
    output, baseline = (f"one\ntoken={TOKEN}{end}\n".encode(encoding) for end in "ab")
    told = tell(files, name, output, baseline).replace("\\x00", "").replace(".", "")
    assert "16C7" not in told
    assert "78B4" not in told


@pytest.mark.parametrize("unordered", [False, True])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_secret_in_wide_text_among_other_bytes_is_not_shown(files: Files, encoding: str, *, unordered: bool) -> None:
    secrets = f"token={TOKEN}", key_of(KEY_LINES)
    for secret in secrets:
        output, baseline = (
            f"{'plain ' * 9}\n{end} ".encode() + f"\n{secret}".encode(encoding) + end.encode() for end in "ab"
        )
        told = tell(files, "a.txt", output, baseline, unordered=unordered).replace("\\x00", "")
        assert "16C7" not in told
        assert "MIIE" not in told


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"key": ("id",)},
        {"key": ("password",)},
        {"key": ("note",)},
        {"unordered": True},
        {"ignore_columns": ("id",)},
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("before", [0, 30, 1990])
def test_cells_of_tables_are_redacted_before_they_are_cut(
    files: Files, rules: dict[str, Any], form: str, before: int
) -> None:
    pytest.importorskip("duckdb")

    def write(end: str) -> str:
        row = {"id": "1", "password": f"hunter2secret{end}", "note": "x " * before + TOKEN + end}
        if form == "csv":
            return "\n".join([",".join(row), ",".join(row.values()), ""])
        return json.dumps(row) + "\n"

    told = tell(files, f"a.{form}", write("a"), write("b"), **rules)
    for secret in ("hunter", "secret", "ghp", "16C7", "78B4"):
        assert secret not in told
    assert "differ" in told or "only here" in told


def test_values_of_a_repeated_key_are_redacted(files: Files) -> None:
    pytest.importorskip("duckdb")
    table = "api_key,n\nhunter2secret,1\nhunter2secret,2\n"
    told = tell(files, "a.csv", table, table, key=("api_key",))
    assert "a key that is not unique: `api_key`\n  api_key=[REDACTED] stands 2 times" in told
