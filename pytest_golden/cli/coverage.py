"""`golden coverage`: show which files of the repository no golden project reads, and which data no output checks. Nothing runs.

It uses the reads that `pytest --golden --golden-reads` recorded in the last run of each project: the tracked files that were opened.
Documentation, `.github/`, tests, baselines and the manifest do not count. If a project worked on a copy of its folder, its reads are
unknown, and it is named. Unchecked data are the data files, the databases, and the tables of checked databases that the last pass of a
project wrote and its `outputs:` do not name.

exit code: 0 done; 1 less than --fail-under; 2 bad input.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_golden.cli import options
from pytest_golden.cli.screen import answer, styled
from pytest_golden.errors import SettingsError
from pytest_golden.gateway import git
from pytest_golden.history.past_store import read_own_reads, read_written
from pytest_golden.history.unchanged_paths import is_of_pipelines, is_passed_over
from pytest_golden.manifest.comparisons import holds_data, is_database_name
from pytest_golden.manifest.reader import load_manifest
from pytest_golden.regression.unexpected import is_named, names_output
from pytest_golden.regression.wording import count_of, show_path
from pytest_golden.values.shape import Shape

if TYPE_CHECKING:
    import argparse
    from collections.abc import Container, Iterator, Mapping

    from rich.console import Console

    from pytest_golden.manifest.model import Manifest

_MOST_SHOWN = 50
_MOST_COUNTED = 3
_GOOD, _FAIR = 80, 50
_BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="150" height="20" role="img" aria-label="{words}: {share} %">
<rect width="110" height="20" fill="#555"/><rect x="110" width="40" height="20" fill="{colour}"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">
<text x="55" y="14">{words}</text><text x="130" y="14">{share} %</text></g></svg>
"""


