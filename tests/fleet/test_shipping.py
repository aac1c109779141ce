from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import zlib
from base64 import b64encode
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest

from pytest_golden.clock import new_id, utc_now
from pytest_golden.compare.waiting import RunOrigin, WaitingFolder, WaitingOutput, WaitingRun, write_record
from pytest_golden.errors import BaselineError, GatewayError
from pytest_golden.fleet import shipping
from pytest_golden.fleet.shipping import FleetAnswer, read_answer, relocate, write_answer
from pytest_golden.gateway.model import (
    Ending,
    OutputFinding,
    PatternVerdict,
    PipelineOutcome,
    Problem,
    WriteSet,
    WrittenFile,
)
from pytest_golden.manifest.model import GoldenProjectConfig
from pytest_golden.regression.model import OutputChange
from pytest_golden.trajectory.model import Trajectory


@pytest.fixture(autouse=True)
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    return place


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    (root / "inner").mkdir(parents=True)
    (root / "inner" / "run.sh").write_text("echo\n")
    (root / "inner" / "run.sh").chmod(0o755)
    (root / "link").symlink_to("/elsewhere")
    for left_out in (".git", ".golden", "__pycache__"):
        (root / left_out).mkdir()
        (root / left_out / "file").write_text("no\n")
    (root / "venv" / "bin").mkdir(parents=True)
    (root / "venv" / "pyvenv.cfg").touch()
    return root


def send(archive: bytes) -> tuple[str, Path]:
    session = new_id("gate")
    shipping.unpack(session, hashlib.sha256(archive).hexdigest(), archive)
    found = shipping.find_shipped(session)
    assert found is not None
    return session, found


def test_a_workspace_arrives_as_it_was_without_what_comes_and_goes(root: Path, tmp_path: Path) -> None:
    (tmp_path / "baselines").mkdir()
    (tmp_path / "baselines" / "out.txt").write_text("expected\n")
    (root / "report.json").write_text("{}")
    packed = shipping.pack_workspace(root, tmp_path / "baselines", left_out=[root / "report.json"])
    session, folder = send(packed)
    arrived = folder / shipping.WORKSPACE
    assert sorted(path.name for path in arrived.iterdir()) == ["inner", "link"]
    assert (arrived / "link").readlink() == Path("/elsewhere")
    assert (arrived / "inner" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (arrived / "inner" / "run.sh").stat().st_mtime == pytest.approx((root / "inner" / "run.sh").stat().st_mtime)
    assert (folder / shipping.BASELINES / "out.txt").read_text() == "expected\n"
    assert folder.parent.stat().st_mode & 0o777 == 0o700
    shipping.remove_shipped(session)
    assert shipping.find_shipped(session) is None


def test_what_is_there_already_stays(root: Path) -> None:
    packed = shipping.pack_workspace(root, None)
    session, folder = send(packed)
    (folder / "mark").touch()
    shipping.unpack(session, hashlib.sha256(packed).hexdigest(), packed)
    assert (folder / "mark").exists()


def test_what_was_left_long_ago_is_removed(root: Path) -> None:
    packed = shipping.pack_workspace(root, None)
    _, folder = send(packed)
    os.utime(folder, (0, 0))
    _, kept = send(packed)
    assert not folder.exists()
    assert kept.exists()


def test_a_workspace_that_did_not_arrive_whole_is_refused(root: Path) -> None:
    packed = shipping.pack_workspace(root, None)
    with pytest.raises(OSError, match="did not arrive whole"):
        shipping.unpack("gate_x", hashlib.sha256(packed).hexdigest(), packed[:-1])


def test_a_workspace_that_is_too_large_names_the_way_out(root: Path) -> None:
    with (root / "large").open("wb") as file:
        file.truncate(3 << 20)
    with pytest.raises(GatewayError, match=r"has 3 MiB, and at most 1 MiB are sent .* under the same path"):
        shipping.pack_workspace(root, None, most_bytes=1 << 20)


def test_a_folder_of_somebody_else_is_not_used(own_temporary_folder: Path, root: Path) -> None:
    packed = shipping.pack_workspace(root, None)
    elsewhere = own_temporary_folder / "elsewhere"
    elsewhere.mkdir()
    (own_temporary_folder / f"golden-fleet-{os.getuid()}").symlink_to(elsewhere)
    with pytest.raises(PermissionError, match="belongs to another user"):
        shipping.unpack("gate_x", hashlib.sha256(packed).hexdigest(), packed)


def test_absolute_paths_into_the_workspace_mean_the_copy() -> None:
    root = Path("/work/space")
    project = GoldenProjectConfig(
        name="one",
        path="/work/space/one/run.sh",
        project_dir="one",
        venv="/opt/venv",
        pass_files=("/work/space/secret",),
        not_secret=("/work/space/secret",),
        mounts=[{"path": "/work/space/data"}, {"path": "/data"}],  # type: ignore[arg-type]
        set_env={"A": "b"},
    )
    moved = relocate(project, root)
    assert (moved.path, moved.project_dir, moved.venv) == ("one/run.sh", "one", "/opt/venv")
    assert (moved.pass_files, [mount.path for mount in moved.mounts]) == (("secret",), ["data", "/data"])
    assert moved.not_secret == moved.pass_files
    assert relocate(project, Path("/elsewhere")) is project


def test_an_answer_is_json_and_comes_back_as_it_was() -> None:
    files = {"a\udcff.txt": WrittenFile("a\udcff.txt", "file", 3, "00")}
    trajectory = Trajectory.new({"worker": "w"}).add_step("action", {"n": 1}).complete()
    outcome = PipelineOutcome(
        Ending.SIGNALLED,
        exit_code=-9,
        started_at=utc_now(),
        write_set=WriteSet(("a\udcff.txt",), files=files),
        trajectory=trajectory,
        problem=Problem.HARNESS,
        pattern_verdict=PatternVerdict.FOUND,
        output_findings=(OutputFinding("output_differs", "differs", "a"),),
        coloured_lines={"plain": "\x1b[1mplain"},
    )
    answer = FleetAnswer("tcp://w", outcome, log="eA==", was_examined=True)
    written = write_answer(answer)
    read = read_answer(written)
    assert read == answer
    assert read.outcome is not None
    assert read.outcome.trajectory is not None
    assert read.outcome.trajectory.to_dict() == trajectory.to_dict()
    assert json.loads(written)["outcome"]["ending"] == "signalled"


def test_a_log_is_unpacked_to_what_a_worker_may_keep() -> None:
    def answer(log: bytes) -> FleetAnswer:
        return FleetAnswer("w", PipelineOutcome(Ending.EXITED), b64encode(zlib.compress(log)).decode())

    assert shipping.read_log(answer(b"said")) == b"said"
    assert len(shipping.read_log(answer(bytes(64 << 20)))) == shipping.MOST_LOG_BYTES


def test_outputs_that_a_worker_keeps_are_sent_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shipping, "MOST_KEPT_BYTES", 1 << 20)
    folder = WaitingFolder(tmp_path / "waiting")
    (folder.path / "one").mkdir(parents=True)
    outputs = []
    for number, size in enumerate((10, 2 << 20), start=1):
        (folder.path / "one" / f"{number}.bin").write_bytes(bytes(size))
        outputs.append(WaitingOutput(f"{number}.bin", OutputChange.NEW, file=f"{number}.bin", size_bytes=size))
    run = WaitingRun("one", RunOrigin(utc_now()), (*outputs, WaitingOutput("gone", OutputChange.REMOVED)))
    write_record(folder.path / "one", run)
    answer = FleetAnswer("w", PipelineOutcome(Ending.EXITED), kept=shipping.pack_kept(folder, "one"))
    with shipping.open_kept(answer) as received:
        small, large, gone = received.read("one").outputs  # type: ignore[union-attr]
        assert (received.path / "one" / "1.bin").read_bytes() == bytes(10)
        assert not (received.path / "one" / "2.bin").exists()
    assert (small, gone) == (run.outputs[0], run.outputs[2])
    assert large.file is None
    assert "a worker sends at most 1MiB of outputs" in str(large.refused)
    assert shipping.pack_kept(folder, "two") == ""


