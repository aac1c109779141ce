"""Whether a request that changes something comes from the page itself: any page that a person opens reaches loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_golden.web.refusal import Refusal

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from pytest_golden.web.place import PublicPlace

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
# A page on another port of the same machine is of the same site, and yet a stranger.
_OWN_SITES = frozenset({"same-origin", "none"})


def refuse_foreign_host(headers: Headers, place: PublicPlace) -> str:
    """Give the host that is asked for.

    Raises:
        Refusal: it is none of this server's names: a site's own name can be made to point at this machine.
    """
    hosts = headers.getlist("host")
    if len(hosts) != 1 or not place.allows(hosts[0]):
        raise Refusal(421, "This server does not answer to that host name.")
    return hosts[0]


def refuse_cross_site(headers: Headers, host: str, place: PublicPlace) -> None:
    """Let only this server's own pages and programs change something.

    Raises:
        Refusal: another site's page sends it.
    """
    site, origins = headers.get("sec-fetch-site"), headers.getlist("origin")
    is_foreign = any(not place.allows_origin(origin, host) for origin in origins)
    if is_foreign or (site is not None and site not in _OWN_SITES):
        raise Refusal(403, "A request from another site changes nothing here.")
