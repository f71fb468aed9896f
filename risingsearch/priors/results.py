"""Earlier searches in results: of a search, and of a fitted RisingSearchCV."""

from typing import Any

from risingsearch.errors import InvalidParameterError
from risingsearch.json_values import AS_TEXT
from risingsearch.priors.earlier import EarlierSearch, Reader, Source
from risingsearch.priors.histories import SCORE, runs_of


def _is_result(source: object) -> bool:
    # A data frame may have columns of any name, but its class has not.
    return hasattr(type(source), "opened_by_prior")


def _of_result(asked: Source) -> list[EarlierSearch]:
    result: Any = asked.source
    where = "a SearchResult"
    candidates = result.candidates
    if result.left_out is not None:  # text in place of parameters
        candidates = [
            {} if params.keys() == {AS_TEXT} else params for params in candidates
        ]
    metric = asked.score or SCORE
    known = None
    if metric == SCORE:
        known = result.direction
    direction = asked.checked_direction(where, known)
    runs = runs_of(candidates, result.history, metric, where)
    return [
        asked.search(
            where,
            runs,
            direction,
            metric=metric,
        )
    ]


def _is_search_cv(source: object) -> bool:
    return any(base.__name__ == "RisingSearchCV" for base in type(source).__mro__)


def _of_search_cv(asked: Source) -> list[EarlierSearch]:
    search: Any = asked.source
    if not hasattr(search, "history_"):
        raise InvalidParameterError(
            "this RisingSearchCV is not fitted: call fit before it is a prior"
        )
    where = type(search).__name__
    candidates = search.cv_results_["params"]
    runs = runs_of(candidates, search.history_, asked.score or SCORE, where)
    direction = asked.checked_direction(where, "maximize")  # as all scorers have it
    max_epochs = search.scheduler_.max_epochs or 0
    return [asked.search(where, runs, direction, max_epochs, asked.score)]


RESULTS = Reader("a SearchResult", _is_result, _of_result)
SEARCH_CVS = Reader("a fitted RisingSearchCV", _is_search_cv, _of_search_cv)
