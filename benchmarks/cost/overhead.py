"""What scheduling costs per epoch, and what a search costs above its training."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks.cost import pipelines
from benchmarks.peers.audit import AuditedClassifier
from benchmarks.shared import report
from benchmarks.shared.problems import candidates, load
from risingsearch import RisingSearch, RisingSearchCV, Scheduler
from risingsearch.policies import list_policies, policy_info
from risingsearch.search.trainable import Functions

BUDGET, MAX_EPOCHS = 270, 27
EPOCH_SECONDS = 0.2
PROBED = 120  # epochs of a search whose transforms are counted


class Scale(NamedTuple):
    """How much is measured."""

    arms: tuple[int, ...]  # of the schedulers that are timed
    budget: int  # epochs of a whole search
    repeats: int  # of a whole search
    rows: int  # of mixed columns


SCALES = {
    "quick": Scale((200,), 90, 1, 5_000),
    "default": Scale((200, 1000), BUDGET, 3, 20_000),
    "full": Scale((200, 1000), BUDGET, 7, 20_000),
}


def run(out: Path, *, scale: str, seed: int) -> None:
    """Time the scheduler, whole searches, and two jobs in flight."""
    size = SCALES[scale]
    rows = [
        scheduling(info.name, n_arms, seed)
        for n_arms in size.arms
        for info in list_policies()
        if "models" not in info.needs  # of curves that nobody has before a search
    ]
    budget = size.budget
    rows += [
        whole_search(name, budget, size.repeats, seed) for name in ("digits", "synth")
    ]
    rows += pipelines.counted(PROBED, seed)
    rows.append(pipelines.beside_prepared(size.rows, budget, size.repeats, seed))
    rows.append(two_jobs(seed))
    report.write(
        out,
        "Overhead",
        [{**row, **_verdict(row)} for row in rows],
        [
            "- `ms per epoch`: asking and telling, recorded curves, no training.",
            "- `search / bare calls`: median ratio of a search's time to that of the "
            "same partial_fit and scoring calls in a plain loop, in pairs.",
            "- `search / bare loop on prepared rows`: the same for a Pipeline, whose "
            "rows the loop is given transformed.",
            "- `... of RandomizedSearchCV`: what the search lets a transformer do, "
            "in shares of what `RandomizedSearchCV` does with the same candidates.",
            f"- `one job / two jobs`: time of 20 epochs of {EPOCH_SECONDS} s, one "
            "after the other and two threads at a time.",
        ],
    )


def _verdict(row: dict[str, Any]) -> dict[str, Any]:
    if "bar" not in row:
        return {"bar": "", "verdict": ""}
    return {"verdict": "holds" if row["value"] <= row["bar"] else "does not hold"}


def scheduling(policy: str, n_arms: int, seed: int) -> dict[str, Any]:
    """Time ask and tell per epoch, over 4 epochs an arm."""
    rng = np.random.default_rng(seed)
    top, half = rng.uniform(0.3, 1.0, n_arms), rng.uniform(1.0, 10.0, n_arms)
    budget = 4 * n_arms
    known = policy_info(policy).parameters
    params = {"reward_range": (0.0, 1.0)} if "reward_range" in known else {}
    scheduler = Scheduler(
        policy, n_arms, budget, max_epochs=50, policy_params=params, seed=seed
    )
    begin = time.perf_counter()
    while (job := scheduler.ask()) is not None:
        epochs = np.arange(job.from_epoch, job.from_epoch + job.n_epochs) + 1
        scheduler.tell(job, top[job.arm] * epochs / (epochs + half[job.arm]))
    milliseconds = 1e3 * (time.perf_counter() - begin) / scheduler.n_epochs
    what = f"{policy}, {n_arms} arms"
    return {"what": what, "measure": "ms per epoch", "value": milliseconds}


def whole_search(problem: str, budget: int, repeats: int, seed: int) -> dict[str, Any]:
    """Compare a search with the calls it makes, in a plain loop, side by side."""
    X, y, split = load(problem)
    ratios = []
    for k in range(repeats):
        search = RisingSearchCV(
            AuditedClassifier(os.devnull, seed + k),
            candidates(problem),
            budget=budget,
            max_epochs=MAX_EPOCHS,
            cv=[split],
            refit=False,
            random_state=seed + k,
        )
        begin = time.perf_counter()
        search.fit(X, y)
        spent = time.perf_counter() - begin
        ratios.append(spent / bare_calls(search, X, y, split))
    return {
        "what": f"RisingSearchCV on {problem}",
        "measure": "search / bare calls",
        "value": statistics.median(ratios),
    }


def bare_calls(search: RisingSearchCV, X: Any, y: Any, split: Any) -> float:
    """Train and score the same configurations in the same order, and no more."""
    train, valid = split
    X_train, y_train, X_valid, y_valid = X[train], y[train], X[valid], y[valid]
    classes = np.unique(y)
    models: dict[int, Any] = {}
    begin = time.perf_counter()
    for arm in search.history_["arm"]:
        if arm not in models:
            params = search.cv_results_["params"][arm]
            models[arm] = clone(search.estimator).set_params(**params)
        models[arm].partial_fit(X_train, y_train, classes=classes)
        models[arm].score(X_valid, y_valid)
    return time.perf_counter() - begin


def two_jobs(seed: int) -> dict[str, Any]:
    """Compare one epoch at a time with two."""
    from concurrent.futures import ThreadPoolExecutor

    def train(state: dict[str, float]) -> float:
        time.sleep(EPOCH_SECONDS)
        state["epoch"] += 1
        return state["top"] * (1 - 1 / (state["epoch"] + 1))

    sleeper = Functions(lambda params, seed: {"epoch": 0, **params}, train)
    candidates = [{"top": top} for top in (0.5, 0.6, 0.7, 0.8)]
    seconds = []
    for n_jobs in (1, 2):
        with ThreadPoolExecutor(n_jobs) as executor:
            search = RisingSearch(
                sleeper, candidates, budget=20, executor=executor, seed=seed
            )
            begin = time.perf_counter()
            search.run()
            seconds.append(time.perf_counter() - begin)
    return {
        "what": f"{EPOCH_SECONDS} s epochs",
        "measure": "one job / two jobs",
        "value": seconds[0] / seconds[1],
    }
