"""Events go through a line of a spool and back unharmed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import StorageError
from pytest_golden.gate.events import (
    FailureExplained,
    GateEvent,
    SecretHider,
    Spool,
    read_event,
    read_spool,
    write_event,
)
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.redaction.redactor import Redactor
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from tests.gate.gate_events import begin, end, judge

if TYPE_CHECKING:
    from pathlib import Path

BEGUN = begin("one", "two")
NEWS = {"id": "signal_1", "signal_type": "negative", "summary": "weakened floor", "data": {}}


@pytest.mark.parametrize(
    "event",
    [
        BEGUN,
        judge(BEGUN, "one"),
        judge(BEGUN, "two", ResultStatus.ERROR),
        FailureExplained(BEGUN.run_id, "entry_1", ({"kind": "seen_before", "lines": ["seen"]},)),
        end(BEGUN, news=(NEWS,)),
    ],
)
def test_event_comes_back_from_its_json_line_equal(event: GateEvent) -> None:
    assert read_event(json.loads(json.dumps(write_event(event)))) == event


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        ({"event": "paused"}, "'paused' is not an event of a gate run"),
        ({}, "None is not an event of a gate run"),
        ({"event": "ended", "run_id": "x"}, "cannot be read"),
        ({"event": "judged", "run_id": "x"}, "cannot be read"),
    ],
)
def test_what_is_no_event_is_refused_with_a_reason(plain: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_event(plain)


def test_events_are_given_back_in_the_order_of_their_coming(tmp_path: Path) -> None:
    spool, begun = Spool(tmp_path / "spool"), begin("one")
    events: list[GateEvent] = [begun, judge(begun, "one"), end(begun)]

    paths = [spool.append(event) for event in events]

    assert spool.files() == (paths[0],)
    assert begun.run_id in {file.stem for file in spool.files()}
    assert list(read_spool(paths[0])) == events


def test_each_run_has_a_file_of_its_own_and_the_oldest_comes_first(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    first, second = begin("one", run_id="entry_01"), begin("one", run_id="entry_02")
    spool.append(second)
    spool.append(first)

    assert [path.stem for path in spool.files()] == ["entry_01", "entry_02"]
    assert not Spool(tmp_path / "elsewhere").files()


def test_torn_last_line_is_passed_over(tmp_path: Path) -> None:
    spool, begun = Spool(tmp_path), begin("one")
    path = spool.append(begun)
    spool.append(end(begun))
    path.write_bytes(path.read_bytes()[:-20])

    assert list(read_spool(path)) == [begun]


def test_line_that_is_no_event_names_file_and_line(tmp_path: Path) -> None:
    spool, begun = Spool(tmp_path), begin("one")
    path = spool.append(begun)
    with path.open("a") as file:
        file.write("no json\n")

    with pytest.raises(StorageError, match=rf"{path.name}, line 2: .*move it away"):
        list(read_spool(path))


def test_spool_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = Spool(tmp_path).append(begin("one"))

    assert path.stat().st_mode & 0o777 == 0o600


def test_spool_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file stands in the way")

    with pytest.raises(StorageError, match="cannot be written"):
        Spool(tmp_path / "spool").append(begin("one"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110
def test_full_disk_is_told_and_nothing_else_is_lost(tmp_path: Path) -> None:
    begun = begin("one")
    (tmp_path / f"{begun.run_id}.jsonl").symlink_to("/dev/full")

    with pytest.raises(StorageError, match="No space left on device"):
        Spool(tmp_path).append(begun)


def test_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be read"):
        list(read_spool(tmp_path / "gone.jsonl"))


def make_hider(secret: str) -> SecretHider:
    redactor = Redactor(literals=(secret,))
    secretive = GoldenProjectConfig("secretive", "a.sh", pass_env=("MODE",))
    return SecretHider(lambda _, text: redactor.text(text), [secretive])


def make_result(told: str) -> GoldenProjectResult:
    reasons = (Reason(ReasonKind.EXIT_CODE, told),)
    trajectory = {"id": "t1", "metadata": {told: [told], "status": told}}
    return GoldenProjectResult(
        "other", "b.sh", ResultStatus.FAILED, reasons=reasons, error_message=told, trajectory=trajectory
    )


def test_secret_of_one_project_is_hidden_in_the_result_of_another() -> None:
    hidden = make_hider("s3cr3t-value").hide_in_result(make_result("got s3cr3t-value"))
    assert (hidden.status, hidden.reasons[0].kind) == (ResultStatus.FAILED, ReasonKind.EXIT_CODE)
    assert hidden.trajectory == {
        "id": "t1",
        "metadata": {"got [REDACTED]": ["got [REDACTED]"], "status": "got [REDACTED]"},
    }
    assert "s3cr3t" not in json.dumps(hidden.to_dict())
    own = GoldenProjectResult("secretive", "a.sh", ResultStatus.FAILED, error_message="s3cr3t-value")
    ran = replace(own, command=("sh", "a.sh"))
    assert make_hider("s3cr3t-value").hide_in_result(ran) is ran
    assert make_hider("s3cr3t-value").hide_in_result(own).error_message == "[REDACTED]"


@pytest.mark.parametrize("word", ["FAILED", "exit_code", "trajectory", "error_message", "metadata"])
def test_secret_that_is_a_word_of_ours_breaks_no_result(word: str) -> None:
    hidden = make_hider(word).hide_in_result(make_result(f"got {word} here"))
    assert hidden == make_result("got [REDACTED] here")


def test_keys_of_recorded_facts_stay() -> None:
    told = {"checkout": {"branch": "a checkout branch"}, "a checkout": ("checkout", 7)}
    assert make_hider("checkout").hide_for_all(told) == {
        "checkout": {"branch": "a [REDACTED] branch"},
        "a [REDACTED]": ["[REDACTED]", 7],
    }
    assert SecretHider(lambda *_: 1 / 0, [GoldenProjectConfig("a", "a.sh", pass_env=("X",))]).hide_for_all(told) is None  # type: ignore[arg-type]