def make_bomb() -> str:
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        archive.writestr("one/1.bin", bytes(shipping.MOST_KEPT_BYTES * 2))
    return b64encode(packed.getvalue()).decode()


@pytest.mark.parametrize("kept", ["a", b64encode(b"no zip").decode(), make_bomb()], ids=["text", "bytes", "bomb"])
def test_kept_outputs_of_another_form_are_refused(kept: str) -> None:
    with pytest.raises((ValueError, BaselineError)), shipping.open_kept(FleetAnswer("w", lost_on=("w",), kept=kept)):
        pass


OUTCOME = PipelineOutcome(Ending.EXITED).to_dict()


@pytest.mark.parametrize(
    "given",
    [
        pickle.dumps(FleetAnswer("w", lacks_workspace=True)),
        b"[" * 100_000,
        7,
        b"[]",
        b'{"worker": "w"}',
        b'{"worker": "w", "lost_on": "ab", "outcome": 1}',
        json.dumps({"worker": "w", "outcome": {**OUTCOME, "ending": "well"}}),
        json.dumps({"worker": "w", "outcome": {**OUTCOME, "stdout": 1}}),
        json.dumps({"worker": "w", "outcome": {**OUTCOME, "write_set": {"files": {"a": {"kind": "file"}}}}}),
        json.dumps({"worker": "w", "outcome": {**OUTCOME, "trajectory": {"id": "t"}}}),
    ],
    # An outcome holds the time, and a test has the same name in every worker.
    ids=range(10),
)
def test_an_answer_of_another_form_is_refused(given: object) -> None:
    with pytest.raises(GatewayError, match="the answer of a worker cannot be read"):
        read_answer(given)
