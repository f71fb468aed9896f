"""scikit-learn's own searches as a runner."""

from __future__ import annotations

from typing import Any

from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingRandomSearchCV, RandomizedSearchCV

from benchmarks.peers.jobs import Task, main
from benchmarks.shared.problems import BUDGET, MAX_EPOCHS


def halving(task: Task) -> None:
    """Train all for an epoch, the best third afresh for three, and so on."""
    search = HalvingRandomSearchCV(
        task.estimator,
        _lists(task),
        resource="epochs",
        n_candidates=len(task.candidates),
        min_resources=1,
        max_resources=MAX_EPOCHS,
        factor=3,
        cv=[task.split],
        refit=False,
        return_train_score=False,
        random_state=task.seed,
    )
    search.fit(task.X, task.y)


def in_full(task: Task) -> None:
    """Train as many in full as the budget allows."""
    search = RandomizedSearchCV(
        task.estimator.set_params(epochs=MAX_EPOCHS),
        _lists(task),
        n_iter=BUDGET // MAX_EPOCHS,
        cv=[task.split],
        refit=False,
        random_state=task.seed,
    )
    search.fit(task.X, task.y)


def _lists(task: Task) -> list[dict[str, list[Any]]]:
    return [{"kind": [kind], **values} for kind, values in task.space.items()]


if __name__ == "__main__":
    main({"HalvingRandomSearchCV": halving, "random search, in full": in_full})
