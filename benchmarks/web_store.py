"""Fills a store with all that the web face shows, as months of gates and many agents would leave it, and writes a manifest.

Gate runs of one or two results each, the last of them of 1,000 projects with steps, output, differences and written files;
a journal; lessons; plans. A store that has a journal already is given what is missing.

Run: python benchmarks/web_store.py STORE MANIFEST [--entries N] [--lessons N] [--plans N] [--projects N]
"""

from __future__ import annotations

import argparse
import random
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from filled_store import fill_store
from journal_store import AGENTS, Size, fill_journal
from side_by_side import seconds
from sqlalchemy import func, select

from pytest_golden.clock import new_id, utc_now
from pytest_golden.gate.events import ResultJudged, RunBegun, RunEnded
from pytest_golden.gate.store import record_event
from pytest_golden.gateway.model import WriteSet
from pytest_golden.learning.lessons.model import SkillMemory
from pytest_golden.learning.lessons.store import put_lesson
from pytest_golden.learning.memories import draft_memory
from pytest_golden.learning.model import ExtractedPlan, ProductionOutcome
from pytest_golden.learning.outcomes import write_outcome, write_plan
from pytest_golden.learning.store import insert_all_new
from pytest_golden.regression.model import GoldenProjectResult, Reason, ReasonKind, ResultStatus
from pytest_golden.regression.wording import summarize_output
from pytest_golden.storage.columns import to_ms
from pytest_golden.storage.schema import entries, gate_runs, lesson_signatures, memories
from pytest_golden.storage.store import Store
from pytest_golden.trajectory.model import Trajectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

#: How many of the projects earlier runs are spread over; the others were run a few times only.
OFTEN_RUN = 200
_LARGE_RUNS = 12
_AT_ONCE = 1_000
_DIFFERENCES_OF_LARGEST, _LINES_OF_DIFFERENCE = 50, 24
_STEPS_OF_LARGEST, _PATHS_OF_LARGEST, _LINES_OF_LARGEST = 2_000, 3_000, 900
_TABLES = tuple(f"table_{number}" for number in range(20_000))
_ERRORS = (
    "KeyError: column {one} is not in the frame of {other}",
    "duckdb.CatalogException: Table with name {one} does not exist; did you mean {other}?",
    "ValueError: could not convert string to float in {one}.{other}",
    "dbt: model {one} depends on a node named {other} which was not found",
)


class Wanted(NamedTuple):
    """How much of each kind there is to be."""

    entries: int = 1_000_000
    lessons: int = 100_000
    plans: int = 20_000
    projects: int = 1_000


