"""What every page and every address of the API is given: services, templates, who may come in, and what was told to `serve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.web.boundary.visitor import Doorkeeper
    from pytest_golden.web.model import ServeOptions
    from pytest_golden.web.rendering import Renderer
    from pytest_golden.web.services import Services


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of one served site. `is_ending` tells open streams to end."""

    options: ServeOptions
    services: Services
    doorkeeper: Doorkeeper
    renderer: Renderer
    is_ending: Callable[[], bool]
