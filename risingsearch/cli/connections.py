"""Connections of ``risingsearch serve``: few at a time, and none without a request."""

from __future__ import annotations

from asyncio import BaseTransport, Transport
from typing import ClassVar, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 64
"""Connections at a time: for one more the oldest is closed that has no request."""
SECONDS = 10.0
"""Time in which a connection has to bring a whole request."""
LONGEST_HEAD = 16_384
"""Bytes of a request's line and headers."""


class BoundedConnection(H11Protocol):
    """A connection that is closed if no request comes in time."""

    open: ClassVar[dict[BoundedConnection, None]] = {}  # the oldest first

    def connection_made(self, transport: BaseTransport) -> None:
        """Take the connection, in place of an idle one if there are too many."""
        super().connection_made(cast("Transport", transport))
        self.open[self] = None
        idle = [each for each in self.open if each._is_idle]
        for idle_connection in idle[: max(0, len(self.open) - MOST)]:
            idle_connection.transport.abort()
        self._due = self.loop.call_later(SECONDS, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.open.pop(self, None)
        self._due.cancel()
        super().connection_lost(exc)

    @property
    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _close_if_idle(self) -> None:
        if self._is_idle:
            self.transport.abort()
        else:
            self._due = self.loop.call_later(SECONDS, self._close_if_idle)


def server_of(app: ASGIApp) -> uvicorn.Server:
    """Return a server that others on this machine can neither fill nor block."""
    config = uvicorn.Config(
        app,
        http=BoundedConnection,
        ws="none",
        log_level="critical",  # a line per bad request would fill a disk
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=LONGEST_HEAD,
    )
    return uvicorn.Server(config)
