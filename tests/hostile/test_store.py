"""Whole gates and their store on bad days: killed, together, on full and foreign disks, and with secrets everywhere."""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import pytest
from sqlalchemy import func, select

from pytest_golden.gateway.sandbox_program import list_programs
from pytest_golden.storage.integrity import check_store
from pytest_golden.storage.schema import gate_results, gate_runs, memories
from pytest_golden.storage.store import Store
from tests.gateway.conftest import NOT_ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path(__file__).parents[2]
GATE = ("-m", "pytest", "--golden", "-p", "no:cacheprovider")
LOST = "this run is not recorded"


class Gates:
    """A workspace in which gates are started as processes."""

    def __init__(self, root: Path, warm_starts: Path) -> None:
        self.root = root
        self._python = warm_starts / "python"
        self.path = root / ".golden" / "golden.db"
        root.mkdir(exist_ok=True)

    def declare(self, scripts: Mapping[str, str], **keys: object) -> None:
        projects = []
        for name, script in scripts.items():
            (self.root / name).mkdir(exist_ok=True)
            (self.root / name / "run.sh").write_text(script + "\n")
            projects.append({"name": name, "path": f"{name}/run.sh", **keys})
        (self.root / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": projects}))

    def start(
        self, *options: str, machine: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            # Warm ones would be on the machine as it is.
            [*machine, sys.executable if machine else self._python, *GATE, *options],
            cwd=self.root,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(
        self, *options: str, machine: tuple[str, ...] = (), environment: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Run a gate and give its exit code and all that it said."""
        gate = self.start(*options, machine=machine, environment=environment)
        said, _ = gate.communicate(timeout=120)
        return gate.returncode, said

    def count_results(self, path: Path | None = None) -> int:
        with Store.open(path or self.path) as store, store.read() as connection:
            return connection.scalar(select(func.count()).select_from(gate_results)) or 0


@pytest.fixture
def gates(tmp_path: Path, warm_starts: Path) -> Gates:
    return Gates(tmp_path / "gates", warm_starts)


@pytest.fixture
def bwrap(sealing: None) -> str:
    found = next(iter(list_programs()), None)
    assert found is not None
    return found


def many(count: int) -> dict[str, str]:
    return {f"p{number:02d}": "echo done > out.txt" for number in range(count)}


@pytest.mark.xdist
def test_killed_gates_have_every_result_whose_line_was_printed(tmp_path: Path, warm_starts: Path) -> None:
    """Once for each kind of process; `benchmarks/record_kills.py` does it for long."""
    done = subprocess.run(
        [warm_starts / "python", ROOT / "benchmarks" / "record_kills.py", "1"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("1 of 1 kills lost nothing") == 3


WRITE = """
import sys
from pytest_golden import MemoryStore
with MemoryStore.open(sys.argv[1]) as store:
    for number in range(100):
        store.save_memory(("writer", sys.argv[2]), f"key{number}", {"number": number})
"""


def test_two_gates_and_two_writers_on_one_store_lose_nothing(tmp_path: Path, warm_starts: Path) -> None:
    path = tmp_path / "shared.db"
    both = [Gates(tmp_path / name, warm_starts) for name in ("left", "right")]
    started = []
    for one in both:
        one.declare(many(15))
        started.append(one.start(environment={"GOLDEN_STORE_URL": f"sqlite:///{path}"}))
    writers = [subprocess.Popen([sys.executable, "-c", WRITE, path, name]) for name in ("a", "b")]
    said = [gate.communicate(timeout=120)[0] for gate in started]
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]

    assert [gate.returncode for gate in started] == [0, 0], said
    assert "WARNING" not in "".join(said)
    with Store.open(path) as store, store.read() as connection:
        counted = select(gate_results.c.run_id, func.count(), func.count(gate_results.c.project.distinct()))
        assert [tuple(row)[1:] for row in connection.execute(counted.group_by(gate_results.c.run_id))] == [(15, 15)] * 2
        is_written = memories.c.namespace.like("writer/%")
        assert connection.scalar(select(func.count()).where(is_written)) == 200
        assert connection.scalar(select(func.count()).where(gate_runs.c.finished_at.is_(None))) == 0
    assert check_store(path).problems == ()


def test_second_gate_in_a_workspace_waits_for_the_first_and_closes_nothing_of_it(gates: Gates) -> None:
    (gates.root / "marks").mkdir()
    wait = "touch ../marks/begun; until test -e ../marks/go; do sleep 0.05; done"
    gates.declare({"slow": wait, "quick": "true"}, mounts=[{"path": "marks", "mode": "write"}])
    first = gates.start()
    limit = time.monotonic() + 60
    while not (gates.root / "marks" / "begun").exists() and time.monotonic() < limit:
        time.sleep(0.02)
    second = gates.start()
    assert second.stdout is not None
    lines: list[str] = []
    while not any("is running in this workspace: waiting" in line for line in lines):
        lines.append(second.stdout.readline())
        assert lines[-1], "".join(lines)
    (gates.root / "marks" / "go").touch()
    first_said, _ = first.communicate(timeout=60)
    said = "".join(lines) + second.communicate(timeout=60)[0]

    assert (first.returncode, second.returncode) == (0, 0), first_said + said
    assert "was cut off" not in said
    assert "2nd pass in a row" in said
    assert gates.count_results() == 4


@pytest.fixture
def full_disk(tmp_path: Path, bwrap: str) -> tuple[str, ...]:
    """A machine on which the folder `small` has room for no more than 100 KiB."""
    small = tmp_path / "small"
    small.mkdir()
    return (bwrap, "--dev-bind", "/", "/", "--size", str(100 << 10), "--tmpfs", str(small))


def test_full_disk_below_the_store_changes_no_verdict_and_the_next_gate_takes_the_results_in(
    gates: Gates, full_disk: tuple[str, ...], tmp_path: Path
) -> None:
    gates.declare({"one": "exit 3", "two": "true"})
    named = tmp_path / "small" / "golden.db"
    for options, expected in ((), 1), (("-k", "two"), 0):
        code, said = gates.run(f"--golden-store={named}", *options, machine=full_disk)
        assert code == expected, said
        assert "the disk is full; free some space" in said
        assert "results are kept in the spool, and the gate continues" in said
        assert "the next gate imports it" in said
    assert len(list((gates.root / ".golden" / "spool").glob("*/*.jsonl"))) == 2

    # What waits for one store is not for another.
    code, said = gates.run("-k", "two")
    assert (code, "in the history now" in said, gates.count_results()) == (0, False, 1), said
    code, said = gates.run("-k", "two", f"--golden-store={named}")
    assert (code, "2 earlier runs are in the history now" in said) == (0, True), said
    assert gates.count_results(named) == 4
    assert check_store(named).problems == ()


@pytest.mark.parametrize(("script", "exit_code"), [("true", 0), ("exit 3", 1)], ids=["passes", "fails"])
def test_disk_that_is_full_for_the_spool_too_changes_no_verdict(
    gates: Gates, bwrap: str, script: str, exit_code: int
) -> None:
    gates.declare({**many(20), "last": script})
    (gates.root / ".golden").mkdir()
    machine = (bwrap, "--dev-bind", "/", "/", "--size", str(20 << 10), "--tmpfs", str(gates.root / ".golden"))
    code, said = gates.run(machine=machine)

    assert code == exit_code, said
    assert "the disk is full; free some space" in said
    assert LOST in said


@pytest.mark.parametrize(("script", "exit_code"), [("true", 0), ("exit 3", 1)], ids=["passes", "fails"])
def test_ordinary_user_with_a_store_that_may_only_be_read_has_the_same_verdict_and_the_history(
    gates: Gates, bwrap: str, script: str, exit_code: int
) -> None:
    gates.declare({"one": "true"})
    gates.run()
    gates.declare({"one": script})
    gates.path.chmod(0o400)
    # Alone: beside it SQLite would find a log that belongs to somebody else.
    code, said = gates.run(machine=(bwrap, *NOT_ROOT))

    assert code == exit_code, said
    assert "it cannot be written; make its folder and all files" in said
    assert "the next gate imports it" in said
    if exit_code:
        assert "last passed" in said


def test_gate_where_nothing_can_be_written_beside_the_manifest_records_elsewhere(gates: Gates, bwrap: str) -> None:
    gates.declare({"one": "true"})
    temporary = gates.root.parent / "temporary"
    temporary.mkdir()
    machine = (bwrap, "--dev-bind", "/", "/", "--ro-bind", str(gates.root), str(gates.root))
    for streak in ("", "2nd pass in a row"):
        code, said = gates.run(machine=machine, environment={"TMPDIR": str(temporary)})
        assert (code, streak in said, "WARNING" in said) == (0, True, False), said
        assert said.count(".golden cannot be written, so this run is recorded in ") == 1

    (substitute,) = temporary.glob("pytest-golden-*")
    code, said = gates.run(environment={"TMPDIR": str(temporary)})
    assert (code, "3rd pass in a row" in said, "WARNING" in said) == (0, True, False), said
    assert f"2 earlier runs are in the history now, taken from {substitute}" in said
    assert gates.count_results() == 3
    assert not (substitute / "golden.db").exists()
    code, said = gates.run(environment={"TMPDIR": str(temporary)})
    assert (code, "4th pass in a row" in said, "in the history now" in said) == (0, True, False), said


def test_store_on_a_network_file_system_keeps_no_log_of_its_own(gates: Gates, bwrap: str, tmp_path: Path) -> None:
    gates.declare({"one": "true", "two": "exit 3"})
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"22 1 254:0 / / rw - ext4 /dev/vda rw\n30 22 0:27 / {tmp_path} rw - nfs4 server:/export rw\n")
    machine = (
        bwrap,
        "--dev-bind",
        "/",
        "/",
        "--tmpfs",
        "/proc",
        "--dir",
        "/proc/self",
        "--ro-bind",
        str(mounts),
        "/proc/self/mountinfo",
    )
    for _ in range(2):
        code, said = gates.run(machine=machine)
        assert (code, "golden: WARNING" in said) == (1, False), said
    # The two bytes that tell the file's format: 1 with a rollback journal, 2 with a log.
    assert gates.path.read_bytes()[18:20] == b"\x01\x01"
    assert "2nd pass in a row" in said
    assert gates.count_results() == 4


PASSWORD = 'kX9"fr\\esh+42/ä'
TOKEN = "set-env-7712-qwe"
FILED = "pgpass-9911-rty"
IN_URL = "url-pass-3344-uio"
PLUGGED = "CUST-55667788"
BY_FORM = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
SECRETS = {"password": PASSWORD, "token": TOKEN, "file": FILED, "url": IN_URL, "plugged": PLUGGED, "form": BY_FORM}
LEAK = """
import base64, json, os, sys
from pathlib import Path
from urllib.parse import quote
from pytest_golden.steps import step
url = os.environ["SHOP_URL"]
secrets = [os.environ["SHOP_PASSWORD"], os.environ["SHOP_TOKEN"], url.split(":")[2].split("@")[0]]
secrets += [Path("~/.pgpass").expanduser().read_text().strip().rpartition(":")[2], "{plugged}", "{form}"]
for secret in secrets:
    for text in (secret, quote(secret), quote(secret, safe=""), json.dumps(secret), json.dumps({{"x": secret}}),
                 base64.b64encode(secret.encode()).decode(), base64.b64encode(f"etl:{{secret}}".encode()).decode()):
        print("out", text)
        print("err", text, file=sys.stderr)
    name = "written-" + secret.replace("/", "") + ".txt"
    Path("written-" + quote(secret, safe="")).write_text(secret)
    with step("load " + secret, key=secret) as present:
        present.note(rows={{secret: [secret]}})
print("connecting to", url)
if Path("fail").exists():
    with step("last " + secrets[0]):
        raise ValueError("cannot log in with " + " or ".join(secrets))
"""
REDACTOR = r"""
import re
def pytest_golden_redactors(config):
    return lambda text: re.sub(r"\bCUST-\d{8}\b", "CUST-[hidden]", text)
"""


def forms_of(name: str) -> set[bytes]:
    """Return the forms in which redaction promises to find a secret; those without a known value are found as they are."""
    secret = SECRETS[name]
    if name in {"plugged", "form"}:
        return {secret.encode()}
    plain = secret.encode()
    texts = [secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1], repr(secret)[1:-1]]
    texts += [quote(secret), quote(secret, safe=""), quote_plus(secret)]
    # Of a longer text, the part that does not change with what follows.
    inside = base64.b64encode(b"etl:" + plain)[6 : (4 + len(plain)) // 3 * 4]
    return {*(text.encode() for text in texts), base64.b64encode(plain).rstrip(b"="), inside}


def find_leaks(content: bytes) -> list[str]:
    return [f"{name} as {form!r}" for name in SECRETS for form in forms_of(name) if form in content]


@pytest.fixture
def leaking(gates: Gates) -> Gates:
    """A workspace whose pipeline, git and manifest are full of secrets."""
    root = gates.root
    (root / "leak.py").write_text(LEAK.format(plugged=PLUGGED, form=BY_FORM))
    (root / "credentials").mkdir()
    (root / "credentials" / ".pgpass").write_text(f"db.example.org:5432:shop:etl:{FILED}\n")
    (root / "conftest.py").write_text(REDACTOR)
    project = {
        "name": "leak",
        "path": "leak.py",
        "project_dir": ".",
        "pass_env": ["SHOP_PASSWORD", "SHOP_URL"],
        "set_env": {"SHOP_TOKEN": TOKEN},
        "pass_files": ["credentials/.pgpass"],
        "description": f"logs in with {PASSWORD} and {FILED}",
        "args": [TOKEN, BY_FORM],
    }
    # What one project hides stands in the text of another.
    known = f"knows {BY_FORM}, {TOKEN}, {PASSWORD} and {FILED}"
    other = {"name": "other", "path": "other.sh", "description": known, "args": [TOKEN, FILED]}
    (root / "other.sh").write_text("exit 3\n")
    manifest = {"version": 1, "golden_projects": [project, other]}
    (root / "golden_projects.yaml").write_text(json.dumps(manifest))
    return gates


def git(root: Path, *words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", root, *identity, *words], check=True, capture_output=True)


@pytest.mark.parametrize("where", ["store", "spool", "xdist"])
def test_no_secret_is_below_the_state_folder(leaking: Gates, where: str) -> None:
    root = leaking.root
    git(root, "init", "-b", f"for-{TOKEN}-{IN_URL}")
    (root / ".gitignore").write_text(".golden\n")
    git(root, "add", ".")
    git(root, "commit", "-m", f"use {TOKEN}, {FILED} and {PASSWORD}")
    environment = {"SHOP_PASSWORD": PASSWORD, "SHOP_URL": f"postgresql://etl:{IN_URL}@db.example.org/shop"}
    if where == "spool":
        leaking.path.mkdir(parents=True)
    options = ["-n", "2"] if where == "xdist" else []
    options += ["-k", f"not {TOKEN} and not {FILED.replace('-', '_')} or leak or other", f"--golden-json={FILED}.json"]
    said = []
    for number in range(2):
        (root / f"dirty-{TOKEN}-{number}").write_text("")
        if number:
            (root / "fail").write_text("")
            git(root, "commit", "--allow-empty", "-m", f"give {TOKEN} and {IN_URL} another chance")
        code, told = leaking.run(*options, environment=environment)
        said.append(told)
        assert code == 1, told
    assert "FAILED  leak" in said[-1]
    if where != "spool":
        assert "last passed" in said[-1]
        with Store.open(leaking.path) as store, store.read() as connection:
            assert len(connection.execute(select(memories.c.number)).all()) > 4
    else:
        assert len(list((root / ".golden" / "spool").iterdir())) == 2
    assert re.search(r"\[REDACTED\]", said[-1])
    for file in (root / ".golden").rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        assert find_leaks(bytes(file) + content) == [], file
    assert find_leaks("".join(said).encode()) == []