@dataclass(frozen=True, slots=True)
class FloorCoverage(Shape):
    """Which files of a repository the golden projects read: the number of files that count, and those that no project reads.

    `unknown` are the projects whose reads are not known. `unwatched` is the written data that no output checks.
    """

    files: int
    unread: tuple[str, ...]
    unknown: tuple[str, ...]
    unwatched: tuple[str, ...] = ()

    @property
    def share(self) -> int:
        """Return the percentage of files that are read, rounded down; 100 if there are no files."""
        return 100 if not self.files else 100 * (self.files - len(self.unread)) // self.files


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `golden coverage`."""
    parser.add_argument("--html", metavar="PATH", type=Path, help="Write it as one HTML page too.")
    parser.add_argument("--badge", metavar="PATH", type=Path, help="Write a badge (SVG) too.")
    parser.add_argument(
        "--fail-under", metavar="PERCENT", type=int, default=0, help="Exit with 1 below this share of files."
    )
    options.add_options(parser, "--manifest", "--store", "--json")


def run(arguments: argparse.Namespace) -> int:
    """Show the coverage."""
    manifest = load_manifest(options.find_manifest(arguments))
    names = [project.name for project in manifest.projects]
    with options.open_store(arguments) as store, store.read() as connection:
        reads = read_own_reads(connection, names) if names else {}
        written = read_written(connection, names)
    found = replace(find_coverage(manifest, reads), unwatched=tuple(_find_unwatched(manifest, written)))
    if arguments.badge is not None:
        write_beside(arguments.badge, make_badge("golden coverage", found.share))
    if arguments.html is not None:
        write_beside(arguments.html, _make_page(found))
    answer(arguments, {"share": found.share, **found.to_dict()}, lambda console: _show(console, found))
    return int(found.share < arguments.fail_under)


def find_coverage(manifest: Manifest, reads: dict[str, tuple[str, ...] | None]) -> FloorCoverage:
    """Find the tracked files that no project read in its last run.

    Raises:
        SettingsError: the workspace is not in a git repository.
    """
    top = git.find_top(manifest.workspace_root)
    tracked = None if top is None else git.list_tracked(top)
    if top is None or tracked is None:
        raise SettingsError(f"{manifest.workspace_root} is not in a git repository, so there are no files to count")
    counted = sorted(path for path in tracked if is_of_pipelines(path) and path != _relate(manifest.path, top))
    read = {path for paths in reads.values() for path in paths or ()}
    unread = tuple(path for path in counted if path not in read and not _leads_to(top / path, top, read))
    unknown = tuple(project.name for project in manifest.projects if reads.get(project.name) is None)
    return FloorCoverage(len(counted), unread, unknown)


def _find_unwatched(
    manifest: Manifest, written: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]
) -> Iterator[str]:
    """Yield the data files, databases and tables that projects wrote and none of their outputs names."""
    for project in manifest.projects:
        paths, tables = written.get(project.name, ((), ()))
        for path in paths:
            if is_passed_over(path) or not (holds_data(path) or is_database_name(path)):
                continue
            is_of_dbt = is_database_name(path) and any(output.dbt for output in project.outputs)
            if not is_of_dbt and not any(
                names_output(output, path) or is_named(path, output.path) for output in project.outputs
            ):
                yield f"{project.name}: {path}"
        yield from (f"{project.name}: {table}" for table in tables)


def _leads_to(link: Path, top: Path, read: Container[str]) -> bool:
    """Tell whether a symlink points to a file that was read; the link itself is not recorded."""
    return link.is_symlink() and os.path.relpath(os.path.realpath(link), os.path.realpath(top)) in read


def _relate(manifest: Path | None, top: Path) -> str | None:
    return None if manifest is None else os.path.relpath(os.path.realpath(manifest), os.path.realpath(top))


def _choose_colour(share: int) -> str:
    return "#4c1" if share >= _GOOD else "#dfb317" if share >= _FAIR else "#e05d44"


def _tell(found: FloorCoverage) -> list[str]:
    read = found.files - len(found.unread)
    told = [f"{read} of {count_of(found.files, 'file')} ({found.share} %) are read by a golden project"]
    if found.unknown:
        names = ", ".join(found.unknown[:_MOST_COUNTED])
        more = f" and {len(found.unknown) - _MOST_COUNTED} more" if len(found.unknown) > _MOST_COUNTED else ""
        told.append(f"not known: the reads of {names}{more}; run `pytest --golden --golden-reads` with an overlay view")
    return told


def _list_sections(found: FloorCoverage) -> dict[str, tuple[str, ...]]:
    lists = {"no golden project reads": found.unread, "no output looks at": found.unwatched}
    return {title: some for title, some in lists.items() if some}


def _show(console: Console, found: FloorCoverage) -> None:
    for title, some in _list_sections(found).items():
        console.print(styled(f"{title}:", "bold"))
        for told in some[:_MOST_SHOWN]:
            console.print(styled(f"  {show_path(told)}"))
        if len(some) > _MOST_SHOWN:
            console.print(styled(f"  and {len(some) - _MOST_SHOWN} more: --json lists all"))
    for line in _tell(found):
        console.print(styled(line))


def _make_page(found: FloorCoverage) -> str:
    from pytest_golden.report.html_page import make_page, tag

    sections = [
        tag("section", tag("h2", title.capitalize()), tag("ul", *(tag("li", show_path(told)) for told in some)))
        for title, some in _list_sections(found).items()
    ]
    told = [tag("p", line) for line in _tell(found)]
    body = tag("main", tag("h1", f"Golden coverage: {found.share} %"), *told, *sections)
    return make_page("Golden coverage", [body])


def make_badge(words: str, share: int) -> str:
    """Return a badge (SVG) that shows a share of 100."""
    return _BADGE.format(words=words, share=share, colour=_choose_colour(share))


def write_beside(place: Path, text: str) -> None:
    """Write a page or a badge.

    Raises:
        SettingsError: it cannot be written.
    """
    try:
        place.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"{place} cannot be written: {error.strerror or error}") from None
