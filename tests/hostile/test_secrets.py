"""Whole gates whose pipelines say secrets in every way, and nothing of them in all that is kept or shown; see `secrets.yaml`."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import shlex
import string
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, quote_plus

import pytest
import yaml

from tests.hostile.test_store import Gates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CORPUS: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("secrets.yaml").read_text(encoding="utf-8"))
ALPHABETS = {
    "token": string.ascii_letters + string.digits + "-_",
    "signs": string.ascii_letters + string.digits + "!\"#$%&'()*+,/:;<=>?@[]^`{|}~ ",
    "letters of others": "äöüßéñçøåλжд漢字あ😀",
    "digits": string.digits,
    "short": string.ascii_letters + string.digits,
}
RED, PLAIN = "\x1b[31m", "\x1b[0m"


def in_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def in_pieces(text: str) -> list[str]:
    return [text[start : start + 7] for start in range(0, len(text), 7)]


WAYS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "wrapped": lambda text: "\n".join(in_pieces(text)),
    "broken by crlf": lambda text: "\r\n".join(in_pieces(text)),
    "indented": lambda text: "\n      ".join(in_pieces(text)),
    "boxed": lambda text: "\n".join(f"\u2502 {piece:<9} \u2502" for piece in in_pieces(text)),
    "coloured": lambda text: f"{RED}{text[:3]}{PLAIN}{RED}{text[3:]}{PLAIN}",
    "in a difference": lambda text: "\n".join(f"+{piece}" for piece in in_pieces(text)),
    "in a mail": lambda text: "\n".join(f"> {piece}" for piece in in_pieces(text)),
    "cut off": lambda text: f"{text[:20]}\u2026",
    "json": json.dumps,
    "json in json": lambda text: json.dumps(json.dumps(text)),
    "python": repr,
    "python in ascii": ascii,
    "shell": lambda text: f"PW={shlex.quote(text)}",
    "shell with backslashes": lambda text: re.sub(r"([^A-Za-z0-9])", r"\\\1", text),
    "url": lambda text: quote(text, safe=""),
    "url twice": lambda text: quote(quote(text, safe=""), safe=""),
    "plus": quote_plus,
    "number": lambda text: json.dumps({"n": int(text)}),
    "hexadecimal": lambda text: text.encode().hex(),
    "hexadecimal in capitals": lambda text: text.encode().hex().upper(),
    "base64": in_base64,
    "base64 for urls": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 after one": lambda text: in_base64(f"x{text}yz"),
    "base64 after two": lambda text: in_base64(f"xy{text}z"),
    "base64 in lines": lambda text: base64.encodebytes(f"{'something before it ' * 3}{text}!".encode()).decode(),
}


class Secret(NamedTuple):
    """A secret, what a pipeline says of it, and the texts of which none may be kept."""

    place: str
    way: str
    secret: str
    said: str

    def list_traces(self) -> set[str]:
        """Return the secret, the form in which it is said, and the longer pieces of that form."""
        core = self.said.strip("\"'= ")
        if "base64 " in self.way:
            # Around the secret, the signs depend on what stands beside it.
            core = core.replace("\n", "")[-24:-4] if "lines" in self.way else core[3:-5]
        pieces = [piece for piece in re.split(r"[\s\u2502\x1b]|\[31m|\[0m", core) if len(piece) > 5]
        return {self.secret, *([core] if len(core) > 5 else []), *pieces}


def make_secret(kind: str, chance: random.Random) -> str:
    if kind == "words":
        return "-".join("".join(chance.choices(string.ascii_lowercase, k=6)) for _ in range(4))
    made = "".join(chance.choices(ALPHABETS[kind], k=7 if kind == "short" else 28))
    around = {"token": ("k", "7"), "signs": ("k", "7"), "digits": ("4", "2")}.get(kind, ("", ""))
    return made.join(around)


def hold(template: str, secret: str) -> str:
    held = template.replace("§json", json.dumps(secret)).replace("§base64", in_base64(secret))
    return held.replace("§login", in_base64(f"etl:{secret}")).replace("§", secret)


def say(way: str, secret: str, held: str, template: str) -> str:
    """Return how a pipeline says a secret: alone, with its line, or with all that holds it."""
    if way.startswith("line"):
        secret, way = next(line for line in held.splitlines() if secret in line), way[len("line") :]
    elif way.startswith("whole"):
        secret, way = hold(template, secret).strip(), way[len("whole") :]
    return WAYS[re.sub(r"^ (in|as) ", "", way) or "plain"](secret)


def make_variables(chance: random.Random) -> tuple[dict[str, str], list[Secret]]:
    environment, secrets = {}, []
    for name, entry in CORPUS["variables"].items():
        for number, way in enumerate(entry["said"], 1):
            secret = make_secret(entry["kind"], chance)
            environment[f"{name}_{number}"] = held = hold(entry["holds"], secret)
            secrets.append(Secret(f"{name}_{number}", way, secret, say(way, secret, held, entry["holds"])))
    return environment, secrets


def make_files(chance: random.Random) -> tuple[dict[str, str], list[Secret]]:
    files, secrets = {}, []
    for name, entry in CORPUS["files"].items():
        entries = []
        for number, way in enumerate(entry["said"], 1):
            secret = make_secret(entry["kind"], chance)
            template = entry["entry"].replace("N", str(number))
            entries.append(hold(template, secret))
            secrets.append(Secret(name, way, secret, say(way, secret, entries[-1], template)))
        files[name] = entry["begin"] + entry.get("between", "").join(entries) + entry.get("end", "")
        assert len(files[name]) <= 4096
    return files, secrets


SCRIPT = """
cat said.txt; cat said.txt >&2; cat steps.jsonl >> "$GOLDEN_STEPS"; cp said.txt out.txt; cp said.json out.json
cp said.bin out.bin; cp said.txt lines.txt; test "$1" = pass || exit 3
"""
SAYS_OF_EACH = 10


@pytest.fixture(scope="module")
def secrets() -> tuple[dict[str, str], dict[str, str], list[Secret]]:
    chance = random.Random("secrets by place and by the way in which they are said")
    environment, of_variables = make_variables(chance)
    files, of_files = make_files(chance)
    return environment, files, [*of_variables, *of_files]


def lay(root: Path, held: tuple[dict[str, str], dict[str, str], list[Secret]], *arguments: str) -> None:
    """Write golden projects of which each says some of the secrets; all are given all of them."""
    environment, files, secrets = held
    for name, text in files.items():
        (root / "credentials").mkdir(exist_ok=True)
        (root / "credentials" / name).write_text(text, encoding="utf-8")
    projects = []
    for start in range(0, len(secrets), SAYS_OF_EACH):
        name, some = f"says-{start}", secrets[start : start + SAYS_OF_EACH]
        folder = root / name
        folder.mkdir(exist_ok=True)
        (folder / "run.sh").write_text(SCRIPT)
        said = "".join(f"it says {one.said}\n" for one in some)
        (folder / "said.txt").write_text(said, encoding="utf-8", newline="")
        (folder / "said.json").write_text(json.dumps([{one.said: one.said} for one in some]))
        (folder / "said.bin").write_bytes(b"\0\1\2" * 99 + said.encode())
        steps = [{"name": f"step {one.said}", "error": one.said, one.said: {"x": [one.said]}} for one in some]
        (folder / "steps.jsonl").write_text("".join(f"{json.dumps(step)}\n" for step in steps))
        outputs: list[dict[str, Any]] = [{"path": "out.txt"}, {"path": "out.json"}, {"path": "out.bin"}]
        outputs += [{"path": "lines.txt", "compare": "text", "unordered": True}]
        baselines = root / "golden_baselines" / name
        baselines.mkdir(parents=True, exist_ok=True)
        for output in outputs:
            (baselines / output["path"]).write_text("{}\n")
        passed = {"pass_env": [*environment], "pass_files": [f"credentials/{file}" for file in files]}
        projects.append({"name": name, "path": f"{name}/run.sh", "args": [*arguments], "outputs": outputs, **passed})
    (root / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": projects}))


def holds(text: str, trace: str) -> bool:
    """Tell whether a trace is in a text; seven digits can also be some of a duration's, such as 0.04571582299831789."""
    return trace in text and (not trace.isdecimal() or re.search(rf"(?<![\d.]){trace}", text) is not None)


