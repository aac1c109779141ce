"""`golden calibrate` as a person uses it: real runs, and the manifest that comes of them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_golden.gate import calibrating
from pytest_golden.gateway.project_clock import find_faketime
from pytest_golden.manifest.reader import load_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden

MANIFEST = """\
golden_projects:
  - name: orders
    path: run.sh
    outputs:
      - path: out.csv  # all orders
      - path: machine.csv
  - name: no_outputs
    path: run.sh
"""
# Its rows come in the order of the hash seed, as those of a set do.
SCRIPT = """\
printf 'id,at\\n' > out.csv
if [ "$PYTHONHASHSEED" = 0 ]; then rows="1 2"; else rows="2 1"; fi
for row in $rows; do printf '%s,%s\\n' "$row" "$(date +%s%N)" >> out.csv; done
printf 'id,threads,processors,day,folder\n1,%s,%s,%s,%s\n' "${OMP_NUM_THREADS:-}" "$(env -u OMP_NUM_THREADS nproc)" "$(date +%F)" "$TMPDIR" > machine.csv
"""


@pytest.fixture
def orders(folder: Path) -> Path:
    (folder / "run.sh").write_text(SCRIPT)
    (folder / "golden_projects.yaml").write_text(MANIFEST)
    return folder


def test_rules_are_shown_and_written_only_when_asked(golden: Golden, orders: Path) -> None:
    shown = golden("calibrate")
    assert shown.code == 1
    assert "+        key: [id]" in shown.out
    assert "+        ignore_columns: [at]" in shown.out
    assert "to write this: add --write" in shown.out
    assert "no_outputs: " not in shown.out
    assert (orders / "golden_projects.yaml").read_text() == MANIFEST
    written = golden("calibrate", "orders", "--write", "--json")
    facts = written.json
    assert facts["written"] is True
    assert facts["projects"][0]["rules"][0] == {"output": "out.csv", "rules": {"key": ["id"], "ignore_columns": ["at"]}}
    output = load_manifest(orders / "golden_projects.yaml").projects[0].outputs[0]
    assert (output.key, output.ignore_columns) == (("id",), ("at",))
    assert "# seen in 2 runs: column `at`: all 2 values differ" in (orders / "golden_projects.yaml").read_text()
    again = golden("calibrate", "orders", "--json")
    assert (again.code, again.json["projects"][0]["stable"], again.json["diff"]) == (0, True, "")


def test_second_run_has_one_thread_another_day_and_folder(golden: Golden, orders: Path) -> None:
    found = golden("calibrate", "--json").json["projects"][0]
    told = next(file for file in found["files"] if file["path"] == "machine.csv")
    text = " ".join(told["seen"])
    assert "column `threads`: all 1 value differ, such as null and 1" in text
    assert "column `folder`: all 1 value differ, such as /tmp and /tmp/golden-calibrate-1" in text
    assert ("`processors`" in text) == (len(os.sched_getaffinity(0)) > 1)
    assert ("time" in found["varied"]) == ("`day`" in text) == (find_faketime() is not None)


def test_stable_project_is_exit_code_0(golden: Golden, orders: Path) -> None:
    (orders / "run.sh").write_text("echo id > out.csv; echo x > machine.csv\n")
    ran = golden("calibrate", "orders", "--runs", "3")
    assert (ran.code, ran.err if find_faketime() else "") == (0, "")
    assert "orders: 3 runs, its outputs are stable" in ran.out


def test_run_that_fails_proposes_nothing(golden: Golden, orders: Path) -> None:
    (orders / "run.sh").write_text('[ "$PYTHONHASHSEED" = 0 ] || exit 3\necho id > out.csv; echo x > machine.csv\n')
    ran = golden("calibrate", "orders")
    assert ran.code == 1
    assert "orders: 2 runs; the last one did not end as expected, so nothing is proposed" in ran.out
    assert "exit code 3" in ran.out


def test_changed_mount_is_no_noise(golden: Golden, orders: Path, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    (lake / "in.csv").write_text("1")
    # A run that really writes into what it reads: the second one finds other input.
    (orders / "run.sh").write_text(f"echo id > out.csv; cat {lake}/in.csv > machine.csv; echo 2 >> {lake}/in.csv\n")
    mounts = f"    mounts: [{{path: {lake}, mode: write}}]\n"
    (orders / "golden_projects.yaml").write_text(MANIFEST.replace("    outputs:\n", f"{mounts}    outputs:\n"))
    ran = golden("calibrate", "orders")
    assert ran.code == 1
    assert f"what it reads changed between the runs ({lake}/in.csv)" in ran.out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["no_outputs"], "no_outputs declares no output that is compared with a baseline"),
        (["nobody"], "nobody"),
        (["--runs", "1"], "--runs 1 has nothing to compare with"),
        (["--runs", "x"], "--runs"),
    ],
)
def test_bad_input_is_exit_code_2(golden: Golden, orders: Path, words: list[str], told: str) -> None:
    ran = golden("calibrate", *words)
    assert ran.code == 2
    assert told in ran.err


def test_entry_of_defaults_is_left_to_a_person(golden: Golden, orders: Path) -> None:
    (orders / "golden_projects.yaml").write_text(
        "defaults: {outputs: [{path: out.csv}]}\ngolden_projects: [{name: orders, path: run.sh}]\n"
    )
    ran = golden("calibrate", "--write")
    assert ran.code == 1
    assert "orders, out.csv: golden_projects[0].outputs[0] is declared in `defaults:`" in ran.out


@pytest.mark.parametrize("is_calibrated", [False, True])
def test_gate_names_the_rule_for_what_only_moves_and_does_not_say_accept(
    golden: Golden, orders: Path, *, is_calibrated: bool
) -> None:
    kept = orders / "golden_baselines" / "orders"
    kept.mkdir(parents=True)
    (orders / "run.sh").write_text(
        "printf 'id,at,by\\n1,%s,%s\\n' $(date +%FT%T) "
        + ("$(date +%N)" if is_calibrated else "x")
        + " > out.csv; echo id > machine.csv\n"
    )
    (kept / "out.csv").write_text("id,at,by\n1,2026-01-01T00:00:00,x\n")
    (kept / "machine.csv").write_text("id\n")
    if is_calibrated:
        assert golden("calibrate").code == 1
    ran = golden("run", "orders")
    assert ran.code == 1
    assert "this looks like noise, not a regression" in ran.out
    rule = "ignore_columns: [at, by]" if is_calibrated else "ignore_columns: [at]"
    assert rule in ran.out
    assert "accept it with" not in ran.out
    (kept / "machine.csv").write_text("no\n")
    assert "accept it with" in golden("run", "orders").out


@pytest.mark.skipif(find_faketime() is None, reason="needs libfaketime")
def test_a_run_that_another_time_fails_is_repeated_without(golden: Golden, orders: Path) -> None:
    # As Python's time.sleep does with libfaketime 0.9.10.
    (orders / "run.sh").write_text('[ -z "$FAKETIME" ] || { echo no time >&2; exit 3; }\n' + SCRIPT)
    found = golden("calibrate", "orders", "--json").json["projects"][0]
    assert found["error"] is None
    assert found["failed_by_clock"].startswith("exit code 3, expected 0: no time")
    assert "time" not in found["varied"]
    assert found["rules"][0]["rules"] == {"key": ["id"], "ignore_columns": ["at"]}
    told = " ".join(golden("calibrate", "orders").out.split())
    assert "all runs had the real time: with another one (libfaketime) it did not pass: exit code 3" in told


@pytest.mark.skipif(find_faketime() is None, reason="needs libfaketime")
def test_a_program_that_hangs_with_another_time_is_ended_soon(
    golden: Golden, orders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As kernels of notebooks do with libfaketime 0.9.10.
    monkeypatch.setattr(calibrating, "_HANGS_AFTER_SECONDS", 1)
    (orders / "run.sh").write_text('[ -z "$FAKETIME" ] || exec sleep 300\n' + SCRIPT)
    found = golden("calibrate", "orders", "--json").json["projects"][0]
    assert "time" not in found["varied"]
    assert found["failed_by_clock"].startswith("timed out after 1.")


@pytest.mark.skipif(find_faketime() is None, reason="needs libfaketime")
def test_a_file_that_is_named_by_the_second_gets_no_clock(golden: Golden, folder: Path) -> None:
    # With one, its name would be the same as long as the machine is as fast.
    (folder / "report.py").write_text(
        "import datetime, pathlib\n"
        "place = pathlib.Path(f'runs/{datetime.datetime.now():%Y-%m-%d/at_%H-%M-%S}.csv')\n"
        "place.parent.mkdir(parents=True)\n"
        "place.write_text('id\\n1\\n')\n"
        "pathlib.Path('orders.csv').write_text('id\\n1\\n')\n"
    )
    assert golden("init", "--from", f"{sys.executable} report.py").code == 0
    (project,) = load_manifest(folder / "golden_projects.yaml").projects
    assert (project.clock, "orders.csv" in [output.path for output in project.outputs]) == (None, True)


@pytest.mark.skipif(find_faketime() is None, reason="needs libfaketime")
def test_what_depends_on_the_day_gets_a_clock(golden: Golden, orders: Path) -> None:
    # A row for each day of this month and the last, and a random id, which no clock holds still.
    (orders / "run.sh").write_text("""\
