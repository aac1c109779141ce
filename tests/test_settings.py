from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_golden.settings import (
    SETTINGS,
    GoldenSettings,
    Sources,
    find_typed_flag,
    find_version,
    join_values,
    prefer_given_base,
    read_settings,
    refuse_self_accepted_floor,
    refuse_unasked_update,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

INVOKED = Path("/invoked")
ROOT = Path("/root-of-tests")


def said(
    flag: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    ini: Mapping[str, Any] | None = None,
) -> GoldenSettings:
    return read_settings(
        Sources((flag or {}).get, (ini or {}).get, environment or {}, INVOKED, ROOT, ROOT / "pytest.ini")
    )


def test_nothing_said_gives_the_defaults() -> None:
    assert {name: value for name, value in vars(said()).items() if value is not None} == {
        "mode": "improvement",
        "require": False,
        "require_said": "",
        "sandbox": "auto",
        "keep": "none",
        "floor": "check",
        "learning": "on",
        "update": False,
        "no_calibrate": False,
        "reads": False,
        "fleet_trusted": False,
    }


def test_flag_wins_over_environment_over_ini() -> None:
    everywhere = {"golden_keep": "all"}, {"GOLDEN_KEEP": "failed"}, {"golden_keep": "none"}
    assert said(*everywhere).keep == "all"
    assert said(None, *everywhere[1:]).keep == "failed"
    assert said(None, None, everywhere[2]).keep == "none"


def test_paths_are_relative_to_where_they_were_said() -> None:
    assert said({"golden_junit": "a.xml"}).junit == INVOKED / "a.xml"
    assert said(None, {"GOLDEN_JUNIT": "../a.xml"}).junit == Path("/a.xml")
    assert said(None, None, {"golden_junit": "a.xml"}).junit == ROOT / "a.xml"
    assert said({"golden_junit": "/tmp/a.xml"}).junit == Path("/tmp/a.xml")


def test_store_is_none_a_url_or_a_path_relative_to_where_it_was_said() -> None:
    assert said({"golden_store": "none"}).store == "none"
    assert said(None, {"GOLDEN_STORE_URL": "sqlite:////s.db"}).store == "sqlite:////s.db"
    assert said({"golden_store": "s.db"}).store == str(INVOKED / "s.db")
    assert said(None, None, {"golden_store": "s.db"}).store == str(ROOT / "s.db")


def test_empty_environment_and_ini_say_nothing() -> None:
    assert said(None, {"GOLDEN_BASE": ""}, {"golden_base": ""}).base is None


@pytest.mark.parametrize(("word", "means"), [("1", True), ("Yes", True), ("on", True), ("0", False), ("off", False)])
def test_switch_is_read_from_words(word: str, means: bool) -> None:
    assert said(None, {"GOLDEN_REQUIRE": word}).require is means


def test_place_of_the_requirement_is_named_as_a_person_wrote_it() -> None:
    everywhere = {"golden_require": True}, {"GOLDEN_REQUIRE": "yes"}, {"golden_require": "true"}
    assert said(*everywhere).require_said == "--golden-require"
    assert said(None, *everywhere[1:]).require_said == "GOLDEN_REQUIRE=yes"
    assert said(None, None, everywhere[2]).require_said == "golden_require in pytest.ini"
    nothing: dict[str, str] = {}
    without_a_file = Sources(nothing.get, everywhere[2].get, {}, INVOKED, ROOT)
    assert read_settings(without_a_file).require_said == "-o golden_require=true"
    assert said(None, {"GOLDEN_REQUIRE": "no"}).require_said == ""


def test_switch_that_is_neither_true_nor_false_is_refused_by_place() -> None:
    with pytest.raises(ValueError, match="GOLDEN_REQUIRE: 'perhaps' is neither true nor false"):
        said(None, {"GOLDEN_REQUIRE": "perhaps"})


def test_choice_from_environment_or_ini_is_checked() -> None:
    with pytest.raises(ValueError, match="GOLDEN_SANDBOX: 'docker' is not one of auto, overlay, copy"):
        said(None, {"GOLDEN_SANDBOX": "docker"})
    with pytest.raises(ValueError, match="ini key golden_mode: 'x' is not one of improvement, learning"):
        said(None, None, {"golden_mode": "x"})


def test_neither_environment_nor_ini_can_start_a_gate_and_ini_cannot_accept_a_floor() -> None:
    settings = {setting.name: setting for setting in SETTINGS}
    assert not settings["golden"].has_ini
    assert not settings["golden"].has_environment
    assert said(None, None, {"golden_floor": "accept"}).floor == "check"


def test_every_option_is_described_with_its_places() -> None:
    described = {setting.flag: setting.described() for setting in SETTINGS}
    assert described["--golden-keep"].endswith("(default none; ini golden_keep; env GOLDEN_KEEP)")
    assert "(" not in described["--golden"]
    assert len({setting.key for setting in SETTINGS}) == len(SETTINGS)


@pytest.mark.parametrize("argument", ["--golden-junit", "--golden-junit=a.xml", "--golden-require"])
def test_flag_typed_without_golden_is_found(argument: str) -> None:
    assert find_typed_flag(["tests", argument]) == argument.partition("=")[0]


def test_foreign_flags_are_left_alone() -> None:
    assert find_typed_flag(["tests", "-x", "golden", "--goldenrod", "--golden-other=1"]) is None


def test_floor_accepted_by_a_person_is_taken() -> None:
    refuse_self_accepted_floor("accept", ["--golden", "--golden-floor=accept"], {})
    refuse_self_accepted_floor("accept", ["--golden", "--golden-floor", "accept"], {})
    refuse_self_accepted_floor("accept", [], {"GOLDEN_FLOOR": "accept"})
    refuse_self_accepted_floor("accept", [], {"PYTEST_ADDOPTS": "-q --golden-floor=accept"})
    refuse_self_accepted_floor("check", [], {})


def test_environment_wins_over_a_base_that_nobody_typed() -> None:
    parsed = {"golden_base": "HEAD", "golden_keep": "all"}.get
    given = {"GOLDEN_BASE": "main", "GOLDEN_KEEP": "none"}
    assert prefer_given_base(parsed, ["--golden"], given)("golden_base") is None
    assert prefer_given_base(parsed, ["--golden"], given)("golden_keep") == "all"
    assert prefer_given_base(parsed, ["--golden", "--golden-base=HEAD"], given)("golden_base") == "HEAD"
    assert prefer_given_base(parsed, [], {**given, "PYTEST_ADDOPTS": "--golden-base HEAD"})("golden_base") == "HEAD"
    assert prefer_given_base(parsed, ["--golden"], {"GOLDEN_BASE": ""})("golden_base") == "HEAD"


def test_floor_accepted_in_a_file_is_refused() -> None:
    with pytest.raises(ValueError, match="a change could accept its own weakened floor"):
        refuse_self_accepted_floor("accept", ["--golden"], {"PYTEST_ADDOPTS": "-q"})


def test_update_is_said_on_the_command_line_alone() -> None:
    assert said({"golden_update": True}).update is True
    assert said(None, {"GOLDEN_UPDATE": "1"}, {"golden_update": "true"}).update is False


@pytest.mark.parametrize("name", ["CI", "GITHUB_ACTIONS"])
@pytest.mark.parametrize("value", ["true", "1", "True", " yes ", "woodpecker"])
def test_update_is_refused_in_ci(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=rf"--golden-update is refused in CI \({name} is set\)"):
        refuse_unasked_update(update=True, arguments=["--golden-update"], environment={name: value})


@pytest.mark.parametrize("environment", [{}, {"CI": ""}, {"CI": "false", "GITHUB_ACTIONS": "0"}])
def test_update_that_a_person_typed_is_taken(environment: dict[str, str]) -> None:
    refuse_unasked_update(update=True, arguments=["--golden-update"], environment=environment)
    refuse_unasked_update(update=True, arguments=[], environment={**environment, "PYTEST_ADDOPTS": "--golden-update"})


def test_update_in_addopts_is_refused() -> None:
    with pytest.raises(ValueError, match="--golden-update in addopts is refused"):
        refuse_unasked_update(update=True, arguments=["--golden"], environment={})


def test_without_an_update_nothing_is_refused() -> None:
    refuse_unasked_update(update=False, arguments=[], environment={"CI": "true"})


def test_options_and_their_values_are_joined_and_all_else_is_left_alone() -> None:
    words = [
        "--golden",
        "tests",
        "--golden-json",
        "a.json",
        "--golden-base=main",
        "--golden-require",
        "x",
        "--html",
        "h",
    ]
    joined = ["--golden", "tests", "--golden-json=a.json", "--golden-base=main", "--golden-require", "x", "--html", "h"]
    assert join_values(words) == (joined, ["a.json"])
    assert join_values(["--golden-json"]) == (["--golden-json"], [])
    assert join_values(["--", "--golden-json", "a"]) == (["--", "--golden-json", "a"], [])


def test_version_of_what_is_not_installed_is_none() -> None:
    assert find_version("no-such-distribution-at-all") is None
