"""The colours of the pages: each is legible on what it stands on, in the light and in the dark."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import product

import pytest

from pytest_golden.web.rendering import show_ansi

_STYLE = files("pytest_golden.web").joinpath("static", "style.css").read_text()
_COLOURS = {
    name: pair for name, *pair in re.findall(r"--([a-z-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", _STYLE)
}
_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_ANSI = tuple(f"ansi-{kind}{name}" for kind in ("", "bright-") for name in _NAMES)
_PAIRS = (
    *product(("text", "muted", "link", "good", "bad", "warn"), ("page", "card", "raised", "code")),
    *product(_ANSI, ("code",)),
    ("page", "accent"),
    ("page", "bad-fill"),
)


def _luminance(colour: str) -> float:
    """Source: WCAG 2.2, relative luminance."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _contrast(one: str, other: str) -> float:
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_what_is_written_is_legible(scheme: int) -> None:
    contrasts = {(ink, paper): _contrast(_COLOURS[ink][scheme], _COLOURS[paper][scheme]) for ink, paper in _PAIRS}
    assert {pair: round(contrast, 2) for pair, contrast in contrasts.items() if contrast < 4.5} == {}


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_sixteen_colours_of_a_terminal_are_sixteen(scheme: int) -> None:
    assert len({_COLOURS[name][scheme] for name in _ANSI}) == 16


def test_each_colour_of_a_terminal_has_its_rule() -> None:
    for code, name in [(30 + at, name) for at, name in enumerate(_NAMES)] + [
        (90 + at, f"bright-{name}") for at, name in enumerate(_NAMES)
    ]:
        assert show_ansi(f"\x1b[{code}mx") == f'<span class="ansi-{name}">x</span>'
        assert show_ansi(f"\x1b[{code + 10}mx") == f'<span class="ansi-on-{name}">x</span>'
        assert f".ansi-{name} {{ color: var(--ansi-{name}); }}" in _STYLE
        assert f".ansi-on-{name} {{ --paper: var(--ansi-{name}); }}" in _STYLE


def test_paper_is_white_and_ink_is_black_whatever_the_theme() -> None:
    printed = _STYLE.split("@media print")[1]
    assert ":root, :root[data-theme] { color-scheme: light; --page: #fff;" in printed
    assert "--text: #000" in printed
