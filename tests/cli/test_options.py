from __future__ import annotations

import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pytest_golden.cli.options import raise_when_ended

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Golden


REQUESTS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", REQUESTS)
def test_request_to_end_interrupts_and_handlers_are_as_before(number: signal.Signals) -> None:
    before = [signal.getsignal(one) for one in REQUESTS]
    with pytest.raises(KeyboardInterrupt), raise_when_ended():
        signal.raise_signal(number)
    assert [signal.getsignal(one) for one in REQUESTS] == before


@pytest.mark.parametrize("number", REQUESTS)
def test_what_breaks_after_a_request_that_was_swallowed_is_the_interruption(number: signal.Signals) -> None:
    def be_cut_off() -> None:
        with suppress(KeyboardInterrupt):
            signal.raise_signal(number)
        raise AttributeError("a module that was not loaded to its end")

    with pytest.raises(KeyboardInterrupt), raise_when_ended():
        be_cut_off()


def test_what_breaks_by_itself_is_no_interruption() -> None:
    with pytest.raises(AttributeError), raise_when_ended():
        raise AttributeError("a mistake")


def test_ignored_ctrl_c_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with raise_when_ended():
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_manifest_is_found_from_a_folder_below(
    golden: Golden, folder: Path, three_projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = folder / "sales" / "daily"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert golden("check", "--json").json["manifest"] == str(three_projects)


def test_manifest_of_another_repository_above_is_not_taken(
    golden: Golden, folder: Path, three_projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = folder / "vendored"
    (inner / ".git").mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert golden("check").code == 2


def test_nothing_above_is_found_outside_a_repository(golden: Golden, folder: Path, tmp_path: Path) -> None:
    (folder / ".git").rmdir()
    assert "golden init" in golden("check").err


def test_flag_wins_over_variable(
    golden: Golden, folder: Path, three_projects: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "other.yaml").write_text("version: 1\n")
    monkeypatch.setenv("GOLDEN_MANIFEST", "other.yaml")
    assert golden("check", "--json").json["projects"] == []
    assert len(golden("check", "--json", "--manifest", "golden_projects.yaml").json["projects"]) == 3


def test_unknown_name_suggests_the_nearest(golden: Golden, three_projects: Path) -> None:
    ran = golden("run", "god")
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean 'good'?" in ran.err
    assert "declared are good, bad, gone" in golden("run", "unlike").err


def test_unknown_name_among_many_or_none(golden: Golden, folder: Path) -> None:
    manifest = folder / "golden_projects.yaml"
    manifest.write_text("golden_projects:\n" + "".join(f"  - {{name: p{n}, path: a.py}}\n" for n in range(20)))
    assert "p9 and 10 more" in golden("run", "unlike").err
    manifest.write_text("version: 1\n")
    assert "none is declared" in golden("run", "unlike").err
