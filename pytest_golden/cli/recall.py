"""`golden recall`: what is known about a failure, a task, or changed files that broke projects before. Runs nothing.

TEXT is the message of a failure, or words from it; it can be asked together with --task and --diff. The same failure is recognized despite other numbers, times, paths
and quoted values. Everything else is found by words. The results of the last gate run are known once it has learned from them.
In a git checkout it also names the files that are probably at fault, where that is sure enough; the more so if TEXT names a test.

exit code: 0 done, even if nothing is known; 2 bad input.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.screen import answer, print_indented, styled
from pytest_golden.errors import GoldenError, ManifestError, SettingsError
from pytest_golden.gate.fix_wording import tell_lesson
from pytest_golden.gate.known import foresee
from pytest_golden.history.checkout import list_files_since
from pytest_golden.history.past_store import list_projects
from pytest_golden.history.suspects import find_suspects
from pytest_golden.learning.agent_hints import MOST_HINTS, WARNING, find_hints
from pytest_golden.learning.known_failures import Recollection, recall_memories
from pytest_golden.learning.lessons.edits import LANGUAGES
from pytest_golden.learning.lessons.model import RecallReason
from pytest_golden.learning.memories import words_of
from pytest_golden.learning.memory_store import MemoryStore
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.redaction.redactor import redact
from pytest_golden.regression.wording import count_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from typing import Any

    from rich.console import Console

    from pytest_golden.gate.known import Foresight
    from pytest_golden.history.suspects import Suspect
    from pytest_golden.learning.agent_hints import Hint
    from pytest_golden.learning.lessons.model import Recalled
    from pytest_golden.learning.model import MemoryHit
    from pytest_golden.learning.seen_before import SeenBefore
    from pytest_golden.storage.store import Store

    # An answer as JSON, and what shows it as text.
    _Answer = tuple[dict[str, Any], Callable[[Console], None]]

_DEFAULT_LIMIT, _MOST = 5, 200
# The command writes only that a lesson was shown, which is not worth a long wait.
_BUSY_SECONDS = 2.0
_MOST_OF_VALUE = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden recall`."""
    parser.add_argument("text", metavar="TEXT", nargs="*", help="The message of a failure, or words from it.")
    parser.add_argument(
        "--diff",
        metavar="REF",
        help="Show which golden projects broke when files changed that differ from this ref.",
    )
    parser.add_argument("--task", metavar="TEXT", help="Show what earlier work says about a task like this.")
    parser.add_argument("--project", metavar="NAME", help="Only this golden project.")
    parser.add_argument(
        "--language",
        choices=sorted(LANGUAGES),
        metavar="NAME",
        help="Leave out lessons that come from files of other languages alone, such as python or sql.",
    )
    options.add_limit_option(parser, _DEFAULT_LIMIT, "The most results of each kind")
    options.add_options(parser, "--manifest", "--store", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Show what is known about the failure, with `--task` about a task, and with `--diff` about the changes."""
    ref = arguments.diff
    if ref is not None and (not ref.strip() or ref.startswith("-")):
        raise SettingsError(f"--diff {ref!r} is not a git ref: give a branch, a tag or a commit")
    answers = []
    if arguments.text:
        answers.append(_tell_failure(arguments))
    if arguments.task is not None:
        answers.append(_tell_task(arguments))
    if arguments.diff is not None:
        answers.append(_foresee(arguments))
    if not answers:
        raise SettingsError("TEXT is blank: give a failure's message, or words of it; or ask with --task or --diff REF")
    told = {name: value for plain, _ in answers for name, value in plain.items()}

    def show(console: Console) -> None:
        for _, show_one in answers:
            show_one(console)

    return answer(arguments, told, show)


def _tell_failure(arguments: argparse.Namespace) -> _Answer:
    """Tell what is known of a failure, and the files at fault."""
    limit = options.read_limit(arguments.limit, _MOST)
    text = " ".join(arguments.text)
    if not text.strip():
        raise SettingsError("TEXT is blank: give a failure's message, or words of it; or ask with --task or --diff REF")
    suspects = _find_suspects(arguments, text)
    try:
        known = _recall(arguments, text, limit)
    except SettingsError:
        # On the first day nothing is recorded, and git knows something all the same.
        if not suspects or arguments.store is not None or arguments.project is not None:
            raise
        known = Recollection((), (), ())
    told = {"text": redact(text), **known.to_dict(), "suspects": [one.to_dict() for one in suspects]}
    return told, lambda console: _show_known(console, known, suspects)


def _recall(arguments: argparse.Namespace, text: str, limit: int) -> Recollection:
    """Return what the store knows about a failure."""
    with options.open_store(arguments, busy_seconds=_BUSY_SECONDS) as store:
        root = _find_workspace(arguments)[0]
        known = recall_memories(
            store, text, project=arguments.project, language=arguments.language, limit=limit, root=root
        )
        if arguments.project is not None and not known.seen and not known.memories:
            _refuse_unknown(arguments, store)
    return known


def _find_suspects(arguments: argparse.Namespace, text: str) -> tuple[Suspect, ...]:
    try:
        return find_suspects(_find_workspace(arguments)[0], text)
    except GoldenError:
        # Without git there is only what the store knows.
        return ()


def _tell_task(arguments: argparse.Namespace) -> _Answer:
    """Give the hints for `--task`: three at most."""
    task = str(arguments.task)
    if not task.strip():
        raise SettingsError("--task is blank: say what is to be done")
    limit = min(options.read_limit(arguments.limit, _MOST), MOST_HINTS)
    with options.open_store(arguments, busy_seconds=_BUSY_SECONDS) as store:
        root = _find_workspace(arguments)[0]
        files = () if arguments.diff is None else _list_changed(root, arguments.diff)
        memories = MemoryStore.from_env(store, os.environ)
        hints = find_hints(
            memories,
            task=task,
            files=files,
            project=arguments.project,
            language=arguments.language,
            limit=limit,
            root=root,
        )
    told = {"task": redact(task), "hints": [hint.to_dict() for hint in hints]}
    return told, lambda console: _show_hints(console, hints)


def _list_changed(root: Path, ref: str) -> tuple[str, ...]:
    """Return the files that differ from a ref; none if git cannot tell, which `--diff` itself reports."""
    try:
        return list_files_since(root, ref)
    except GoldenError:
        return ()


def _show_hints(console: Console, hints: Sequence[Hint]) -> None:
    if not hints:
        console.print(styled("nothing is known about such a task"))
    for hint in hints:
        first, *more = str(hint).splitlines()
        console.print(styled(f"{hint.kind}: {first}", "bold green" if hint.kind != WARNING else "bold yellow"))
        for line in (*more, *str(hint.evidence.get("what_worked", "")).splitlines()):
            print_indented(console, line, 2)
        console.print(styled(f"  {hint.id}, {hint.why}", "dim"))


def _refuse_unknown(arguments: argparse.Namespace, store: Store) -> None:
    """Raise SettingsError if neither the store nor a readable manifest knows the project."""
    with store.read() as connection:
        known = list_projects(connection)
    with suppress(ManifestError):
        known += tuple(project.name for project in load_manifest(options.find_manifest(arguments)).projects)
    if arguments.project not in known:
        hint = options.suggest_name(arguments.project, known)
        raise SettingsError(f"no golden project called {arguments.project!r} has a run in {store.where}; {hint}")


def _show_known(console: Console, known: Recollection, suspects: Sequence[Suspect]) -> None:
    if not known.lessons and not known.seen and not known.memories and not suspects:
        console.print(styled("nothing is known about this"))
    for recalled in known.lessons:
        _show_lesson(console, recalled)
    for one in known.seen:
        _show_seen(console, one)
    for suspect in suspects:
        _show_suspect(console, suspect)
    if known.memories:
        console.print(styled("memories with these words", "bold"))
    for hit in known.memories:
        _show_memory(console, hit)


def _show_lesson(console: Console, recalled: Recalled) -> None:
    first, *more = tell_lesson(recalled.lesson)
    alike = "" if recalled.why == RecallReason.SIGNATURE else "reads alike: "
    console.print(styled(f"{alike}{first}", "bold green"))
    for line in (*more, recalled.lesson.why, f"stale: {recalled.stale}" if recalled.stale else ""):
        if line.strip():
            print_indented(console, line.strip(), 2)
    console.print(styled(f"  {recalled.lesson.id}", "dim"))


def _show_suspect(console: Console, suspect: Suspect) -> None:
    console.print(styled(f"look at {suspect.path}", "bold"))
    for reason in suspect.why:
        print_indented(console, reason, 2)


def _show_seen(console: Console, seen: SeenBefore) -> None:
    alike = "" if seen.why == "signature" else "reads alike: "
    console.print(styled(f"{alike}{seen}", "bold" if seen.why == "signature" else ""))
    print_indented(console, seen.message, 2)


def _show_memory(console: Console, hit: MemoryHit) -> None:
    memory = hit.memory
    console.print(styled(f"  {'/'.join(memory.namespace)}  {memory.key}", "dim"))
    told = " ".join(_describe_memory(hit).split())
    print_indented(console, told if len(told) <= _MOST_OF_VALUE else f"{told[: _MOST_OF_VALUE - 4]} ...", 4)


def _describe_memory(hit: MemoryHit) -> str:
    """Return an outcome or a lesson in a few words; of any other memory, its words."""
    value = hit.memory.value
    if "task_description" not in value:
        return str(value["lesson"]) if "lesson" in value else words_of(value)
    ending = "success" if value.get("success") else f"failure: {value.get('error_message') or 'no message'}"
    return f"{hit.memory.updated_at:%Y-%m-%d} {value['task_description']}: {ending}"


def _foresee(arguments: argparse.Namespace) -> _Answer:
    """Tell which golden projects broke before when the files changed that now differ from `--diff`."""
    ref = str(arguments.diff)
    folder, declared = _find_workspace(arguments)
    wanted = declared if arguments.project is None else (arguments.project,)
    if arguments.project is not None and declared is not None and arguments.project not in declared:
        raise SettingsError(f"no golden project called {arguments.project!r} is declared")
    with options.open_store(arguments) as store:
        try:
            told = foresee(store, folder, ref, projects=wanted)
        except GoldenError as error:
            raise SettingsError(f"--diff {ref}: {error}") from None
    return told.to_dict(), lambda console: _show_foresight(console, told)


def _find_workspace(arguments: argparse.Namespace) -> tuple[Path, tuple[str, ...] | None]:
    """Return the workspace root and the declared names; this folder and None if no manifest can be read."""
    try:
        manifest = load_manifest(options.find_manifest(arguments))
    except ManifestError:
        return Path.cwd(), None
    return manifest.workspace_root, tuple(project.name for project in manifest.projects)


def _show_foresight(console: Console, told: Foresight) -> None:
    changed = f"{count_of(len(told.files), 'file')} changed since {told.ref}"
    if not told.projects:
        console.print(styled(f"{changed}: no golden project is known to have broken after such a change"))
        return
    console.print(styled(changed, "dim"))
    for one in told.projects:
        first, *more = one.lines
        console.print(styled(first, "bold"))
        for line in more:
            text = line.lstrip()
            print_indented(console, text, len(line) - len(text))
