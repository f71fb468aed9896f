"""Exception types: every error raised at the public boundary is one of them.

::

    RisingSearchError
    |-- InvalidParameterError (ValueError)        an argument, a name, a job, a prior
    |-- NotTrainableError (TypeError)             no training one epoch at a time
    |-- PolicyError                               a policy or proposer that breaks rules
    |-- RunDirError                               journal, checkpoint or saved state
    |-- ScriptError                               a training script died or hung
    |-- WorkerError                               a worker process died or took too long
    |-- SetupError                                a requirement of all arms is missing
    |-- SearchFailedError (ValueError, TypeError) no score at all, or no executor left
    `-- MissingDependencyError (ImportError)      an optional package is not installed
"""

from __future__ import annotations

import difflib
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any


class RisingSearchError(Exception):
    """Base class of every error that risingsearch raises."""


class InvalidParameterError(RisingSearchError, ValueError):
    """An argument is outside its range, misspelt, or does not fit the others."""


class NotTrainableError(RisingSearchError, TypeError):
    """Something cannot be trained one epoch at a time."""


class PolicyError(RisingSearchError):
    """A policy or proposer broke its contract, for example chose a busy arm."""


class RunDirError(RisingSearchError):
    """A journal, checkpoint or saved state cannot be used; it stays as it is."""


class ScriptError(RisingSearchError):
    """A training script died, hung, or did not report epoch after epoch.

    Attributes
    ----------
    n_reported : int or None
        Epochs that it had reported in this job before; None if that is not known.
    """

    n_reported: int | None = None


class WorkerError(RisingSearchError):
    """A process died of the job that it trained, or one took too long."""


class SetupError(RisingSearchError):
    """Something that all arms need is missing: the search stops, no arm is to blame.

    A trainable raises it. With a ``run_dir`` the search can be resumed once that is
    mended.
    """


class SearchFailedError(RisingSearchError, ValueError, TypeError):
    """No configuration has a score, or the executor died.

    Also a ValueError and a TypeError: the usual errors of unusable data.

    Parameters
    ----------
    message : str
        The cause, and the remedy.
    result : SearchResult, optional
        The search up to the failure, where the executor died.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[SearchFailedError], tuple[str, Any]]:
        return type(self), (str(self), self.result)


class MissingDependencyError(RisingSearchError, ImportError):
    """An optional package is needed and not installed."""


def missing(package: str, extra: str) -> MissingDependencyError:
    """Return the error that says how to install an optional package."""
    return MissingDependencyError(
        f'{package} is not installed; run: pip install "risingsearch[{extra}]"'
    )


@contextmanager
def needed(
    package: str, extra: str, kind: Any = ModuleNotFoundError, of: Any = ()
) -> Iterator[None]:
    """Raise that error where a module is not found, perhaps only one ``of`` some."""
    try:
        yield
    except kind as error:
        if of and (error.name or "").partition(".")[0] not in of:
            raise
        raise missing(package, extra) from error


def unknown_name(
    kind: str, name: object, allowed: Iterable[str]
) -> InvalidParameterError:
    """Return the error for a name that is not known, with the closest one."""
    names = sorted(allowed)
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f" did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(names) or "none"
    return InvalidParameterError(f"unknown {kind} {name!r};{hint} Known: {listed}")
