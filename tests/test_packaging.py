"""What the packaging files say about each other."""

from __future__ import annotations

import configparser
import re
import tomllib
from pathlib import Path

import pytest

import pytest_golden

REPOSITORY = Path(__file__).parent.parent


@pytest.mark.skipif(not (REPOSITORY / "tox.ini").exists(), reason="not in a checkout")
def test_lowest_pins_the_lower_bound_of_every_dependency() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    # What `demo` has may raise the others unseen, `all` names the others, and `mcp` wants newer ones of them.
    named = [name for name in extras if name not in {"all", "demo", "mcp"}]
    wanted = {*project["dependencies"], *(one for name in named for one in extras[name])}
    declared = dict(re.findall(r"^([\w-]+(?:\[\w+\])?)>=([\d.]+)", "\n".join(wanted), re.MULTILINE))
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(REPOSITORY / "tox.ini", encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+(?:\[\w+\])?)==([\d.]+)$", tox["testenv:lowest"]["deps"], re.MULTILINE))
    assert len(declared) == len(wanted)
    assert {name: re.sub(r"\.0$", "", bound) for name, bound in pinned.items()} == {
        name: re.sub(r"\.0$", "", bound) for name, bound in declared.items()
    }
    assert [one.replace(">=", "==") for one in extras["mcp"]] == tox["testenv:lowest-mcp"]["deps"].split()


@pytest.mark.skipif(not (REPOSITORY / "tox.ini").exists(), reason="not in a checkout")
def test_all_is_every_extra_but_the_demonstration() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    (everything,) = extras["all"]
    assert re.findall(r"\w+", everything.partition("[")[2]) == [name for name in extras if name not in {"all", "demo"}]


@pytest.mark.parametrize("name", pytest_golden.__all__)
def test_every_public_name_is_where_it_is_looked_for(name: str) -> None:
    assert getattr(pytest_golden, name) is not None
