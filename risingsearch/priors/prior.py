"""The argument ``prior``: a list of earlier searches, read as data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from risingsearch.checks import checked_flag, shown
from risingsearch.errors import InvalidParameterError
from risingsearch.priors.earlier import MOST_SEARCHES, EarlierSearch, told_apart
from risingsearch.priors.matching import Params
from risingsearch.priors.models import check_runs, check_usable
from risingsearch.priors.sources import Found, searches_in


@dataclass(frozen=True)
class Prior:
    """Earlier searches, and whether unusable ones are skipped.

    Parameters
    ----------
    searches : sequence
        Sources as ``earlier_searches`` reads them.
    skip_unusable : bool, default False
        Whether to skip, with a warning, those that cannot be read or from which nothing
        can be learnt here; by default they are an error.
    """

    searches: Sequence[Any]
    skip_unusable: bool = False

    def __post_init__(self) -> None:
        checked_flag("skip_unusable", self.skip_unusable)
        if not isinstance(self.searches, (list, tuple)):
            msg = (
                "searches must be a list of earlier searches; got "
                f"{shown(self.searches)}"
            )
            raise InvalidParameterError(msg)


def read_prior(prior: Any, candidates: Params) -> list[EarlierSearch]:
    """Return the earlier searches of a ``prior`` that the candidates can learn from.

    Parameters
    ----------
    prior : None, Prior, a source or a list of sources
        See ``earlier_searches`` for the sources. Of a folder of run directories, those
        are taken that share a parameter with the candidates; a RuntimeWarning names the
        others and says why they are skipped.
    candidates : sequence of dict
        The configurations of the new search.

    Raises
    ------
    InvalidParameterError
        If a source cannot be read or nothing can be learnt from it for these
        candidates, unless the ``Prior`` says to skip it.
    """
    prior = _as_prior(prior)
    names = frozenset(name for params in candidates for name in params)
    read = _read(prior, lambda search: _usable(search, candidates, names))
    found = [search for source in read for search in source.searches]
    different = {(search.name, search.digest()): search for search in found}
    return told_apart(_most_alike(list(different.values()), names))


def prior_as_data(prior: Any) -> Prior:
    """Return a ``prior`` whose sources are read before the candidates are known.

    Raises
    ------
    InvalidParameterError
        If a source cannot be read or has too few runs, unless the ``Prior`` says to
        skip it.
    """
    prior = _as_prior(prior)
    return Prior(_read(prior, _large_enough), prior.skip_unusable)


def _as_prior(prior: Any) -> Prior:
    if prior is None:
        return Prior([])
    given: Prior = prior
    if not isinstance(prior, Prior):
        sources = prior if isinstance(prior, (list, tuple)) else [prior]
        lists = [one if isinstance(one, (list, tuple)) else [one] for one in sources]
        given = Prior([one for several in lists for one in several])
    if not given.searches and not given.skip_unusable:
        msg = (
            "prior is an empty list: leave it out, or give at least one earlier search"
        )
        raise InvalidParameterError(msg)
    return given


def _read(
    prior: Prior, usable: Callable[[EarlierSearch], EarlierSearch]
) -> list[Found]:
    """Return the usable searches of each source."""
    found = []
    for source in prior.searches:
        try:
            found.append(searches_in(source).usable(usable, skip=prior.skip_unusable))
        except InvalidParameterError as error:
            if not prior.skip_unusable:
                raise
            msg = f"an earlier search is skipped: {error}"
            warnings.warn(msg, RuntimeWarning, stacklevel=4)
    return found


def _large_enough(search: EarlierSearch) -> EarlierSearch:
    check_runs(search)
    return search.sample()


def _usable(
    search: EarlierSearch, candidates: Params, names: frozenset[str]
) -> EarlierSearch:
    sampled = search.sample()
    try:
        check_usable(sampled, candidates)
    except InvalidParameterError as error:
        raise InvalidParameterError(
            "; ".join([str(error), *_hints(sampled, names)])
        ) from error
    return sampled


def _hints(search: EarlierSearch, names: frozenset[str]) -> Iterator[str]:
    """Yield why parameters with similar names do not help."""
    here = {name.lower(): name for name in names}
    for name in search.parameter_names:
        alike = here.get(name.lower())
        values = {repr(run[name]) for run in search.params if name in run}
        if alike is not None and alike != name:
            yield f"{name!r} is called {alike!r} here"
        elif alike is not None and len(values) == 1:
            yield f"{name!r} is {values.pop()} in all of its runs"


def _most_alike(
    found: list[EarlierSearch], names: frozenset[str]
) -> list[EarlierSearch]:
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