def find_kept(secrets: list[Secret], content: bytes) -> Iterator[str]:
    text = content.decode("utf-8", "replace")
    # Also as a report writes it.
    texts = (text, text.replace("\\u001b", "\x1b").replace("\\\\", "\\").replace('\\"', '"'))
    for one in secrets:
        if any(holds(each, trace) for trace in one.list_traces() for each in texts):
            yield f"{one.place} said {one.way}: {one.said!r}"


def test_corpus_is_large_and_its_ways_are_known(secrets: tuple[Any, Any, list[Secret]]) -> None:
    assert len(secrets[2]) >= 120
    assert {len(trace) > 5 for one in secrets[2] for trace in one.list_traces()} == {True}
    assert list(find_kept(secrets[2], "\n".join(one.said for one in secrets[2]).encode())) == [
        f"{one.place} said {one.way}: {one.said!r}" for one in secrets[2]
    ]


@pytest.mark.parametrize("store", ["store", "spool"])
def test_nothing_of_a_secret_is_kept_or_shown(
    tmp_path: Path, warm_starts: Path, secrets: tuple[dict[str, str], dict[str, str], list[Secret]], store: str
) -> None:
    gates = Gates(tmp_path / "gates", warm_starts)
    lay(gates.root, secrets)
    if store == "spool":
        gates.path.mkdir(parents=True)
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / "summary.md").touch()
    on_github = {
        "GITHUB_ACTIONS": "true",
        "GITHUB_WORKSPACE": str(gates.root),
        "GITHUB_STEP_SUMMARY": str(reports / "summary.md"),
    }
    options = [f"--golden-{kind}={reports / kind}" for kind in ("json", "junit", "html")]
    code, said = gates.run(
        *options, "-vv", f"--junitxml={reports / 'junit.xml'}", environment={**secrets[0], **on_github}
    )
    assert code == 1, said
    assert said.count("FAILED") >= len(secrets[2]) // SAYS_OF_EACH
    kept = {"terminal": said.encode()}
    if store == "store":
        for command in (["history", "says-0"], ["journal", "export"], ["report"], ["run", "says-0"]):
            done = run_golden(gates.root, *command, environment=secrets[0])
            kept[" ".join(command)] = (done.stdout + done.stderr).encode()
    files = [file for folder in (gates.root / ".golden", reports) for file in folder.rglob("*") if file.is_file()]
    kept |= {str(file): bytes(file) + file.read_bytes() for file in files}
    assert len(kept) > 20
    assert sum(content.count(b"[REDACTED]") for content in kept.values()) > 1000
    found = {name: [*find_kept(secrets[2], content)] for name, content in kept.items()}
    assert "\n".join(f"{name}: {each}" for name, all_found in found.items() for each in all_found) == ""


