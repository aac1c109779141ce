"""The manifest file to a `Manifest`, with line and column for every mistake. Inline forms are read in `inline.py`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.errors import ManifestError, ManifestProblem
from pytest_golden.manifest.assembling import assemble
from pytest_golden.manifest.composing import Mistake, Spot, UnusableTextError, compose, spot_of_offset

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from pytest_golden.manifest.model import Manifest

MANIFEST_NAME = "golden_projects.yaml"
LARGEST_BYTES = 5 * 1024 * 1024


def load_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read a manifest file. One that is empty, or declares no golden projects, is a manifest without projects.

    Raises:
        ManifestError: the file is missing, cannot be read or has mistakes; `problems` are all of them in file order.
    """
    file = Path(path)
    name = _short_name(file)
    manifest = parse_manifest(_read_bytes(file, name), name, file.absolute().parent)
    return replace(manifest, path=file.absolute())


def parse_manifest(text: str | bytes, file_name: str, workspace_root_dir: str | os.PathLike[str]) -> Manifest:
    """Read the text of a manifest that need not be on disk, such as another commit's.

    `file_name` is what problems name; `workspace_root` in the text resolves against `workspace_root_dir`.

    Raises:
        ManifestError: the text has mistakes; `problems` are all of them in the order of the text.
    """
    try:
        return assemble(compose(_decode(text)), Path(workspace_root_dir))
    except UnusableTextError as error:
        raise _error(file_name, error.mistakes) from None


def _short_name(file: Path) -> str:
    absolute, here = file.absolute(), Path.cwd()
    return str(absolute.relative_to(here)) if absolute.is_relative_to(here) else str(file)


def _read_bytes(file: Path, name: str) -> bytes:
    try:
        if file.exists() and not file.is_file():
            raise _nowhere(name, "this is not a file; name the manifest itself")
        with file.open("rb") as stream:
            return stream.read(LARGEST_BYTES + 1)
    except FileNotFoundError:
        raise _nowhere(name, "there is no such file; run `golden init` to write a first manifest") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _nowhere(name, f"the file cannot be read: {reason}; check the path and its permissions") from None


def _decode(text: str | bytes) -> str:
    if len(text) > LARGEST_BYTES:
        message = f"the text is larger than {LARGEST_BYTES // 1024 // 1024} MiB; declare projects here and keep data elsewhere"
        raise UnusableTextError([Mistake(Spot(1, 1), message)])
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        good = text[: error.start].decode("utf-8-sig", errors="replace")
        message = f"the byte 0x{text[error.start]:02X} is not UTF-8; save the file as UTF-8"
        raise UnusableTextError([Mistake(spot_of_offset(good, len(good)), message)]) from None


def _nowhere(file_name: str, message: str) -> ManifestError:
    return ManifestError([ManifestProblem(file_name, 0, 0, message)])


def _error(file_name: str, mistakes: Iterable[Mistake]) -> ManifestError:
    ordered = sorted(set(mistakes))
    return ManifestError(ManifestProblem(file_name, *mistake.spot, mistake.message) for mistake in ordered)
