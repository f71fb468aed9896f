"""Exception types: every error raised at the public boundary is one of them."""

from __future__ import annotations

import difflib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any


class RisingSearchError(Exception):
    """Base class of every error that risingsearch raises."""


class InvalidParameterError(RisingSearchError, ValueError):
    """An argument is outside what is allowed."""


class UnknownNameError(InvalidParameterError):
    """A policy or one of its parameters goes by another name."""


class UnknownArgumentError(UnknownNameError, TypeError):
    """An argument goes by another name."""


class JobError(RisingSearchError):
    """A job was told twice, never asked for, or told more than it asked."""


class PolicyError(RisingSearchError):
    """A policy broke its contract, for example chose an arm that is busy."""


class ProposalError(RisingSearchError):
    """A proposer named an arm that cannot be opened."""


class PriorError(RisingSearchError, ValueError):
    """An earlier search cannot be read, or nothing can be learnt from it."""


class StateError(RisingSearchError):
    """A saved state does not belong to the object that should load it."""


class RunDirError(RisingSearchError):
    """A run directory cannot be used; what is in it stays as it is."""


class JournalError(RunDirError):
    """The journal of a search is damaged, or cannot be read or written."""


class CheckpointError(RunDirError):
    """A checkpoint is damaged or missing, or cannot be written."""


class ObjectStoreError(RunDirError):
    """An object store cannot be reached, or lacks data that a search needs."""


class StorageError(RisingSearchError):
    """A study's storage cannot be shared in the way that is asked for."""


class EarlierFailureError(RisingSearchError):
    """A failure of before the search was resumed: only what it said is left.

    Parameters
    ----------
    message : str
        What it said.
    type_name : str
        What kind of exception it was; "" where an earlier release has not kept that.
    """

    def __init__(self, message: str, type_name: str = "") -> None:
        super().__init__(message)
        self.type_name = type_name


class NotTrainableError(RisingSearchError, TypeError):
    """Something cannot be trained one epoch at a time."""


class SetupError(RisingSearchError):
    """Something that all arms need is missing: the search stops, no arm is to blame.

    A trainable raises it. With a ``run_dir`` the search can be resumed once that is
    mended.
    """


class ScriptError(RisingSearchError):
    """A training script died, hung, or did not report epoch after epoch."""


class WorkersDiedError(RisingSearchError, RuntimeError):
    """Every worker that trained an arm died of it, or was ended meanwhile."""


class MissingDependencyError(RisingSearchError, ImportError):
    """An optional package is needed and not installed."""


class SearchFailedError(RisingSearchError, ValueError, TypeError):
    """Every configuration failed; the first failure is the cause.

    Also a ValueError and a TypeError: what unusable data usually end in.
    """


class ExecutorFailedError(RisingSearchError, RuntimeError):
    """The executor died; ``result`` holds everything found before.

    Parameters
    ----------
    message : str
        What happened.
    result : SearchResult
        The search up to the failure.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[ExecutorFailedError], tuple[str, Any]]:
        return type(self), (str(self), self.result)


def missing(package: str, extra: str) -> MissingDependencyError:
    """Return the error that says how to install an optional package.

    Examples
    --------
    >>> print(missing("matplotlib", extra="plot"))
    matplotlib is not installed; run: pip install "risingsearch[plot]"
    """
    return MissingDependencyError(
        f'{package} is not installed; run: pip install "risingsearch[{extra}]"'
    )


def unknown_name(kind: str, name: object, known: Iterable[str]) -> UnknownNameError:
    """Return the error for a name that is not known, with the closest one.

    Examples
    --------
    >>> print(unknown_name("policy", "cure", ["asha", "cure-ucb"]))
    unknown policy 'cure'; did you mean 'cure-ucb'? Known: asha, cure-ucb
    """
    names = sorted(known)
    close = difflib.get_close_matches(str(name), names, n=1, cutoff=0.4)
    hint = f" did you mean {close[0]!r}?" if close else ""
    known_names = ", ".join(names) or "none"
    return UnknownNameError(f"unknown {kind} {name!r};{hint} Known: {known_names}")
