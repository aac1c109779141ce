from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pytest_golden.compare.baselines import match_outputs
from pytest_golden.manifest.model import DeclaredOutput

PATHS = st.lists(st.sampled_from(["a.csv", "b.csv", "out/a.csv", "out/deep/b.json", "c", "x y\nz"]), unique=True)
ENTRIES = st.lists(
    st.sampled_from(["*.csv", "**/*.csv", "out", "out/**", "**", "c", "out/*", "never/*"]).flatmap(
        lambda path: st.sampled_from([DeclaredOutput(path), DeclaredOutput(path, compare="exists")])
    ),
    max_size=4,
)


def test_patterns_stay_in_a_folder_or_cross_them() -> None:
    outputs = (DeclaredOutput("*.csv"), DeclaredOutput("out/**/*.json"), DeclaredOutput("logs"))
    written = ("a.csv", "deep/a.csv", "out/a.json", "out/x/y/b.json", "logs/1.txt", "other.txt")
    matched = match_outputs(outputs, written, ())
    assert [file.path for file in matched.files] == ["a.csv", "logs/1.txt", "out/a.json", "out/x/y/b.json"]
    assert matched.unmatched == ()


def test_file_is_held_to_every_entry_that_names_it() -> None:
    outputs = (DeclaredOutput("**/*.csv"), DeclaredOutput("out/a.csv", compare="exists", min_bytes=3))
    (file,) = match_outputs(outputs, ("out/a.csv",), ()).files
    assert file.entries == outputs
    assert file.needs_baseline


def test_baseline_of_what_was_not_written_is_expected_and_one_that_nothing_wants_is_unused() -> None:
    outputs = (DeclaredOutput("out/*.csv"), DeclaredOutput("seen/*", compare="exists"), DeclaredOutput("gone.txt"))
    kept = ("out/a.csv", "out/b.csv", "seen/x", "stale.txt")
    matched = match_outputs(outputs, ("out/a.csv", "seen/x"), kept)
    assert [(file.path, file.is_written) for file in matched.files] == [
        ("out/a.csv", True),
        ("out/b.csv", False),
        ("seen/x", True),
    ]
    assert [entry.path for entry in matched.unmatched] == ["gone.txt"]
    assert matched.unused == ("seen/x", "stale.txt")


@given(ENTRIES, PATHS, PATHS)
def test_every_entry_every_baseline_and_every_named_path_is_accounted_for(
    outputs: list[DeclaredOutput], written: list[str], kept: list[str]
) -> None:
    matched = match_outputs(outputs, written, kept)
    paths = [file.path for file in matched.files]
    assert paths == sorted(set(paths))
    compared = {file.path for file in matched.files if file.needs_baseline}
    assert sorted(kept) == sorted([*matched.unused, *(path for path in kept if path in compared)])
    for entry in outputs:
        assert (entry in matched.unmatched) != any(entry in file.entries for file in matched.files)
    for file in matched.files:
        assert file.is_written == (file.path in written)
        assert file.is_written or (file.needs_baseline and file.path in kept)
