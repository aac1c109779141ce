from __future__ import annotations

import pytest

from pytest_golden.journal.rules import RESERVED_SOURCES, check_free_source


@pytest.mark.parametrize("source", ["crm", "github-mirror", "humane", "pager duty", "системa", "golden_eye"])
def test_any_name_of_ones_own_is_free(source: str) -> None:
    assert check_free_source(source) == source


@pytest.mark.parametrize("name", sorted(RESERVED_SOURCES))
def test_reserved_names_are_refused_in_any_dress(name: str) -> None:
    fullwidth = "".join(chr(ord(letter) + 0xFEE0) for letter in name)
    hidden = f"{name[:2]}\u200b{name[2:]}"
    for dress in (name, name.upper(), f" {name}\n", fullwidth, hidden, f"\u202e{name}", f"{name}\0", " ".join(name)):
        with pytest.raises(ValueError, match="is reserved: check, github, golden, human, system"):
            check_free_source(dress)


@pytest.mark.parametrize("source", ["", "  ", None, 3, ["human"]])
def test_source_must_be_text(source: object) -> None:
    with pytest.raises(ValueError, match="source must be text that is not blank"):
        check_free_source(source)
