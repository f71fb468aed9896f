"""Searches of a problem: this library's, and Optuna's, all under one budget in epochs.

A trial of Optuna reports every epoch, and may be pruned after each. Several jobs are
trials that train in turns, an epoch each.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import CmaEsSampler, GPSampler, RandomSampler, TPESampler

from benchmarks.spaces.problems import Params, Problem, Scores
from risingsearch.errors import SearchFailedError
from risingsearch.search.search import RisingSearch
from risingsearch.search.trainable import Functions
from risingsearch.space import Space

PART = "part"
ARMS = 100_000  # a search opens fewer
FAILED = Scores(math.nan, math.nan)


class Found(NamedTuple):
    """The true score of the best by its reported score, after every epoch.

    The seconds are of processor time.
    """

    true: list[float]
    test: list[float]
    seconds: list[float]


class Training:
    """Trains configurations epoch by epoch, with noise; keeps the best of all."""

    def __init__(self, problem: Problem, budget: int, seed: int) -> None:
        self.problem, self.budget = problem, budget
        self._rng = np.random.default_rng([seed, 77])
        self._begun = time.process_time()
        self.seconds_elsewhere = 0.0  # of a search that another process runs
        self._seed = seed
        self._best = -math.inf
        self._scores = Scores(-math.inf, -math.inf)
        self._arms: list[Any] = []
        self._lock = Lock()
        self.found = Found([], [], [])

    def start(self, params: Mapping[str, Any], seed: int = 0) -> int:
        """Return the number of a new arm."""
        with self._lock:
            arm = len(self._arms)
            own_seed = ARMS * self._seed + arm
            self._arms.append(self.problem.epochs(dict(params), own_seed))
            return arm

    def train(self, arm: int) -> float:
        """Return the score of the arm's next epoch; raise where it has none."""
        with self._lock:
            scores = next(self._arms[arm], FAILED)
            noise = self.problem.noise * float(self._rng.standard_normal())
            score = float(scores.validation) + noise
            if score > self._best:
                self._best = score
                self._scores = scores
            self.found.true.append(float(self._scores.validation))
            self.found.test.append(float(self._scores.test))
            seconds = time.process_time() - self._begun
            self.found.seconds.append(seconds + self.seconds_elsewhere)
            if math.isnan(score):
                raise ArithmeticError("this configuration has failed, for good")
            return score

    @property
    def is_over(self) -> bool:
        """Whether the budget is spent."""
        return len(self.found.true) >= self.budget


def rising(training: Training, seed: int, n_jobs: int, *, is_open: bool = True) -> None:
    """Search the space; or as many configurations of it as the budget has epochs."""
    space: Any = Space.of(training.problem.parts)
    if not is_open:
        rng = np.random.default_rng([seed, 5])
        space = [space.sample(rng) for _ in range(training.budget)]
    functions = Functions(training.start, training.train)
    with ThreadPoolExecutor(n_jobs) as executor:
        searching = RisingSearch(
            functions,
            space,
            budget=training.budget,
            max_epochs=training.problem.n_epochs,
            seed=seed,
            executor=executor if n_jobs > 1 else None,
            deterministic=True,
        )
        while not training.is_over:
            with suppress(SearchFailedError):  # the first ten arms have all failed
                searching.run()


def listed(training: Training, seed: int, n_jobs: int) -> None:
    """Search configurations that are drawn beforehand."""
    rising(training, seed, n_jobs, is_open=False)


Choice = Callable[
    [int, int], tuple[optuna.samplers.BaseSampler, optuna.pruners.BasePruner]
]


def of_optuna(choice: Choice) -> Callable[[Training, int, int], None]:
    """Return a search by a sampler and a pruner of Optuna."""

    def search(training: Training, seed: int, n_jobs: int) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        n_epochs = training.problem.n_epochs
        sampler, pruner = choice(seed, n_epochs)
        study = optuna.create_study(
            study_name="spaces",  # Hyperband draws brackets by it
            direction="maximize",
            sampler=sampler,
            pruner=pruner,
        )
        running: list[tuple[optuna.Trial, int, list[float]]] = []
        while not training.is_over:
            while len(running) < n_jobs:
                trial = study.ask()
                running.append(
                    (trial, training.start(suggested(training.problem, trial)), [])
                )
            trial, arm, scores = running.pop(0)
            try:
                scores.append(training.train(arm))
            except ArithmeticError:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
                continue
            trial.report(scores[-1], len(scores))
            if len(scores) == n_epochs:
                study.tell(trial, max(scores))
            elif trial.should_prune():
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            else:
                running.insert(n_jobs - 1, (trial, arm, scores))

    return search


def suggested(problem: Problem, trial: optuna.Trial) -> Params:
    """Return a configuration as a sampler suggests it."""
    part = 0
    if len(problem.parts) > 1:
        part = trial.suggest_categorical(PART, range(len(problem.parts)))
    space = problem.parts[part]
    prefix = f"{part} " if len(problem.parts) > 1 else ""
    return {
        name: trial._suggest(prefix + name, kind)  # any distribution, by one call
        for name, kind in space.items()
    }


def hyperband(n_epochs: int) -> HyperbandPruner:
    """Return Hyperband over the epochs of a trial."""
    return HyperbandPruner(min_resource=1, max_resource=n_epochs, reduction_factor=3)


OPEN, LISTED = "risingsearch", "risingsearch, drawn beforehand"
CMA_ES = "CMA-ES"  # for which Optuna needs another package
METHODS: dict[str, Callable[[Training, int, int], None]] = {
    OPEN: rising,
    LISTED: listed,
    "TPE": of_optuna(lambda s, n: (TPESampler(seed=s), NopPruner())),
    "TPE + median": of_optuna(lambda s, n: (TPESampler(seed=s), MedianPruner())),
    "TPE + Hyperband": of_optuna(lambda s, n: (TPESampler(seed=s), hyperband(n))),
    "GPSampler": of_optuna(lambda s, n: (GPSampler(seed=s), NopPruner())),
    "random": of_optuna(lambda s, n: (RandomSampler(seed=s), NopPruner())),
}
if find_spec("cmaes"):
    METHODS[CMA_ES] = of_optuna(lambda s, n: (CmaEsSampler(seed=s), NopPruner()))


def search(method: str, problem: Problem, budget: int, seed: int, n_jobs: int) -> Found:
    """Return what a method finds."""
    training = Training(problem, budget, seed)
    METHODS[method](training, seed, n_jobs)
    return training.found
