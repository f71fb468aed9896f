"""``RisingSearchCV`` as a runner."""

from __future__ import annotations

from benchmarks.peers.jobs import Task, main
from benchmarks.shared.problems import BUDGET, MAX_EPOCHS
from risingsearch import RisingSearchCV


def auto(task: Task) -> int:
    """Search with the default policy."""
    search = RisingSearchCV(
        task.estimator,
        task.candidates,
        budget=BUDGET,
        max_epochs=MAX_EPOCHS,
        cv=[task.split],
        refit=False,
        random_state=task.seed,
    )
    search.fit(task.X, task.y)
    return int(search.n_epochs_)


if __name__ == "__main__":
    main({"RisingSearchCV": auto})
