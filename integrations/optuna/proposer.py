"""Optuna's samplers, proposing configurations of a given list."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from risingsearch.errors import missing
from risingsearch.scheduling.proposers import Opened, checked_features


class SamplerProposer:
    """Proposes what an Optuna sampler suggests: the unopened configuration nearest it.

    Good for comparing samplers on the same list of configurations, and for using one
    that is trusted. The sampler sees one finished trial per opened arm, with the end
    that is expected of it, over features from 0 to 1.

    Parameters
    ----------
    features : array-like of shape (n_arms, n_features)
        A row per arm, from 0 to 1 in each column; ``candidates.encode`` makes them.
    sampler : callable, optional
        Makes the sampler from a seed; by default Optuna's TPE.

    Raises
    ------
    InvalidParameterError
        If the features are not a table of finite numbers.
    MissingDependencyError
        If Optuna is not installed.

    Examples
    --------
    >>> rate = np.linspace(0, 1, 40)[:, None]
    >>> arms = np.arange(0, 40, 2)
    >>> ends = 1 - (rate[arms, 0] - 0.7) ** 2
    >>> opened = Opened(arms, np.full(20, 5), ends, np.full(20, True), max_epochs=5)
    >>> proposer = SamplerProposer(rate)
    >>> arm = proposer.propose(opened, np.arange(1, 40, 2), np.random.default_rng(0))
    >>> bool(0.5 < rate[arm, 0] < 0.9)
    True
    """

    def __init__(self, features: ArrayLike, sampler: Any = None) -> None:
        self.features = checked_features(features)
        try:
            self._optuna: Any = import_module("optuna")
        except ImportError as error:
            raise missing("optuna", extra="optuna") from error
        tpe = self._optuna.samplers.TPESampler
        self._sampler = sampler or (lambda seed: tpe(seed=seed))

    def propose(
        self, opened: Opened, unopened: NDArray[np.int64], rng: np.random.Generator
    ) -> int | None:
        """Return the unopened arm nearest to what the sampler suggests."""
        uniform = self._optuna.distributions.FloatDistribution(0.0, 1.0)
        space = {f"x{i}": uniform for i in range(self.features.shape[1])}
        study = self._quiet_study(int(rng.integers(2**31)))
        for arm, end in zip(opened.arms, opened.ends, strict=True):
            values = np.clip(self.features[arm], 0.0, 1.0).tolist()
            params = dict(zip(space, values, strict=True))
            study.add_trial(
                self._optuna.trial.create_trial(
                    params=params, distributions=space, value=float(end)
                )
            )
        asked = study.ask(space).params
        suggested = np.array([asked[name] for name in space])
        far = np.linalg.norm(self.features[unopened] - suggested, axis=1)
        return int(unopened[far.argmin()])

    def _quiet_study(self, seed: int) -> Any:
        level = self._optuna.logging.get_verbosity()
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        try:
            return self._optuna.create_study(
                direction="maximize", sampler=self._sampler(seed)
            )
        finally:
            self._optuna.logging.set_verbosity(level)
