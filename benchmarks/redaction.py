"""What redaction costs for each KB of text: logs, JSON, text full of secrets, and texts made to be slow.

Beside it stands the same text lowered and searched for one word, the least that any search would cost.

Run: python benchmarks/redaction.py
"""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING

from pytest_golden.redaction.redactor import Redactor, redact

if TYPE_CHECKING:
    from collections.abc import Callable

MEBIBYTE = 1 << 20
LINE = "2026-01-01 12:00:00,123 INFO  [main] loaded 1,204 rows from sales into bronze in 3.2 s, tokens: 5\n"
DBT = "12:00:02  1 of 9 OK created sql table model dev.customers .......... [SUCCESS 1 in 0.41s]\n"
SECRET = "connecting to postgres://etl:hun" + "ter-7-Gold@db:5432/sales with password=hun" + "ter-7-Gold\n"
TRACEBACK = (
    '  File "/srv/etl/load.py", line 12, in main\n    df = pd.read_csv(path, sep=";")\n'
    "ValueError: could not convert string to float: 'n/a'\n"
)
ROWS = json.dumps(
    [
        {"name": f"load_{n}", "rows": n, "path": f"/srv/data/a{n}.csv", "ok": True, "key": f"k{n}", "value": n * 1.5}
        for n in range(200)
    ]
)
TEXTS = {
    "log of a pipeline": LINE * 19 + DBT * 10 + TRACEBACK,
    "log, a secret in 30 lines": LINE * 19 + DBT * 10 + SECRET,
    "JSON": ROWS,
    "JSON, a secret in 200 rows": ROWS[:-1] + ', {"password": "hun' + 'ter-7-Gold"}]',
}
# Nearly every word is a secret: more of them than any log has.
DENSE = (
    "DB_PASSWORD=hun" + "ter-7-Gold\n",
    "password=hun" + "ter-7-Gold ",
    '{"password": "hun' + 'ter-7-Gold"}\n',
    "postgres://etl:hun" + "ter-7-Gold@db/sales\n",
    "Authorization: Bearer abcdefgh" + "1234\n",
)
HOSTILE = (
    "a",
    "password=",
    'password="',
    "password: >\\n  a\\n",
    "Bearer ",
    "://a:b@",
    "-----BEGIN PRIVATE KEY-----",
    "eyJ",
    "\\",
    "curl -u a",
    "docker login x ",
    "Cookie: a=",
    "kind: Secret\ndata:\n  a: b\n",
    '("token", "a',
    "create user identified by ",
    "jdbc:oracle:thin:a/",
    "Private-Lines: 2\nabc\n",
    "Authorization: Digest a=b, ",
    '{"password": "x"}\n',
)


def milliseconds_per_kb(work: Callable[[str], object], text: str, rounds: int = 5) -> float:
    """Return the median of a few rounds, in processor time."""
    taken = []
    for _ in range(rounds):
        started = time.process_time()
        work(text)
        taken.append(time.process_time() - started)
    return statistics.median(taken) * 1000 / (len(text) / 1024)


def main() -> None:
    values = [f"kX{number * 7919:x}-fresh_{number * 104729:x}" for number in range(1, 1001)]
    known, many = Redactor(literals=tuple(values[:10])), Redactor(literals=tuple(values))
    print(f"{'ms for each KB':32} {'redact':>8} {'10 known':>9} {'1000':>8} {'floor':>8}")
    for name, text in TEXTS.items():
        whole = text * (MEBIBYTE // len(text))
        floor = milliseconds_per_kb(lambda text: "nowhere" in text.lower(), whole)
        figures = [milliseconds_per_kb(work, whole) for work in (redact, known.text, many.text)]
        print(f"{name:32} {figures[0]:8.3f} {figures[1]:9.3f} {figures[2]:8.3f} {floor:8.4f}")
    print(f"\n{'a secret in every line, or made to be slow, 1 MiB':50} {'redact':>8} {'over 1/8':>9}")
    for piece in (*DENSE, *HOSTILE):
        whole, part = (piece * (size // len(piece)) for size in (MEBIBYTE, MEBIBYTE // 8))
        figures = (milliseconds_per_kb(redact, whole, rounds=1), milliseconds_per_kb(redact, part, rounds=1))
        print(f"{piece!r:50} {figures[0]:8.3f} {figures[0] / figures[1]:9.2f}")


if __name__ == "__main__":
    main()