def run_golden(root: Path, *command: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest_golden", *command],
        cwd=root,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_no_output_with_a_secret_becomes_a_baseline(
    tmp_path: Path, warm_starts: Path, secrets: tuple[dict[str, str], dict[str, str], list[Secret]]
) -> None:
    gates = Gates(tmp_path / "gates", warm_starts)
    lay(gates.root, secrets, "pass")
    code, said = gates.run("--golden-update", environment={**secrets[0], "CI": "", "GITHUB_ACTIONS": ""})
    assert code == 1, said
    assert "redaction finds a secret in" in said
    accepted = b"".join(file.read_bytes() for file in (gates.root / "golden_baselines").rglob("out.*"))
    assert list(find_kept(secrets[2], accepted + said.encode())) == []


def test_ordinary_output_stays_as_it_is(tmp_path: Path, warm_starts: Path) -> None:
    ordinary = CORPUS["ordinary"]
    gates = Gates(tmp_path / "gates", warm_starts)
    passed = {"pass_env": [*ordinary["variables"]], "not_secret": ordinary["not_secret"]}
    (gates.root / "lines").write_text("\n".join(ordinary["lines"]) + "\n")
    project = {
        "name": "says",
        "path": "run.sh",
        "outputs": [{"path": "out/daily_totals.csv", "compare": "exists"}],
        **passed,
    }
    (gates.root / "run.sh").write_text("cat lines; mkdir out; touch out/daily_totals.csv\n")
    (gates.root / "golden_projects.yaml").write_text(json.dumps({"version": 1, "golden_projects": [project]}))
    code, said = gates.run(environment=ordinary["variables"])
    assert code == 0, said
    (log,) = (gates.root / ".golden" / "logs").rglob("says.log")
    assert "\n".join(ordinary["lines"]) in log.read_text()
