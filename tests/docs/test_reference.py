"""The reference says what the code says; a difference is shown as the rows that the page should have."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

import pytest

import pytest_golden
from pytest_golden import hookspecs
from pytest_golden.cli.commands import COMMANDS
from pytest_golden.cycle.model import CycleState
from pytest_golden.cycle.service import CycleOutcome
from pytest_golden.gateway.preparation import FIXED
from pytest_golden.history.changes import PastResult
from pytest_golden.history.recorded_model import ProjectHistory, ProjectTrend
from pytest_golden.journal.outside.github_webhooks import CONCLUSIONS, EVENTS, REVIEWS, TRUSTED
from pytest_golden.journal.outside.human import (
    CONNECTIVES,
    CORRECTIONS,
    DOUBTS,
    EXCUSES,
    INTENSIFIERS,
    IRONY,
    PRAISE,
    PREPOSITIONS,
    THUMBS_DOWN,
    THUMBS_UP,
)
from pytest_golden.journal.outside.signed import CALLBACK_KEYS
from pytest_golden.journal.rules import RESERVED_SOURCES
from pytest_golden.manifest.model import FILE_KEYS
from pytest_golden.regression.comparison import Comparison, ProjectRuns, Verdict
from pytest_golden.regression.model import GoldenProjectResult, ReasonKind, ResultStatus
from pytest_golden.regression.verdict import RegressionCheckResult, WeakeningKind
from pytest_golden.storage import schema
from pytest_golden.trajectory.insight.model import FailureCategory, Quality, ReasoningIssueType, Severity, SuccessType
from pytest_golden.trajectory.insight.reflection import Priority, SuggestionCategory, SuggestionType
from pytest_golden.trajectory.vocabulary import Importance, StepType
from pytest_golden.verify.gates import HeadCommit
from pytest_golden.verify.model import BaseFacts, Verification
from tests.docs import tables
from tests.docs.documents import DOCS, REPOSITORY
from tests.docs.tables import first_cells, list_rows

if TYPE_CHECKING:
    from enum import StrEnum

REFERENCE = DOCS / "reference"


def test_readme_lists_every_option() -> None:
    assert list_rows(REPOSITORY / "README.md", "Options") == tuple(tables.short_option_rows())


def test_every_option_is_in_the_reference() -> None:
    assert list_rows(REFERENCE / "options.md", "Options") == tuple(tables.option_rows())


def test_every_key_of_a_project_is_in_the_reference() -> None:
    assert list_rows(REFERENCE / "manifest.md", "A project") == tuple(tables.project_rows())
    assert list_rows(REFERENCE / "manifest.md", "mounts") == tuple(tables.mount_rows())
    assert list_rows(REFERENCE / "manifest.md", "outputs") == tuple(tables.output_rows())
    assert list_rows(REFERENCE / "manifest.md", "quarantine") == tuple(tables.quarantine_rows())


def test_every_key_of_the_file_is_in_the_reference() -> None:
    rows = list_rows(REFERENCE / "manifest.md", "The file")
    assert first_cells(rows) == tuple(FILE_KEYS.keys)
    assert [row.split("|")[-2].strip() for row in rows] == [key.description for key in FILE_KEYS.keys.values()]


def test_every_status_and_reason_kind_is_in_the_reference() -> None:
    assert first_cells(list_rows(REFERENCE / "results.md", "Statuses")) == tuple(ResultStatus)
    assert first_cells(list_rows(REFERENCE / "results.md", "Reason kinds")) == tuple(ReasonKind)


def test_every_kind_of_weakening_is_explained() -> None:
    rows = list_rows(DOCS / "explanation" / "weakened-floor.md", "What counts")
    assert set(first_cells(rows)) == set(WeakeningKind)


def test_every_field_of_the_gate_report_is_in_the_reference() -> None:
    text = (REFERENCE / "results.md").read_text(encoding="utf-8")
    fields = {field.name for field in dataclasses.fields(GoldenProjectResult)} - {"_"}
    told = set(re.findall(r"`(\w+)`", text))
    assert {*fields, *RegressionCheckResult().to_dict()} <= told


def test_every_key_of_what_commands_print_is_in_the_reference() -> None:
    runs = ProjectRuns("etl")
    verification = Verification(BaseFacts("main"), HeadCommit(None, None), (Comparison(runs, Verdict.OK),)).to_dict()
    history = ProjectHistory("etl", (), (), ProjectTrend(None, None)).to_dict()
    keys = {
        "golden history": {*history, *history["trend"], *PastResult.__slots__} - {"project"},
        "golden verify": {*verification, *verification["base"], *verification["head"], *verification["projects"][0]},
        "golden cycle": {*CycleOutcome(CycleState(), None, None).to_dict()},
    }
    text = (REFERENCE / "command-line.md").read_text(encoding="utf-8")
    sections = dict(section.partition("\n")[::2] for section in re.split(r"^## ", text, flags=re.MULTILINE))
    for command, wanted in keys.items():
        named = " ".join(re.findall(r"`([^`]*)`", sections[command]))
        assert wanted - set(re.findall(r"\w+", named)) == set(), command


def test_every_public_name_is_in_the_reference() -> None:
    text = (REFERENCE / "python.md").read_text(encoding="utf-8")
    named = "".join(line.split(" | ")[0] for line in text.splitlines() if line.startswith("| `"))
    names = set(re.findall(r"`(\w+)", named))
    assert set(pytest_golden.__all__) <= names


def test_every_command_is_in_the_reference() -> None:
    text = (REFERENCE / "command-line.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`golden {name}" not in text] == []


def test_every_table_of_the_store_is_in_the_reference() -> None:
    rows = first_cells(list_rows(REFERENCE / "store.md", "Tables"))
    assert set(rows) == {*schema.metadata.tables, schema.entry_tally.name}


def test_fixed_environment_is_in_the_reference() -> None:
    rows = list_rows(REFERENCE / "environment.md", "Variables")
    assert set(FIXED) <= set(first_cells(rows))
    assert [value for value in FIXED.values() if f"`{value}`" not in "".join(rows)] == []


@pytest.mark.parametrize("words", [StepType, Importance])
def test_every_word_of_a_step_is_in_the_reference(words: type[StepType | Importance]) -> None:
    rows = "".join(list_rows(REFERENCE / "steps.md", "The line"))
    assert [word for word in words if f"`{word}`" not in rows] == []


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("Failure points", FailureCategory),
        ("Success indicators", SuccessType),
        ("Reasoning issues", ReasoningIssueType),
        ("Quality", Quality),
    ],
)
def test_every_word_of_an_analysis_is_in_the_reference(heading: str, words: type[StrEnum]) -> None:
    assert first_cells(list_rows(REFERENCE / "analysis.md", heading)) == tuple(words)


def test_every_word_of_a_suggestion_and_a_severity_is_in_the_reference() -> None:
    text = (REFERENCE / "analysis.md").read_text(encoding="utf-8")
    for words in (SuggestionType, SuggestionCategory, Priority, Severity):
        assert ", ".join(f"`{word}`" for word in words) in text


def test_every_hook_is_in_the_reference() -> None:
    specified = {name for name in vars(hookspecs) if name.startswith("pytest_golden_")}
    rows = list_rows(REFERENCE / "hooks.md", "Hooks")
    assert {cell.partition("(")[0] for cell in first_cells(rows)} == specified


def test_every_phrase_that_people_may_say_is_in_the_reference() -> None:
    page = REFERENCE / "signals.md"
    assert first_cells(list_rows(page, "Praise")) == PRAISE
    assert first_cells(list_rows(page, "Corrections")) == CORRECTIONS
    text = page.read_text(encoding="utf-8")
    words = "/".join((CONNECTIVES, DOUBTS, EXCUSES, INTENSIFIERS, PREPOSITIONS)).split("/")
    assert [word for word in (*words, *IRONY, *THUMBS_UP, *THUMBS_DOWN) if word not in text] == []


def test_everything_that_decides_from_outside_is_in_the_reference() -> None:
    page = REFERENCE / "signals.md"
    told = set(re.findall(r"`(\w+)`", page.read_text(encoding="utf-8")))
    assert {*EVENTS, *CONCLUSIONS, *REVIEWS, *TRUSTED, *RESERVED_SOURCES} <= told
    keys = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in list_rows(page, "Callbacks")]
    assert {key for cell in keys for key in cell} == set(CALLBACK_KEYS)
