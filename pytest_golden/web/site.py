"""What every page and route of the API receives: services, templates, access, and the options of `golden serve`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_golden.web.rendering import Renderer
    from pytest_golden.web.services import ServeOptions, Services
    from pytest_golden.web.visitor import Doorkeeper


@dataclass(frozen=True, slots=True)
class Site:
    """The parts of one served site. `is_ending` tells open streams to end."""

    options: ServeOptions
    services: Services
    doorkeeper: Doorkeeper
    renderer: Renderer
    is_ending: Callable[[], bool]
