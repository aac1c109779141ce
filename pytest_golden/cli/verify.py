"""`golden verify`: base against head. Starts the head's gate at once, and loads the rest while that is coming up.

It runs the golden projects in your working tree (the head) and at the commit where this branch left REF (the base).
A project that passed on the base and fails on the head is run again on both, until the failure repeats byte for byte
or Fisher's exact test decides whether it is chance. So is a project that fails on both for different reasons.

exit code: 0 no new regression, 1 a new regression or a weakened floor, 2 bad input or interrupted, 3 REF does not exist,
the base could not be run, or it lacks the baselines of a project that fails here. If the base has no manifest, the head
is judged alone.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.clock import iso_utc, utc_now
from pytest_golden.errors import GoldenError, SettingsError
from pytest_golden.history.base_files import find_checkout
from pytest_golden.regression.model import ResultStatus
from pytest_golden.verify.base_worktree import PrivateFolder, find_base, open_judge, read_head
from pytest_golden.verify.gates import clean_environment, start_gate, use_store

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import Console

    from pytest_golden.regression.comparison import Comparison, SideRuns
    from pytest_golden.report.attestation import Attestor, Judged
    from pytest_golden.settings import GoldenSettings
    from pytest_golden.verify.gates import BaseCommit, HeadCommit
    from pytest_golden.verify.model import Verification

_DEFAULT_REPEAT = 10
_MOST_REPEAT = 1000
_SHORT = 12
_STYLES = {
    "ok": "green",
    "fixed": "bold green",
    "new_regression": "bold red",
    "known": "yellow",
    "unstable": "yellow",
}
_MEANINGS = {
    "new_regression": "this change broke it",
    "known": "it failed before this change too, for the same reason",
    "unstable": "it does not always fail, and not provably more often than before",
    "fixed": "it failed before this change",
    "new_project": "the base does not declare it",
    "removed": "only the base declares it",
    "skipped": "it was not run",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden verify`."""
    options.add_base_options(parser)
    parser.add_argument(
        "--repeat",
        metavar="N",
        type=int,
        default=_DEFAULT_REPEAT,
        help=f"Run a project that broke at most N times on each side (default {_DEFAULT_REPEAT}).",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="Run the base even if earlier runs already show its results."
    )
    parser.add_argument(
        "--fix",
        action="store_true",
        help="Treat every commit of the change as a fix: name those that turn no project from red to green.",
    )
    options.add_gate_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Verify, and show the result."""
    if not 1 <= arguments.repeat <= _MOST_REPEAT:
        raise SettingsError(f"--repeat {arguments.repeat}: give a number from 1 to {_MOST_REPEAT}")
    return options.run_against_base(arguments, lambda settings, manifest: _verify(arguments, settings, manifest))


def _verify(arguments: argparse.Namespace, settings: GoldenSettings, manifest: Path) -> int:
    attestor = _make_attestor(settings, manifest)
    head = read_head(manifest.parent)
    try:
        base = find_base(manifest, arguments.base, head)
        checkout = find_checkout(manifest.parent)
    except GoldenError as error:
        return _give_up(arguments, head, str(error))
    floor = arguments.floor or settings.floor
    with PrivateFolder(outside=checkout) as private, ExitStack() as held:
        from pytest_golden.manifest.reader import load_manifest

        declared = load_manifest(manifest)
        try:
            place, judge = open_judge(base, manifest, declared, checkout, private.path, clean_environment(os.environ))
            held.enter_context(judge)
        except GoldenError as error:
            from pytest_golden.verify import service

            return _give_up(arguments, head, service.tell_broken_base(error, declared.workspace_root), base)
        if settings.store is not None:
            place = use_store(place, settings.store)
        gate = start_gate(place, private.path, "head", ["--golden-base", base.commit, "--golden-floor", floor])
        held.callback(gate.process.end)
        # The gate starts up meanwhile, so what is imported from here on costs no time.
        turn = held.enter_context(ExitStack())
        # Runs right after the lock is released, so that this is imported while the pipelines run.
        turn.callback(_load_what_the_end_needs)
        from pytest_golden.gate.state_folder import hold_gate_lock

        turn.enter_context(hold_gate_lock(declared.workspace_root, options.say))
        # End the gate before the lock is released, so that it does not take the lock for nobody.
        held.callback(gate.process.end)
        options.say(_describe(base, head))
        with options.watch_gates() as (say_above, show):
            from pytest_golden.verify import service

            verifier = service.Verifier(
                manifest=manifest,
                declared=declared,
                base=base,
                head=head,
                checkout=checkout,
                private=private.path,
                store=settings.store,
                gate=gate,
                place=place,
                turn=turn,
                repeat=arguments.repeat,
                accepts_floor=floor == "accept",
                reuses=not arguments.fresh,
                is_fix=arguments.fix,
                say=say_above,
                show=show,
            )
            found = verifier.run()
    code = _show(arguments, found)
    if attestor is not None:
        attestor.write(_describe_judged(found), None if found.is_first else base.commit)
    return code


def _make_attestor(settings: GoldenSettings, manifest: Path) -> Attestor | None:
    if settings.attest is None:
        return None
    from pytest_golden.report import attestation

    return attestation.Attestor(manifest, settings.attest)


def _give_up(arguments: argparse.Namespace, head: HeadCommit, reason: str, base: BaseCommit | None = None) -> int:
    """Tell why nothing was compared."""
    from pytest_golden.verify import model

    ref, commit, ref_commit = (arguments.base, None, None) if base is None else (base.ref, base.commit, base.ref_commit)
    return _show(arguments, model.Verification(model.BaseFacts(ref, commit, ref_commit, reason=reason), head))


def _describe_judged(found: Verification) -> Judged:
    from pytest_golden.report.attestation import Judged

    heads = [one.runs.name for one in found.comparisons if one.runs.head.result is not None]
    passed = [one.runs.name for one in found.comparisons if one.runs.head.status is ResultStatus.PASSED]
    known = {*passed, *found.failing}
    return Judged(
        is_passed=found.exit_code == 0,
        passed=tuple(passed),
        failed=found.failing,
        others=tuple(name for name in heads if name not in known),
        verdict={"verdict": "; ".join(_list_news(found)), "exit_code": found.exit_code},
        weakenings=found.weakened_floor,
        environment=found.environment,
        finished_at=iso_utc(utc_now()),
    )


def _describe(base: BaseCommit, head: HeadCommit) -> str:
    shown = (head.commit or "no commit")[:_SHORT] + (" with edits" if head.dirty else "")
    meant = base.ref_commit[:_SHORT]
    left = meant if base.commit == base.ref_commit else f"{base.commit[:_SHORT]}, where this branch left it at {meant}"
    return f"base {base.ref} ({left}), head {shown}"


def _show(arguments: argparse.Namespace, found: Verification) -> int:
    if found.is_first:
        options.say(str(found.base.reason))
    elif not found.base.available:
        options.say(f"base unavailable: {found.base.reason}")
    if arguments.json or found.base.available or found.is_first:
        from pytest_golden.cli.screen import answer

        answer(arguments, found.to_dict, lambda console: _show_verification(console, found))
    return found.exit_code


def _load_what_the_end_needs() -> None:
    from pytest_golden.cli import screen
    from pytest_golden.verify import store

    _ = screen, store


def _show_verification(console: Console, found: Verification) -> None:
    """Print a line for each project, new failures in full, and one sentence at the end."""
    from rich.text import Text

    from pytest_golden.cli.screen import print_indented, print_listing, styled
    from pytest_golden.report.result_text import explain_failure

    rows = [
        (
            styled(one.runs.name),
            styled(one.verdict.replace("_", " "), _STYLES.get(one.verdict, "")),
            _show_side(one.runs.base),
            _show_side(one.runs.head),
            _explain(one),
        )
        for one in found.comparisons
    ]
    titles = ("project", "verdict", "base", "head", "")
    print_listing(console, titles, rows, whole=titles[:4])
    failing = frozenset(found.failing)
    for one in found.comparisons:
        head, base = one.runs.head.result, one.runs.base.result
        if one.runs.name not in failing or head is None:
            continue
        named = "new regression " if one.verdict == "new_regression" else "failing "
        console.print()
        console.print(Text.assemble((named, "bold red"), styled(one.runs.name, "bold")))
        print_indented(console, explain_failure(head, shell_command=None), 2)
        if base is not None and one.runs.fails_otherwise:
            print_indented(console, f"on the base it failed for another reason: {base.error_message}", 2)
    if found.weakened_floor:
        console.print()
        console.print(styled("weakened floor", "bold yellow" if found.is_floor_accepted else "bold red"))
        for line in _describe_floor(found):
            print_indented(console, line, 2)
    if found.unprotected_fixes:
        console.print()
        console.print(styled("protected by no golden project: none was red before and is green now", "bold yellow"))
        for fix in found.unprotected_fixes:
            print_indented(console, f"{fix['commit'][:12]} {fix['subject']}", 2)
        newest = found.unprotected_fixes[0]["commit"][:12]
        print_indented(
            console, f"golden init --add --from-fix {newest}   (draft a project that would have caught it)", 2
        )
    console.print()
    console.print(styled("; ".join(_list_news(found)), "bold green" if found.exit_code == 0 else "bold red"))


def _describe_floor(found: Verification) -> Iterator[str]:
    for one in found.weakened_floor:
        yield f"{one['project']}: {one['message']}" if one.get("project") else str(one["message"])
    yield "It is accepted." if found.is_floor_accepted else "A person accepts this with --floor accept."


def _show_side(runs: SideRuns) -> str:
    """Return the status, or how many of its runs passed where there are several."""
    if runs.status is None:
        return "-"
    return str(runs.status) if runs.tally.total < 2 else f"{runs.tally.passed} of {runs.tally.total} passed"


def _explain(one: Comparison) -> str:
    told = _MEANINGS.get(one.verdict, "")
    if one.verdict in {"new_regression", "unstable"} and one.runs.fails_otherwise:
        told += "; on the base it failed for another reason"
    if one.verdict == "new_regression" and one.runs.is_settled:
        return f"{told}, and it repeats byte for byte"
    p_value = one.runs.p_value
    is_shown = p_value is not None and (one.runs.base.tally.total > 1 or one.runs.head.tally.total > 1)
    return f"{told} (by chance alone: {p_value:.2g})" if is_shown else told


def _list_news(found: Verification) -> Iterator[str]:
    from pytest_golden.regression.comparison import Verdict
    from pytest_golden.regression.wording import count_of

    counts = {verdict: sum(one.verdict is verdict for one in found.comparisons) for verdict in Verdict}
    broken = counts.pop(Verdict.NEW_REGRESSION)
    if found.is_first:
        yield f"the first manifest: {len(found.failing)} of {len(found.comparisons)} failing"
    else:
        yield count_of(broken, "new regression") if broken else "no new regression"
    plurals = {Verdict.NEW_PROJECT: "new projects"}
    told = {verdict: verdict.replace("_", " ") for verdict in Verdict}
    rest = ", ".join(count_of(count, told[one], plurals.get(one, told[one])) for one, count in counts.items() if count)
    if rest:
        yield rest
    if found.weakened_floor:
        yield f"the floor is weaker{', which is accepted' if found.is_floor_accepted else ''}"
    if found.fails_unexplained:
        yield "the head's gate fails for what was skipped"
