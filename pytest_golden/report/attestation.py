"""An attestation: a signed statement about the commit that a gate judged, the versions that judged it, and the verdict.

It is an in-toto statement with the predicate `test-result`, in a DSSE envelope that is signed with Ed25519.

Sources:
- https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md
- https://github.com/in-toto/attestation/blob/main/spec/predicates/test-result.md
- https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gateway import git
from pytest_golden.regression.wording import name_some, show_path
from pytest_golden.report.report_files import write_report
from pytest_golden.settings import BASELINES_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

#: Holds the private key, as PEM or as the path of such a file.
KEY_VARIABLE = "GOLDEN_ATTEST_KEY"
#: With this value of the variable, the statement is written without an envelope, for another program to sign.
UNSIGNED = "none"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "https://in-toto.io/attestation/test-result/v0.1"
_HOW_TO_MAKE_A_KEY = "`openssl genpkey -algorithm ed25519 -out KEY` makes one"
_HOW_TO_PUBLISH_IT = "`openssl pkey -in KEY -pubout -out PUB` makes one from the key that signs"
_PEM_BEGINS = "-----BEGIN"
_PASSED = "PASSED"
_NO_STATEMENT = "it is not a statement about a gate"
_SIGNED = "it is signed: give the public key by --key instead of `none`"
# `XY PATH`. Source: git-status(1), "Short Format".
_STATUS_WIDTH = 3
_MOST_EDITS = 20
_MOST_NAMED = 3
# What a gate report holds in addition to the verdict.
_NO_VERDICT = frozenset({"schema_version", "gate", "results", "weakened_floor"})


class Attestor:
    """Writes statements about gate runs of one manifest, signed by the key that the environment names. Make it before the gate runs.

    `manifest` is the manifest's path in the judged checkout, or None. The statement is written to `file`.

    Raises:
        SettingsError: there is no manifest or no key, or the key cannot be used.
        GoldenError: the manifest is not in a git repository, or nothing is committed.
    """

    def __init__(self, manifest: Path | None, file: Path) -> None:
        if manifest is None:
            raise SettingsError(
                "--golden-attest needs a manifest: --golden-projects has none that a commit could hold."
            )
        self._manifest = manifest
        self._key = find_key()
        self._file = file
        self._head = git.find_commit(manifest.parent, "HEAD")
        self._edits = find_edits(manifest, file)

    def make_text(self, judged: Judged, base: str | None) -> str:
        """Return the statement about the current checkout as text; `base` is the ref that the floor was compared with.

        Files that were created since the gate began do not count as edits, because the gate's own reports are among them.

        Raises:
            GoldenError: another commit was checked out while the gate ran.
        """
        head = git.find_commit(self._manifest.parent, "HEAD")
        if head != self._head:
            raise GoldenError(f"no statement: {head} was checked out while the gate ran on {self._head}")
        edits = self._edits or find_edits(self._manifest, self._file, untracked=False)
        return seal_statement(make_statement(judged, self._manifest, base, edits), self._key)

    def write(self, judged: Judged, base: str | None) -> None:
        """Write the statement to its file. The arguments are those of `make_text`.

        Raises:
            GoldenError: the file cannot be written, or as `make_text` raises it.
        """
        write_report(self._file, self.make_text(judged, base), option="--attest")


class CommitFacts(NamedTuple):
    """What git knows of a commit: its own object id, and those of its tree, the manifest and the baselines; None if it has no such object."""

    commit: str
    tree: str
    manifest: str | None
    baselines: str | None


def read_commit(manifest: Path, commit: str) -> CommitFacts:
    """Read what a statement says about a commit. `manifest` is the manifest's path in the checkout.

    Raises:
        GoldenError: git cannot tell.
    """
    folder = next(place for place in manifest.parents if place.is_dir())
    place = manifest.parent.relative_to(folder).as_posix()
    paths = [f"./{place}/{name}" for name in (manifest.name, BASELINES_FOLDER)]
    names = [f"{commit}^{{tree}}", *(f"{commit}:{path}" for path in paths)]
    found = [git.run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", name) for name in names]
    tree, *others = (None if one.returncode else one.stdout.strip() for one in found)
    if tree is None:
        raise GoldenError(f"git cannot read the commit {commit}: fetch it first")
    return CommitFacts(commit, tree, *others)


def find_edits(manifest: Path, file: Path, *, untracked: bool = True) -> tuple[str, ...]:
    """Return the paths (from the checkout's root) whose content differs from the commit, and the baselines that git ignores.

    The statement's own `file` does not count. New files count only if `untracked` is true.
    """
    folder = manifest.parent
    root = git.find_top(folder) or folder
    asked = ("status", "--porcelain", "-z", "--no-renames")
    told = git.ask_git(
        folder,
        *asked,
        f"--untracked-files={'normal' if untracked else 'no'}",
        failing="git cannot tell what was edited",
    )
    own = (BASELINES_FOLDER, manifest.name)
    told += git.ask_git(folder, *asked, "--ignored", "--", *own, failing="git cannot tell what it ignores")
    paths = dict.fromkeys(entry[_STATUS_WIDTH:] for entry in git.split_paths(told))
    return tuple(path for path in paths if os.path.realpath(root / path) != os.path.realpath(file))


class Judged(NamedTuple):
    """What a statement is about. The names of the projects are grouped by their results.

    `verdict` and `environment` are JSON objects: the verdict with its counts, and the versions that judged.
    """

    is_passed: bool
    passed: tuple[str, ...]
    failed: tuple[str, ...]
    others: tuple[str, ...]
    verdict: Mapping[str, Any]
    weakenings: tuple[Mapping[str, Any], ...]
    environment: Mapping[str, Any]
    finished_at: str


def judge_report(report: Mapping[str, Any]) -> Judged:
    """Return what a gate report says."""
    statuses = {result["name"]: result["status"] for result in report["results"]}
    passed = tuple(name for name, status in statuses.items() if status == _PASSED)
    failed = tuple(result["name"] for result in report["results"] if result["is_regression"])
    return Judged(
        report["final_status"] == "passed",
        passed,
        failed,
        tuple(name for name in statuses if name not in {*passed, *failed}),
        {key: value for key, value in report.items() if key not in _NO_VERDICT},
        tuple(report["weakened_floor"]),
        report["gate"]["environment"],
        report["gate"]["finished_at"],
    )


def make_statement(judged: Judged, manifest: Path, base: str | None, edits: Sequence[str]) -> dict[str, Any]:
    """Return the statement about the current checkout.

    Args:
        judged: the verdict and its projects.
        manifest: the manifest's path in the judged checkout.
        base: the ref that the floor was compared with, if any.
        edits: the paths that differ from the commit.

    Raises:
        GoldenError: the manifest is not in a git repository, or nothing is committed.
    """
    folder = manifest.parent
    head = read_commit(manifest, git.find_commit(folder, "HEAD"))
    then = None if base is None else read_commit(manifest, git.find_commit(folder, base))
    return {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": "HEAD", "digest": _digest_commit(head)}],
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": _PASSED if judged.is_passed else "FAILED",
            "configuration": list(_describe_configuration(manifest.name, head)),
            "passedTests": list(judged.passed),
            "warnedTests": list(judged.others),
            "failedTests": list(judged.failed),
            "base": None if then is None else {"name": base, "digest": _digest_commit(then)},
            "uncommittedEdits": list(edits[:_MOST_EDITS]),
            "verdict": dict(judged.verdict),
            "weakenings": [dict(one) for one in judged.weakenings],
            "environment": dict(judged.environment),
            "finishedOn": judged.finished_at,
        },
    }


def _digest_commit(facts: CommitFacts) -> dict[str, str]:
    return {"gitCommit": facts.commit, "gitTree": facts.tree}


def _describe_configuration(name: str, facts: CommitFacts) -> Iterator[dict[str, Any]]:
    found = ((name, "gitBlob", facts.manifest), (BASELINES_FOLDER, "gitTree", facts.baselines))
    yield from ({"name": name, "digest": {kind: digest}} for name, kind, digest in found if digest is not None)


def find_key() -> Ed25519PrivateKey | None:
    """Return the signing key, or None if the statement is to be written without an envelope.

    Raises:
        SettingsError: the variable is not set, or the key cannot be used.
    """
    given = os.environ.get(KEY_VARIABLE, "").strip()
    if not given:
        raise SettingsError(
            f"--golden-attest needs a key: set {KEY_VARIABLE} to an Ed25519 private key (PEM, or the path of such a file; "
            f"{_HOW_TO_MAKE_A_KEY}), or to `{UNSIGNED}` if another program signs the statement."
        )
    if given == UNSIGNED:
        return None
    with _reading_key(f"{KEY_VARIABLE} is not an Ed25519 private key", _HOW_TO_MAKE_A_KEY):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        pem = given.encode() if given.startswith(_PEM_BEGINS) else Path(given).expanduser().read_bytes()
        key = load_pem_private_key(pem, None)
        if not isinstance(key, Ed25519PrivateKey):
            raise TypeError("it is another kind of key")
        return key


def read_public_key(given: str) -> Ed25519PublicKey | None:
    """Read the key that verifies statements; None if another program has verified the signature.

    Raises:
        SettingsError: the key cannot be used.
    """
    if given == UNSIGNED:
        return None
    with _reading_key(f"--key {given} is not an Ed25519 public key", _HOW_TO_PUBLISH_IT):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key

        key = load_pem_public_key(Path(given).read_bytes())
        if not isinstance(key, Ed25519PublicKey):
            raise TypeError("it is another kind of key")
        return key


@contextmanager
def _reading_key(told: str, advice: str) -> Iterator[None]:
    try:
        yield
    except ImportError:
        told = "signatures need `cryptography`: pip install 'pytest-golden-projects[attest]'"
        raise SettingsError(told) from None
    except (OSError, ValueError, TypeError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise SettingsError(f"{told} as PEM ({why}): {advice}.") from None


def seal_statement(statement: Mapping[str, Any], key: Ed25519PrivateKey | None) -> str:
    """Return a statement as text: in a signed envelope, or without one if there is no key."""
    payload = json.dumps(statement, separators=(",", ":")).encode()
    if key is None:
        return payload.decode() + "\n"
    signature = {"keyid": _name_key(key.public_key()), "sig": _encode(key.sign(_encode_for_signing(payload)))}
    envelope = {"payloadType": PAYLOAD_TYPE, "payload": _encode(payload), "signatures": [signature]}
    return json.dumps(envelope) + "\n"


def read_statement(text: str, key: Ed25519PublicKey | None) -> dict[str, Any]:
    """Return the statement in an envelope that was signed with this key; without a key, a statement without an envelope.

    Raises:
        GoldenError: the text is not such an envelope, or the signature is not valid.
    """
    if key is None:
        return _parse_statement(text.encode())
    from cryptography.exceptions import InvalidSignature

    try:
        envelope = json.loads(text)
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(one["sig"], validate=True) for one in envelope["signatures"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise GoldenError("it is not a signed statement: its form is not that of a DSSE envelope") from None
    if envelope.get("payloadType") != PAYLOAD_TYPE:
        raise GoldenError("it is not an in-toto statement")
    for signature in signatures:
        with suppress(InvalidSignature):
            key.verify(signature, _encode_for_signing(payload))
            return _parse_statement(payload)
    raise GoldenError("this key has not signed it, or it was edited since")


def check_statement(
    text: str, key: Ed25519PublicKey | None, manifest: Path, commit: str, base: str | None = None
) -> tuple[str, list[str]]:
    """Return the verdict of a statement, and why it does not prove that a commit passed. The arguments are those of `find_faults`."""
    try:
        statement = read_statement(text, key)
        return str(statement["predicate"]["verdict"]["verdict"]), list(find_faults(statement, manifest, commit, base))
    except GoldenError as error:
        return "", [str(error)]
    except (LookupError, TypeError, AttributeError):
        return "", [_NO_STATEMENT]


def find_faults(statement: Mapping[str, Any], manifest: Path, commit: str, base: str | None = None) -> Iterator[str]:
    """Yield the reasons why a statement does not prove that a commit passed, one sentence each.

    Args:
        statement: as `read_statement` returns it.
        manifest: the manifest's path in a checkout that has the commit.
        commit: the commit that must have passed.
        base: the commit that it must have been compared with; None for any.

    Raises:
        GoldenError: git cannot read the commit.
    """
    predicate, facts = statement["predicate"], read_commit(manifest, commit)
    judged = statement["subject"][0]["digest"]
    if judged != _digest_commit(facts):
        yield f"it is about the commit {judged.get('gitCommit')}, not about {commit}"
        return
    if edits := predicate["uncommittedEdits"]:
        named = name_some([*map(show_path, edits)], _MOST_NAMED)
        yield f"there were edits that were not committed ({named}), so what ran was not the commit"
    if predicate["configuration"] != list(_describe_configuration(manifest.name, facts)):
        yield f"manifest or baselines are not those that {manifest} has in this commit"
    told = (predicate["base"] or {}).get("digest", {}).get("gitCommit")
    if base is not None and told != base:
        yield f"its floor was compared with {told or 'no base'}, not with {base}"
    verdict = predicate["verdict"]
    if predicate["result"] != _PASSED or verdict.get("is_partial"):
        yield f"the verdict is {verdict.get('verdict', predicate['result'])}"


def _parse_statement(payload: bytes) -> dict[str, Any]:
    try:
        statement: Any = json.loads(payload)
    except (ValueError, RecursionError):
        statement = None
    if isinstance(statement, dict) and "signatures" in statement:
        raise GoldenError(_SIGNED)
    if (
        not isinstance(statement, dict)
        or statement.get("_type") != STATEMENT_TYPE
        or statement.get("predicateType") != PREDICATE_TYPE
    ):
        raise GoldenError(_NO_STATEMENT)
    return statement


def _encode_for_signing(payload: bytes) -> bytes:
    """Return what is signed: DSSE's pre-authentication encoding."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _encode(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _name_key(key: Ed25519PublicKey) -> str:
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()
