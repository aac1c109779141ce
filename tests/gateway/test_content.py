from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile

from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_golden.gateway.content import (
    describe_file,
    find_regular_file,
    has_equal_content,
    is_content,
    read_shebang,
)
from pytest_golden.gateway.view import copy_file


def equal(left: Path, right: Path) -> bool:
    return has_equal_content(str(left), left.lstat(), str(right), right.lstat())


def test_file_is_described_by_its_bytes(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"x" * 3_000_000)
    found = describe_file(str(file), "sub/a", file.lstat())
    assert (found.path, found.kind, found.size_bytes) == ("sub/a", "file", 3_000_000)
    assert found.sha256 == sha256(b"x" * 3_000_000).hexdigest()


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 40)), max_size=6), st.integers(0, 350))
@settings(max_examples=30)
def test_holes_count_as_the_zeros_that_they_read_as(parts: list[tuple[int, int]], pages: int) -> None:
    with NamedTemporaryFile(dir="/var/tmp") as file:
        file.truncate(pages << 12)
        for start, count in parts:
            file.seek(start << 12)
            file.write(b"x" * ((count << 12) - 7))
        file.flush()
        found = os.lstat(file.name)
        whole = Path(file.name).read_bytes()
        assert describe_file(file.name, "a", found).sha256 == sha256(whole).hexdigest()
        copy_file(file.name, f"{file.name}.copy")
        copy = Path(f"{file.name}.copy")
        assert copy.read_bytes() == whole
        copy.unlink()


def test_symlink_is_described_by_its_target_and_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "a"
    link.symlink_to("/etc/passwd")
    found = describe_file(str(link), "a", link.lstat())
    assert (found.kind, found.size_bytes, found.sha256) == ("symlink", 11, sha256(b"/etc/passwd").hexdigest())


def test_files_are_equal_by_bytes_and_not_by_size(tmp_path: Path) -> None:
    one, same, other, longer = (tmp_path / name for name in ("one", "same", "other", "longer"))
    one.write_bytes(b"a" * 2_000_000)
    same.write_bytes(b"a" * 2_000_000)
    other.write_bytes(b"a" * 1_999_999 + b"b")
    longer.write_bytes(b"a" * 2_000_001)
    assert equal(one, same)
    assert not equal(one, other)
    assert not equal(one, longer)


def test_symlinks_are_equal_by_target_and_never_to_a_file(tmp_path: Path) -> None:
    one, same, other, file = (tmp_path / name for name in ("one", "same", "other", "file"))
    one.symlink_to("x/y")
    same.symlink_to("x/y")
    other.symlink_to("x/z")
    file.write_text("x/y")
    assert equal(one, same)
    assert not equal(one, other)
    assert not equal(one, file)


def test_pipes_and_folders_are_no_content(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not is_content((tmp_path / "pipe").lstat())
    assert not is_content(tmp_path.lstat())
    assert not is_content(None)


def test_regular_file_is_found_below_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").touch()
    assert find_regular_file(str(tmp_path), "a/b") == str(tmp_path / "a" / "b")
    assert find_regular_file(str(tmp_path), "./a//b") == str(tmp_path / "a/b")
    assert find_regular_file(str(tmp_path), "a") is None
    assert find_regular_file(str(tmp_path), "") is None
    assert find_regular_file(str(tmp_path), "a/c") is None


def test_nothing_is_found_through_links_or_above(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "secret").touch()
    (tmp_path / "in" / "up").symlink_to(tmp_path)
    (tmp_path / "in" / "link").symlink_to("../secret")
    for relative in ("../secret", "up/secret", "link", "in/../../secret"):
        assert find_regular_file(str(tmp_path / "in"), relative) is None


def test_shebang_is_split_into_program_and_rest(tmp_path: Path) -> None:
    (tmp_path / "tool").write_bytes(b"#! /usr/bin/env  python3 -I\nimport sys\n")
    assert read_shebang(tmp_path / "tool") == ("/usr/bin/env", "python3 -I")
