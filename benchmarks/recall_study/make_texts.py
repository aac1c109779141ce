"""Makes the failures of the recall study: runs each program with its names, and keeps what it printed in `texts.json`.

Only the paths of this machine are replaced, by other ones for each meeting; everything else is as it was printed.

Run: python benchmarks/recall_study/make_texts.py [ID ...]   (with pandas, duckdb, dbt-duckdb, odibi, pyarrow, requests, SQLAlchemy)
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

HERE = Path(__file__).parent
TEXTS = HERE / "texts.json"
# As the gate runs it: plain `odibi run` may hang after its work.
ODIBI = str(HERE.parents[1] / "pytest_golden" / "gateway" / "runners" / "odibi_child.py")
# Where the work folder, the installed packages and Python itself seem to lie in each meeting.
PLACES = {
    "first": ("/srv/etl", "/opt/venv/lib/python3.11/site-packages", "/usr/lib/python3.11", "/opt/venv"),
    "second": (
        *("/home/runner/work/pipelines", "/usr/local/lib/python3.12/site-packages", "/usr/local/lib/python3.12"),
        "/usr/local",
    ),
    "third": ("/data/jobs/nightly", "/app/.venv/lib/python3.11/site-packages", "/usr/lib64/python3.11", "/app/.venv"),
}
PROGRAM = Template(
    "$imports\n\ndef $run():\n$body\n\n\ndef main():\n    $run()\n\n\nif __name__ == '__main__':\n    main()\n"
)
MOST_SECONDS = 120


class Answers(BaseHTTPRequestHandler):
    """Answers with the status in the path, late, or not at all."""

    def do_GET(self) -> None:
        """Answer."""
        kind, _, rest = self.path.strip("/").partition("/")
        if kind == "hangup":
            self.connection.close()
            return
        if kind == "sleep":
            time.sleep(2)
        self.send_response(int(rest.partition("/")[0]) if kind == "status" else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class QuietServer(ThreadingHTTPServer):
    """A server that says nothing of clients that went away."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serving(folder: Path) -> Iterator[dict[str, str]]:
    """Serve HTTP and, with a certificate of its own, HTTPS; give the ports."""
    certificate = folder / "certificate.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    files = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(folder / "key.pem"), "-out", str(certificate)]
    subprocess.run([*command, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, folder / "key.pem")
    plain, sealed = (QuietServer(("", 0), Answers) for _ in range(2))
    sealed.socket = context.wrap_socket(sealed.socket, server_side=True, do_handshake_on_connect=False)
    for server in (plain, sealed):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield {"http": str(plain.server_port), "tls": str(sealed.server_port), "cert": str(certificate)}
    finally:
        for server in (plain, sealed):
            server.shutdown()
            server.server_close()


def fill(text: str, names: Mapping[str, Any]) -> str:
    """Put the names into a text."""
    return Template(text).safe_substitute(names)


def write_program(case: Mapping[str, Any], folder: Path, names: Mapping[str, Any]) -> list[str]:
    """Write the files of a case, and give the command that runs it."""
    for path, content in case.get("files", {}).items():
        file = folder / fill(path, names)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(fill(content, names))
    if "command" in case:
        program, *rest = case["command"].split()
        own = [sys.executable, ODIBI] if program == "odibi" else [str(Path(sys.executable).parent / program)]
        return [*own, *rest]
    imports = fill(case["imports"], names)
    if case.get("needs") == "nobody" and os.geteuid() == 0:
        imports += "\nimport os\nos.seteuid(65534)"
    body = textwrap.indent(fill(case["body"], names), "    ")
    script = folder / names["script"]
    script.write_text(PROGRAM.substitute(imports=imports, body=body, run=names["run"]))
    return [sys.executable, str(script)]


def make(case: Mapping[str, Any], meeting: str, names: Mapping[str, Any], ports: Mapping[str, str], root: Path) -> str:
    """Run a case once and give what it printed, with other paths."""
    folder = root / meeting / names["word"] / case["id"]
    folder.mkdir(parents=True)
    private = root / meeting / f"{names['word']}_shared" / case["id"]
    private.mkdir(parents=True, mode=0o700)
    if case.get("needs") == "nobody":
        folder.chmod(0o777)
        for above in (root, root / meeting, root / meeting / names["word"], private.parent):
            above.chmod(0o755)
        private.chmod(0o500)
    named = {**names, **case.get("own", {}).get(meeting, {}), **ports, "private": str(private)}
    command = write_program(case, folder, named)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(root), "DO_NOT_TRACK": "1", "NO_COLOR": "1", "COLUMNS": "1000"}
    ran = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, check=False, errors="replace", timeout=MOST_SECONDS
    )
    if ran.returncode == 0:
        raise SystemExit(f"{case['id']} ({meeting}) did not fail: {ran.stdout[-500:]}{ran.stderr[-500:]}")
    told = ran.stderr if "body" in case else ran.stdout + ran.stderr
    return hide_places(told, meeting, root)


def hide_places(text: str, meeting: str, root: Path) -> str:
    """Replace the paths of this machine."""
    work, packages, python, prefix = PLACES[meeting]
    own_packages = Path(sys.prefix) / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    standard = Path(os.__file__).parent
    for real, shown in (
        (str(root / meeting), work),
        (str(own_packages), packages),
        (str(standard), python),
        (sys.prefix, prefix),
        (str(Path(sys.executable).resolve().parents[1]), prefix),
        (str(root), "/var/tmp"),
    ):
        text = text.replace(real, shown)
    return text


def list_cases() -> Iterator[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]:
    """Return each text that is wanted: its key, the meeting that gives the paths, its case and its names."""
    known = yaml.safe_load((HERE / "failures.yaml").read_text())
    others = yaml.safe_load((HERE / "unrelated.yaml").read_text())
    for case in known["failures"]:
        for meeting in ("first", "second"):
            yield f"{case['id']}/{meeting}", meeting, case, known["names"][meeting]
    for case in others["failures"]:
        as_first = case.get("as") == "first"
        yield (
            f"unrelated/{case['id']}",
            "third",
            case,
            known["names"]["first"] if as_first else others["names"]["third"],
        )


def main() -> None:
    """Make all texts, or those of the cases that are named."""
    wanted = set(sys.argv[1:])
    texts: dict[str, str] = json.loads(TEXTS.read_text()) if TEXTS.exists() else {}
    for key, meeting, case, names in list_cases():
        if wanted and case["id"] not in wanted:
            continue
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            root = Path(folder).resolve()
            if case.get("needs") in {"http", "tls"}:
                with serving(root) as ports:
                    texts[key] = make(case, meeting, names, ports, root)
            else:
                texts[key] = make(case, meeting, names, {}, root)
        TEXTS.write_text(json.dumps(texts, indent=1, ensure_ascii=False, sort_keys=True) + "\n")
        print(f"{key}: {(texts[key].strip().splitlines() or ['(nothing)'])[-1][:150]}", flush=True)


if __name__ == "__main__":
    main()
