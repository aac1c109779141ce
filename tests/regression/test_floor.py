"""What makes the floor weaker, and what does not."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.manifest.model import DeclaredOutput, GoldenProjectConfig, Manifest, RetiredProject
from pytest_golden.regression.floor import find_changed_baselines, find_weakenings
from pytest_golden.regression.verdict import ChangedBaseline, Weakening

ROOT = Path("/work")


def make_manifest(*projects: GoldenProjectConfig, **keys: Any) -> Manifest:
    return Manifest(projects, keys.pop("workspace_root", ROOT), **keys)


def make_project(name: str = "sales", **keys: Any) -> GoldenProjectConfig:
    return GoldenProjectConfig(name, keys.pop("path", "sales/pipeline.py"), **keys)


def compare(old: dict[str, Any], new: dict[str, Any]) -> tuple[Weakening, ...]:
    return find_weakenings(make_manifest(make_project(**old)), make_manifest(make_project(**new)), not_run={})


def quarantine(day: int) -> dict[str, Any]:
    return {"quarantine": {"until": date(2026, 12, day), "reason": "flaky upstream"}}


LOOSENINGS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("expectation", {}, {"expected_outcome": "specific_error:x"}),
    ("expectation", {"expected_outcome": "specific_error:x"}, {"expected_outcome": "specific_error:."}),
    ("expectation", {"expected_outcome": "specific_error:x"}, {}),
    ("expectation", {"expected_outcome": "exit_code:3"}, {"expected_outcome": "exit_code:4"}),
    ("limit", {"timeout": 600}, {"timeout": 1200}),
    ("limit", {"memory_limit": 1 << 30}, {"memory_limit": 2 << 30}),
    ("limit", {"memory_limit": 1 << 30}, {}),
    ("limit", {"cpu_limit": 60}, {}),
    ("limit", {"process_limit": 8}, {"process_limit": 9}),
    ("limit", {"disk_limit": 1 << 30}, {}),
    ("retries", {}, {"retries": 2}),
    ("skip_if_missing", {}, {"skip_if_missing": ["dbt"]}),
    ("network", {"network": False}, {}),
    ("network", {"network": "loopback"}, {"network": "host"}),
    ("network", {}, {"network": "host"}),
    ("mounts", {}, {"mounts": [{"path": "/data", "mode": "read"}]}),
    ("mounts", {"mounts": [{"path": "/data"}]}, {"mounts": [{"path": "/data", "mode": "write"}]}),
    ("quarantine", {}, quarantine(1)),
    ("quarantine", quarantine(1), quarantine(2)),
    ("unexpected_files", {"unexpected_files": "fail"}, {"unexpected_files": "warn"}),
    ("unexpected_files", {"unexpected_files": "warn"}, {"unexpected_files": "warn", "writes": ["**"]}),
    ("project_dir", {"view": "tracked"}, {"view": "all"}),
    ("project_dir", {}, {"view": "all"}),
    ("command", {}, {"command": ["true"]}),
    ("command", {"command": ["make", "all"]}, {"command": ["make", "none"]}),
    ("command", {"after": ["python check.py"]}, {}),
    ("command", {}, {"before": ["rm -r data"]}),
    ("args", {"args": ["--strict"]}, {"args": ["--select", "a b"]}),
    ("runner", {}, {"runner": "shell"}),
    ("path", {}, {"path": "sales/empty.py"}),
    ("project_dir", {}, {"project_dir": "other"}),
    ("environment", {}, {"set_env": {"STRICT": "0"}}),
    ("environment", {"set_env": {"STRICT": "1"}}, {"set_env": {"STRICT": "0"}}),
    ("environment", {}, {"pass_env": ["CI"]}),
    ("environment", {}, {"pass_files": ["~/.dbt/profiles.yml"]}),
    ("environment", {}, {"venv": ".venv"}),
    ("environment", {"clock": "2026-11-20"}, {"clock": "2026-11-21"}),
    ("environment", {"pass_env": ["CI"]}, {"pass_env": ["CI"], "not_secret": ["CI"]}),
]


@pytest.mark.parametrize(("kind", "old", "new"), LOOSENINGS)
def test_a_loosened_project_is_a_weakening(kind: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    (weakening,) = compare(old, new)
    assert (weakening.project, weakening.kind) == ("sales", kind)
    assert weakening.message
    assert set(weakening.to_dict()) == {"project", "kind", "message", "base", "head"}


TIGHTENINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"timeout": 600}, {"timeout": 60}),
    ({}, {"memory_limit": 1 << 30}),
    ({}, {"process_limit": 8, "disk_limit": 1 << 30}),
    ({"memory_limit": 2 << 30}, {"memory_limit": 1 << 30}),
    ({"retries": 2}, {}),
    ({"skip_if_missing": ["dbt", "odibi"]}, {"skip_if_missing": ["odibi"]}),
    ({}, {"network": False}),
    ({"network": "host"}, {}),
    ({"network": False}, {"network": "loopback"}),
    ({"mounts": [{"path": "/data", "mode": "write"}]}, {"mounts": [{"path": "/data", "mode": "read"}]}),
    ({"mounts": [{"path": "/data"}]}, {}),
    (quarantine(2), quarantine(1)),
    (quarantine(2), {}),
    ({"unexpected_files": "warn"}, {"unexpected_files": "fail"}),
    ({"view": "all"}, {"view": "tracked"}),
    ({"pass_files": ["a"], "not_secret": ["a"]}, {"pass_files": ["a"]}),
    ({"unexpected_files": "fail", "writes": ["a", "b"]}, {"unexpected_files": "fail", "writes": ["a"]}),
]
NOTHINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({}, {"title": "Sales", "description": "never break", "tags": ["nightly"]}),
    ({}, {"path": "./sales/pipeline.py"}),
    ({}, {"project_dir": "sales"}),
    ({}, {"expected_outcome": "exit_code:0"}),
    ({"pass_env": ["A", "B"]}, {"pass_env": ["B", "A"]}),
    ({"mounts": [{"path": "/data", "mode": "copy"}]}, {"mounts": [{"path": "/data", "mode": "copy"}]}),
    ({}, {"writes": ["**"]}),
    ({}, {"independent": True, "depends_on": ["lib/**"]}),
]


@pytest.mark.parametrize(("old", "new"), TIGHTENINGS + NOTHINGS)
def test_tightening_and_words_for_people_are_nothing(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert compare(old, new) == ()


def test_messages_say_from_what_to_what() -> None:
    (timeout,) = compare({"timeout": 600}, {"timeout": 1200})
    assert (timeout.message, timeout.base, timeout.head) == ("timeout was raised from 10m to 20m", "10m", "20m")
    (network,) = compare({}, {"network": "host"})
    assert (network.message, network.base, network.head) == ("network was widened from true to host", "true", "host")
    (command,) = compare({}, {"command": ["make", "a b"]})
    assert command.message == "command changed from none to make 'a b'"


def test_no_secret_gets_into_a_message() -> None:
    weakenings = (
        *compare({"set_env": {"DB_PASSWORD": "hunter22"}}, {"set_env": {"DB_PASSWORD": "hunter23"}}),
        *compare({"args": ["--password", "hunter22"]}, {"args": ["--password=hunter23"]}),
    )
    assert len(weakenings) == 2
    assert "hunter2" not in repr(weakenings)


def test_a_project_that_is_gone_is_a_weakening_also_when_it_is_retired_or_renamed() -> None:
    base = make_manifest(make_project("a"), make_project("b", path="b.py"))
    (gone,) = find_weakenings(base, make_manifest(make_project("a")), not_run={})
    assert (gone.project, gone.kind, gone.message[:7]) == ("b", "project_gone", "is gone")
    head = make_manifest(make_project("a"), retired=(RetiredProject("b", "replaced by a"),))
    (retired,) = find_weakenings(base, head, not_run={})
    assert (retired.project, retired.kind, retired.message) == ("b", "retired", "was retired: replaced by a")
    (renamed,) = find_weakenings(base, make_manifest(make_project("a"), make_project("c", path="b.py")), not_run={})
    assert (renamed.kind, renamed.head, renamed.message[:16]) == ("project_gone", "c", "was renamed to c")
    assert find_weakenings(make_manifest(), base, not_run={}) == ()
    assert find_weakenings(head, head, not_run={}) == ()


def test_a_setup_that_is_added_or_changed_is_a_weakening_and_a_removed_one_is_not() -> None:
    without, with_one = Manifest((), Path("/work")), Manifest((), Path("/work"), setup=("make", "deps"))
    (added,) = find_weakenings(without, with_one, not_run={})
    assert (added.project, added.kind, added.message) == (None, "setup", "setup was added: make deps")
    (changed,) = find_weakenings(with_one, Manifest((), Path("/work"), setup=("make",)), not_run={})
    assert changed.message == "setup changed from make deps to make"
    assert find_weakenings(with_one, without, not_run={}) == find_weakenings(with_one, with_one, not_run={}) == ()


def test_a_project_that_was_not_run_is_a_weakening() -> None:
    base = make_manifest(make_project("a"), make_project("b"))
    head = make_manifest(make_project("a"), make_project("b"), make_project("new"))
    (skipped,) = find_weakenings(base, head, not_run={"b": "deselected by -k", "new": "deselected by -k"})
    assert (skipped.project, skipped.kind, skipped.message) == ("b", "not_run", "was not run: deselected by -k")


def test_the_manifest_itself_can_be_weaker() -> None:
    base = make_manifest(require_golden_projects=True)
    (requirement,) = find_weakenings(base, make_manifest(), not_run={})
    assert (requirement.project, requirement.kind) == (None, "requirement")
    assert find_weakenings(make_manifest(), base, not_run={}) == ()
    (root,) = find_weakenings(make_manifest(), make_manifest(workspace_root=Path("/other")), not_run={})
    assert (root.project, root.kind) == (None, "path")


def test_lost_pattern_of_depends_on_weakens_and_a_new_one_does_not() -> None:
    new = {"depends_on": ["lib/**", "data/**"]}
    (weakening,) = compare({"depends_on": ["lib/**", "sql/**"]}, new)
    assert weakening.kind == "depends_on"
    assert weakening.message.startswith("depends_on lost sql/**")
    assert compare({}, new) == ()


def make_outputs(*outputs: DeclaredOutput, **keys: Any) -> Manifest:
    return Manifest((GoldenProjectConfig("sales", "sales/pipeline.py", outputs=outputs, **keys),), Path("/work"))


def compare_outputs(old: dict[str, Any], new: dict[str, Any]) -> tuple[Weakening, ...]:
    was, now = (make_outputs(DeclaredOutput(**{"path": "out/a.csv", **rules})) for rules in (old, new))
    return find_weakenings(was, now, not_run={})


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({}, {"profile_above": "1MB"}, "47.7MiB to 976.6KiB"),
        ({"profile_above": "2kB"}, {"profile_above": "1kB"}, "2KiB to 1000B"),
    ],
)
def test_a_profile_of_smaller_tables_is_a_weakening(old: dict[str, Any], new: dict[str, Any], told: str) -> None:
    (weakening,) = compare_outputs({"table": "t", **old}, {"table": "t", **new})
    assert weakening.message == f"the output t of out/a.csv: profile_above was lowered from {told}"
    assert compare_outputs({"table": "t", **new}, {"table": "t", **old}) == ()


@pytest.mark.parametrize(
    ("kind", "old", "new", "message"),
    [
        ("output", {}, {"compare": "exists"}, "compare was weakened from table to exists"),
        ("output", {}, {"compare": "json"}, "compare was weakened from table to json"),
        ("output", {"compare": "bytes"}, {}, "compare was weakened from bytes to table"),
        ("output", {"compare": "bytes"}, {"compare": "text"}, "compare was weakened from bytes to text"),
        ("output", {"compare": "text"}, {"compare": "json"}, "compare was weakened from text to json"),
        (
            "output",
            {"compare": "exists", "min_bytes": 9},
            {"compare": "exists"},
            "min_bytes was widened from 9 to none",
        ),
        (
            "output",
            {"compare": "exists", "max_bytes": 9},
            {"compare": "exists", "max_bytes": 10},
            "max_bytes was widened from 9 to 10",
        ),
        ("output", {"min_rows": 5}, {"min_rows": 4}, "min_rows was widened from 5 to 4"),
        ("output", {"max_rows": 5}, {}, "max_rows was widened from 5 to none"),
        ("tolerance", {}, {"absolute_tolerance": 0.5}, "absolute_tolerance was raised from 0 to 0.5"),
        (
            "tolerance",
            {"relative_tolerance": 1e-9},
            {"relative_tolerance": 1e-6},
            "relative_tolerance was raised from 1e-09 to 1e-06",
        ),
        ("output", {}, {"ignore_columns": ["at", "id"]}, "ignore_columns gained at, id"),
        ("output", {"compare": "text"}, {"compare": "text", "masks": ["a"]}, "masks gained a"),
        ("output", {"compare": "text"}, {"compare": "text", "ignore_lines": ["a"]}, "ignore_lines gained a"),
        ("output", {"compare": "json"}, {"compare": "json", "ignore_paths": ["$.a"]}, "ignore_paths gained $.a"),
        ("output", {}, {"unordered": True}, "unordered was switched on"),
        ("output", {}, {"schema_only": True}, "schema_only was switched on"),
        ("output", {}, {"allow_secret": "test data"}, "allow_secret was added (test data)"),
        ("output", {"key": ["id"]}, {"key": ["id", "day"]}, "key changed from id to id, day"),
        ("output", {"key": ["id"]}, {}, "key changed from id to none"),
        ("output", {"compare": "json"}, {"compare": "text", "masks": ["a"]}, "masks gained a"),
        ("output", {"not_null": ["a", "b"]}, {"not_null": ["b"]}, "not_null lost a: bring it back"),
        ("output", {"unique": ["a"]}, {}, "unique lost a: bring it back"),
        ("output", {"between": {"a": [0, 1]}}, {}, "between lost a: bring it back"),
        (
            "output",
            {"between": {"a": [0, 1]}},
            {"between": {"a": [0, 2]}},
            "between was widened for a from [0, 1] to [0, 2]",
        ),
        (
            "output",
            {"between": {"a": [0, 1]}},
            {"between": {"a": [None, 1]}},
            "between was widened for a from [0, 1] to [null, 1]",
        ),
        (
            "output",
            {"between": {"a": ["2024-01-01", None]}},
            {"between": {"a": ["2023-01-01", None]}},
            "between was widened for a from [2024-01-01, null] to [2023-01-01, null]",
        ),
        ("output", {"accepted": {"a": ["x"]}}, {"accepted": {"a": ["x", "y"]}}, "accepted gained y for a"),
        ("output", {"accepted": {"a": ["x"]}}, {}, "accepted lost a: bring it back"),
        (
            "output",
            {"newest": {"column": "a", "max_age": "1d"}},
            {"newest": {"column": "a", "max_age": "2d"}},
            "newest was loosened from a in 86400 seconds to a in 172800 seconds",
        ),
        (
            "output",
            {"newest": {"column": "a", "max_age": "1h"}},
            {},
            "newest was loosened from a in 3600 seconds to none",
        ),
        (
            "output",
            {"schema_only": True, "row_count_change": "10%"},
            {"schema_only": True, "row_count_change": "20%"},
            "row_count_change was raised from 0.1 to 0.2",
        ),
        ("output", {"compare": "text", "contains": ["a"]}, {"compare": "text"}, "contains lost a: bring it back"),
        (
            "output",
            {"compare": "exists", "not_contains": ["a", "b"]},
            {"compare": "bytes"},
            "not_contains lost a, b: bring it back",
        ),
    ],
)
def test_a_loosened_rule_is_a_weakening(kind: str, old: dict[str, Any], new: dict[str, Any], message: str) -> None:
    (weakening,) = compare_outputs(old, new)
    assert (weakening.project, weakening.kind) == ("sales", kind)
    assert weakening.message == f"the output out/a.csv: {message}"


ORDERS = {"path": "a.db", "table": "orders"}
MARTS = {"path": "a.db", "tables": ["m.*", "n.*"]}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (ORDERS, {**ORDERS, "table": "other"}, "the output orders of a.db: is no longer an output: bring it back"),
        (ORDERS, {"path": "a.db"}, "the output orders of a.db: is no longer an output: bring it back"),
        (
            ORDERS,
            {"path": "a.db", "tables": ["o*"], "ignore_columns": ["at"]},
            "the output orders of a.db: ignore_columns gained at",
        ),
        (MARTS, {**MARTS, "tables": ["m.*"]}, "the output m.*, n.* of a.db: tables lost n.*: bring it back"),
        (MARTS, {**MARTS, "exclude": ["m.x"]}, "the output m.*, n.* of a.db: exclude gained m.x"),
        ({"dbt": ["a", "b"]}, {"dbt": ["a"]}, "the output a, b of dbt: dbt lost b: bring it back"),
    ],
)
def test_a_table_that_is_no_longer_looked_at_is_a_weakening(
    old: dict[str, Any], new: dict[str, Any], message: str
) -> None:
    was, now = make_outputs(DeclaredOutput(**old)), make_outputs(DeclaredOutput(**new))
    (weakening,) = find_weakenings(was, now, not_run={})
    assert weakening.message == message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (ORDERS, {"path": "a.db", "tables": ["ord*"]}),
        (MARTS, {**MARTS, "tables": ["n.*", "m.*", "x"]}),
        ({**MARTS, "exclude": ["m.x"]}, MARTS),
    ],
)
def test_more_tables_are_nothing(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert find_weakenings(make_outputs(DeclaredOutput(**old)), make_outputs(DeclaredOutput(**new)), not_run={}) == ()


def test_baselines_of_tables_are_those_of_their_entry() -> None:
    project = make_outputs(DeclaredOutput("a.db", table="orders")).projects[0]
    changed = [ChangedBaseline("sales", f"a.db/main.{name}.parquet", is_gone=False) for name in ("orders", "other")]
    (weakening,) = find_changed_baselines(project, changed)
    assert weakening.message == "baseline was changed: a.db/main.orders.parquet"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"compare": "table"}),
        ({}, {"compare": "bytes"}),
        ({"schema_only": True, "min_rows": 3, "key": ["id"]}, {"compare": "bytes"}),
        ({"compare": "exists", "min_bytes": 3}, {}),
        ({"compare": "exists"}, {"compare": "text", "masks": ["a"], "unordered": True}),
        ({"compare": "exists", "min_bytes": 3}, {"compare": "exists", "min_bytes": 4, "max_bytes": 9}),
        ({"compare": "image_size"}, {"compare": "bytes"}),
        ({"compare": "text", "masks": ["a"]}, {"compare": "bytes"}),
        ({"compare": "json", "ignore_paths": ["$.a"]}, {"compare": "text"}),
        ({"max_rows": 5}, {"max_rows": 4, "min_rows": 1}),
        ({"absolute_tolerance": 0.5, "unordered": True, "ignore_columns": ["a"]}, {}),
        ({"key": ["a", "b"]}, {"key": ["b", "a"]}),
        ({"between": {"a": [0, None]}}, {"between": {"a": [1, 5], "b": [0, 1]}}),
        ({"accepted": {"a": ["x", "y"]}}, {"accepted": {"a": ["y"]}, "not_null": ["a"], "unique": ["a"]}),
        ({"newest": {"column": "a", "max_age": "2d"}}, {"newest": {"column": "a", "max_age": "1d"}}),
        ({"schema_only": True, "row_count_change": "10%"}, {"row_count_change": None}),
        ({"compare": "text", "contains": ["a"]}, {"compare": "text", "contains": ["a", "b"], "not_contains": ["c"]}),
    ],
)
def test_a_tightened_rule_is_nothing(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert compare_outputs(old, new) == ()


@pytest.mark.parametrize(
    ("old", "new", "is_weaker"),
    [
        (None, "bytes", False),
        (None, "text", True),
        (None, "table", True),
        (None, "exists", True),
        ("bytes", None, True),
        ("text", None, True),
        ("json", None, True),
        ("exists", None, False),
        (None, None, False),
    ],
)
def test_what_the_suffix_of_each_file_decides_may_be_any_comparison(
    old: str | None, new: str | None, is_weaker: bool
) -> None:
    assert bool(compare_outputs({"path": "out/*", "compare": old}, {"path": "out/*", "compare": new})) is is_weaker


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_less_asked_of_what_is_printed_is_a_weakening(stream: str) -> None:
    def make(**rules: Any) -> Manifest:
        given: dict[str, Any] = {stream: rules} if rules else {}
        return Manifest((GoldenProjectConfig("sales", "a.sh", **given),), Path("/w"))

    old = make(contains=["rows"], not_contains=["failed", "password=hunter2hunter2"])
    for new, message in (
        (
            make(contains=["rows"], not_contains=["password=hunter2hunter2"]),
            f"{stream}: not_contains lost failed: bring it back",
        ),
        (make(), f"{stream}: contains lost rows: bring it back"),
    ):
        found = find_weakenings(old, new, not_run={})
        assert message in [weakening.message for weakening in found]
        assert "hunter2" not in str([weakening.to_dict() for weakening in found])
    assert find_weakenings(old, old, not_run={}) == ()
    assert find_weakenings(make(contains=["a"]), make(contains=["a", "b"], not_contains=["c"]), not_run={}) == ()


def test_an_output_that_is_gone_is_a_weakening_and_a_new_one_is_nothing() -> None:
    a, b, c = (DeclaredOutput(path) for path in ("a.csv", "b.csv", "c.csv"))
    (gone,) = find_weakenings(make_outputs(a, b), make_outputs(c, a), not_run={})
    assert (gone.kind, gone.message) == ("output", "the output b.csv: is no longer an output: bring it back")
    assert (gone.base, gone.head) == ("b.csv", None)


def test_outputs_with_one_path_are_compared_in_their_order() -> None:
    twice = DeclaredOutput("a.csv"), DeclaredOutput("a.csv", "exists", min_bytes=5)
    assert find_weakenings(make_outputs(*twice), make_outputs(*twice, DeclaredOutput("a.csv")), not_run={}) == ()
    (gone,) = find_weakenings(make_outputs(*twice), make_outputs(twice[0]), not_run={})
    assert "is no longer an output" in gone.message


@pytest.mark.parametrize(("old", "new"), [(2.0, 3.0), (2.0, None)])
def test_a_raised_slowdown_is_a_weakening(old: float, new: float | None) -> None:
    (raised,) = find_weakenings(make_outputs(max_slowdown=old), make_outputs(max_slowdown=new), not_run={})
    assert raised.kind == "limit"
    told = "none" if new is None else "3 times the median"
    assert raised.message == f"max_slowdown was raised from 2 times the median to {told}"


@pytest.mark.parametrize(("old", "new"), [(None, 2.0), (3.0, 2.0), (2.0, 2.0)])
def test_a_lowered_slowdown_is_nothing(old: float | None, new: float) -> None:
    assert find_weakenings(make_outputs(max_slowdown=old), make_outputs(max_slowdown=new), not_run={}) == ()


@pytest.mark.parametrize(("strictness", "count"), [("allow", 0), ("warn", 1), ("fail", 1)])
def test_an_output_that_only_has_to_exist_allows_files_that_were_unexpected(strictness: str, count: int) -> None:
    old = make_outputs(unexpected_files=strictness)
    compared = make_outputs(DeclaredOutput("**/*.csv"), unexpected_files=strictness)
    allowed = make_outputs(DeclaredOutput("**", "exists"), unexpected_files=strictness)
    assert find_weakenings(old, compared, not_run={}) == ()
    found = find_weakenings(old, allowed, not_run={})
    assert [(one.kind, one.message) for one in found] == [
        ("unexpected_files", "outputs gained ** (compare: exists)")
    ] * count


def test_changed_and_removed_baselines_are_weakenings() -> None:
    manifest = make_outputs(DeclaredOutput("out/**"), DeclaredOutput("model.bin", "exists"))
    changed = [
        ChangedBaseline("sales", "out/a.csv"),
        ChangedBaseline("sales", "out/b.csv", is_gone=True),
        ChangedBaseline("sales", "out/c.csv", is_gone=True),
        ChangedBaseline("sales", "stale.csv", is_gone=True),
        ChangedBaseline("sales", "model.bin"),
        ChangedBaseline("other", "out/a.csv"),
    ]
    found = find_weakenings(manifest, manifest, not_run={}, changed_baselines=changed)
    assert [(one.project, one.kind, one.message) for one in found] == [
        ("sales", "baseline", "baseline was changed: out/a.csv"),
        ("sales", "baseline", "2 baselines were removed: out/b.csv, out/c.csv"),
    ]


def test_a_folder_of_baselines_that_changed_as_a_whole_is_told() -> None:
    manifest = make_outputs(DeclaredOutput("a.csv"))
    (weakening,) = find_weakenings(manifest, manifest, not_run={}, changed_baselines=[ChangedBaseline("sales", "")])
    assert weakening.message == "baseline was changed: all of them (a submodule)"
    without = make_outputs()
    assert find_weakenings(without, without, not_run={}, changed_baselines=[ChangedBaseline("sales", "")]) == ()


def test_many_baselines_are_counted_and_odd_names_are_shown_in_one_line() -> None:
    manifest = make_outputs(DeclaredOutput("**"))
    changed = [ChangedBaseline("sales", f"{number}\n.csv") for number in range(12)]
    (weakening,) = find_weakenings(manifest, manifest, not_run={}, changed_baselines=changed)
    assert weakening.message.startswith("12 baselines were changed: 0\\n.csv, 1\\n.csv, ")
    assert weakening.message.endswith(", 9\\n.csv and 2 more")


def test_baselines_of_a_retired_project_are_told_with_it() -> None:
    head = Manifest((), Path("/work"), retired=(RetiredProject("sales", "replaced"),))
    gone = [ChangedBaseline("sales", "a.csv", is_gone=True)]
    base = make_outputs(DeclaredOutput("a.csv"))
    (retired,) = find_weakenings(base, head, not_run={}, changed_baselines=gone)
    assert retired.kind == "retired"


def test_no_secret_of_an_output_gets_into_a_message() -> None:
    old = make_outputs(DeclaredOutput("a.txt"))
    new = make_outputs(DeclaredOutput("a.txt", masks=("password=hunter2hunter2",)))
    (weakening,) = find_weakenings(old, new, not_run={})
    assert "hunter2" not in str(weakening.to_dict())


_NAMES = st.lists(st.sampled_from("abc"), unique=True, max_size=2).map(lambda names: tuple(sorted(names)))
_TABLES = st.builds(
    DeclaredOutput,
    st.just("out/a.csv"),
    st.sampled_from([None, "table"]),
    unordered=st.booleans(),
    absolute_tolerance=st.sampled_from([0.0, 0.5, 1.0]),
    relative_tolerance=st.sampled_from([0.0, 1e-6]),
    key=_NAMES,
    ignore_columns=_NAMES,
    schema_only=st.booleans(),
    min_rows=st.none() | st.integers(0, 3),
    max_rows=st.none() | st.integers(3, 6),
)


@given(_TABLES)
def test_the_same_is_never_weaker(output: DeclaredOutput) -> None:
    assert find_weakenings(make_outputs(output), make_outputs(output), not_run={}) == ()


@given(_TABLES, _TABLES)
def test_of_two_that_ask_for_other_things_one_is_weaker(one: DeclaredOutput, other: DeclaredOutput) -> None:
    there, back = (
        find_weakenings(make_outputs(old), make_outputs(new), not_run={}) for old, new in ((one, other), (other, one))
    )
    assert bool(there or back) is (replace(one, compare=None) != replace(other, compare=None))
