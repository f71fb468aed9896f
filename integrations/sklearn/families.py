"""Several estimators in one search: each a family of configurations."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import _BaseComposition

from risingsearch.arms import Params
from risingsearch.errors import InvalidParameterError, unknown_name
from risingsearch.space.by_name import named


class Families(_BaseComposition):  # type: ignore[misc]
    """One of several estimators, which the parameter ``estimator`` names.

    The parameters of each have its name before them, as those of a pipeline's steps.
    """

    def __init__(self, estimator: str, families: list[tuple[str, Any]]) -> None:
        self.estimator = estimator
        self.families = families

    @property
    def chosen(self) -> BaseEstimator:
        """The estimator that is named."""
        families = dict(self.families)
        if self.estimator not in families:
            raise unknown_name("estimator", self.estimator, families)
        return families[self.estimator]

    def get_params(self, deep: bool = True) -> Params:
        """Return the name, and if ``deep`` the estimators and their parameters."""
        params: Params = self._get_params("families", deep=deep)
        return params

    def set_params(self, **params: object) -> Families:
        """Choose another, or set parameters of some."""
        self._set_params("families", **params)
        return self

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.chosen)


def searched(estimator: Any) -> BaseEstimator:
    """Return an estimator, or the families of a list of them."""
    if not isinstance(estimator, list | tuple):
        return estimator
    families = named(estimator)
    for name, each in families.items():
        if isinstance(each, str | type):
            raise InvalidParameterError(
                f"a list of estimators has estimators; got {each!r} for {name!r}"
            )
    if len({get_tags(each).estimator_type for each in families.values()}) > 1:
        raise InvalidParameterError(
            f"the estimators {', '.join(families)} are of several types: search "
            "classifiers and regressors apart"
        )
    return Families(next(iter(families)), list(families.items()))


def chosen(estimator: BaseEstimator) -> BaseEstimator:
    """Return the estimator itself, or the one that is chosen among families."""
    return estimator.chosen if isinstance(estimator, Families) else estimator


def each_of(estimator: BaseEstimator) -> list[BaseEstimator]:
    """Return the estimator alone, or families with each of them chosen."""
    if not isinstance(estimator, Families):
        return [estimator]
    return [Families(name, estimator.families) for name, _ in estimator.families]
