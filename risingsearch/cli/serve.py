"""The command that shows runs in a browser while they run."""

import argparse
import secrets
import socket
from contextlib import suppress
from functools import partial

from risingsearch.cli.options import add_run_command, whole
from risingsearch.errors import InvalidParameterError, missing

HOST = "127.0.0.1"
LAST_PORT = 65_535


def add_serve(commands: object) -> None:
    """Add the command to a parser's."""
    does = "show runs in a browser, also while they run"
    serve = add_run_command(commands, "serve", _serve, does, nargs="+")
    serve.description += (
        " It prints a URL, which this machine alone can open, and only with the secret "
        "in it. Ctrl-C ends it, not the searches."
    )
    serve.add_argument(
        "--port",
        type=partial(whole, low=0, high=LAST_PORT),
        default=0,
        metavar="N",
        help="of the URL (default: 0, any that is free)",
    )


def _serve(arguments: argparse.Namespace) -> None:
    try:
        from risingsearch.cli.connections import server_of
        from risingsearch.cli.live import app_of
    except ModuleNotFoundError as error:
        raise missing(error.name or "uvicorn", extra="serve") from error
    token = secrets.token_urlsafe(24)
    app = app_of(arguments.run_dir, token)
    with _listening(arguments.port) as listener:
        print(f"http://{HOST}:{listener.getsockname()[1]}/{token}/", flush=True)
        with suppress(KeyboardInterrupt):
            server_of(app).run(sockets=[listener])


def _listening(number: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, number))
        listener.listen()
    except OSError as error:
        listener.close()
        raise InvalidParameterError(
            f"port {number} cannot be used ({error.strerror}): give another --port, or "
            "0 for any that is free"
        ) from error
    return listener
