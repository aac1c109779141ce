from __future__ import annotations

from pytest_golden.trajectory.vocabulary import MAX_CONTENT_BYTES, cut_content, cut_mapping


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


def test_mapping_that_fits_is_not_touched() -> None:
    for mapping in ({}, {"rows": 5}, {"rows": [1, {"a": "x" * 1000}]}):
        assert cut_mapping(mapping) == (mapping, 0)


def test_mapping_keeps_its_small_values_and_its_large_ones_are_cut() -> None:
    kept, left_out = cut_mapping({"rows": 5, "sql": "x" * 100, "error": "boom"}, 60)
    assert (kept, left_out) == ({"rows": 5, "sql": "x" * 60, "error": "boom"}, 40)
    several = {str(number): "x" * 50 for number in range(4)}
    assert cut_mapping(several, 60)[0] is several


def test_values_that_are_too_many_together_get_a_share() -> None:
    kept, left_out = cut_mapping({str(number): "x" * 50 for number in range(10)}, 60)
    assert (kept, left_out) == ({str(number): "x" * 36 for number in range(10)}, 140)


def test_mapping_of_many_or_long_keys_is_cut_too() -> None:
    kept, left_out = cut_mapping({**dict.fromkeys(range(200_000), "x"), "k" * MAX_CONTENT_BYTES: 1}, 100_000)
    assert (len(kept), left_out > MAX_CONTENT_BYTES) == (1000, True)
    kept, left_out = cut_mapping({"k" * 7 * MAX_CONTENT_BYTES: ""})
    assert kept == {"k" * 1000: ""}
    assert left_out == 7 * MAX_CONTENT_BYTES - 1000
