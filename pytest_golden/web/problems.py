"""How errors are told: problem JSON (RFC 9457) to programs, a page to people. No path of this machine is in either."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import TYPE_CHECKING

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse

from pytest_golden.errors import GoldenError, JournalError, ManifestError, StorageError, StorageTrouble
from pytest_golden.web.access import Refusal

if TYPE_CHECKING:
    from starlette.responses import Response

    from pytest_golden.web.rendering import Renderer

_LOG = logging.getLogger(__name__)
_FOR_PROGRAMS = ("/api/", "/webhooks/", "/events", "/healthz")
_RETRY_SECONDS = "1"
_TOLD_OF_STORE = {
    StorageTrouble.LOCKED: "Somebody else is writing to the store: try again in a moment.",
    StorageTrouble.GONE: (
        "The store's file was moved or removed while this server ran: put it back, or run `pytest --golden`, which makes one."
    ),
    StorageTrouble.NEWER: "The store was brought up to date by a newer pytest-golden-projects: restart this server with that.",
    StorageTrouble.OLDER: "The store is of an older version, and this server only shows: run `golden store upgrade`.",
}
_ROUTED = {404: "There is no such page.", 405: "That cannot be done here."}


def is_for_programs(path: str) -> bool:
    """Tell whether whoever asks for a path wants JSON."""
    return path.startswith(_FOR_PROGRAMS)


def explain(error: Exception) -> Refusal:
    """Turn what went wrong into what a visitor is told of it; of what is not theirs to mend the log has the rest."""
    if isinstance(error, Refusal):
        return error
    # The services tell with no class of its own that there is no such lesson or plan.
    if isinstance(error, JournalError) or type(error) is GoldenError:
        return Refusal(404, str(error))
    if isinstance(error, StorageError) and error.trouble is StorageTrouble.LOCKED:
        return Refusal(503, _TOLD_OF_STORE[error.trouble], {"Retry-After": _RETRY_SECONDS})
    if isinstance(error, StorageError):
        _LOG.error("the store cannot be used: %s", error)
        told = f"The store cannot be used ({error.trouble.value}): the server's log says why."
        return Refusal(503, _TOLD_OF_STORE.get(error.trouble, told), {"Retry-After": _RETRY_SECONDS})
    if isinstance(error, ManifestError):
        _LOG.error("the manifest cannot be used: %s", error)
        return Refusal(503, "The manifest cannot be used: `golden check` says why.")
    if isinstance(error, ValueError | GoldenError):
        return Refusal(400, str(error))
    _LOG.error("a request failed", exc_info=error)
    return Refusal(500, "Something went wrong here: the server's log says what.")


def read_http_error(error: Exception) -> Exception:
    """Turn what the router says into a sentence of ours."""
    if not isinstance(error, HTTPException):
        return error
    return Refusal(error.status_code, _ROUTED.get(error.status_code, str(error.detail)), error.headers)


def tell_program(refusal: Refusal) -> Response:
    """Return the problem as JSON."""
    body = {
        "type": "about:blank",
        "title": refusal.status.phrase,
        "status": int(refusal.status),
        "detail": refusal.detail,
    }
    return JSONResponse(body, refusal.status, refusal.headers, "application/problem+json")


def tell(refusal: Refusal, path: str, renderer: Renderer) -> Response:
    """Return the answer in the form that fits the path."""
    if refusal.status is HTTPStatus.SEE_OTHER:
        return RedirectResponse(refusal.headers["Location"], refusal.status)
    if is_for_programs(path):
        return tell_program(refusal)
    return renderer.render_refusal(refusal)
