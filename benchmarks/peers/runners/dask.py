"""dask-ml's Hyperband as a runner, on one thread of a cluster in this process.

It has no way to be told the split or the budget: the split is put in its place, and it
trains on after 270 epochs until its brackets are done.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from dask.distributed import Client
from dask_ml.model_selection import HyperbandSearchCV

from benchmarks.peers.jobs import Task, main
from benchmarks.shared.problems import MAX_EPOCHS


class OnSplit(HyperbandSearchCV):  # type: ignore[misc]
    """Hyperband on a given split."""

    split: tuple[Any, Any]

    def _get_SHAs(self, brackets: Any) -> Any:  # noqa: N802
        searches = super()._get_SHAs(brackets)
        for search in searches.values():
            search._get_train_test_split = self._parts
        return searches

    def _parts(self, X: Any, y: Any) -> list[Any]:
        rows = [array[part] for array in (X, y) for part in self.split]
        return [array.rechunk(array.shape) for array in rows]


def hyperband(task: Task) -> int:
    """Run all brackets at once, as the search does."""
    search = OnSplit(
        task.estimator,
        _lists(task),
        max_iter=MAX_EPOCHS,
        aggressiveness=3,
        random_state=task.seed,
    )
    search.split = task.split
    search.fit(task.X, task.y, classes=np.unique(task.y))
    return int(search.metadata_["partial_fit_calls"])


def _lists(task: Task) -> list[dict[str, list[Any]]]:
    """Return the space with all names everywhere, which the search relies on."""
    names = {name for values in task.space.values() for name in values}
    return [
        {"kind": [kind], **{name: values.get(name, [None]) for name in sorted(names)}}
        for kind, values in task.space.items()
    ]


if __name__ == "__main__":
    with Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    ):
        main({"dask-ml Hyperband": hyperband})
