"""An S3 server in a thread, for tests: it can watch uploads, and stop them half-way."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import IO, Any

from moto.moto_server.werkzeug_app import (
    DomainDispatcherApplication,
    create_backend_app,
)
from werkzeug.serving import WSGIRequestHandler, make_server

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "me",
    "AWS_SECRET_ACCESS_KEY": "secret-of-mine",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class Silent(WSGIRequestHandler):
    def log(self, type, message, *args):
        pass


class S3Server:
    """``on_upload(path, receive, body)`` is called in place of what takes an object in.

    ``receive()`` does so, and returns the answer; ``body`` is read from the connection.
    """

    def __init__(self) -> None:
        self.on_upload: Callable[[str, Callable[[], Any], IO[bytes]], Any] | None = None
        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=Silent
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to reach it."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.url}

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Any:
        def receive() -> Any:
            return self._app(environ, start_response)

        path = environ["PATH_INFO"]
        is_upload = environ["REQUEST_METHOD"] == "PUT" and "/arm-" in path
        if self.on_upload is None or not is_upload:
            return receive()
        return self.on_upload(path, receive, environ["wsgi.input"])
