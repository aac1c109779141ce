from __future__ import annotations

from pytest_golden.trajectory.cutting import MAX_CONTENT_BYTES, cut_content


def test_what_fits_is_not_touched() -> None:
    for content in ("x" * MAX_CONTENT_BYTES, b"x", None, 5, {"a": [1]}, "é" * 300_000):
        assert cut_content(content) == (content, 0)


def test_text_is_cut_between_characters_and_the_rest_counted() -> None:
    assert cut_content("aéb", 2) == ("a", 3)
    assert cut_content("aéb", 3) == ("aé", 1)
    kept, left_out = cut_content("é" * MAX_CONTENT_BYTES)
    assert len(kept.encode()) + left_out == 2 * MAX_CONTENT_BYTES


def test_other_content_is_cut_as_json_text() -> None:
    assert cut_content(bytearray(b"abc"), 2) == (b"ab", 1)
    assert cut_content(["a", "b"], 5) == ('["a",', 5)
