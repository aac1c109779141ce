"""Run dbt's command line in dbt's interpreter. Exit with dbt's exit code, or with 1 if dbt had nothing to do.

dbt exits with 0 if no node matches its selection. `--warn-error-options` catches a criterion that matches nothing
(NoNodesForSelectionCriteria), but not an `--exclude` that leaves no node, or a project whose models are all disabled:
"Nothing to do" is not a warning. So this script checks the result itself.

`GOLDEN_CHANGED_FILES` is a JSON list of paths below the project's folder; `dbt/NAME.parquet` stands for the baseline of a model. With it,
dbt builds only the nodes that depend on these files, and the nodes that those need. If a file does not belong to a node, everything is
built.

A standalone script: this package may be missing where it runs. It needs only the standard library and dbt.
"""

from __future__ import annotations

import os
import re
import sys
from importlib import import_module

import narrowing_child as narrowing  # type: ignore[import-not-found]  # it stands beside this script

if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
    # The folder of this script has a dbt.py of its own.
    del sys.path[0]

NOTHING_DONE = (
    "dbt ended without an error and without running anything: no node matched the selection, or none is enabled. "
    "A golden project that does nothing proves nothing: correct --select and --exclude."
)
# These options select nodes, or change how they are built. A short option may contain its value.
_CHOOSING = re.compile(
    r"-[sm]|--(select|models?|exclude|selector|resource-types?|exclude-resource-types?|indirect-selection|defer|empty|sample)(=|$)"
)
# Characters without a special meaning in a `path:` selection of dbt.
_PLAIN_PATH = re.compile(r"[\w./-]+")


def narrow(runner: type, arguments: list[str], changed: list[str]) -> tuple[object, list[str]]:
    """Return dbt's manifest, and the arguments that select the nodes that depend on the changed files; None and none to build everything."""
    if (
        arguments[:1] != ["build"]
        or any(map(_CHOOSING.match, arguments))
        or not all(map(_PLAIN_PATH.fullmatch, changed))
    ):
        return None, []
    answer = runner().invoke(["parse", *arguments[1:]])
    if not answer.success:
        return None, []
    manifest = answer.result
    own = getattr(manifest.metadata, "project_name", None)
    files = {
        node.original_file_path: f"path:{node.original_file_path}"
        for node in manifest.nodes.values()
        if node.package_name == own
    }
    files |= {f"dbt/{node.name}.parquet": node.name for node in manifest.nodes.values()}
    missing = sorted(set(changed) - files.keys())
    if missing:
        narrowing.explain_whole(narrowing.WholeError(f"{missing[0]} may change any model"))
        return None, []
    # `@`: the nodes, everything that depends on them (tests included), and everything that those need.
    return manifest, ["--indirect-selection", "cautious", "--select", *(f"@{files[path]}" for path in changed)]


def main() -> int:
    """Run dbt with this script's arguments, and return 0, 1 or 2 with dbt's own meaning."""
    sys.argv[0] = "dbt"
    arguments = sys.argv[1:]
    runner = import_module("dbt.cli.main").dbtRunner
    changed = narrowing.take_changed()
    manifest, selecting = narrow(runner, arguments, changed) if changed else (None, [])
    answer = runner(manifest=manifest).invoke([*arguments, *selecting])
    if answer.exception is not None:
        # dbt prints every error but those about its own command line.
        if type(answer.exception).__name__ == "DbtUsageException":
            print(f"dbt: {answer.exception}", file=sys.stderr)
        return 2
    if not answer.success:
        return 1
    results = getattr(answer.result, "results", None)
    if results is not None and len(results) == 0:
        print(NOTHING_DONE, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
