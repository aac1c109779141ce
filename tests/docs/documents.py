"""Follows a page like a reader: writes the files that it gives, types its commands, compares what is printed.

A block with `title="FILE"` is written to that file. In a `console` block the lines after `$ ` are typed and what is shown
below each must be printed, where `...` stands for anything; a `bash` block runs whole. `exit=N` is the expected exit
code of a block's last command. Installing, `golden serve` and `golden mcp` are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REPOSITORY = Path(__file__).parents[2]
DOCS = REPOSITORY / "docs"
#: The folder of this interpreter and of the programs beside it.
SCRIPTS = Path(sys.executable).parent
#: The folder that a reader works in, as the pages write it.
READERS_FOLDER = "/home/you/shop"
_FENCE = re.compile(
    r"^```(?P<language>[\w-]*)[ \t]*(?P<info>[^\n]*)\n(?P<text>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL
)
_TITLE = re.compile(r'title="([^"]+)"')
_EXIT = re.compile(r"exit=\"?(\d+)")
# A package index, and programs that stay until they are ended.
_LEFT_TO_THE_READER = re.compile(r"pip install|apt-get install|\btox\b|\bgolden (serve|mcp)\b")
# What another machine prints in another way: versions, the sandbox, and the marks below a traceback's lines.
_LEFT_OUT = re.compile(r"^(platform |plugins: |rootdir: |golden sandbox: |ok (view|seal) |[\s~^]*$)")
_SECONDS_ALLOWED = 120
_VARYING = (
    (re.compile(r"\b([a-z]+)_[0-9A-Z]{26}"), r"\1_*"),
    (re.compile(r"\b[0-9a-f]{7}\b"), "commit"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d\b"), "moment"),
    # Of a few milliseconds, how one compares with the next is chance.
    (re.compile(r"^(durations  )\S+"), r"\1levels"),
    # So long a time may be shorter than a second on one machine and longer on another, and its column as wide.
    (re.compile(r" *\b(\d+\.\d+ ?s|\d+ms)\b"), " 0s"),
    (re.compile(r"^(when \(UTC\) +status) +time\b"), r"\1 time"),
    (re.compile(r"([=_-])\1{2,}"), r"\1\1\1"),
    (re.compile(r"\b(\d+\.)+\d+\b"), "0.0"),
    (re.compile(r" +$"), ""),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page, and the line of its fence, counted from 1."""

    language: str
    title: str | None
    exit_code: int
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Typed:
    """A command that a page types, what it shows below it, and how it must end."""

    command: str
    shown: tuple[str, ...]
    exit_code: int
    line: int

    @property
    def is_left_to_the_reader(self) -> bool:
        """Tell whether it installs something or serves until it is ended: a test does neither."""
        return _LEFT_TO_THE_READER.search(self.command) is not None


def read_blocks(page: Path) -> tuple[Block, ...]:
    text = page.read_text(encoding="utf-8")
    return tuple(
        Block(
            language=found["language"],
            title=title[1] if (title := _TITLE.search(found["info"])) else None,
            exit_code=int(code[1]) if (code := _EXIT.search(found["info"])) else 0,
            text=found["text"],
            line=text.count("\n", 0, found.start()) + 1,
        )
        for found in _FENCE.finditer(text)
    )


def list_typed(block: Block) -> Iterator[Typed]:
    if block.language == "bash":
        yield Typed(block.text, (), block.exit_code, block.line)
    elif block.language == "console":
        parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
        for number, part in enumerate(parts, 1):
            command, *shown = part.rstrip("\n").split("\n")
            yield Typed(command, tuple(shown), block.exit_code if number == len(parts) else 0, block.line)


def follow(page: Path, folder: Path, programs: Path = SCRIPTS) -> None:
    """Follow a page from its first block to its last in an empty folder, with `programs` first on PATH."""
    for block in read_blocks(page):
        if block.title is not None:
            file = folder / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
            continue
        for typed in list_typed(block):
            if not typed.is_left_to_the_reader:
                _type(typed, page, folder, programs)


# The reader who types them sits at a terminal, and here is none.
_FOR_PEOPLE = re.compile(r"golden (?:lessons (?:list|show|approve|reject|delete)|journal (?:assess|import))\b")


def type_command(command: str, folder: Path, programs: Path = SCRIPTS) -> subprocess.CompletedProcess[str]:
    typed = _FOR_PEOPLE.sub(r"\g<0> --as-person", command)
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", typed],
        cwd=folder,
        env=readers_environment(programs),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=_SECONDS_ALLOWED,
        check=False,
    )


def readers_environment(programs: Path = SCRIPTS) -> dict[str, str]:
    """Return the environment of somebody at a plain terminal who has this interpreter first on PATH, below `programs`.

    pytest loads no plug-in that the pages do not use: what happens to be installed here costs seconds at every start.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COVERAGE_", "GOLDEN_", "PYTEST_", "GITHUB_", "TOX_")) and name not in {"CI", "COLUMNS"}
    }
    plugins = ["golden_projects", *(["xdist"] if find_spec("xdist") else [])]
    return {
        **kept,
        "PATH": os.pathsep.join([str(programs), str(SCRIPTS), os.environ["PATH"]]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": " ".join(f"-p {name}" for name in plugins),
    }


def _type(typed: Typed, page: Path, folder: Path, programs: Path) -> None:
    done = type_command(typed.command, folder, programs)
    where = f"{page.relative_to(REPOSITORY)}:{typed.line}: $ {typed.command}"
    assert done.returncode == typed.exit_code, f"{where}\nended with {done.returncode}:\n{done.stdout}"
    printed = done.stdout.replace(str(folder), READERS_FOLDER)
    if "running " not in "\n".join(typed.shown):
        # A project that takes longer than a second on a busy machine is named before it ends.
        printed = re.sub(r"^running \S+\n", "", printed, flags=re.MULTILINE)
    missing = find_missing(typed.shown, printed.splitlines())
    assert missing is None, f"{where}\nshows a line that is not printed: {missing}\nPrinted was:\n{done.stdout}"


def find_missing(shown: Iterable[str], printed: Iterable[str]) -> str | None:
    """Return the first shown line that is not printed in its place, or say that more is printed than is shown.

    Lines below each other are printed so, from the first one to the last; only `...` stands for any others. Times, versions
    and ids do not count, and where nothing is shown nothing is said.
    """
    shown = list(shown)
    text = "".join(f"{_normalise(line)}\n" for line in printed if not _LEFT_OUT.match(line))
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        elif not _LEFT_OUT.match(line):
            pattern += f"{re.escape(_normalise(line))}\n"
        if not re.match(pattern, text):
            return line
    return None if not shown or re.fullmatch(pattern, text) else "the end of what is shown"


def _normalise(line: str) -> str:
    for pattern, mark in _VARYING:
        line = pattern.sub(mark, line)
    return line
