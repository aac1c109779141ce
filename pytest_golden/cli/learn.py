"""`golden learn`: learn from what was recorded and not learned from yet, or from a session of an agent; or export it. It runs nothing.

Every gate learns at its end, for a hundredth of its duration and at most two seconds. This command, or the next gate,
learns the rest. The result does not depend on how the work is split. With GOLDEN_LLM_MODEL, that model words the lessons
from fixes; its lessons wait for approval.

exit code: 0 done, even if something is left; 2 bad input.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.cli import options
from pytest_golden.cli.options import add_options, find_manifest, open_store, read_duration
from pytest_golden.cli.screen import answer, show_line, styled
from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.gate.events import SecretHider
from pytest_golden.gate.rewording import MODEL_SECONDS, Rewording, reword_lessons
from pytest_golden.gate.teaching import GateLearner, GateLearning
from pytest_golden.gateway.service import ExecutionGateway
from pytest_golden.learning.language_model.client import LanguageModel
from pytest_golden.learning.lessons.recalling import may_be_shown
from pytest_golden.learning.lessons.service import Lessons
from pytest_golden.learning.task_record import Spool
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from rich.console import Console

    from pytest_golden.learning.lessons.model import SkillMemory
    from pytest_golden.storage.store import Store

_SINCE, _PAIRS, _MOST_PAIRS = "2.years", 10, 1_000
# How often the progress is shown.
_SLICE_SECONDS = 0.5
# A store may be locked for a while, or slow.
_MOST_SECONDS_FOR_A_TASK = 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden learn`."""
    parser.add_argument(
        "--budget", metavar="TIME", help="Begin nothing after this time, such as 90s or 10m (default: no limit)."
    )
    parser.add_argument(
        "--from",
        dest="session",
        metavar="FILE",
        help="Learn from a session of an agent instead: messages of OpenAI, Anthropic or LangGraph, a file of Claude Code or Codex, or spans.",
    )
    parser.add_argument(
        "--export",
        metavar="FILE",
        help="Write what agents did instead: pairs of a success and a failure at the same task, as JSON Lines for training.",
    )
    parser.add_argument(
        "--history",
        action="store_true",
        help="Learn from fixes in git instead: run golden projects before and after each, in worktrees.",
    )
    parser.add_argument(
        "--since",
        metavar="DATE",
        help=f"With --history: how far to look back, as git reads it (default {_SINCE}).",
    )
    parser.add_argument(
        "--run", metavar="N", help=f"With --history: how many fixes to run, the newest first (default {_PAIRS})."
    )
    parser.add_argument(
        "--agent",
        metavar="NAME",
        help="The agent of that session (default: agent), or the one to export (default: all).",
    )
    parser.set_defaults(base=None)
    add_options(parser, "--manifest", "--store", "--json")


def _learn_from_session(arguments: argparse.Namespace) -> int:
    """Learn from the tasks of a session. Its lessons wait for a person: an agent may have written the file."""
    from pytest_golden.learning.agent_memory import AgentMemory
    from pytest_golden.learning.agent_sessions import read_session

    tasks = read_session(Path(arguments.session))
    # Its warnings would say the same twice.
    logging.getLogger("pytest_golden.learning.agent_memory").addHandler(logging.NullHandler())
    with open_store(arguments) as store, show_line() as show:
        before = Lessons(store).stats().unapproved
        with AgentMemory(arguments.agent or "agent", store, lessons_wait=True, spool=False) as memory:
            for number, told in enumerate(tasks, 1):
                show(f"learning: task {number:,} of {len(tasks):,}")
                task = memory.task(told.description)
                for call in told.calls:
                    task.attempt(*call)
                if told.correction:
                    task.correction(told.correction)
                task.done(told.calls[-1].error is None and not told.correction, told.correction)
                if not task.wait(_MOST_SECONDS_FOR_A_TASK):
                    place = f"{store.where} is locked or cannot be written"
                    raise GoldenError(f"task {number} of {len(tasks)} was not kept, since {place}: try again")
        waiting = Lessons(store).stats().unapproved - before
    calls = sum(len(task.calls) for task in tasks)
    told_all = f"{count_of(len(tasks), 'task')} with {count_of(calls, 'call')}"
    said = f"{told_all}: {count_of(waiting, 'new lesson')} to be approved, see `golden lessons list`"
    return answer(arguments, {"tasks": len(tasks), "calls": calls, "lessons": waiting}, said)


