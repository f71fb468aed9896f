"""Rules that every trainable must keep: one small check per rule."""

from __future__ import annotations

import copy
import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from risingsearch.arms import Configuration
from risingsearch.checks import checked_int
from risingsearch.search.trainable import (
    checked_trainable,
    dump,
    has_method,
    restore,
)
from risingsearch.search.training import checked_score
from risingsearch.testing.policies import Result, require


def check_trainable(
    trainable: object,
    params: Configuration,
    seed: int = 0,
    epochs: int = 4,
) -> None:
    """Check that a trainable can be paused, moved and repeated, as a search does.

    Some short runs with the same parameters, compared score for score and bit for bit:
    paused ones with one that nothing has interrupted. They train ``epochs * (epochs +
    17) / 2`` epochs, and ``epochs`` more where the trainable has an
    ``uninterrupted(params, seed, n_epochs)`` that returns the results of one training
    without pauses, as those for Lightning and Hugging Face have.

    Parameters
    ----------
    trainable : Trainable
        An object with ``start(params, seed)`` and ``train(state)``, optionally ``save``
        and ``load``, as ``RisingSearch`` takes it.
    params : mapping of str to object
        The parameters of one arm.
    seed : int, default 0
        Its seed; a second arm gets the next one.
    epochs : int, default 4
        Epochs of a run, at least 2. An arm may end by itself before.

    Raises
    ------
    AssertionError
        If the trainable breaks a rule; the message says which one, and where.

    Examples
    --------
    >>> import random
    >>> from risingsearch.search.trainable import Functions
    >>> def start(params, seed):
    ...     return random.Random(seed)
    >>> def train(state):
    ...     return state.random()
    >>> check_trainable(Functions(start, train), {})
    >>> check_trainable(Functions(start, lambda state: random.random()), {})
    Traceback (most recent call last):
    ...
    AssertionError: Functions breaks the rule "the seed decides, not the global...
    """
    epochs = checked_int("epochs", epochs, 2)
    every = range(1, epochs + 1)
    arm = _ArmUnderTest(trainable, params, seed)
    unused = copy_of(trainable)
    other = arm._replace(seed=seed + 1)
    with _global_random_kept():
        with _rule(arm, "start and train work, and scores are finite numbers"):
            expected = list(arm.trained(arm.start(), every))
            require(expected, "train raised StopIteration in its first epoch")
        if has_method(trainable, "uninterrupted"):
            with _rule(arm, "a paused training equals one that nothing interrupts"):
                whole = arm.scores_uninterrupted(epochs)
                _require_same_scores(whole, expected, "when trained epoch by epoch")
        with _rule(arm, "the same seed gives the same scores"):
            first = arm.scores_apart(every, global_seed=1)
            again = arm.scores_apart(every, global_seed=1)
            _require_same_scores(first, again, "when started again")
        with _rule(arm, "the seed decides, not the global random states"):
            scores = arm.scores_apart(every, global_seed=2)
            _require_same_scores(first, scores, "with random and numpy seeded anew")
        with _rule(arm, "saving a state leaves it as it is"):
            scores, saved = arm.scores_and_checkpoints(every)
            _require_same_scores(expected, scores, "when saved after every epoch")
        with _rule(arm, "a state that was saved and loaded continues as before"):
            for k, checkpoint in enumerate(saved, start=1):
                scores = [*expected[:k], *arm.trained(arm.load(checkpoint), every[k:])]
                what = f"when saved after epoch {k} and loaded"
                _require_same_scores(expected, scores, what)
        with _rule(arm, "a state is all that another process needs"):
            scores = arm.scores_elsewhere(unused, every)
            what = "when saved and loaded by another trainable after every epoch"
            _require_same_scores(expected, scores, what)
        with _rule(arm, "arms that train in turns leave each other alone"):
            alone = list(other.trained(other.start(), every))
            turns = [a.trained(a.start(), every) for a in (arm, other)]
            together = zip(*zip_longest(*turns), strict=True)
            for scores, in_turns in zip((expected, alone), together, strict=True):
                _require_same_scores(
                    scores,
                    [score for score in in_turns if score is not None],
                    "in turns with another arm",
                )


