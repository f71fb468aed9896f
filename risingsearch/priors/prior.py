"""What the argument ``prior`` means: a list of earlier searches, read as data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from risingsearch.checks import checked_flag, shown
from risingsearch.errors import InvalidParameterError, PriorError
from risingsearch.priors.earlier import MOST_SEARCHES, EarlierSearch, told_apart
from risingsearch.priors.history import HISTORY, history_of
from risingsearch.priors.matching import Params
from risingsearch.priors.models import check_runs, check_usable
from risingsearch.priors.sources import earlier_searches


@dataclass(frozen=True)
class Prior:
    """Earlier searches, and what is done about those that cannot be used.

    Parameters
    ----------
    searches : sequence
        Sources as ``earlier_searches`` reads them, and "history" for those in the
        user's history that share parameters; a path of that name is "./history".
    skip_unusable : bool, default False
        Whether to go on, with a warning, without those that cannot be read or from
        which nothing can be learnt here; by default they are an error.

    Examples
    --------
    >>> prior = Prior(["no such file.csv"], skip_unusable=True)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     read_prior(prior, [{"rate": 0.1}])
    ...     str(caught[0].message)[:54]
    []
    'goes on without an earlier search: there is no earlier'
    """

    searches: Sequence[Any]
    skip_unusable: bool = False

    def __post_init__(self) -> None:
        checked_flag("skip_unusable", self.skip_unusable)
        if isinstance(self.searches, (str, Mapping)) or not isinstance(
            self.searches, Iterable
        ):
            msg = (
                "searches must be a list of earlier searches; got "
                f"{shown(self.searches)}"
            )
            raise InvalidParameterError(msg)


def read_prior(prior: Any, candidates: Params) -> list[EarlierSearch]:
    """Return the earlier searches of a ``prior``, those that can be learnt from here.

    Parameters
    ----------
    prior : None, Prior, a source or a list of sources
        See ``earlier_searches`` for what a source is; "history" stands for those in
        the user's history that share parameters, the newest that there is room for
        after all others.
    candidates : sequence of dict
        The configurations of the new search.

    Raises
    ------
    PriorError
        If one cannot be read or nothing can be learnt from it for these candidates,
        unless the ``Prior`` says to skip it.
    """
    prior = _as_prior(prior)
    found = _read(prior, lambda search: _usable(search, candidates))
    if any(_is_history(source) for source in prior.searches):
        room = max(0, MOST_SEARCHES - len(found))
        found += _unless_skipped(prior, lambda: history_of(candidates, room))
    names = {name for params in candidates for name in params}
    return told_apart(_most_alike(found, names))


def prior_as_data(prior: Any) -> Prior:
    """Return a ``prior`` whose sources are read, where candidates are not known yet.

    Raises
    ------
    PriorError
        If one cannot be read or has too few runs, or no history is kept, unless the
        ``Prior`` says to skip it.
    """
    prior = _as_prior(prior)
    read: list[Any] = [*_read(prior, _large_enough)]
    if any(_is_history(source) for source in prior.searches):
        # What of it can be used depends on the candidates; that it is kept does not.
        read += _unless_skipped(prior, lambda: history_of([], 0) or [HISTORY])
    return Prior(read, prior.skip_unusable)


def _as_prior(prior: Any) -> Prior:
    if isinstance(prior, Prior):
        return prior
    if prior is None:
        return Prior([])
    sources = list(prior) if isinstance(prior, (list, tuple)) else [prior]
    lists = [one if isinstance(one, (list, tuple)) else [one] for one in sources]
    return Prior([one for several in lists for one in several])


def _read(
    prior: Prior, usable: Callable[[EarlierSearch], EarlierSearch]
) -> list[EarlierSearch]:
    found: list[EarlierSearch] = []
    for source in prior.searches:
        if not _is_history(source):
            found += _unless_skipped(prior, partial(_usable_in, source, usable))
    return found


def _usable_in(
    source: Any, usable: Callable[[EarlierSearch], EarlierSearch]
) -> list[EarlierSearch]:
    return [usable(search) for search in earlier_searches(source)]


def _unless_skipped(prior: Prior, read: Callable[[], list[Any]]) -> list[Any]:
    """Return what is read; nothing, with a warning, where that may be skipped."""
    try:
        return read()
    except PriorError as error:
        if not prior.skip_unusable:
            raise
        msg = f"goes on without an earlier search: {error}"
        warnings.warn(msg, RuntimeWarning, stacklevel=4)
        return []


def _is_history(source: Any) -> bool:
    return isinstance(source, str) and source == HISTORY


def _large_enough(search: EarlierSearch) -> EarlierSearch:
    check_runs(search)
    return search.sample()


def _usable(search: EarlierSearch, candidates: Params) -> EarlierSearch:
    sampled = search.sample()
    check_usable(sampled, candidates)
    return sampled


def _most_alike(found: list[EarlierSearch], names: set[str]) -> list[EarlierSearch]:
    if len(found) <= MOST_SEARCHES:
        return found

    def alike(search: EarlierSearch) -> tuple[int, int]:
        return len(names.intersection(search.parameter_names)), len(search.params)

    kept = sorted(found, key=alike, reverse=True)[:MOST_SEARCHES]
    msg = (
        f"{len(found)} earlier searches are more than the {MOST_SEARCHES} that are "
        "learnt from: those that share most parameters, and have most runs, are taken"
    )
    warnings.warn(msg, RuntimeWarning, stacklevel=3)
    return kept
