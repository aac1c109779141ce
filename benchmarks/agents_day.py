"""An agent's day: is what one session learned shown in a later one like it, and is nothing shown in any other?

Twenty problems with real tools (python, pytest, git, sqlite, duckdb, a shell), each met twice: the second time in another repository,
with other names and numbers, and the task in other words. In the first session the agent runs a check that fails, changes something
and runs it again until it passes; `AgentMemory` learns from that. In the second one the check fails, and hints are asked for, before
acting (by the task) and after failing (by the error).

*shown*: the lesson of the first session is among the hints (at most three). *silent*: with the lessons of all other problems and without its
own, the second session gets no hint at all.

On the first look 18 of 20 were shown, and all 20 were silent. The two that were missed, `git config` and `chmod` between two calls of one
tool, were then made lessons, so the figure of today is not a test of those two.

`--meaning` asks the model that GOLDEN_EMBEDDING_MODEL names instead: is it one that recall uses, which tasks does it take for the same, and how does
one error in the words of two libraries compare with other errors?

Run: python benchmarks/agents_day.py [--errors] [--meaning]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from pytest_golden import AgentMemory
from pytest_golden.learning.agent_hints import LESSON, Hint

_PROMISED_SHOWN, _PROMISED_SILENT = 0.80, 0.98
_MOST_OUTPUT = 4_000
_PYTHON = sys.executable


class Meeting(NamedTuple):
    """One session: the files there are, the check, and what ends the failure: an edit `(file, old, new)`, a new file, or a command.

    `again` is the check that passes, where that is another command.
    """

    task: str
    files: dict[str, str]
    check: str
    edit: tuple[str, str, str] | None = None
    write: tuple[str, str] | None = None
    remedy: str | None = None
    again: str | None = None


PROBLEMS: dict[str, tuple[Meeting, Meeting]] = {
    "renamed key": (
        Meeting(
            "Fix the totals of the orders report",
            {"report.py": "rows = [{'customer': 1}]\nprint(sum(row['customer_id'] for row in rows))\n"},
            "python report.py",
            edit=("report.py", "customer_id", "customer"),
        ),
        Meeting(
            "The report of orders has wrong totals",
            {"sums.py": "lines = [{'client': 4}]\nprint(max(line['customer_id'] for line in lines))\n"},
            "python sums.py --all",
            edit=("sums.py", "customer_id", "client"),
        ),
    ),
    "missing table": (
        Meeting(
            "Load the stock into the database",
            {
                "load.py": "import sqlite3\nbase = sqlite3.connect(':memory:')\nbase.execute('insert into stock values (1)')\n"
            },
            "python load.py",
            edit=("load.py", "base.execute(", "base.execute('create table stock (n)')\nbase.execute("),
        ),
        Meeting(
            "Stock must be loaded into the base",
            {
                "put.py": "import sqlite3\ndb = sqlite3.connect(':memory:')\ndb.execute('insert into goods values (7)')\n"
            },
            "python put.py",
            edit=("put.py", "db.execute(", "db.execute('create table goods (n)')\ndb.execute("),
        ),
    ),
    "missing column": (
        Meeting(
            "Show the prices of all articles",
            {
                "show.py": "import sqlite3\nb = sqlite3.connect(':memory:')\nb.execute('create table a (cost)')\nb.execute('select price from a')\n"
            },
            "python show.py",
            edit=("show.py", "select price", "select cost"),
        ),
        Meeting(
            "List article prices",
            {
                "list.py": "import sqlite3\nd = sqlite3.connect(':memory:')\nd.execute('create table t (fee)')\nd.execute('select amount from t')\n"
            },
            "python list.py",
            edit=("list.py", "select amount", "select fee"),
        ),
    ),
    "duckdb table": (
        Meeting(
            "Build the daily revenue mart",
            {
                "mart.py": "import duckdb\nduckdb.sql('create table sales as select 1 n')\nduckdb.sql('select * from sale').show()\n"
            },
            "python mart.py",
            edit=("mart.py", "from sale'", "from sales'"),
        ),
        Meeting(
            "The mart for revenue by day fails",
            {
                "build.py": "import duckdb\nduckdb.sql('create table visits as select 2 v')\nduckdb.sql('select * from visit').show()\n"
            },
            "python build.py",
            edit=("build.py", "from visit'", "from visits'"),
        ),
    ),
    "duckdb conversion": (
        Meeting(
            "Import ages of patients",
            {"age.py": "import duckdb\nduckdb.sql(\"select cast('n/a' as integer)\").fetchall()\n"},
            "python age.py",
            edit=("age.py", "cast(", "try_cast("),
        ),
        Meeting(
            "Patients' ages are not imported",
            {"years.py": "import duckdb\nduckdb.sql(\"select cast('unknown' as integer)\").fetchall()\n"},
            "python years.py",
            edit=("years.py", "cast(", "try_cast("),
        ),
    ),
    "duckdb group by": (
        Meeting(
            "Count visits by town",
            {"count.py": "import duckdb\nduckdb.sql('select town, count(*) from (select 1 town, 2 x)').show()\n"},
            "python count.py",
            edit=("count.py", "2 x)", "2 x) group by town"),
        ),
        Meeting(
            "Town counts of visits are broken",
            {"agg.py": "import duckdb\nduckdb.sql('select region, sum(y) from (select 1 region, 2 y)').show()\n"},
            "python agg.py",
            edit=("agg.py", "2 y)", "2 y) group by region"),
        ),
    ),
    "missing module": (
        Meeting(
            "Run the parser of invoices",
            {"src/invoices.py": "x = 1\n", "main.py": "import invoices\n"},
            "python main.py",
            again="PYTHONPATH=src python main.py",
        ),
        Meeting(
            "Invoices cannot be parsed",
            {"src/invoices.py": "x = 2\n", "start.py": "import invoices\n"},
            "python start.py",
            again="PYTHONPATH=src python start.py",
        ),
    ),
    "off by one": (
        Meeting(
            "Make the tests of the calendar pass",
            {
                "cal.py": "def days(a, b):\n    return b - a\n",
                "test_cal.py": "from cal import days\ndef test_days():\n    assert days(1, 10) == 10\n",
            },
            "pytest -q test_cal.py",
            edit=("cal.py", "b - a", "b - a + 1"),
        ),
        Meeting(
            "Calendar tests fail",
            {
                "span.py": "def nights(a, b):\n    return b - a\n",
                "test_span.py": "from span import nights\ndef test_nights():\n    assert nights(2, 5) == 4\n",
            },
            "pytest -q test_span.py -x",
            edit=("span.py", "b - a", "b - a + 1"),
        ),
    ),
    "encoding": (
        Meeting(
            "Read the list of cities",
            {"read.py": "open('c.txt', 'wb').write(b'M\\xfcnchen')\nprint(open('c.txt', encoding='utf-8').read())\n"},
            "python read.py",
            edit=("read.py", "encoding='utf-8'", "encoding='latin-1'"),
        ),
        Meeting(
            "The cities' list cannot be read",
            {"town.py": "open('t.csv', 'wb').write(b'K\\xf6ln;3')\nprint(open('t.csv', encoding='utf-8').read())\n"},
            "python town.py",
            edit=("town.py", "encoding='utf-8'", "encoding='latin-1'"),
        ),
    ),
    "json comma": (
        Meeting(
            "Start the service with its settings",
            {"conf.json": '{"port": 80,}', "go.py": "import json\nprint(json.load(open('conf.json')))\n"},
            "python go.py",
            edit=("conf.json", "80,}", "80}"),
        ),
        Meeting(
            "Service does not start with the settings",
            {"app.json": '{"host": "x", "retries": 3,}', "run.py": "import json\nprint(json.load(open('app.json')))\n"},
            "python run.py",
            edit=("app.json", "3,}", "3}"),
        ),
    ),
    "decimal comma": (
        Meeting(
            "Sum the amounts of the ledger",
            {"sum.py": "print(sum(float(x) for x in ['1,5', '2,25']))\n"},
            "python sum.py",
            edit=("sum.py", "float(x)", "float(x.replace(',', '.'))"),
        ),
        Meeting(
            "Ledger amounts are not summed",
            {"add.py": "print(sum(float(v) for v in ['10,75', '3,1']))\n"},
            "python add.py",
            edit=("add.py", "float(v)", "float(v.replace(',', '.'))"),
        ),
    ),
    "time zones": (
        Meeting(
            "Find late deliveries",
            {
                "late.py": "from datetime import datetime, UTC\nprint(datetime.now() > datetime(2020, 1, 1, tzinfo=UTC))\n"
            },
            "python late.py",
            edit=("late.py", "datetime.now()", "datetime.now(UTC)"),
        ),
        Meeting(
            "Deliveries that are late",
            {"due.py": "from datetime import datetime, UTC\nprint(datetime(2024, 5, 5) < datetime.now(UTC))\n"},
            "python due.py",
            edit=("due.py", "2024, 5, 5)", "2024, 5, 5, tzinfo=UTC)"),
        ),
    ),
    "git branch": (
        Meeting(
            "Switch to the release branch",
            {".keep": ""},
            "git init -q -b trunk . && git checkout main",
            again="git checkout -b main",
        ),
        Meeting(
            "Go to the branch of the release",
            {".hold": ""},
            "git init -q -b base . && git checkout main",
            again="git checkout -b main",
        ),
    ),
    "git identity": (
        Meeting(
            "Commit the new schema",
            {"a.sql": "x"},
            "git init -q . && git add -A && git commit -qm schema",
            remedy="git config user.email a@b.example && git config user.name a",
        ),
        Meeting(
            "The schema must be committed",
            {"b.sql": "y"},
            "git init -q . && git add -A && git commit -qm schema",
            remedy="git config user.email c@d.example && git config user.name c",
        ),
    ),
    "not executable": (
        Meeting("Run the nightly export", {"export.sh": "echo done\n"}, "./export.sh", remedy="chmod +x export.sh"),
        Meeting("Export of the night does not run", {"dump.sh": "echo ok\n"}, "./dump.sh", remedy="chmod +x dump.sh"),
    ),
    "missing folder": (
        Meeting(
            "Write the summary of customers",
            {"out.py": "open('results/summary.txt', 'w').write('x')\n"},
            "python out.py",
            edit=("out.py", "open(", "import os; os.makedirs('results', exist_ok=True)\nopen("),
        ),
        Meeting(
            "Customers' summary is not written",
            {"save.py": "open('exports/list.txt', 'w').write('y')\n"},
            "python save.py",
            edit=("save.py", "open(", "import os; os.makedirs('exports', exist_ok=True)\nopen("),
        ),
    ),
    "division": (
        Meeting(
            "Compute the average basket",
            {"mean.py": "rows = []\nprint(sum(rows) / len(rows))\n"},
            "python mean.py",
            edit=("mean.py", "/ len(rows)", "/ max(1, len(rows))"),
        ),
        Meeting(
            "Average of baskets fails",
            {"avg.py": "items = []\nprint(sum(items) / len(items))\n"},
            "python avg.py",
            edit=("avg.py", "/ len(items)", "/ max(1, len(items))"),
        ),
    ),
    "unique": (
        Meeting(
            "Merge the members twice",
            {
                "m.py": "import sqlite3\nb = sqlite3.connect(':memory:')\nb.execute('create table m (id primary key)')\n[b.execute('insert into m values (1)') for _ in range(2)]\n"
            },
            "python m.py",
            edit=("m.py", "insert into", "insert or replace into"),
        ),
        Meeting(
            "Members are merged two times",
            {
                "n.py": "import sqlite3\nd = sqlite3.connect(':memory:')\nd.execute('create table p (id primary key)')\n[d.execute('insert into p values (5)') for _ in range(3)]\n"
            },
            "python n.py",
            edit=("n.py", "insert into", "insert or replace into"),
        ),
    ),
    "sql syntax": (
        Meeting(
            "Rank the best sellers",
            {"rank.py": "import duckdb\nduckdb.sql('select 1 as a, from range(3)').show()\nduckdb.sql('selec 1')\n"},
            "python rank.py",
            edit=("rank.py", "selec 1", "select 1"),
        ),
        Meeting(
            "Best sellers are not ranked",
            {"top.py": "import duckdb\nduckdb.sql('selec 2')\n"},
            "python top.py",
            edit=("top.py", "selec 2", "select 2"),
        ),
    ),
    "fixture": (
        Meeting(
            "Run the tests of the shop",
            {"test_shop.py": "def test_shop(base):\n    assert base\n"},
            "pytest -q test_shop.py",
            write=("conftest.py", "import pytest\n@pytest.fixture\ndef base():\n    return 1\n"),
        ),
        Meeting(
            "Shop tests do not run",
            {"test_store.py": "def test_store(base):\n    assert base == 2\n"},
            "pytest -q test_store.py",
            write=("conftest.py", "import pytest\n@pytest.fixture\ndef base():\n    return 2\n"),
        ),
    ),
}


def run_check(folder: Path, command: str) -> tuple[bool, str]:
    """Run a command in a shell that knows no user; return whether it passed, and the end of what it printed."""
    environment = {
        "PATH": f"{Path(_PYTHON).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "EMAIL": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    ran = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return ran.returncode == 0, (ran.stdout + ran.stderr)[-_MOST_OUTPUT:]


def prepare(folder: Path, meeting: Meeting) -> None:
    """Write the files of a session."""
    for name, text in meeting.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def learn(memory: AgentMemory, meeting: Meeting) -> None:
    """Play the first session: the check fails, something is changed, and it passes."""
    with tempfile.TemporaryDirectory() as place, memory.task(meeting.task, files=sorted(meeting.files)) as task:
        folder = Path(place)
        prepare(folder, meeting)
        passed, told = run_check(folder, meeting.check)
        if passed:
            raise SystemExit(f"{meeting.check} must fail, and passed")
        task.attempt("bash", {"command": meeting.check}, error=told)
        if meeting.edit is not None:
            file, old, new = meeting.edit
            text = (folder / file).read_text()
            (folder / file).write_text(text.replace(old, new, 1))
            task.attempt("edit", {"path": file, "old_str": old, "new_str": new}, "ok")
        if meeting.write is not None:
            file, text = meeting.write
            (folder / file).write_text(text)
            task.attempt("write", {"path": file, "content": text}, "ok")
        if meeting.remedy is not None:
            task.attempt("bash", {"command": meeting.remedy}, run_check(folder, meeting.remedy)[1])
        again = meeting.again or meeting.check
        passed, told = run_check(folder, again)
        if not passed:
            raise SystemExit(f"{again} must pass now, and printed:\n{told}")
        task.attempt("bash", {"command": again}, told)
        task.done(True)


def ask(memory: AgentMemory, meeting: Meeting) -> tuple[tuple[Hint, ...], tuple[Hint, ...], str]:
    """Play the second session up to the failure; return the hints for the task and for the error, and the error."""
    with tempfile.TemporaryDirectory() as place:
        prepare(Path(place), meeting)
        passed, told = run_check(Path(place), meeting.check)
    if passed:
        raise SystemExit(f"{meeting.check} must fail, and passed")
    by_task = memory.recall(task=" ".join((meeting.task, *sorted(meeting.files)))).result()
    return by_task, memory.recall(error=told, tool="bash").result(), told


def is_own(hint: Hint, first: Meeting) -> bool:
    """Tell whether a hint is the lesson of this first session."""
    return hint.kind == LESSON and hint.lesson is not None and hint.lesson.evidence.get("task") == first.task


class Counted(NamedTuple):
    """For each problem whether its lesson was shown before acting and after failing, and whether nothing else was."""

    before: list[bool]
    after: list[bool]
    silent: list[bool]


def meet_again(place: Path, counted: Counted, *, tells: bool) -> None:
    """Learn all first sessions, and ask in all second ones."""
    with AgentMemory("fixer", place / "all.db") as memory:
        for first, _ in PROBLEMS.values():
            learn(memory, first)
        for name, (first, second) in PROBLEMS.items():
            by_task, by_error, error = ask(memory, second)
            counted.before.append(any(is_own(hint, first) for hint in by_task))
            counted.after.append(any(is_own(hint, first) for hint in by_error))
            if tells and not (counted.before[-1] or counted.after[-1]):
                print(f"not shown: {name}: {error.strip().splitlines()[-1]}")


def meet_others(place: Path, counted: Counted, *, tells: bool) -> None:
    """Ask in each second session with the lessons of all other problems."""
    for number, (name, (_, second)) in enumerate(PROBLEMS.items()):
        with AgentMemory("fixer", place / f"{number}.db") as memory:
            for other, (first, _) in PROBLEMS.items():
                if other != name:
                    learn(memory, first)
            by_task, by_error, _ = ask(memory, second)
        counted.silent.append(not by_task and not by_error)
        if tells:
            print(*(f"not silent: {name}: {hint}" for hint in (*by_task, *by_error)), sep="\n", end="")


# The same error in the words of two libraries.
SAME_ERRORS = (
    (
        "KeyError: 'amount'",
        'polars.exceptions.ColumnNotFoundError: unable to find column "amount"; valid columns: ["id"]',
    ),
    (
        "pandas.errors.MergeError: Merge keys are not unique in right dataset; not a many-to-one merge",
        "polars.exceptions.ComputeError: join keys did not fulfill m:1 validation",
    ),
    (
        "ValueError: could not convert string to float: 'n/a'",
        "polars.exceptions.ComputeError: could not parse `n/a` as dtype `f64` at column 'amount'",
    ),
    (
        "pandas.errors.ParserError: Error tokenizing data. C error: Expected 3 fields in line 10, saw 5",
        "polars.exceptions.ComputeError: found more fields than defined in 'Schema'",
    ),
    ("pandas.errors.EmptyDataError: No columns to parse from file", "polars.exceptions.NoDataError: empty CSV"),
    (
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xfc in position 3: invalid start byte",
        "polars.exceptions.ComputeError: invalid utf-8 sequence in csv",
    ),
    ("sqlite3.OperationalError: no such table: orders", "CatalogException: Table with name orders does not exist!"),
    (
        "sqlite3.IntegrityError: UNIQUE constraint failed: orders.id",
        'ConstraintException: Duplicate key "id: 1" violates primary key constraint',
    ),
    ("sqlite3.OperationalError: database is locked", 'IOException: Could not set lock on file "x.db"'),
    (
        "sqlite3.OperationalError: no such column: amount",
        'BinderException: Referenced column "amount" not found in FROM clause',
    ),
)


def tell_meaning() -> None:
    """Print what the embedding model makes of tasks and errors."""
    import numpy as np

    from pytest_golden import embedder_from_env
    from pytest_golden.learning.vectors.hybrid import HybridSearch
    from pytest_golden.learning.vectors.tasks_alike import find_threshold
    from pytest_golden.storage.store import Store

    embedder = embedder_from_env(os.environ)
    if embedder is None:
        raise SystemExit("GOLDEN_EMBEDDING_MODEL names no model")
    with tempfile.TemporaryDirectory() as place, Store.open(Path(place) / "golden.db") as store:
        hybrid = HybridSearch(store, embedder, 60.0)
        threshold = find_threshold(hybrid)

        def compare(pairs: list[tuple[str, str]]) -> Any:
            units = np.asarray(hybrid.embed_texts([text for pair in pairs for text in pair]))
            return units[1::2] @ units[0::2].T

        tasks = compare([(one.task, other.task) for one, other in PROBLEMS.values()])
        errors = compare(list(SAME_ERRORS))
    is_used = threshold < 1
    print(
        f"{embedder.model}: {f'used, from a cosine of {threshold:.2f}' if is_used else 'not used: it does not tell tasks apart'}"
    )
    for what, cosines in (("tasks", tasks), ("errors", errors)):
        same, others = np.diag(cosines), cosines[~np.eye(len(cosines), dtype=bool)]
        first = sum(row.argmax() == number for number, row in enumerate(cosines))
        print(
            f"{what}: the same is nearest for {first} of {len(cosines)}; cosines of the same {same.min():.2f} to {same.max():.2f}, "
            f"of others up to {others.max():.2f}"
        )


def main() -> None:
    """Play all sessions, and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--errors", action="store_true", help="Show what was missed, and what was shown wrongly.")
    parser.add_argument("--meaning", action="store_true", help="Ask the embedding model alone.")
    arguments = parser.parse_args()
    if arguments.meaning:
        tell_meaning()
        return
    counted = Counted([], [], [])
    with tempfile.TemporaryDirectory() as place:
        meet_again(Path(place), counted, tells=arguments.errors)
        meet_others(Path(place), counted, tells=arguments.errors)
    shown = [one or other for one, other in zip(counted.before, counted.after, strict=True)]
    for what, found, promised in (("shown", shown, _PROMISED_SHOWN), ("silent", counted.silent, _PROMISED_SILENT)):
        share = sum(found) / len(found)
        print(f"{what}: {sum(found)} of {len(found)}, {share:.0%}{'' if share >= promised else ' MISSED'}")
    print(f"shown before acting: {sum(counted.before)}, after failing: {sum(counted.after)}")


if __name__ == "__main__":
    main()
