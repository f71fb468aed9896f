"""One game on IMDB: learners trained live, alone and by the product's own search.

A pull: an arm predicts the next reviews of its own random order, then learns them one
by one. What it scored is the reward. The same learner trained alone from the same seed
sees the same reviews, which makes the regret exact.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.cure_ucb.imdb import text
from benchmarks.papers.cure_ucb.imdb.learners import Learner, make_learner
from benchmarks.papers.cure_ucb.imdb.settings import paper_policies, pull_size
from risingsearch import RisingSearch
from risingsearch.policies import policy_info, resolve_policy

POLICIES = ("cure-ucb", "r-ed-ucb", "sw-ucb", "round-robin")


class Game(NamedTuple):
    """Which learners play, how many reviews a pull takes, and how many there are."""

    library: str
    arms: tuple[str, ...]
    batch: int
    reviews: int
    orders: int
    searched: bool = True  # else each learner is trained alone, and that is all

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.library}, {pull_size(self.batch)}"

    @property
    def n_pulls(self) -> int:
        """Pulls in all."""
        return self.reviews // self.batch


class Reading:
    """A learner, and how far it has read its own order of the reviews."""

    def __init__(self, learner: Learner, order: NDArray[np.int64]) -> None:
        self.learner = learner
        self.order = order
        self.seen = 0


class OnlineLearning:
    """What ``RisingSearch`` trains: a pull predicts first, then learns."""

    def __init__(self, reviews: text.Reviews, library: str, batch: int) -> None:
        self.reviews = reviews
        self.library = library
        self.batch = batch

    def start(self, params: Mapping[str, Any], seed: int) -> Reading:
        """Return a learner that has seen nothing, and its order of the reviews."""
        n_reviews, n_words = self.reviews.counts.shape
        learner = make_learner(self.library, params["arm"], n_words, seed)
        return Reading(learner, np.random.default_rng(seed).permutation(n_reviews))

    def train(self, state: Reading) -> float:
        """Return the share of right predictions on the next reviews; learn them."""
        rows = state.order[state.seen : state.seen + self.batch]
        if len(rows) < self.batch:
            raise StopIteration
        counts = self.reviews.counts[rows].astype(float)
        labels = self.reviews.labels[rows]
        right = float(np.mean(state.learner.predict(counts) == labels))
        state.learner.learn(counts, labels)
        state.seen += self.batch
        return right


class Played(NamedTuple):
    """What came out of a game from one seed."""

    alone: NDArray[np.float64]  # (n_arms, n_pulls)
    rewards: NDArray[np.float64]  # (n_policies,), summed
    pulls: NDArray[np.int64]  # (n_policies, n_arms)
    same: int  # of the policies: every arm scored as it does alone
    seconds: float  # of processor time

    @property
    def best(self) -> int:
        """The arm that collects most alone."""
        return int(self.alone.sum(axis=1).argmax())

    @property
    def regret(self) -> NDArray[np.float64]:
        """What each policy collected less than the best arm alone does."""
        most: float = self.alone[self.best].sum()
        return most - self.rewards


def play(game: Game, seed: int, features: Path) -> Played:
    """Train every arm alone, then let every policy search, from the same seed."""
    begin = time.process_time()
    trainable = OnlineLearning(_reviews(features), game.library, game.batch)
    candidates = [{"arm": arm} for arm in game.arms]

    def search(policy: str = "cure-ucb", **params: Any) -> RisingSearch:
        if "reward_range" in policy_info(resolve_policy(policy)).parameters:
            params = {"reward_range": (0.0, 1.0)} | params
        return RisingSearch(
            trainable,
            candidates,
            policy=policy,
            policy_params=params,
            budget=game.n_pulls,
            error_score="raise",
            seed=seed,
            shuffle=False,
        )

    seed_of = search().seed_of  # the same for every policy
    alone = np.empty((len(candidates), game.n_pulls))
    for arm, params in enumerate(candidates):
        state = trainable.start(params, seed_of(arm))
        alone[arm] = [trainable.train(state) for _ in range(game.n_pulls)]
    chosen = live_policies(game.batch).values() if game.searched else ()
    found = [search(name, **params).run() for name, params in chosen]
    return Played(
        alone,
        rewards=np.array([sum(result.history["score"]) for result in found]),
        pulls=np.array([[arm.epochs for arm in result.arms] for result in found]),
        same=sum(
            all(
                np.array_equal(scores, alone[arm, : len(scores)])
                for arm, scores in result.curves.items()
            )
            for result in found
        ),
        seconds=time.process_time() - begin,
    )


def live_policies(batch: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the policies that search: some of the paper's, and the default."""
    given = paper_policies(batch)
    return {name: given[name] for name in POLICIES} | {"auto": ("auto", {})}


def play_all(
    to_play: Iterable[Game], seed: int, features: Path, jobs: int | None
) -> dict[Game, list[Played]]:
    """Play games, each from as many seeds as it has orders, in processes."""
    tasks = [(game, seed + k, features) for game in to_play for k in range(game.orders)]
    jobs = jobs or os.cpu_count() or 1
    print(f"{len(tasks)} live games, {jobs} at a time", file=sys.stderr)
    if jobs == 1:
        found = list(starmap(play, tasks))
    else:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
            found = list(pool.map(play, *zip(*tasks, strict=True)))
    played: dict[Game, list[Played]] = {}
    for (game, *_), one in zip(tasks, found, strict=True):
        played.setdefault(game, []).append(one)
    return played


@cache
def _reviews(features: Path) -> text.Reviews:
    return text.load(features)
