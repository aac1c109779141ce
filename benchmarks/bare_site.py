"""As little as a site can be that hands each request to a thread and gives a page: the floor of the web face.

Run: python benchmarks/bare_site.py  (it tells its address, and serves until it is ended)
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request


def answer(_: Request) -> HTMLResponse:
    """Say `ok`."""
    return HTMLResponse("<!doctype html><title>ok</title>ok")


app = Starlette(routes=[Route("/{any:path}", answer)])

if __name__ == "__main__":
    bound = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(f"http://127.0.0.1:{bound.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run(sockets=[bound])
