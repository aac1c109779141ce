"""Translates nf-test's tests of whole pipelines into golden projects; what has no equal here is said. Reads Groovy by its shape only."""

from __future__ import annotations

import glob
import os
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from pytest_golden.cli.drafting import DraftedProject
from pytest_golden.errors import SettingsError
from pytest_golden.gateway.runners.runner import read_regular
from pytest_golden.manifest.model import DeclaredOutput, slug

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: What `golden init --from` is given for it.
NAME = "nf-test"
_LONGEST_LINE = 2_000
_RESULTS = "results"
_COMMENT = re.compile(r"(?m)(?:^|(?<=\s))(?://[^\n]*|/\*.*?(?:\*/|\Z))", re.DOTALL)
_PIPELINE = re.compile(r"\bnextflow_pipeline\s*\{")
_TEST = re.compile(r"""\btest\(\s*(["'])(.+?)\1\s*\)\s*\{""")
_SCRIPT = re.compile(r"""(?m)^[ \t]*script\s+["'](.+?)["']""")
_TAG = re.compile(r"""(?m)^[ \t]*tag\s+["'](.+?)["']""")
_PARAMS = re.compile(r"\bparams\s*\{")
_PARAM = re.compile(r"(?m)^[ \t]*(\w+)[ \t]*=[ \t]*(.+?)[ \t]*;?[ \t]*$")
_TEXT = re.compile(r"""(["'])(.*)\1""")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?|true|false")
_ASSERT = re.compile(r"\bassert\s+(.+)")
_PASSES = re.compile(r"workflow\.success|workflow\.exitStatus\s*==\s*0|workflow\.trace\.failed\(\)\.size\(\)\s*==\s*0")
_FAILS = re.compile(r"workflow\.failed|!\s*workflow\.success")
_FILE = r"""(?:path|file|new File)\(\s*["'](.+?)["']\s*\)"""
_EXISTS = re.compile(rf"{_FILE}\.exists\(\)")
_HOLDS = re.compile(rf"""{_FILE}\.text\.contains\(\s*["'](.+?)["']\s*\)""")
_PRINTS = re.compile(r"""workflow\.stdout\.contains\(\s*["'](.+?)["']\s*\)|["'](.+?)["']\s+in\s+workflow\.stdout""")
_OUTPUT_DIR = re.compile(r"\$\{?(?:outputDir|params\.outdir)\}?")
_PROJECT_DIR = re.compile(r"\$\{?(?:projectDir|baseDir)\}?/?")
# What nf-test.config, a file or a test adds to the command.
_SETTINGS = {
    "-profile": re.compile(r"""(?m)^[ \t]*profile\s*=?\s*["'](.+?)["']"""),
    "-c": re.compile(r"""(?m)^[ \t]*config(?:File)?\s*=?\s*["'](.+?)["']"""),
    "": re.compile(r"""(?m)^[ \t]*options\s*=?\s*["'](.+?)["']"""),
}


def translate_tests(folder: Path) -> tuple[DraftedProject, ...]:
    """Translate all tests of pipelines below a folder, by their files and in their order.

    Raises:
        SettingsError: there are none.
    """
    always = _read_settings(_read(folder / "nf-test.config"))
    files = sorted(path for path in folder.glob("**/*.nf.test") if path.is_file())
    found = tuple(project for path in files for project in _translate_file(path, folder, always))
    if not found:
        raise SettingsError(
            f"there are no tests of pipelines by nf-test (`*.nf.test` with `nextflow_pipeline`) below {folder}"
        )
    return found


def _translate_file(path: Path, folder: Path, always: dict[str, str]) -> Iterator[DraftedProject]:
    """Yield the tests of one file; those of single processes, workflows and functions are not pipelines."""
    text = _read(path)
    script = _SCRIPT.search(text)
    if _PIPELINE.search(text) is None or script is None:
        return
    place = path.parent if script[1].startswith(".") else folder
    pipeline = os.path.relpath(os.path.normpath(place / script[1]), folder)
    head = text.partition("test(")[0]
    always, tags = {**always, **_read_settings(head)}, _TAG.findall(head)
    tests = list(_TEST.finditer(text))
    for test, end in zip(tests, [*(test.start() for test in tests[1:]), len(text)], strict=False):
        yield _translate(test[2], _take_block(text[test.end() : end]), pipeline, tags, always)


