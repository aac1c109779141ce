from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_golden.errors import ManifestError
from pytest_golden.web.services import ManifestReader

if TYPE_CHECKING:
    from pathlib import Path

_LONG_AGO = 1_700_000_000


def declare(manifest: Path, *names: str, seconds: int = _LONG_AGO) -> None:
    """Write a manifest that was last changed so many seconds after the epoch."""
    lines = (f"  - {{name: {name}, path: {name}.sh}}\n" for name in names)
    manifest.write_text("golden_projects:\n" + "".join(lines))
    os.utime(manifest, (seconds, seconds))


def names_of(reader: ManifestReader) -> list[str]:
    found = reader.read()
    assert found is not None
    return [project.name for project in found.projects]


def test_manifest_that_has_not_changed_is_read_once(manifest: Path) -> None:
    reader = ManifestReader(manifest)
    declare(manifest, "orders")
    assert names_of(reader) == ["orders"]
    assert reader.read() is reader.read()


def test_manifest_that_has_changed_is_read_again(manifest: Path) -> None:
    reader = ManifestReader(manifest)
    declare(manifest, "orders")
    assert names_of(reader) == ["orders"]
    declare(manifest, "prices", seconds=_LONG_AGO + 1)
    assert names_of(reader) == ["prices"]
    manifest.unlink()
    assert reader.read() is None


def test_manifest_that_was_written_just_now_is_read_each_time(manifest: Path) -> None:
    reader = ManifestReader(manifest)
    declare(manifest, "orders")
    manifest.touch()
    written = manifest.stat()
    assert names_of(reader) == ["orders"]
    # In the same place, as long, and within a tick of the clock.
    with manifest.open("r+") as stream:
        stream.write(manifest.read_text().replace("orders", "prices"))
    os.utime(manifest, ns=(written.st_atime_ns, written.st_mtime_ns))
    assert names_of(reader) == ["prices"]


def test_manifest_that_cannot_be_used_is_refused_each_time(manifest: Path) -> None:
    reader = ManifestReader(manifest)
    declare(manifest, "orders")
    assert names_of(reader) == ["orders"]
    manifest.write_text("golden_projects: [")
    for _ in range(2):
        with pytest.raises(ManifestError):
            reader.read()
    manifest.unlink()
    manifest.mkdir()
    with pytest.raises(ManifestError, match="not a file"):
        reader.read()
    assert ManifestReader(manifest / "x" / "y").read() is None
