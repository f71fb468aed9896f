"""Predictions of earlier searches for the candidates of a new one; their agreement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from risingsearch.errors import InvalidParameterError
from risingsearch.priors.earlier import EarlierSearch, uniquely_named
from risingsearch.priors.matching import Columns, Configurations, Matching, features
from risingsearch.proposers.base import Floats, Ints
from risingsearch.proposers.gaussian_process import (
    Observations,
    Posterior,
    at_last_epoch,
    fitted_posterior,
    matern,
    normal_scores,
    places_of_epochs,
    typical_inverse_length,
)

ALONE = 0.6
"""Share of its agreement with itself that a single earlier search is believed to have
with the new one."""
AT_ONCE = 2_000
"""Configurations whose scores are predicted at once."""
COMPARED = 8
"""Other searches that each model is compared with, at most."""
FEWEST = 4
"""Runs of an earlier search that tell something, at least."""


class Predictions(NamedTuple):
    """Predictions of earlier searches for some configurations."""

    scores: Floats  # (n_searches, n); of candidates mean 0, deviation 1
    places: Floats  # (n, n_columns), by lengths of the models

    def select(self, rows: Ints) -> Predictions:
        """Return those for some of the configurations."""
        return Predictions(self.scores[:, rows], self.places[rows])

    def alike(self, others: Predictions) -> Floats:
        """Return how alike others are to the models: correlations, 0 to 1."""
        return matern(self.places, others.places)


class _Model(NamedTuple):
    """A Gaussian process over the runs of one earlier search."""

    parameters: list[str]
    posterior: Posterior

    def predict(self, columns: Columns) -> Floats:
        """Return the mean for configurations, by their columns."""
        table = features(columns, self.parameters)
        n_parts = max(1, len(table) // AT_ONCE)
        means = []
        for part in np.array_split(table, n_parts):
            mean, _ = self.posterior.predict(at_last_epoch(part))
            means.append(mean)
        return np.concatenate(means)


class Learnt:
    """Models of earlier searches, for candidates and for others like them.

    A Gaussian process per search models the ranks of its runs over the parameters that
    it shares with the candidates. The ``agreement`` of a search, from 0 to 1, is the
    expected correlation of its predictions with the new scores.

    Parameters
    ----------
    candidates : sequence of dict
        The configurations of the new search.
    searches : sequence of EarlierSearch
        The earlier searches, each with runs to learn from.

    Raises
    ------
    InvalidParameterError
        If nothing can be learnt from one of them.

    Examples
    --------
    >>> runs = [{"rate": 0.1 * k} for k in range(10)]
    >>> may = EarlierSearch("May", runs, [np.array([0.1 * k]) for k in range(10)])
    >>> learnt = Learnt(runs, [may])
    >>> int(learnt.predictions(runs).scores[0].argmax())
    9
    """

    def __init__(
        self, candidates: Configurations, searches: Sequence[EarlierSearch]
    ) -> None:
        searches = uniquely_named(searches)
        self.digests = {search.name: search.digest() for search in searches}
        sampled = [search.sample() for search in searches]
        matching = Matching(candidates, [search.params for search in sampled])
        columns = [matching.columns(search.params) for search in sampled]
        self._matching = matching
        self._models = [_model(matching, search) for search in sampled]
        means = self._means(matching.columns(candidates))
        self._middle = means.mean(axis=1, keepdims=True)
        self._spread = np.maximum(means.std(axis=1, keepdims=True), 1e-9)
        self.agreement = np.array(
            [_agreement(k, self._models, columns) for k in range(len(searches))]
        )

    def predictions(self, configurations: Configurations) -> Predictions:
        """Return the predictions for configurations."""
        columns = self._matching.columns(configurations)
        deviations = self._means(columns) - self._middle
        scores = deviations / self._spread
        return Predictions(scores, self._places(columns))

    def _means(self, columns: Columns) -> Floats:
        return np.array([model.predict(columns) for model in self._models])

    def _places(self, columns: Columns) -> Floats:
        """Return rows whose distances are in mean lengths of the models."""
        names = [name for name, parts in columns.items() for _ in parts]
        n_models = np.zeros(len(names))
        logs = np.zeros_like(n_models)
        for model in self._models:
            inverse_lengths = model.posterior.process.inverse_lengths
            is_shared = np.isin(names, model.parameters)
            n_models += is_shared
            logs[is_shared] += np.log(inverse_lengths)
        means = np.exp(logs / np.maximum(n_models, 1.0))
        typical = typical_inverse_length(len(names))
        scales = np.where(n_models > 0, means, typical)
        return features(columns, columns) * scales


def correlation(a: Floats, b: Floats) -> float:
    """Return the correlation of two arrays; 0 if one is constant or has one value.

    Examples
    --------
    >>> correlation(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]))
    -1.0
    """
    if len(a) < 2:
        return 0.0
    deviations = float(a.std() * b.std())
    if deviations < 1e-12:
        return 0.0
    products = (a - a.mean()) * (b - b.mean())
    return float(products.mean() / deviations)


def check_runs(search: EarlierSearch) -> None:
    """Raise an error if a search has too few runs to learn from.

    Raises
    ------
    InvalidParameterError
        If there are fewer than 4.
    """
    if len(search.params) < FEWEST:
        raise InvalidParameterError(
            f"{search.name}: nothing of it can be used here: it needs {FEWEST} runs, "
            f"and has {len(search.params)}: leave it out"
        )


def check_usable(search: EarlierSearch, candidates: Configurations) -> None:
    """Raise an error if nothing can be learnt from a search for these candidates.

    Parameters
    ----------
    search : EarlierSearch
        The earlier search.
    candidates : sequence of dict
        The configurations of the new one.

    Raises
    ------
    InvalidParameterError
        If they share no parameter that varies, or there are too few runs.
    """
    _shared(Matching(candidates, [search.params]), search)


def _shared(matching: Matching, search: EarlierSearch) -> list[str]:
    """Return the parameters that something can be learnt of; none is an error."""
    check_runs(search)
    shared = matching.shared(search.params)
    if not shared:
        raise InvalidParameterError(
            f"{search.name}: nothing of it can be used here: it needs one of this "
            f"search's parameters, {', '.join(matching.names)}, that varies in its "
            "runs, within reach of the candidates, and is a number in both or a "
            f"category in both; it has {', '.join(search.parameter_names)}: rename "
            "what is the same, or leave it out"
        )
    return shared


def _model(matching: Matching, search: EarlierSearch) -> _Model:
    shared = _shared(matching, search)
    scores = np.nan_to_num(search.scores, nan=-np.inf)
    epochs = np.maximum(search.epochs, 1)
    places = places_of_epochs(epochs, search.max_epochs)
    at = np.column_stack([matching.features(search.params, shared), places])
    runs = Observations(at, normal_scores(scores))
    rng = np.random.default_rng(0)
    return _Model(shared, fitted_posterior(runs, len(shared), rng))


def _agreement(
    k: int,
    models: Sequence[_Model],
    columns: Sequence[Columns],
) -> float:
    """Return the mean correlation of a model with the scores of other searches."""
    model = models[k]
    n_others = min(COMPARED, len(models) - 1)
    if n_others == 0:  # with the predictions of each run by the others of its search
        scores = model.posterior.observations.scores
        whitening = model.posterior.whitening
        precision = whitening.T @ whitening
        errors = (precision @ scores) / np.diag(precision)
        alone = correlation(scores - errors, scores)
        return max(0.0, ALONE * alone)
    correlations = []
    for step in range(n_others):
        other = (k + 1 + step) % len(models)
        scores = models[other].posterior.observations.scores
        predicted = model.predict(columns[other])
        correlations.append(correlation(predicted, scores))
    return max(0.0, float(np.mean(correlations)))