def _read_settings(text: str) -> dict[str, str]:
    """Read the options of Nextflow that a text of nf-test sets, with their values; the innermost text counts."""
    found = ((option, pattern.search(text)) for option, pattern in _SETTINGS.items())
    return {option: value[1] for option, value in found if value is not None}


def _translate(title: str, body: str, pipeline: str, tags: list[str], always: dict[str, str]) -> DraftedProject:
    told: list[str] = []
    named = [slug(tag) for tag in (*tags, *_TAG.findall(body))]
    params = _PARAMS.search(body)
    settings = {**always, **_read_settings(body)}
    options = [word for option, value in settings.items() for word in ([option, value] if option else value.split())]
    args = [
        *options,
        *_list_params("" if params is None else _take_block(body[params.end() :]), told),
    ]
    given: dict[str, Any] = {"title": title, "tags": list(dict.fromkeys(filter(None, named))), "args": args}
    given["writes"] = [f"{_RESULTS}/**"] if _RESULTS in args else []
    outputs = tuple(dict.fromkeys(_read_asserts(body, given, told)))
    return DraftedProject(
        slug(title) or "project",
        pipeline,
        "nextflow",
        "a test of nf-test",
        project_dir="." if "/" in pipeline else None,
        outputs=outputs,
        told=tuple(dict.fromkeys(told)),
        keys={key: value for key, value in given.items() if value},
    )


def _read_asserts(body: str, given: dict[str, Any], told: list[str]) -> Iterator[DeclaredOutput]:
    """Yield the files that must exist; add what else is asserted to the keys that are given, or to what is told."""
    for found in _ASSERT.finditer(body):
        said = found[1].strip().rstrip("},").strip()
        try:
            output = None if said.startswith("!") else _read_output(said)
        except ValueError:
            # Such as a file outside of the project.
            output = None
        if output is not None:
            yield output
        elif prints := _PRINTS.search(said):
            given.setdefault("stdout", {"contains": []})["contains"].append(prints[1] or prints[2])
        elif _FAILS.search(said):
            # Nextflow ends with 1 when a task failed.
            given["expected_outcome"] = "exit_code:1"
        elif said.startswith("snapshot"):
            told.append("a snapshot: declare its files in `outputs:`, whose baselines you accept once")
        elif not _PASSES.search(said):
            told.append(f"assert {said}: has no equal")


def _read_output(said: str) -> DeclaredOutput | None:
    """Read an assertion on a file: that it exists, or that it holds a text."""
    if exists := _EXISTS.search(said):
        name = _name_output(exists[1])
        # Without a suffix it is most likely a folder.
        return DeclaredOutput(name if PurePosixPath(name).suffix else f"{name}/**", compare="exists")
    holds = _HOLDS.search(said)
    return None if holds is None else DeclaredOutput(_name_output(holds[1]), compare="exists", contains=(holds[2],))


def _name_output(path: str) -> str:
    return glob.escape(os.path.normpath(_fill_in(path)))


def _list_params(block: str, told: list[str]) -> Iterator[str]:
    """Yield the options of Nextflow for the parameters whose values are plain."""
    for param in _PARAM.finditer(block):
        name, value = param[1], param[2]
        text = _TEXT.fullmatch(value)
        filled = value if text is None else _fill_in(text[2])
        if (text is None and _PLAIN.fullmatch(value) is None) or "$" in filled:
            told.append(f"params.{name} = {value}: give its value in `args:`")
            continue
        yield from (f"--{name}", filled)


def _fill_in(text: str) -> str:
    return _PROJECT_DIR.sub("", _OUTPUT_DIR.sub(_RESULTS, text)) or "."


def _take_block(text: str) -> str:
    """Return what stands before the brace that closes a block; all if none does."""
    depth = 1
    for at, sign in enumerate(text):
        depth += {"{": 1, "}": -1}.get(sign, 0)
        if depth == 0:
            return text[:at]
    return text


def _read(path: Path) -> str:
    """Return the beginning of a file without its comments; the end of a line that is very long is left out."""
    text = (read_regular(path) or b"").decode("utf-8", "replace")
    return "\n".join(line[:_LONGEST_LINE] for line in _COMMENT.sub("", text).splitlines())
