"""A search that trackers follow, and that another process may be killed in.

As a script, ``searching.py KIND`` stops once, continues, and kills itself.
"""

import os
import signal
import sys
from pathlib import Path

from risingsearch import Functions, RisingSearch
from risingsearch.integrations import trackers


def mlflow_uri():
    """Return where MLflow keeps its runs: it remembers the database of each URI."""
    return f"sqlite:///{Path.cwd()}/runs.db"


TRACKERS = {
    "mlflow": lambda: trackers.MLflowTracker(mlflow_uri(), experiment="digits"),
    "tensorboard": trackers.TensorBoardTracker,
    "wandb": lambda: trackers.WandbTracker(mode="offline"),
}
BUDGET = 24


def start(params, seed):
    return {"epochs": 0, **params}


def train(state):
    state["epochs"] += 1
    if state["rate"] < 0:
        raise ValueError("the rate is negative")
    return {"score": 1 - state["rate"] ** state["epochs"], "loss": 1 / state["epochs"]}


def a_search(*callbacks, rates=(0.9, 0.5, 0.7), **options):
    return RisingSearch(
        Functions(start, train),
        [{"rate": rate, "kind": "plain"} for rate in rates],
        **{"budget": BUDGET, "max_epochs": 12, "seed": 0, "metric": "accuracy"}
        | options,
        callbacks=callbacks,
    )


def scores(result):
    """Return what a store should have: the scores by step, by arm."""
    return {k: dict(enumerate(curve, start=1)) for k, curve in result.curves.items()}


def after(n_epochs, do):
    """Return a callback that does something after so many epochs."""
    epochs = []

    def callback(epoch):
        epochs.append(epoch)
        if len(epochs) == n_epochs:
            do(epoch)

    return callback


def kill(epoch):
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    tracker = TRACKERS[sys.argv[1]]()
    stop = after(3, lambda epoch: epoch.stop())
    search = a_search(tracker, stop, after(6, kill), run_dir="run")
    search.run()  # all of it is logged
    search.run()  # killed after 6 epochs