def _learn_from_history(arguments: argparse.Namespace, manifest: Path) -> int:
    """Learn from fixes that are older than the store."""
    from pytest_golden.history.base_files import find_checkout
    from pytest_golden.verify.base_worktree import PrivateFolder
    from pytest_golden.verify.gates import clean_environment
    from pytest_golden.verify.history_lessons import HistoryLearner
    from pytest_golden.verify.past_commits import PastCommits

    since = _SINCE if arguments.since is None else arguments.since
    if not since.strip() or since.startswith("-"):
        raise SettingsError(f"--since {since!r} is not a date: give one as git reads it, such as 2026-01-31 or 2.weeks")
    most = _PAIRS if arguments.run is None else options.read_limit(arguments.run, _MOST_PAIRS, "--run")
    ends_at, checkout = _find_end(arguments), find_checkout(manifest.parent)
    with PrivateFolder(outside=checkout) as private, open_store(arguments, makes=True) as store:
        past = PastCommits(manifest, checkout, private.path, clean_environment(os.environ))
        done = HistoryLearner(past, checkout, store, options.say).learn(since, most, ends_at)
    kept = [verdict.skill for verdict in done.verdicts if verdict.kept and verdict.skill is not None]
    told = {
        "fixes": done.found,
        "run": done.run,
        "known": done.known,
        "unnoticed": done.unnoticed,
        "lessons": [_tell_lesson(skill) for skill in kept],
    }

    def show(console: Console) -> None:
        console.print(
            styled(f"{count_of(done.found, 'fix', 'fixes')} in the history of golden projects, {done.run} run")
        )
        for skill in kept:
            console.print(styled(f"  {_tell_lesson(skill).get('lesson', skill.id)}"))
        if done.known:
            console.print(styled(f"{done.known} known from an earlier walk"))
        if done.unnoticed:
            console.print(
                styled(f"{done.unnoticed} taught nothing: no golden project failed before and passed with it")
            )

    return answer(arguments, told, show)


def _find_end(arguments: argparse.Namespace) -> float | None:
    budget = None if arguments.budget is None else read_duration("--budget", arguments.budget)
    return None if budget is None else monotonic_seconds() + budget


def _export(arguments: argparse.Namespace) -> int:
    """Write the pairs for training."""
    from pytest_golden.learning.training import export_preferences

    if arguments.agent is not None and not arguments.agent.strip():
        raise SettingsError("--agent is blank: name an agent")
    with open_store(arguments) as store:
        count = export_preferences(store, arguments.export, arguments.agent)
    pairs = count_of(count, "pair")
    return answer(arguments, {"pairs": count}, f"wrote {pairs} of a success and a failure to {arguments.export}")


def run(arguments: argparse.Namespace) -> int:
    """Learn, and tell what was learned and what is left."""
    if (arguments.session is not None) + (arguments.export is not None) + arguments.history > 1:
        raise SettingsError("--from, --export and --history are different tasks: give one of them")
    if not arguments.history and (arguments.since is not None or arguments.run is not None):
        raise SettingsError("--since and --run say what to learn from history: give them with --history")
    if arguments.history:
        return options.run_against_base(arguments, lambda _, manifest: _learn_from_history(arguments, manifest))
    if arguments.session is not None:
        return _learn_from_session(arguments)
    if arguments.export is not None:
        return _export(arguments)
    if arguments.agent is not None:
        raise SettingsError("--agent is the agent of a session: give it with --from FILE or --export FILE")
    ends_at = _find_end(arguments)
    model = LanguageModel.from_env(os.environ)
    # With --store no manifest is needed.
    manifest = find_manifest(arguments)
    read = load_manifest(manifest) if manifest.exists() else None
    root = Path.cwd() if read is None else read.workspace_root
    gateway = ExecutionGateway(root)
    hider = SecretHider(gateway.redact, () if read is None else read.projects)
    # What cannot be read is counted; its tracebacks would add nothing.
    logging.getLogger("pytest_golden.learning.gate_learning").addHandler(logging.NullHandler())
    with open_store(arguments) as store:
        if store.path is not None:
            # What agents did while the store was locked.
            Spool(store.path).take_in(store)
        done = _learn(GateLearner(store, root, manifest if read else None, hide=hider.hide_for_all), ends_at)
        worded = None if model is None else _reword(store, model, ends_at)
    return answer(arguments, _as_json(done, worded), lambda console: _show(console, done, worded))


