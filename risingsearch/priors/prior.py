"""What the argument ``prior`` means: a list of earlier searches, read as data."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from risingsearch.checks import checked_flag, shown
from risingsearch.errors import InvalidParameterError, PriorError
from risingsearch.priors.earlier import MOST_SEARCHES, EarlierSearch
from risingsearch.priors.history import history_of
from risingsearch.priors.matching import Params
from risingsearch.priors.models import check_usable
from risingsearch.priors.sources import earlier_searches

HISTORY = "history"
"""The source that stands for the searches in the user's history."""


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
    if prior is None:
        return []
    if not isinstance(prior, Prior):
        prior = Prior(list(prior) if isinstance(prior, (list, tuple)) else [prior])
    found: list[EarlierSearch] = []
    for source in _history_last(prior.searches):
        try:
            if _is_history(source):
                found += history_of(candidates, max(0, MOST_SEARCHES - len(found)))
                continue
            found += [_usable(one, candidates) for one in earlier_searches(source)]
        except PriorError as error:
            if not prior.skip_unusable:
                raise
            msg = f"goes on without an earlier search: {error}"
            warnings.warn(msg, RuntimeWarning, stacklevel=2)
    names = {name for params in candidates for name in params}
    return _most_alike(found, names)


def _history_last(sources: Iterable[Any]) -> list[Any]:
    """Return the sources, with the history at the end and once, if it is one."""
    given = list(sources)
    others = [source for source in given if not _is_history(source)]
    return others if len(others) == len(given) else [*others, HISTORY]


def _is_history(source: Any) -> bool:
    return isinstance(source, str) and source == HISTORY


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
