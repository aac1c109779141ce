"""Archives are seen through in flat memory, and whatever is wrong with a file is said."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import tracemalloc
from typing import TYPE_CHECKING

import pytest

from pytest_golden.compare import opening
from pytest_golden.compare import opening as archives
from pytest_golden.compare.opening import (
    Content,
    Side,
    UnreadableError,
    VastError,
    has_equal_bytes,
    read_chunks,
    read_raw_chunks,
    read_size,
)
from tests.permissions import without_powers
from tests.requirement import require

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.compare.files import Files

TEXT = b"".join(b"row %d of the daily load\n" % number for number in range(50_000))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lambda data: lzma.compress(data, preset=0),
}


def pack_zst(data: bytes) -> bytes:
    zstandard = pytest.importorskip("zstandard")
    packed: bytes = zstandard.ZstdCompressor(write_checksum=True).compress(data)
    return packed


PACKERS[".zst"] = pack_zst
SUFFIXES = pytest.mark.parametrize("suffix", list(PACKERS))


@pytest.mark.parametrize(
    "size", [0, 1, 500, opening.CHUNK_BYTES - 1, opening.CHUNK_BYTES, opening.CHUNK_BYTES + 1, 3 * opening.CHUNK_BYTES]
)
def test_bytes_are_equal_up_to_the_last_one_of_each_chunk(files: Files, size: int) -> None:
    data = (TEXT * (size // len(TEXT) + 1))[:size]
    output = files.output("a.bin", data)
    assert has_equal_bytes(output, files.baseline("a.bin", data))
    for at in {0, size // 2, size - 1} if size else ():
        other = bytearray(data)
        other[at] ^= 1
        assert not has_equal_bytes(output, files.baseline("a.bin", bytes(other)))
    assert not has_equal_bytes(output, files.baseline("a.bin", data + b"x"))


def test_a_file_that_grows_while_it_is_compared_is_not_equal(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    data = TEXT[: opening.CHUNK_BYTES // 2]
    output, baseline = files.output("a.bin", data), files.baseline("a.bin", data)
    read = os.readv

    def read_growing(descriptor: int, buffers: list[bytearray]) -> int:
        with output.path.open("ab") as file:
            file.write(b"x")
        return read(descriptor, buffers)

    monkeypatch.setattr(os, "readv", read_growing)
    assert not has_equal_bytes(output, baseline)


@SUFFIXES
def test_an_archive_gives_what_is_in_it_in_whole_chunks(files: Files, suffix: str) -> None:
    content = files.output(f"a{suffix}", PACKERS[suffix](TEXT))
    chunks = list(read_chunks(content, 1000))
    assert b"".join(chunks) == TEXT
    assert {len(chunk) for chunk in chunks[:-1]} == {1000}


@SUFFIXES
def test_an_archive_of_several_parts_is_read_to_its_end(files: Files, suffix: str) -> None:
    pack = PACKERS[suffix]
    content = files.output(f"a{suffix}", pack(b"one ") + pack(b"") + pack(b"two"))
    assert b"".join(read_chunks(content)) == b"one two"


@SUFFIXES
@pytest.mark.parametrize("kept", [1, 10, 200, -1, -9])
def test_an_archive_that_is_cut_short_is_told(files: Files, suffix: str, kept: int) -> None:
    content = files.output(f"a{suffix}", PACKERS[suffix](TEXT)[:kept])
    with pytest.raises(UnreadableError, match=f"(is a \\{suffix} archive that is cut short|is not a valid)"):
        list(read_chunks(content))


@SUFFIXES
def test_a_broken_archive_is_told(files: Files, suffix: str) -> None:
    packed = bytearray(PACKERS[suffix](TEXT))
    packed[len(packed) // 2] ^= 0xFF
    packed[len(packed) // 2 + 1] ^= 0xFF
    with pytest.raises(UnreadableError, match=f"\\{suffix} archive"):
        list(read_chunks(files.output(f"a{suffix}", bytes(packed))))


@SUFFIXES
@pytest.mark.parametrize("content", [b"plain text, and no archive\n", b"", b"\0" * 100])
def test_what_is_no_archive_is_told(files: Files, suffix: str, content: bytes) -> None:
    if suffix == ".zst":
        pytest.importorskip("zstandard")
    with pytest.raises(UnreadableError, match=f"\\{suffix} archive"):
        list(read_chunks(files.output(f"a{suffix}", content)))


@SUFFIXES
def test_what_lies_behind_the_end_of_an_archive_is_told(files: Files, suffix: str) -> None:
    for behind in (b"garbage", b"\0" * 600 + b"garbage"):
        content = files.output(f"a{suffix}", PACKERS[suffix](b"one") + behind)
        with pytest.raises(UnreadableError, match=f"(is a \\{suffix} archive that is cut short|is not a valid)"):
            list(read_chunks(content))


@SUFFIXES
def test_padding_behind_and_between_the_parts_of_an_archive_is_passed(files: Files, suffix: str) -> None:
    pack = PACKERS[suffix]
    content = files.output(f"a{suffix}", pack(b"one ") + b"\0" * 4000 + pack(b"two") + b"\0" * 8)
    assert b"".join(read_chunks(content)) == b"one two"


def test_frames_of_zst_to_be_skipped_are_skipped(files: Files) -> None:
    skipped = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    content = files.output("a.zst", skipped + pack_zst(b"one ") + skipped + pack_zst(b"two") + skipped)
    assert b"".join(read_chunks(content)) == b"one two"


@SUFFIXES
def test_a_bomb_does_not_fill_the_memory(files: Files, suffix: str) -> None:
    content = files.output(f"a{suffix}", PACKERS[suffix](b"\0" * (64 << 20)))
    chunks = read_chunks(content)
    tracemalloc.start()
    try:
        assert sum(map(len, chunks)) == 64 << 20
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 40 << 20


@SUFFIXES
def test_an_archive_that_unfolds_beyond_all_bounds_is_not_read_to_its_end(
    files: Files, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "_MOST_UNFOLDED_BYTES", 1 << 20)
    pack = PACKERS[suffix]
    part = pack(b"\0" * (2 << 20))
    read: list[bytes] = []
    with pytest.raises(VastError, match=f"is a \\{suffix} archive that unpacks to more than .*`compare: exists`"):
        read.extend(read_chunks(files.output(f"a{suffix}", part * 4)))
    assert sum(map(len, read)) < 4 << 20
    ordinary = files.output(f"b{suffix}", pack(TEXT[: 1 << 20]) + pack(os.urandom(1 << 20)))
    assert sum(map(len, read_chunks(ordinary))) > 1 << 20


def test_xz_that_asks_for_too_much_memory_is_told(files: Files) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 512 << 20}]
    packed = lzma.compress(b"little", filters=filters)
    with pytest.raises(UnreadableError, match=r"not a valid \.xz archive: .*emory"):
        list(read_chunks(files.output("a.xz", packed)))


def test_without_anything_that_reads_zst_it_is_said_what_to_install(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lack(name: str) -> object:
        raise ImportError(name)

    monkeypatch.setattr(archives, "import_module", lack)
    with pytest.raises(UnreadableError, match=r"pip install 'pytest-golden-projects\[tables\]'"):
        list(read_chunks(files.output("a.zst", b"x")))


def test_pythons_own_module_is_taken_where_there_is_one(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    zstandard = pytest.importorskip("zstandard")

    class OwnModule:
        @staticmethod
        def ZstdDecompressor() -> object:  # noqa: N802 - the name that Python gave it
            return zstandard.ZstdDecompressor().decompressobj()

    monkeypatch.setattr(archives, "import_module", {"compression.zstd": OwnModule}.__getitem__)
    assert b"".join(read_chunks(files.output("a.zst", pack_zst(b"one")))) == b"one"


def test_a_plain_file_is_given_as_it_is_and_an_archive_on_request(files: Files) -> None:
    packed = gzip.compress(b"one")
    content = files.output("a.gz", packed)
    assert b"".join(read_raw_chunks(content)) == packed
    assert read_size(content) == len(packed)
    assert list(read_chunks(files.output("a.txt", b""))) == []


def test_a_file_that_is_gone_a_folder_a_pipe_and_a_link_are_told(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(UnreadableError, match="is gone"):
        read_size(Content(tmp_path / "missing", Side.OUTPUT))
    with pytest.raises(UnreadableError, match="is gone"):
        read_size(Content(tmp_path / "file" / "below", Side.OUTPUT))
    with pytest.raises(UnreadableError, match=r"is not a regular file|permission denied"):
        read_size(Content(tmp_path / "folder", Side.BASELINE))
    with pytest.raises(UnreadableError, match=r"cannot be opened|is gone"):
        read_size(Content(tmp_path / ("x" * 5000), Side.OUTPUT))


def test_no_pipe_is_waited_for_and_no_link_of_an_output_followed(tmp_path: Path) -> None:
    require(hasattr(os, "mkfifo") and hasattr(os, "O_NOFOLLOW"), "pipes and links")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(UnreadableError, match="is not a regular file"):
        read_size(Content(tmp_path / "pipe", Side.OUTPUT))
    with pytest.raises(UnreadableError, match="is a symbolic link"):
        read_size(Content(tmp_path / "link", Side.OUTPUT))
    assert read_size(Content(tmp_path / "link", Side.BASELINE)) == 1


@without_powers
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "file").chmod(0)
    with pytest.raises(UnreadableError, match="permission denied"):
        read_size(Content(tmp_path / "file", Side.OUTPUT))
