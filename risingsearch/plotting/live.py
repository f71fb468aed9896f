"""Pages that keep themselves up to date, as an ASGI application for this machine.

Whoever has the token in the URL sees them, and nobody else: not another user of the
machine, nor a page of the web that knows the port (DNS rebinding included). What the
pages show comes from this server alone; their policies refuse every other request.
"""

from __future__ import annotations

import html
import secrets
from collections.abc import Mapping
from string import Template
from typing import Protocol

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from risingsearch.plotting.parts import hash_of, part, whole_page

HOSTS = ["127.0.0.1", "localhost"]
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
NOTHING = "default-src 'none'; base-uri 'none'; form-action 'none'"
IN_FRAME = "frame-ancestors 'self'"
"""Of pages that bring the rest of their policy themselves."""


class LivePage(Protocol):
    """A page that changes."""

    @property
    def title(self) -> str:
        """Its heading."""

    def version(self) -> str:
        """Return what changes with the page; asked for again and again."""

    def state(self) -> tuple[str, str]:
        """Return how it is doing in a word, and in words for the user."""

    def page(self) -> str:
        """Return the page as it is now, a whole HTML file with its own policy."""


def live_app(token: str, pages: Mapping[str, LivePage]) -> ASGIApp:
    """Return the application that serves pages below ``/TOKEN/``.

    Parameters
    ----------
    token : str
        The secret in the URL.
    pages : dict of str to LivePage
        The page called ``name`` is at ``/TOKEN/name/`` and leads to the one at the top,
        at ``/TOKEN/``, which is called ``""``.
    """

    def name_in(request: Request) -> str:
        return str(request.path_params.get("name", ""))

    def found(request: Request) -> LivePage:
        given = request.path_params["token"].encode()
        if not secrets.compare_digest(given, token.encode()):
            raise HTTPException(403, "This page needs the whole URL, with its token.")
        if (name := name_in(request)) not in pages:
            raise HTTPException(404)
        return pages[name]

    async def shell(request: Request) -> Response:
        page = found(request)
        return _shell(page.title, up="../" if name_in(request) else None)

    async def content(request: Request) -> Response:
        headers = {"Content-Security-Policy": IN_FRAME}
        return HTMLResponse(found(request).page(), headers=headers)

    async def version(request: Request) -> Response:
        page = found(request)
        now = page.version()
        state, words = page.state()
        return JSONResponse({"version": now, "state": state, "words": words})

    async def no_token(request: Request) -> Response:
        raise HTTPException(403, "This page needs the whole URL, with its token.")

    routes = [
        Route(f"/{{token}}/{below}{name}", answer)
        for below in ("", "{name}/")
        for name, answer in (("", shell), ("page", content), ("version", version))
    ]
    return Starlette(
        routes=[*routes, Route("/{path:path}", no_token)],
        middleware=[
            Middleware(_WithHeaders),
            Middleware(TrustedHostMiddleware, allowed_hosts=HOSTS, www_redirect=False),
        ],
    )


def _shell(title: str, up: str | None) -> Response:
    """Return the page that keeps another one up to date."""
    style, program = part("live.css"), part("live.js")
    allowed = (
        f"style-src {hash_of(style)}; script-src {hash_of(program)}; "
        "connect-src 'self'; frame-src 'self'; frame-ancestors 'none'"
    )
    body = Template(part("live.html")).substitute(
        up="" if up is None else f'<a href="{up}">All runs</a>', program=program
    )
    content = whole_page(html.escape(title), style, body)
    headers = {"Content-Security-Policy": f"{NOTHING}; {allowed}"}
    return HTMLResponse(content, headers=headers)


class _WithHeaders:
    """Adds the headers that every answer has, refusals too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                headers = {"Content-Security-Policy": NOTHING, **HEADERS}
                message["headers"] += [
                    (name.lower().encode(), value.encode())
                    for name, value in headers.items()
                    if name.lower().encode() not in given
                ]
            await send(message)

        await self._app(scope, receive, sent)
