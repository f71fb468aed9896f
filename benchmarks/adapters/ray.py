"""RisingScheduler in Ray Tune beside RisingSearch: the peers' digits, two at a time.

Epochs are counted inside the model. The clock runs during ``Tuner.fit``: it counts the
start of Ray's actors, and not that of its cluster.
"""

from __future__ import annotations

import logging
import os
import pickle
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray import tune

from benchmarks.peers import audit
from benchmarks.peers.jobs import Job, Task
from benchmarks.shared import report
from benchmarks.shared.problems import BUDGET, MAX_EPOCHS, load
from risingsearch import Functions, RisingSearch
from risingsearch.integrations.ray import RisingScheduler

SEEDS = {"quick": 2, "default": 5, "full": 10}
PROBLEM = "digits"
N_JOBS = 2
NEAR = 0.005


class Trial(tune.Trainable):  # type: ignore[misc]
    """A configuration; a step is an epoch."""

    def setup(self, config: dict[str, Any], task: Task | None = None) -> None:
        self.task = task or self.task
        settings = self.task.candidates[config["candidate"]]
        self.model, self.epoch = self.task.estimator.set_params(**settings), 0

    def step(self) -> dict[str, Any]:
        self.epoch += 1
        return {"score": train(self.task, self.model), "epoch": self.epoch}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        kept = pickle.dumps((self.model, self.epoch))
        Path(checkpoint_dir, "model.pickle").write_bytes(kept)

    def load_checkpoint(self, checkpoint_dir: str) -> None:
        kept = Path(checkpoint_dir, "model.pickle").read_bytes()
        self.model, self.epoch = pickle.loads(kept)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.setup(new_config)
        return True


def train(task: Task, model: Any) -> float:
    """Train a model one epoch more, and score it."""
    fitted, valid = task.split
    model.partial_fit(task.X[fitted], task.y[fitted])
    return float(model.score(task.X[valid], task.y[valid]))


def run(out: Path, *, scale: str, seed: int) -> None:
    """Search with both, seed by seed."""
    os.environ["TUNE_DISABLE_AUTO_CALLBACK_LOGGERS"] = "1"
    ray.init(
        address="local",
        num_cpus=N_JOBS,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        runtime_env={"env_vars": {"PYTHONPATH": str(Path(__file__).parents[2])}},
    )
    data = load(PROBLEM)
    rows = []
    for number in range(seed, seed + SEEDS[scale]):
        with tempfile.TemporaryDirectory() as folder:
            logs = [Path(folder, name) for name in ("ray", "own")]
            job = Job(PROBLEM, [], [number], folder)
            tasks = [Task(job, number, log, *data) for log in logs]
            rows.append({"seed": number, **in_ray(tasks[0]), **on_threads(tasks[1])})
    ray.shutdown()
    near = sum(abs(row["score"] - row["RisingSearch"]) <= NEAR for row in rows)
    notes = (
        f"- {near} of {len(rows)} scores are within {NEAR} of RisingSearch with "
        f"{N_JOBS} jobs in flight.\n"
        "- `overhead`: seconds of `fit`, minus half of those that the actors trained."
    )
    report.write(out, f"Ray Tune, {PROBLEM}, {BUDGET} epochs", rows, [notes])


def order(task: Task) -> list[int]:
    """Return the configurations in random order, the same for both."""
    rng = np.random.default_rng(task.seed)
    return [int(i) for i in rng.permutation(len(task.candidates))]


def in_ray(task: Task) -> dict[str, Any]:
    """Search with Ray Tune."""
    scheduler = RisingScheduler(BUDGET, MAX_EPOCHS, n_jobs=N_JOBS, seed=task.seed)
    tuner = tune.Tuner(
        tune.with_parameters(Trial, task=task),
        param_space={"candidate": tune.grid_search(order(task))},
        tune_config=tune.TuneConfig(
            metric="score", mode="max", reuse_actors=True, scheduler=scheduler
        ),
        run_config=tune.RunConfig(
            name="ray", storage_path=str(task.log.parent / "results"), verbose=0
        ),
    )
    begin = time.perf_counter()
    results = tuner.fit()
    seconds = time.perf_counter() - begin
    trained = sum(result.metrics.get("time_total_s", 0.0) for result in results)
    return {
        "score": scheduler.best_score,
        "audited epochs": audit.n_epochs(task.log),
        "own count": scheduler.n_epochs,
        "seconds": round(seconds, 1),
        "overhead": round(seconds - trained / N_JOBS, 1),
    }


def on_threads(task: Task) -> dict[str, Any]:
    """Search with as many threads."""
    candidates = [task.candidates[i] for i in order(task)]

    def start(params: dict[str, Any], seed: int) -> Any:
        return task.estimator.set_params(**params)

    with ThreadPoolExecutor(N_JOBS) as executor:
        search = RisingSearch(
            Functions(start, lambda model: train(task, model)),
            candidates,
            budget=BUDGET,
            max_epochs=MAX_EPOCHS,
            executor=executor,
            n_jobs=N_JOBS,
            deterministic=True,
            shuffle=False,
            proposer=None,
            seed=task.seed,
        )
        return {"RisingSearch": search.run().best_score}
