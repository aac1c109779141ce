from __future__ import annotations

import re
import subprocess
import sys

from pytest_golden.redaction.rule import compile_late


def test_pattern_that_is_compiled_late_does_what_a_compiled_one_does() -> None:
    late, compiled = compile_late("(?P<sign>[ab])c", re.IGNORECASE), re.compile("(?P<sign>[ab])c", re.IGNORECASE)
    text = "acxBc"
    assert late.findall(text) == compiled.findall(text) == ["a", "B"]
    assert late.sub("-", text) == "-x-"
    assert late.split(text) == compiled.split(text)
    assert [found["sign"] for found in late.finditer(text)] == ["a", "B"]
    assert late.match(text, 3) is not None
    assert late.fullmatch(text) is None
    assert late.search("x") is None
    assert (late.pattern, late.groupindex) == (compiled.pattern, compiled.groupindex)


def test_importing_redaction_compiles_none_of_its_patterns() -> None:
    code = """
import base64, dataclasses, json, typing, urllib.parse, yaml
import re
compiled = []
compile = re._compiler.compile
re._compiler.compile = lambda pattern, flags=0: compiled.append(pattern) or compile(pattern, flags)
import pytest_golden.redaction.redactor as redaction
print(len(compiled), redaction.redact("password=hunter22"), bool(compiled))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "0 password=[REDACTED] True\n"
