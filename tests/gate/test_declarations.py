from __future__ import annotations

from dataclasses import replace

from pytest_golden.history.changes import compare_declarations
from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig, Mount
from pytest_golden.redaction.redactor import redact

BEFORE = GoldenProjectConfig("a", "a.py", timeout=600, set_env={"TZ": "UTC", "OLD": "1", "API_TOKEN": "a1b2c3d4e5f6"})


def test_same_declaration_has_no_changes() -> None:
    assert compare_declarations(BEFORE.to_dict(), BEFORE.to_dict()) == ()
    assert compare_declarations({}, BEFORE.to_dict()) == ()


def test_keys_that_changed_are_told_with_short_values() -> None:
    now = replace(
        BEFORE,
        timeout=60,
        args=("--select", "all"),
        network=False,
        mounts=(Mount("/data"),),
        memory_limit=2048,
        expected_outcome="specific_error:" + "x" * 100,
        title="For people",
        description="alike",
    )
    assert compare_declarations(BEFORE.to_dict(), now.to_dict()) == (
        f"expected_outcome success -> specific_error:{'x' * 42}...",
        'args none -> ["--select", "all"]',
        "timeout 10m -> 60s",
        "memory_limit none -> 2KiB",
        "network true -> false",
        'mounts none -> [{"path": "/data", "mode": "read"}]',
    )


def test_outputs_are_told_one_by_one() -> None:
    before = replace(
        BEFORE, outputs=(DeclaredOutput("a.csv"), DeclaredOutput("b.csv"), DeclaredOutput("b.csv", "exists"))
    )
    now = replace(
        BEFORE,
        outputs=(
            DeclaredOutput("a.csv", key=("id",), unordered=True, relative_tolerance=1e-6),
            DeclaredOutput("b.csv"),
            DeclaredOutput("c.csv"),
        ),
        max_slowdown=2.0,
    )
    assert compare_declarations(before.to_dict(), now.to_dict()) == (
        "outputs.a.csv.unordered false -> true",
        "outputs.a.csv.relative_tolerance 0 -> 1e-06",
        'outputs.a.csv.key none -> ["id"]',
        "outputs.c.csv added",
        "outputs.b.csv (2) removed",
        "max_slowdown none -> 2",
    )
    assert compare_declarations(before.to_dict(), before.to_dict()) == ()


def test_variables_are_told_one_by_one_and_secrets_never() -> None:
    now = replace(
        BEFORE, set_env={"TZ": "CET", "API_TOKEN": "f6e5d4c3b2a1", "NEW": "x", "DB_PASSWORD": "hunter2hunter2"}
    )
    lines = compare_declarations(BEFORE.to_dict(), now.to_dict())
    assert lines[:2] == ("set_env.TZ UTC -> CET", "set_env.NEW added: x")
    assert lines[-1] == "set_env.OLD removed"
    assert "hunter2" not in str(lines)
    assert "f6e5d4c3b2a1" not in str(lines)
    assert compare_declarations(redact(BEFORE.to_dict()), now.to_dict()) == lines