def _learn(learner: GateLearner, ends_at: float | None) -> GateLearning:
    """Learn in slices, so that the progress can be shown in between."""
    done = GateLearning()
    with show_line() as show:
        while True:
            seconds = _find_rest(ends_at, _SLICE_SECONDS)
            present = learner.learn(seconds)
            done.add(present)
            show(f"learning: {done.results.left:,} results left")
            if present.is_all or seconds <= 0:
                return done


def _reword(store: Store, model: LanguageModel, ends_at: float | None) -> Rewording:
    """Let the model reword the lessons of fixes, a few at a time, until it has nothing more to say."""
    worded = Rewording()
    with show_line() as show:
        while (seconds := _find_rest(ends_at, MODEL_SECONDS)) > 0:
            show(f"asking {model.endpoint}")
            present = reword_lessons(store, model, budget_seconds=seconds)
            worded = Rewording(worded.kept + present.kept, worded.refused + present.refused, present.left)
            if not (present.kept or present.refused):
                break
    return worded


def _find_rest(ends_at: float | None, most: float) -> float:
    return most if ends_at is None else min(most, ends_at - monotonic_seconds())


def _as_json(done: GateLearning, worded: Rewording | None) -> dict[str, Any]:
    results = {name: getattr(done.results, name) for name in ("learned", "passed_over", "unreadable", "left")}
    model = None
    if worded is not None:
        model = {"lessons": list(map(_tell_lesson, worded.kept)), "refused": worded.refused, "left": worded.left}
    return {
        "results": results,
        "lessons": [{**verdict.to_dict(), "skill": _tell_lesson(verdict.skill)} for verdict in done.verdicts],
        "breaks": done.breaks,
        "settled": done.settled,
        "left": done.left,
        "model": model,
    }


def _tell_lesson(skill: SkillMemory) -> dict[str, Any]:
    """Return a lesson; of one that waits the id alone, since this command may be typed by an agent."""
    return skill.to_dict() if may_be_shown(skill) else {"id": skill.id}


def _show(console: Console, done: GateLearning, worded: Rewording | None) -> None:
    for line in _tell(done):
        console.print(styled(line))
    for skill in () if worded is None else worded.kept:
        console.print(styled(f"  {skill.id} (in the model's words, waits for approval)"))
    if worded is not None and worded.left:
        console.print(styled(f"{count_of(worded.left, 'lesson')} the model has not worded yet"))


def _tell(done: GateLearning) -> Iterator[str]:
    results = done.results
    told = [count_of(results.learned, "result") if results.learned else "nothing new"]
    told += [f"{count_of(len(done.kept), 'lesson')} kept"] if done.kept else []
    told += [f"{count_of(done.settled, 'recall')} settled"] if done.settled else []
    yield f"learned from {', '.join(told)}"
    for verdict in done.verdicts:
        words = _tell_lesson(verdict.skill).get("lesson", verdict.skill.id)
        waits = "" if verdict.skill.approved else " (waits for approval)"
        yield f"  {words}{waits if verdict.kept else f' (refused: {verdict.reason})'}"
    if results.unreadable:
        yield f"{count_of(results.unreadable, 'result')} could not be read"
    if results.left:
        yield f"left: {count_of(results.left, 'result')}"
    if done.left:
        yield f"{count_of(done.left, 'change')} wait for commits that are not in this clone"