class _ArmUnderTest(NamedTuple):
    trainable: Any
    params: Configuration
    seed: int

    def start(self) -> object:
        trainable = _tried("", checked_trainable, self.trainable)
        return _tried(
            "start",
            trainable.start,
            dict(self.params),
            self.seed,
        )

    def load(self, checkpoint: bytes) -> object:
        return _tried(
            "loading the state",
            restore,
            self.trainable,
            checkpoint,
        )

    def trained(
        self,
        state: object,
        epochs: Iterable[int],
    ) -> Iterator[float]:
        """Train these epochs, or until the arm ends by itself; yield their scores."""
        for epoch in epochs:
            try:
                result = self.trainable.train(state)
            except StopIteration:
                return
            except Exception as error:
                raise AssertionError(
                    f"train raised {error!r} in epoch {epoch}"
                ) from error
            score = _tried("", checked_score, result)[0]
            require(math.isfinite(score), f"epoch {epoch} scored {score}")
            yield score

    def scores_apart(
        self,
        epochs: Iterable[int],
        global_seed: int,
    ) -> list[float]:
        """Train with the global random states seeded before every call."""
        _seed_globally(global_seed)
        state = self.start()
        scores: list[float] = []
        _seed_globally(global_seed)
        for score in self.trained(state, epochs):
            scores.append(score)
            _seed_globally(global_seed + len(scores))
        return scores

    def scores_and_checkpoints(
        self, epochs: Iterable[int]
    ) -> tuple[list[float], list[bytes]]:
        """Train, and save the state after every epoch."""
        state = self.start()
        scores: list[float] = []
        saved: list[bytes] = []
        for score in self.trained(state, epochs):
            scores.append(score)
            saved.append(_tried("saving the state", dump, self.trainable, state))
        return scores, saved

    def scores_uninterrupted(self, n_epochs: int) -> list[float]:
        """Return the scores of the trainable's own uninterrupted training."""
        train = self.trainable.uninterrupted
        results = _tried(
            "uninterrupted",
            train,
            dict(self.params),
            self.seed,
            n_epochs,
        )
        return [_tried("", checked_score, result)[0] for result in results]

    def scores_elsewhere(
        self,
        unused: object,
        epochs: Iterable[int],
    ) -> list[float]:
        """Train every epoch with a copy of an unused trainable, as processes do."""
        state = self.start()
        scores: list[float] = []
        arm = self
        for epoch in epochs:
            scores.extend(arm.trained(state, [epoch]))
            if len(scores) < epoch:
                break
            saved = _tried(
                "saving the state",
                dump,
                arm.trainable,
                state,
            )
            arm = self._replace(trainable=copy_of(unused))
            state = arm.load(saved)
        return scores


def copy_of(trainable: Result) -> Result:
    """Return a copy of a trainable as it is now; itself if it cannot be copied."""
    try:
        return copy.deepcopy(trainable)
    except Exception:  # of one that holds a lock or a connection
        return trainable


@contextmanager
def _rule(arm: _ArmUnderTest, rule: str) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        raise AssertionError(
            f'{type(arm.trainable).__name__} breaks the rule "{rule}": {error}'
        ) from error


def _tried(
    what: str,
    function: Callable[..., Result],
    *args: object,
) -> Result:
    try:
        return function(*args)
    except Exception as error:
        msg = f"{what} raised {error!r}" if what else str(error)
        raise AssertionError(msg) from error


def _require_same_scores(
    expected: list[float],
    scores: list[float],
    what: str,
) -> None:
    for epoch, (before, after) in enumerate(
        zip(expected, scores, strict=False), start=1
    ):
        message = f"epoch {epoch} scored {before!r} at first, and {after!r} {what}"
        require(before == after, message)
    n = len(expected)
    now = len(scores)
    require(n == now, f"it ended after {n} epochs at first, and {now} {what}")


def _seed_globally(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002, it is what is checked
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


@contextmanager
def _global_random_kept() -> Iterator[None]:
    states = random.getstate(), np.random.get_state()  # noqa: NPY002
    torch = sys.modules.get("torch")
    torch_state = torch and torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        if torch:
            torch.set_rng_state(torch_state)