def fill_web_store(path: Path, wanted: Wanted) -> None:
    """Put into a store what is missing of so much."""
    with Store.open(path) as store:
        is_new = _count(store, entries) == 0
    if is_new:
        # Each run leaves an entry, and one for each of its one and a half results.
        fill_store(path, wanted.entries // 10, OFTEN_RUN)
    with Store.open(path) as store:
        if is_new:
            count = wanted.entries * 3 // 4
            fill_journal(store, Size(count, count * 3, count // 10, count // 50))
        with store.read() as connection:
            has_large = connection.scalar(select(gate_runs.c.number).where(gate_runs.c.host == "large").limit(1))
        if not has_large:
            for turn in range(_LARGE_RUNS):
                _record_large_run(store, [f"p{number}" for number in range(wanted.projects)], turn)
        chance = random.Random(0)
        _fill(wanted.lessons - _count(store, lesson_signatures), lambda amount: _put_lessons(store, chance, amount))
        known = _count(store, memories, memories.c.namespace == "plans/global/")
        _fill(wanted.plans - known, lambda amount: _put_plans(store, chance, amount))


def write_manifest(path: Path, project_count: int) -> None:
    """Declare so many projects. Nothing asks whether their scripts are there."""
    lines = (
        f"  - {{name: p{number}, path: p{number}/load.sh, description: 'Loads the orders of shop {number}', tags: [nightly]}}\n"
        for number in range(project_count)
    )
    path.write_text("golden_projects:\n" + "".join(lines))


def run_gate(store: Store, names: Sequence[str], *, host: str = "busy") -> Iterator[None]:
    """Record a gate run as a gate would, a step at a time: its beginning, each result, its end."""
    begun = _begin(names, host)
    with store.write() as connection:
        record_event(connection, begun)
    yield
    for number, name in enumerate(names):
        with store.write() as connection:
            record_event(connection, _judge(begun, name, _make_result(name, has_failed=number % 7 == 3, steps=5)))
        yield
    with store.write() as connection:
        record_event(
            connection, RunEnded(begun.run_id, begun.moment + 1_000, "success", "", {"final_status": "passed"}, {})
        )
    yield


def _count(store: Store, table: Any, *wanted: Any) -> int:
    with store.read() as connection:
        return connection.scalar(select(func.count()).select_from(table).where(*wanted)) or 0


def _fill(amount: int, put: Callable[[int], None]) -> None:
    while amount > 0:
        put(min(amount, _AT_ONCE))
        amount -= _AT_ONCE


def _put_lessons(store: Store, chance: random.Random, amount: int) -> None:
    moment = to_ms(utc_now())
    with store.write() as connection:
        for _ in range(amount):
            error = _make_error(chance)
            skill = SkillMemory(
                lesson=f"When it says {error!r}, name the column in the query of the load",
                what_failed=error,
                what_worked="the column was named in the query",
                evidence={"error": error, "project": f"p{chance.randrange(1_000)}"},
                approved=chance.random() < 0.8,
                rejected=chance.random() < 0.1,
                support=chance.randrange(1, 20),
            )
            put_lesson(connection, skill, chance.choice(AGENTS), moment)


def _put_plans(store: Store, chance: random.Random, amount: int) -> None:
    told: list[Any] = []
    for _ in range(amount):
        task, agent = f"Mend {_make_error(chance)}", chance.choice(AGENTS)
        outcome = ProductionOutcome(
            task_description=task,
            agent_name=agent,
            execution_path=("look", "change", "test"),
            result={"rows": 1_000},
            success=True,
        )
        plan = ExtractedPlan(
            outcome_id=outcome.outcome_id,
            strategy_description="Look at the frame, then name the column",
            reasoning_pattern="look, change, test",
            tools_sequence=outcome.execution_path,
        )
        told += (*write_outcome(outcome), *write_plan(plan, outcome))
    with store.write() as connection:
        insert_all_new(connection, [draft_memory(**one) for one in told], to_ms(utc_now()))


def _make_error(chance: random.Random) -> str:
    return chance.choice(_ERRORS).format(one=chance.choice(_TABLES), other=chance.choice(_TABLES))


def _record_large_run(store: Store, names: Sequence[str], turn: int) -> None:
    begun = _begin(names, "large")
    with store.write() as connection:
        record_event(connection, begun)
        for number, name in enumerate(names):
            result = _make_result(name, has_failed=(number + turn) % 9 == 0, steps=20)
            if number == 0:
                result = _enlarge(result)
            record_event(connection, _judge(begun, name, result))
        record_event(
            connection, RunEnded(begun.run_id, begun.moment + 60_000, "failure", "", {"final_status": "failed"}, {})
        )


def _begin(names: Sequence[str], host: str) -> RunBegun:
    return RunBegun(
        run_id=new_id("entry"),
        moment=to_ms(utc_now()),
        workspace_root="/work",
        manifest="golden_projects.yaml",
        command_line=("pytest", "--golden"),
        checkout={"commit": f"{random.getrandbits(160):040x}", "branch": "main", "dirty": False, "dirty_files": {}},
        surroundings={"python": "3.11", "distributions": {f"package-{number}": "1.0" for number in range(200)}},
        host=host,
        pid=1,
        expectations={name: new_id("expectation") for name in names},
        facts={"mode": "improvement"},
    )


def _judge(begun: RunBegun, name: str, result: GoldenProjectResult) -> ResultJudged:
    return ResultJudged(
        run_id=begun.run_id,
        entry_id=new_id("entry"),
        signal_id=new_id("signal"),
        moment=to_ms(utc_now()),
        expectation_id=begun.expectations.get(name),
        fails=result.status is ResultStatus.FAILED,
        declaration={"name": name, "timeout": 600.0},
        result=result,
    )


def _make_result(name: str, *, has_failed: bool, steps: int) -> GoldenProjectResult:
    trajectory = Trajectory.new()
    for number in range(steps):
        trajectory = trajectory.add_step("action", f"load part {number} of the orders of {name}")
    plain = trajectory.complete("failure" if has_failed else "success").to_dict()
    told = plain.pop("steps")
    difference = "@@ 1 @@\n- 1,000 rows\n+ 998 rows"
    reasons = (Reason(ReasonKind.OUTPUT_DIFFERS, f"out/{name}.csv differs from its baseline\n{difference}", "out.csv"),)
    return GoldenProjectResult(
        name,
        f"{name}/load.sh",
        ResultStatus.FAILED if has_failed else ResultStatus.PASSED,
        exit_code=0,
        output_summary="loaded \x1b[32m1,000\x1b[0m orders\n" * 20,
        error_message=reasons[0].headline if has_failed else None,
        execution_time_seconds=random.uniform(1.0, 2.0),
        reasons=reasons if has_failed else (),
        steps_total=steps,
        steps=tuple(told),
        trajectory=plain,
        command=("bash", f"{name}/load.sh"),
    )


def _enlarge(result: GoldenProjectResult) -> GoldenProjectResult:
    """Return it as much of everything as one result has at worst."""
    large = _make_result(result.name, has_failed=True, steps=_STEPS_OF_LARGEST)
    reason = large.reasons[0]
    lines = "\n".join(
        f"{'+-'[number % 2]} row {number} of the orders, which is not as it was"
        for number in range(_LINES_OF_DIFFERENCE)
    )
    return replace(
        large,
        reasons=tuple(
            Reason(reason.kind, f"{reason.headline}\n{lines}", f"out/{number}.csv")
            for number in range(_DIFFERENCES_OF_LARGEST)
        ),
        output_summary=summarize_output(
            "\n".join(
                f"\x1b[2m08:00:{number % 60:02d}\x1b[0m \x1b[32mINFO\x1b[0m loaded part {number} of the orders of today"
                for number in range(_LINES_OF_LARGEST)
            ),
            "",
        ),
        write_set=WriteSet(tuple(f"out/2026/part-{number:05d}.parquet" for number in range(_PATHS_OF_LARGEST))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path)
    parser.add_argument("manifest", type=Path)
    for name, amount in Wanted()._asdict().items():
        parser.add_argument(f"--{name}", type=int, default=amount)
    options = parser.parse_args()
    wanted = Wanted(options.entries, options.lessons, options.plans, options.projects)
    took = seconds(lambda: fill_web_store(options.store, wanted))
    write_manifest(options.manifest, wanted.projects)
    print(f"{wanted} in {took:.0f} s")


if __name__ == "__main__":
    main()
