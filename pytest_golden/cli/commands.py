"""The commands of `golden`: one function each. Its docstring is the summary; it imports the module of the command that is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping


class Command(Protocol):
    """The interface of a command's module. What its docstring says below the first line stands in the command's help."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the command's arguments."""
        ...

    def run(self, arguments: argparse.Namespace) -> int:
        """Run the command and return its exit code."""
        ...


def init() -> Command:
    """Write a first golden_projects.yaml."""
    from pytest_golden.cli import init

    return init


def check() -> Command:
    """Validate the manifest and show what would be run."""
    from pytest_golden.cli import check

    return check


def cycle() -> Command:
    """Let commands propose and review an improvement, and verify it against the floor."""
    from pytest_golden.cli import cycle

    return cycle


def doctor() -> Command:
    """Show what works on this machine, and how to install the rest."""
    from pytest_golden.cli import doctor

    return doctor


def attest() -> Command:
    """Check a signed statement that a commit passed."""
    from pytest_golden.cli import attest

    return attest


def gate() -> Command:
    """Run one gate without the configuration of the tests, or judged by a base."""
    from pytest_golden.cli import gate

    return gate


def inbox() -> Command:
    """Show what waits for a person: outputs, failures, lessons and more."""
    from pytest_golden.cli import inbox

    return inbox


def accept() -> Command:
    """Accept the current outputs of golden projects as their baselines."""
    from pytest_golden.cli import accept

    return accept


def diff() -> Command:
    """Show what a change does to every output, without baselines and without judging."""
    from pytest_golden.cli import diff

    return diff


def calibrate() -> Command:
    """Find the unstable parts of outputs, and the rules that make them stable."""
    from pytest_golden.cli import calibrate

    return calibrate


def run() -> Command:
    """Run one golden project, or open a shell in its view."""
    from pytest_golden.cli import run

    return run


def plan() -> Command:
    """Show which golden projects a gate would run, and why."""
    from pytest_golden.cli import plan

    return plan


def coverage() -> Command:
    """Show which files no golden project reads."""
    from pytest_golden.cli import coverage

    return coverage


def strength() -> Command:
    """Measure how much the golden projects would notice."""
    from pytest_golden.cli import strength

    return strength


def history() -> Command:
    """Show earlier runs of all golden projects, or of one."""
    from pytest_golden.cli import history

    return history


def journal() -> Command:
    """Record and show what was intended, how it ended and what is expected."""
    from pytest_golden.cli import journal

    return journal


def learn() -> Command:
    """Learn from the recorded results that are left."""
    from pytest_golden.cli import learn

    return learn


def lessons() -> Command:
    """List, show, approve, reject and delete lessons."""
    from pytest_golden.cli import lessons

    return lessons


def merge() -> Command:
    """Merge other stores into one, such as the shards of a CI job."""
    from pytest_golden.cli import merge

    return merge


def mcp() -> Command:
    """Offer the record as tools for agents (Model Context Protocol)."""
    from pytest_golden.cli import mcp

    return mcp


def recall() -> Command:
    """Show what is known about a failure: when and where it happened, and what fixed it."""
    from pytest_golden.cli import recall

    return recall


def report() -> Command:
    """Show a recorded gate run as text, as one HTML page, or as the gate report."""
    from pytest_golden.cli import report

    return report


def shards() -> Command:
    """Distribute the golden projects over several machines, in shards of about the same duration."""
    from pytest_golden.cli import shards

    return shards


def serve() -> Command:
    """Show all runs in a browser, with a JSON API and webhooks."""
    from pytest_golden.cli import serve

    return serve


def trajectory() -> Command:
    """Show what happened inside a run: its steps, their tree, a difference, or a query."""
    from pytest_golden.cli import trajectory

    return trajectory


def store() -> Command:
    """Check, copy, repair or upgrade the store."""
    from pytest_golden.cli import store

    return store


def bisect() -> Command:
    """Find the commit that broke a golden project."""
    from pytest_golden.cli import bisect

    return bisect


def replay() -> Command:
    """Show what the present floor would have said about past commits."""
    from pytest_golden.cli import replay

    return replay


def verify() -> Command:
    """Find what this change broke, and what was already broken."""
    from pytest_golden.cli import verify

    return verify


def schema() -> Command:
    """Print the JSON Schema of the manifest or of the gate report."""
    from pytest_golden.cli import schema

    return schema


def completion() -> Command:
    """Print the completion script for bash, zsh or fish."""
    from pytest_golden.cli import completion

    return completion


COMMANDS: Mapping[str, Callable[[], Command]] = {
    load.__name__: load
    for load in (
        *(
            init,
            check,
            cycle,
            doctor,
            gate,
            accept,
            calibrate,
            diff,
            bisect,
            replay,
            attest,
            run,
            plan,
            coverage,
            strength,
            history,
            inbox,
            journal,
            learn,
            lessons,
            merge,
        ),
        *(mcp, recall, report, shards, serve, trajectory, store, verify, schema, completion),
    )
}
