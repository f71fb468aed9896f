"""Syne Tune's transfer learning on a recorded table, in an environment of its own.

The job is that of ``benchmarks.hpo.tools.syne_runner``; its ``table`` also holds
``earlier_features_0``, ``earlier_scores_0`` and so on. All search numbers from 0 to 1,
with the defaults of their classes, where nothing else is said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xgboost
from syne_tune.blackbox_repository.blackbox_surrogate import BlackboxSurrogate
from syne_tune.config_space import uniform
from syne_tune.optimizer.baselines import ASHA, ZeroShotTransfer
from syne_tune.optimizer.schedulers.hyperband import HyperbandScheduler
from syne_tune.optimizer.schedulers.transfer_learning import (
    BoundingBox,
    RUSHScheduler,
    TransferLearningTaskEvaluations,
)
from syne_tune.optimizer.schedulers.transfer_learning import zero_shot as searchers
from syne_tune.optimizer.schedulers.transfer_learning.quantile_based import (
    quantile_based_searcher as quantiles,
)

from benchmarks.hpo.tools.syne_runner import Replay, answer

METRIC, MODE = "score", "max"
PROMOTION = {"type": "promotion"}
"""ASHA that pauses trials. By default it stops them, and a single worker, which has
nothing to compare the first one with, trains that to the end. RUSH, whose first ones
are known to be good, is left as it is.
"""
BOXED = 10
"""Best configurations of each task in the bounding box, as in Syne Tune's benchmarks.

Its default is one, which leaves hardly any room with few tasks.
"""


class Problem(NamedTuple):
    """What all schedulers are made of."""

    space: dict[str, Any]
    candidates: pd.DataFrame
    earlier: dict[str, TransferLearningTaskEvaluations]
    max_epochs: int
    seed: int

    @property
    def common(self) -> dict[str, Any]:
        """What all are told."""
        return {"metric": METRIC, "mode": MODE, "random_seed": self.seed}

    @property
    def epochs(self) -> dict[str, Any]:
        """What those are told that stop trials early."""
        return {"resource_attr": "epoch", "max_t": self.max_epochs}

    @property
    def rated(self) -> dict[str, Any]:
        """What the zero-shot searcher is told.

        It wants scores of the same configurations on all tasks, which are predicted for
        the candidates. The surrogates of its own do not: each has a sample of its own.
        """
        return {
            "sort_transfer_learning_evaluations": False,
            "transfer_learning_evaluations": {
                name: self._predicted(task) for name, task in self.earlier.items()
            },
        }

    def _predicted(self, task: Any) -> TransferLearningTaskEvaluations:
        model = BlackboxSurrogate.make_model_pipeline(
            configuration_space=self.space,
            fidelity_space={},
            model=xgboost.XGBRegressor(),
        )
        best = task.objective_values(METRIC).mean(axis=1).max(axis=1)
        model.fit(task.hyperparameters, best)
        scores = model.predict(self.candidates)
        return evaluations(self.space, self.candidates, scores[:, None])


def asha(problem: Problem, searcher: Any) -> Any:
    return HyperbandScheduler(
        problem.space,
        searcher=searcher,
        **problem.common,
        **problem.epochs,
        **PROMOTION,
    )


def rush(problem: Problem) -> Any:
    return RUSHScheduler(
        problem.space,
        transfer_learning_evaluations=problem.earlier,
        **problem.common,
        **problem.epochs,
    )


def bounding_box(problem: Problem) -> Any:
    def boxed(space: dict[str, Any], mode: str, metric: str) -> Any:
        return ASHA(space, **problem.common, **problem.epochs, **PROMOTION)

    return BoundingBox(
        boxed,
        problem.space,
        METRIC,
        problem.earlier,
        mode=MODE,
        num_hyperparameters_per_task=BOXED,
    )


def zero_shot(problem: Problem) -> Any:
    return ZeroShotTransfer(problem.space, **problem.rated, **problem.common)


def zero_shot_asha(problem: Problem) -> Any:
    searcher = searchers.ZeroShotTransfer(
        problem.space, METRIC, mode=MODE, random_seed=problem.seed, **problem.rated
    )
    return asha(problem, searcher)


def quantile(problem: Problem) -> Any:
    # Put together by hand: ``ASHACTS`` passes its searcher an argument twice.
    searcher = quantiles.QuantileBasedSurrogateSearcher(
        problem.space,
        METRIC,
        problem.earlier,
        mode=MODE,
        random_seed=problem.seed,
    )
    return asha(problem, searcher)


SCHEDULERS: dict[str, Callable[[Problem], Any]] = {
    "rush": rush,
    "bounding-box": bounding_box,
    "zero-shot": zero_shot,
    "zero-shot-asha": zero_shot_asha,
    "quantile": quantile,
}


class Nearest:
    """The nearest configuration that no trial has yet; None when none is left."""

    def __init__(self, candidates: pd.DataFrame) -> None:
        self._names = list(candidates)
        self._candidates = candidates.to_numpy()
        self._taken = np.zeros(len(candidates), dtype=bool)

    def __call__(self, config: dict[str, Any]) -> int | None:
        if self._taken.all():
            return None
        suggested = [config[name] for name in self._names]
        far = np.sum((self._candidates - suggested) ** 2, axis=1)
        row = int(np.where(self._taken, np.inf, far).argmin())
        self._taken[row] = True
        return row


def evaluations(
    space: dict[str, Any], configurations: pd.DataFrame, scores: Any
) -> TransferLearningTaskEvaluations:
    """Return an earlier task: configurations, and a score for each and every epoch."""
    return TransferLearningTaskEvaluations(
        configuration_space=space,
        hyperparameters=configurations,
        objectives_names=[METRIC],
        objectives_evaluations=scores[:, None, :, None],
    )


def search(job: dict[str, Any]) -> list[int]:
    """Return the row of every epoch of one search."""
    with np.load(job["table"]) as table:
        arrays = dict(table)
    features, scores = arrays["features"], arrays["scores"]
    np.random.seed(job["seed"])  # noqa: NPY002 (some of it draws from there)
    names = [f"x{i}" for i in range(features.shape[1])]
    space = {name: uniform(0.0, 1.0) for name in names}
    candidates = pd.DataFrame(features, columns=names)
    earlier = {
        str(i): evaluations(
            space,
            pd.DataFrame(arrays[f"earlier_features_{i}"], columns=names),
            arrays[f"earlier_scores_{i}"],
        )
        for i in range((len(arrays) - 2) // 2)
    }
    problem = Problem(space, candidates, earlier, scores.shape[1], job["seed"])
    scheduler = SCHEDULERS[job["search"]](problem)
    return Replay(scores, Nearest(candidates)).play(scheduler, job["budget"])


if __name__ == "__main__":
    answer(search)
