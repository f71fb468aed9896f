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
    """Base class of every error that risingsearch raises.

    Examples
    --------
    >>> from risingsearch import RisingSearchError, make_policy
    >>> try:
    ...     make_policy("asah", n_arms=3, horizon=9)
    ... except RisingSearchError as error:
    ...     print(type(error).__name__)
    InvalidParameterError
    """


class InvalidParameterError(RisingSearchError, ValueError):
    """An argument is outside its range, misspelt, or does not fit the others.

    Examples
    --------
    >>> from risingsearch import Scheduler
    >>> Scheduler(n_arms=3, budget=0)
    Traceback (most recent call last):
    risingsearch.errors.InvalidParameterError: budget must be a whole number of at ...
    """


class NotTrainableError(RisingSearchError, TypeError):
    """Something cannot be trained one epoch at a time.

    Examples
    --------
    >>> from risingsearch import RisingSearch
    >>> RisingSearch("train.py", [{"rate": 0.1}], budget=3)
    Traceback (most recent call last):
    risingsearch.errors.NotTrainableError: 'train.py' has no start: a trainable has ...
    """


class PolicyError(RisingSearchError):
    """A policy or proposer broke its contract, for example chose a busy arm.

    Examples
    --------
    >>> from risingsearch import Scheduler
    >>> class FirstArm:
    ...     @classmethod
    ...     def create(cls, n_arms, horizon, max_pulls=None):
    ...         return cls()
    ...
    ...     def select(self, t, rng):
    ...         return 7
    ...
    ...     def update(self, t, arm, reward, rng):
    ...         pass
    >>> Scheduler(FirstArm.create, n_arms=3, budget=9).ask()
    Traceback (most recent call last):
    risingsearch.errors.PolicyError: ...
    """


class RunDirError(RisingSearchError):
    """A journal, checkpoint or saved state cannot be used; it stays as it is.

    Examples
    --------
    >>> from risingsearch import RisingSearch
    >>> RisingSearch.saved_result("runs/first")
    Traceback (most recent call last):
    risingsearch.errors.RunDirError: ...runs/first does not exist: name the run ...
    """


class ScriptError(RisingSearchError):
    """A training script died, hung, or did not report epoch after epoch.

    Attributes
    ----------
    n_reported : int or None
        Epochs that it had reported in this job before; None if that is not known.

    Examples
    --------
    A trainable around a program may raise it; its arm has failed then.

    >>> from risingsearch import Functions, RisingSearch, ScriptError
    >>> def start(params, seed):
    ...     return dict(params)
    >>> def train(state):
    ...     if state["batch"] > 64:
    ...         raise ScriptError("train.py ended with exit code 137")
    ...     return state["batch"] / 100
    >>> candidates = [{"batch": 32}, {"batch": 128}]
    >>> search = RisingSearch(Functions(start, train), candidates, budget=2, seed=0)
    >>> [arm.status for arm in search.run().arms]
    ['paused', 'failed']
    """

    n_reported: int | None = None


class WorkerError(RisingSearchError):
    """A process died of the job that it trained, or one took too long.

    Examples
    --------
    The search retries the arm, or retires it with this as the reason.

    >>> from risingsearch import WorkerError
    >>> print(WorkerError("the process of arm 3 was killed by signal 9"))
    the process of arm 3 was killed by signal 9
    """


class SetupError(RisingSearchError):
    """Something that all arms need is missing: the search stops, no arm is to blame.

    A trainable raises it. With a ``run_dir`` the search can be resumed once that is
    mended.

    Examples
    --------
    >>> from risingsearch import Functions, RisingSearch, SetupError
    >>> def start(params, seed):
    ...     return dict(params)
    >>> def train(state):
    ...     raise SetupError("the data are missing: download them first")
    >>> RisingSearch(Functions(start, train), [{"rate": 0.1}], budget=3).run()
    Traceback (most recent call last):
    risingsearch.errors.SetupError: the data are missing: download them first
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

    Examples
    --------
    >>> from risingsearch import Functions, RisingSearch
    >>> def start(params, seed):
    ...     return dict(params)
    >>> def train(state):
    ...     raise OSError("no data")
    >>> RisingSearch(Functions(start, train), [{"rate": 0.1}], budget=3).run()
    Traceback (most recent call last):
    risingsearch.errors.SearchFailedError: OSError: no data: none of the 1 arms ...
    """

    def __init__(self, message: str, result: object = None) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[type[SearchFailedError], tuple[str, Any]]:
        return type(self), (str(self), self.result)


class MissingDependencyError(RisingSearchError, ImportError):
    """An optional package is needed and not installed.

    Examples
    --------
    >>> from risingsearch.errors import missing
    >>> raise missing("optuna", "optuna")
    Traceback (most recent call last):
    risingsearch.errors.MissingDependencyError: optuna is not installed; run: pip ...
    """


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
    hint = ""
    if close:
        hint = f" did you mean {close[0]!r}?"
    listed = ", ".join(names) or "none"
    return InvalidParameterError(f"unknown {kind} {name!r};{hint} Known: {listed}")