printf 'day,at\\n' > out.csv
for day in $(seq $(($(date +%s) / 86400 - 20600))); do printf '%s,%s\\n' $day $(date +%N) >> out.csv; done
printf 'id,by\\n1,%s\\n' "$(cat /proc/sys/kernel/random/uuid)" > machine.csv
""")
    shown = golden("calibrate", "orders")
    assert shown.code == 1
    told = " ".join(shown.out.split())
    assert "orders: 2 runs, not all of its outputs are stable with `clock: 20" in told
    assert "the result depends on the date: out.csv: it has" in told
    facts = golden("calibrate", "orders", "--write", "--json").json
    clock = facts["projects"][0]["clock"]
    assert clock.endswith(" 00:00:00")
    (project, _) = load_manifest(orders / "golden_projects.yaml").projects
    assert project.clock == clock
    assert f"from {clock} by its own clock, at most" in " ".join(golden("check").out.split())
    assert [output.ignore_columns for output in project.outputs] == [("at",), ("by",)]
    assert "    # the result depends on the date: out.csv: it has" in (orders / "golden_projects.yaml").read_text()
    again = golden("calibrate", "orders", "--json").json["projects"][0]
    assert (again["stable"], again["clock"], again["varied"]) == (
        True,
        None,
        ["hash seed", "temporary folder", "one thread"],
    )
