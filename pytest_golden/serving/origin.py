"""Whether a request comes from this server's own pages and programs: any page that a person opens reaches loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.serving.refusal import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.datastructures import Headers

# A page on another port of the same machine is of the same site, and yet a stranger.
_OWN_SITES = frozenset({"same-origin", "none"})


def refuse_foreign_host(headers: Headers, is_own: Callable[[str], bool]) -> str:
    """Give the host that is asked for.

    Raises:
        Refusal: it is none of this server's names: a site's own name can be made to point at this machine.
    """
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not is_own(hosts[0]):
        raise Refusal(421, "This server does not answer to that host name.")
    return hosts[0]


def refuse_cross_site(headers: Headers, is_own: Callable[[str], bool]) -> None:
    """Let only this server's own pages and programs pass; `is_own` is asked of an Origin.

    Raises:
        Refusal: another site's page sends it.
    """
    site, origins = headers.get("sec-fetch-site"), headers.getlist("origin")
    if not all(map(is_own, origins)) or (site is not None and site not in _OWN_SITES):
        raise Refusal(403, "A request from another site changes nothing here.")
