"""Rules of agents in a file, which every command and script of a workspace can share: YAML or JSON, agents to their rules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from pytest_golden.errors import SettingsError
from pytest_golden.journal.agent_rules import parse_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "GOLDEN_JOURNAL_RULES"


def find_rules() -> Mapping[str, Mapping[str, Any]]:
    """Read the file that GOLDEN_JOURNAL_RULES names; no rules without it.

    Raises:
        SettingsError: it cannot be read, or holds something else than rules.
    """
    named = os.environ.get(VARIABLE)
    return read_rules_file(Path(named)) if named else {}


def read_rules_file(path: Path) -> Mapping[str, Mapping[str, Any]]:
    """Read a file of rules.

    Raises:
        SettingsError: it cannot be read, or holds something else than rules.
    """
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        parse_rules(given)
    except OSError as error:
        raise SettingsError(f"the journal's rules in {path} cannot be read: {error.strerror or error}") from None
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f" line {place.line + 1}" if place is not None else ""
        raise SettingsError(
            f"the journal's rules in {path}{line} are no YAML; indent and quote them as YAML wants"
        ) from None
    except ValueError as error:
        raise SettingsError(f"the journal's rules in {path}: {error}") from None
    rules: Mapping[str, Mapping[str, Any]] = given
    return rules
