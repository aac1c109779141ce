"""The figures of the house: how many modules there are, how large, how deep, and how many of them one green gate imports and enters.

Lines of code are those that are not docstrings, comments or blank. A module is entered when one of its functions runs; its body does
not count. Run: python benchmarks/house.py
"""

from __future__ import annotations

import ast
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "pytest_golden"
ALLOWED_TWICE = {"__init__.py", "model.py", "rules.py", "store.py", "service.py"}
LEAST_LINES = 50
TRACER = """
import atexit, json, os, pathlib, sys

PACKAGE = os.path.join("pytest_golden", "")
entered = set()

def note(frame, event, argument):
    code = frame.f_code
    if PACKAGE in code.co_filename and code.co_name != "<module>":
        caller = frame.f_back
        # A class is made by its module's body.
        if not (caller is not None and caller.f_code.co_name == "<module>" and code.co_flags & 0x2 == 0):
            entered.add(code.co_filename.rpartition(PACKAGE)[2])

sys.setprofile(note)

@atexit.register
def write():
    imported = [name for name in sys.modules if name.split(".")[0] == "pytest_golden"]
    told = {"entered": sorted(entered), "imported": imported}
    pathlib.Path(__file__).with_name("told.json").write_text(json.dumps(told))
"""


def main() -> None:
    """Print each figure on a line."""
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if "migrations" not in path.parts]
    texts = {path: path.read_text(encoding="utf-8") for path in files}
    lines = {path: text.count("\n") for path, text in texts.items()}
    chapters = {path: count for path, count in lines.items() if path.name != "__init__.py"}
    small = [path for path, count in chapters.items() if count < LEAST_LINES and is_chapter(path)]
    twice = [name for name, count in Counter(path.name for path in files).items() if count > 1]
    imports, written = (sum(map(count, texts.values())) for count in (count_import_lines, count_written_lines))
    functions = sorted(length for text in texts.values() for length in list_lengths(text))
    gate = trace_gate()
    figures = {
        "modules": len(files),
        "median module, lines": statistics.median(chapters.values()),
        "longest module, lines": max(chapters.values()),
        "lines of code": sum(map(count_code_lines, texts.values())),
        "import lines": f"{100 * imports / written:.1f} %",
        "deepest folder": max(len(path.relative_to(PACKAGE).parts) - 1 for path in files),
        f"modules below {LEAST_LINES} lines": len(small),
        "function, lines: median, ninth decile, longest": (
            f"{statistics.median(functions):.0f}, {functions[len(functions) * 9 // 10]}, {functions[-1]}"
        ),
        "file names twice": len(set(twice) - ALLOWED_TWICE),
        "own modules imported by their names as text": sum(
            text.count('import_module("pytest_golden') + text.count('import_module(f"pytest_golden')
            for text in texts.values()
        ),
        "modules imported by one green gate": len(gate["imported"]),
        "modules entered by one green gate": len(gate["entered"]),
    }
    for name, figure in figures.items():
        print(f"{name}: {figure}")


def is_chapter(path: Path) -> bool:
    """Tell whether it is neither a door nor a script of another process."""
    return path.parent != PACKAGE and not path.stem.endswith("_child")


def count_written_lines(text: str) -> int:
    """Count the lines that are not blank."""
    return sum(bool(line.strip()) for line in text.splitlines())


def count_import_lines(text: str) -> int:
    """Count the lines of import statements."""
    imports = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom))
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)


def count_code_lines(text: str) -> int:
    """Count the lines that are not docstrings, comments or blank."""
    silent = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in silent:
            lines.update(range(token.start[0], token.end[0] + 1))
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, owners) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def list_lengths(text: str) -> list[int]:
    """List the lengths of all functions, in lines."""
    functions = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]


def trace_gate() -> dict[str, list[str]]:
    """Run a green gate with a store twice, and return what the second one imported and entered."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        (workspace / "pytest.ini").write_text("[pytest]\n")
        (workspace / "one.sh").write_text("true\n")
        (workspace / "golden_projects.yaml").write_text("version: 1\ngolden_projects: [{name: one, path: one.sh}]\n")
        (workspace / "sitecustomize.py").write_text(TRACER)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("GOLDEN", "PYTEST"))}
        command = [sys.executable, "-m", "pytest", "-q", "--golden", "-pno:randomly", "-pno:cacheprovider"]
        for _ in range(2):
            subprocess.run(
                command, cwd=workspace, env={**environment, "PYTHONPATH": folder}, check=True, capture_output=True
            )
        told: dict[str, list[str]] = json.loads((workspace / "told.json").read_text())
    return told


if __name__ == "__main__":
    main()
