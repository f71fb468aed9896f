"""Ctrl-C and SIGTERM: deferred while a search changes, or noted."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

Handler = Callable[[int, Any], object] | signal.Handlers


@contextlib.contextmanager
def sigint_deferred() -> Iterator[None]:
    """Defer Ctrl-C to the end of the ``with`` block, in which the search changes."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    caught: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda *facts: caught.append(facts))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
    if caught:
        usual(*caught[0])


@contextlib.contextmanager
def _handled(number: int, usual: Handler, handler: Handler) -> Iterator[None]:
    """Handle a signal otherwise, in the main thread, and unless others handle it."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(number) is not usual:
        yield
        return
    signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, usual)


def first_interrupt(
    call: Callable[[], None] | None,
) -> contextlib.AbstractContextManager[None]:
    """Make the first Ctrl-C run ``call`` and not raise, unless Ctrl-C is handled."""
    if call is None:
        return contextlib.nullcontext()
    usual = signal.default_int_handler

    def first(number: int, frame: object) -> None:
        signal.signal(number, usual)
        call()

    return _handled(signal.SIGINT, usual, first)


def noted_termination(
    note: Callable[[], None],
) -> contextlib.AbstractContextManager[None]:
    """Call ``note`` before a request to terminate, if unhandled, ends this process."""
    this_process = os.getpid()

    def end(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        try:
            if os.getpid() == this_process:  # forked workers inherit the handler
                note()
        finally:
            os.kill(os.getpid(), number)

    return _handled(signal.SIGTERM, signal.SIG_DFL, end)


@contextlib.contextmanager
def interrupted_by_termination() -> Iterator[None]:
    """Treat a request to terminate this process as Ctrl-C is treated."""
    interrupted = False

    def interrupt(number: int, frame: object) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    def terminate(number: int, frame: Any) -> None:
        if not interrupted:
            on_ctrl_c = signal.getsignal(signal.SIGINT)  # which may wait for its time
            (on_ctrl_c if callable(on_ctrl_c) else interrupt)(number, frame)

    with contextlib.ExitStack() as stack:
        on_ctrl_c = _handled(signal.SIGINT, signal.default_int_handler, interrupt)
        stack.enter_context(on_ctrl_c)
        for name in ("SIGTERM", "SIGHUP"):
            if number := getattr(signal, name, None):
                stack.enter_context(_handled(number, signal.SIG_DFL, terminate))
        yield
