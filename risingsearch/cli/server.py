"""The server behind ``risingsearch report --watch``: pages for one user.

Only a browser on this machine that knows the token sees them: other users do not have
it, and pages of the web are kept out by the check of the host (DNS rebinding) and by
the headers. Others on this machine can neither fill nor block it.
"""

import json
import secrets
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, Protocol

from risingsearch.errors import InvalidParameterError

HOST = "127.0.0.1"
HOSTS = (HOST, "localhost")
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # the pages bring the rest
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
MOST_CONNECTIONS = 64
"""Connections at a time: for one more the oldest is closed."""
NO_TOKEN = "This page needs the whole URL, with its token"
VERSION = "version"
"""The last part of the address at which a page asks for news."""


class LivePage(Protocol):
    """A page that follows one or several runs."""

    def version(self) -> str:
        """Return a text that changes with the page."""

    def words(self) -> str:
        """Return how the runs are doing, for the user."""

    def page(self) -> str:
        """Return the page as it is now."""


class PageServer(ThreadingTCPServer):
    """A server of pages below a secret address."""

    # A TCPServer: one for HTTP looks up its name, which can take long.
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, pages: Mapping[str, LivePage]) -> None:
        self.pages = pages
        self.token = secrets.token_urlsafe(24)
        self.making = threading.Lock()  # of one page at a time
        self._connections: dict[object, None] = {}  # the oldest first
        try:
            super().__init__((HOST, port), PageRequest)
        except OSError as error:
            raise InvalidParameterError(
                f"port {port} cannot be used ({error.strerror}): give another --port, "
                "or 0 for any that is free"
            ) from error

    @property
    def url(self) -> str:
        """The address of the first page."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection, in place of the oldest one if there are too many."""
        self._connections[request] = None
        if len(self._connections) > MOST_CONNECTIONS:
            oldest: Any = next(iter(self._connections))
            with suppress(OSError):  # it has just ended
                oldest.shutdown(socket.SHUT_RDWR)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection."""
        self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, unless the browser has only closed the connection."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class PageRequest(BaseHTTPRequestHandler):
    """A request for a page, or for its version."""

    server: PageServer
    timeout = 10.0  # seconds in which something has to come

    def do_GET(self) -> None:
        """Answer, if the request is of the user."""
        host = self.headers.get("Host", "").partition(":")[0]
        token, _, name = self.path.removeprefix("/").partition("/")
        page = self.server.pages.get(name.removesuffix(VERSION))
        if host not in HOSTS:
            self.send_error(HTTPStatus.BAD_REQUEST, "Unknown host")
        elif not secrets.compare_digest(token.encode(), self.server.token.encode()):
            self.send_error(HTTPStatus.FORBIDDEN, NO_TOKEN)
        elif page is None:
            self.send_error(HTTPStatus.NOT_FOUND)
        else:
            self._send(page, is_version=name.endswith(VERSION))

    def _send(self, page: LivePage, *, is_version: bool) -> None:
        kind = "application/json" if is_version else "text/html; charset=utf-8"
        with self.server.making:
            if is_version:
                text = json.dumps({"version": page.version(), "words": page.words()})
            else:
                text = page.page()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode("utf-8", "replace"))

    def end_headers(self) -> None:
        """Add ``HEADERS`` to every answer, refusals included."""
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *arguments: object) -> None:
        """Write nothing: a line per bad request would fill a disk."""
