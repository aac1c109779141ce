"""Statements that `golden gate`, `golden verify` and `pytest --golden` sign, and what `golden attest check` makes of them."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tests.gate_processes import WITHOUT_PLUGINS
from tests.repository import Repository

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden, GoldenProcess, Ran


def write_keys(folder: Path, name: str) -> Path:
    """Write a private and a public key; return the path of the first."""
    key = Ed25519PrivateKey.generate()
    private = folder / f"{name}.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (folder / f"{name}.pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    folder = tmp_path / "keys"
    folder.mkdir()
    write_keys(folder, "ours")
    write_keys(folder, "theirs")
    return folder


@pytest.fixture
def repository(folder: Path) -> Repository:
    repository = Repository(folder)
    repository.declare("works")
    repository.script("works", "echo fine > out.txt\n")
    repository.write(
        pytest__ini=f"[pytest]\naddopts = {' '.join(WITHOUT_PLUGINS)}\n",
        golden_baselines___works___out__txt="fine\n",
        __gitignore=".golden/\n*.json\n",
    )
    repository.commit("base")
    repository.git("checkout", "-q", "-b", "topic")
    repository.write(note__txt="a change\n")
    repository.commit()
    return repository


class Signing:
    """Runs commands that sign with our key, and checks what they have signed."""

    def __init__(self, process: GoldenProcess, golden: Golden, keys: Path) -> None:
        self._process, self._golden, self._keys = process, golden, keys

    def gate(self, path: str, *words: str, **environment: str) -> Ran:
        key = {"GOLDEN_ATTEST_KEY": str(self._keys / "ours.pem"), **environment}
        gate = ("gate", "--base", "main", "--store", "none", "--attest", path)
        return self._process(*gate, *words, environment=key)

    def check(self, path: str, *words: str, key: str = "ours") -> Ran:
        return self._golden("attest", "check", path, "--key", str(self._keys / f"{key}.pub"), *words)


@pytest.fixture
def signing(golden_process: GoldenProcess, golden: Golden, keys: Path) -> Signing:
    return Signing(golden_process, golden, keys)


def edit(path: Path, change: str) -> None:
    """Edit a signed statement, without the key."""
    envelope = json.loads(path.read_text())
    statement: dict[str, Any] = json.loads(base64.b64decode(envelope["payload"]))
    if change == "byte":
        statement["predicate"]["result"] = "PASSED "
        envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    elif change == "signature":
        envelope["signatures"] = []
    else:
        envelope["payloadType"] = "text/plain"
    path.write_text(json.dumps(envelope))


def test_green_gate_is_signed_and_holds_for_its_commit_alone(
    repository: Repository, signing: Signing, keys: Path
) -> None:
    ran = signing.gate("st.json")
    assert ran.code == 0, ran.err
    holds = signing.check("st.json", "--base", "main", "--commit", "HEAD")
    assert holds.code == 0, holds.out
    assert f"st.json holds for {repository.git('rev-parse', 'HEAD')}: PASSED: 1 passed" in holds.out.replace("\n", " ")
    told = signing.check("st.json", "--json")
    assert told.json["holds"] is True

    assert "not about" in signing.check("st.json", "--commit", "main").out
    assert "its floor was compared with" in signing.check("st.json", "--base", "HEAD").out
    assert "has not signed it" in signing.check("st.json", key="theirs").out
    assert signing.check("st.json", "--commit", "nowhere").code == 2
    assert signing.check("missing.json").code == 2
    for change, reason in {
        "signature": "has not signed it",
        "type": "not an in-toto statement",
        "byte": "edited",
    }.items():
        text = (repository.folder / "st.json").read_text()
        (repository.folder / "edited.json").write_text(text)
        edit(repository.folder / "edited.json", change)
        refused = signing.check("edited.json")
        assert (refused.code, reason in refused.out) == (1, True), change
    (repository.folder / "edited.json").write_text('{"a": [')
    assert "not that of a DSSE envelope" in signing.check("edited.json").out

    # The same tree in another commit is another subject.
    repository.git("commit", "-q", "--amend", "-m", "another subject")
    assert signing.check("st.json").code == 1


def test_red_gate_and_uncommitted_edits_do_not_hold(repository: Repository, signing: Signing) -> None:
    repository.script("works", "exit 3\n")
    assert signing.gate("st.json").code == 1
    refused = signing.check("st.json", "--json").json
    assert refused["holds"] is False
    assert len(refused["faults"]) == 2
    assert "edits that were not committed (works/run.sh)" in refused["faults"][0]
    assert "the verdict is FAILED: 1 failed" in refused["faults"][1]


def test_reports_of_the_gate_itself_are_no_edits_and_those_of_an_earlier_gate_are_not_signed(
    repository: Repository, signing: Signing
) -> None:
    reports = ("--", "--golden-junit=junit.xml", "--golden-json=report.json")
    assert signing.gate("statement.txt", *reports).code == 0
    assert signing.check("statement.txt").code == 0
    # Now the report is there before the gate, and this time pytest refuses to run.
    (repository.folder / "junit.xml").unlink()
    refused = signing.gate("other.txt", *reports, "--no-such-option")
    assert refused.code == 4
    assert not (repository.folder / "other.txt").exists()
    nowhere = signing.gate("other.txt", "--", "--golden-json=/dev/null")
    assert nowhere.code == 3
    assert "no statement is written: the gate left no report in /dev/null" in nowhere.err
    # A statement of its own that lies there is no edit either; another new file is one.
    assert signing.gate("statement.txt").code == 0
    assert signing.check("statement.txt").code == 0
    repository.write(more__txt="not committed")
    assert signing.gate("statement.txt").code == 0
    assert "edits that were not committed (more.txt)" in signing.check("statement.txt").out


def test_commit_that_changes_meanwhile_and_projects_that_are_left_out_are_not_signed_as_passed(
    repository: Repository, signing: Signing, keys: Path
) -> None:
    repository.declare("works", "other")
    repository.script("other", "echo other\n")
    repository.write(pytest__ini="[pytest]\n")
    repository.commit()
    key = {**os.environ, "GOLDEN_ATTEST_KEY": str(keys / "ours.pem")}
    words = [
        sys.executable,
        "-m",
        "pytest",
        *WITHOUT_PLUGINS,
        "--golden",
        "--golden-store=none",
        "--golden-attest=own.json",
    ]
    partial = subprocess.run([*words, "-k", "works"], cwd=repository.folder, env=key, capture_output=True, check=False)
    assert partial.returncode == 0
    refused = signing.check("own.json")
    assert refused.code == 1
    assert "the verdict is PASSED (partial: 1 deselected): 1 passed" in refused.out.replace("\n", " ")
    moving = "import subprocess\ndef test_a():\n    subprocess.run(['git', 'checkout', '-q', 'main'], check=True)\n"
    repository.write(test_moving__py=moving)
    repository.commit()
    moved = subprocess.run(
        [*words, "test_moving.py"], cwd=repository.folder, env=key, capture_output=True, text=True, check=False
    )
    assert moved.returncode != 0
    assert "was checked out while the gate ran on" in moved.stdout


def test_ignored_baselines_are_no_part_of_the_commit(repository: Repository, signing: Signing) -> None:
    repository.write(__gitignore=".golden/\n*.json\ngolden_baselines/\n")
    repository.git("rm", "-q", "-r", "--cached", "golden_baselines")
    repository.commit("the baselines are ignored")
    assert signing.gate("st.json").code in {0, 1}
    assert "edits that were not committed" in signing.check("st.json").out


def test_verification_and_own_gate_are_signed_too(
    repository: Repository, signing: Signing, golden: Golden, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOLDEN_ATTEST_KEY", (keys / "ours.pem").read_text())
    assert golden("verify", "--base", "main", "--store", "none", "--attest", "verified.json").code == 0
    assert "no new regression; 1 ok" in signing.check("verified.json", "--base", "main").out
    unwritable = golden("verify", "--base", "main", "--store", "none", "--attest", "works")
    assert unwritable.code == 2
    assert "1 ok" in unwritable.out
    assert "--attest" in unwritable.err
    monkeypatch.setenv("GOLDEN_ATTEST_KEY", "none")
    assert golden("verify", "--base", "main", "--store", "none", "--attest", "plain.json").code == 0
    statement = json.loads((repository.folder / "plain.json").read_text())
    assert statement["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    assert statement["predicate"]["passedTests"] == ["works"]
    assert statement["predicate"]["environment"]["sandbox"]
    assert golden("attest", "check", "plain.json", "--key", "none").code == 0
    empty = {**statement, "predicate": {"verdict": {"verdict": ""}}}
    for text in (
        "{}",
        "[",
        "[]",
        json.dumps({**statement, "predicate": 1}),
        json.dumps(empty),
        json.dumps({**statement, "subject": []}),
    ):
        (repository.folder / "plain.json").write_text(text)
        assert "it is not a statement about a gate" in golden("attest", "check", "plain.json", "--key", "none").out
    (repository.folder / "plain.json").write_text('{"payload": "", "signatures": []}')
    signed = golden("attest", "check", "plain.json", "--key", "none")
    assert signed.code == 1
    assert "it is signed: give the public key by --key" in signed.out
    monkeypatch.setenv("GOLDEN_ATTEST_KEY", str(keys / "ours.pem"))
    own = [sys.executable, "-m", "pytest", "--golden", "--golden-store=none", "--golden-attest", "own.json"]
    assert subprocess.run(own, cwd=repository.folder, check=False, capture_output=True).returncode == 0
    assert "PASSED: 1 passed" in signing.check("own.json").out
    assert "compared with no base" in signing.check("own.json", "--base", "main").out
    inline = subprocess.run(
        [*own, "--golden-projects", "works:works/run.sh"], cwd=repository.folder, check=False, capture_output=True
    )
    assert inline.returncode == 4
    assert b"--golden-attest needs a manifest" in inline.stderr


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("", "needs a key"),
        ("/nowhere/key.pem", "No such file"),
        ("-----BEGIN x", "is not an Ed25519 private key"),
        ("rsa", "kind"),
    ],
)
def test_key_that_cannot_sign_is_refused_before_anything_runs(
    repository: Repository, signing: Signing, keys: Path, key: str, told: str
) -> None:
    if key == "rsa":
        pem = generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        key = pem.decode()
    ran = signing.gate("st.json", GOLDEN_ATTEST_KEY=key)
    assert ran.code == 2
    assert told in ran.err
    assert "Traceback" not in ran.err
    assert not (repository.folder / "st.json").exists()


def test_public_key_of_another_kind_is_refused(repository: Repository, golden: Golden, keys: Path) -> None:
    public = generate_private_key(65537, 2048).public_key()
    (keys / "rsa.pub").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    for name in ("rsa.pub", "ours.pem", "missing.pub"):
        ran = golden("attest", "check", "st.json", "--key", str(keys / name))
        assert ran.code == 2
        assert "is not an Ed25519 public key as PEM" in ran.err
        assert "openssl pkey -in KEY -pubout" in ran.err
