"""Trainables, their seeds, and their states as bytes."""

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from risingsearch.arms import Configuration
from risingsearch.checks import call_problem, checked_float
from risingsearch.errors import NotTrainableError
from risingsearch.space import Configurations, Space
from risingsearch.storage.files import blaming_the_disk

TAKES = {"start": "params, seed", "train": "state"}
MAY_TAKE = {"save": "state, path", "load": "path"}
CHECKPOINT = "checkpoint"
_ROOM = (
    "make room there, raise its quota or limit, or let TMPDIR name another folder, and "
    "resume"
)


State = Any
"""A model in training, as ``start`` returns it."""


class Trainable(Protocol):
    """Anything that trains: two methods, and two more to keep its state elsewhere.

    ``start(params, seed) -> state`` builds a model that has seen nothing.
    ``train(state) -> score`` trains it one epoch more, in place, and returns its
    validation score: a number, or a mapping with a ``"score"`` and other metrics.
    Raising ``StopIteration`` says that there is nothing more to train, with the reason
    as text if there is one. Under a budget in cost the mapping has a ``"cost"`` too,
    that of the epoch.

    ``train_epochs(state, n_epochs) -> list`` is optional, for training several
    epochs in one call: it returns the results of ``train`` for each, or fewer at the
    end.

    ``save(state, path)`` and ``load(path) -> state`` are optional, together: they write
    and read one file. Without them states are pickled, at every new best score and
    where they travel to another process; load only files of people you
    trust, because unpickling can run any code.

    ``gpus`` is optional: how many GPUs a job of it uses, or which share of one. By
    default 1; it counts under a budget in GPU-hours alone.

    ``trains_anew`` is optional: True if every epoch trains anew, on more of a resource
    than the one before; see ``Scheduler``.
    """

    def start(self, params: Configuration, seed: int) -> State:
        """Return a state that has seen nothing."""
        ...

    def train(self, state: State) -> float | Configuration:
        """Train one epoch more and return the validation score."""
        ...


@dataclass(frozen=True, slots=True)
class Functions:
    """Functions as a trainable.

    Parameters
    ----------
    start, train, save, load : callable
        The methods of a ``Trainable``; ``save`` and ``load`` are optional.
    gpus : float, default 1.0
        How many GPUs a job uses, for a budget in GPU-hours.

    Examples
    --------
    >>> def start(params, seed):
    ...     return {"epochs": 0, **params}
    >>> def train(state):
    ...     state["epochs"] += 1
    ...     return 1 - 1 / (state["rate"] * state["epochs"] + 1)
    >>> counting = Functions(start, train)
    >>> counting.train(counting.start({"rate": 1.0}, seed=0))
    0.5
    """

    start: Callable[[Configuration, int], State]
    train: Callable[[State], float | Configuration]
    save: Callable[[State, str], None] | None = None
    load: Callable[[str], State] | None = None
    gpus: float = 1.0


def checked_trainable(trainable: Any) -> Trainable:
    """Return the trainable; raise a NotTrainableError if a method is missing."""
    if isinstance(trainable, type):
        raise NotTrainableError(
            f"{trainable.__name__} is a class: give an instance of it"
        )
    for name in TAKES:
        if not callable(getattr(trainable, name, None)):
            raise NotTrainableError(
                f"{trainable!r} has no {name}: a trainable has start(params, seed) and "
                "train(state); wrap plain functions in Functions(start, train)"
            )
    for name, takes in (TAKES | MAY_TAKE).items():
        method = getattr(trainable, name, None)
        if callable(method) and (why := call_problem(method, takes)):
            raise NotTrainableError(
                f"{name} of {type(trainable).__name__} must take ({takes}): {why}"
            )
    if has_method(trainable, "save") != has_method(trainable, "load"):
        raise NotTrainableError(
            f"{trainable!r} has one of save and load: give both or neither"
        )
    checked_float("gpus of the trainable", gpus_of(trainable), 0.0, open_low=True)
    return trainable  # type: ignore[no-any-return]


def gpus_of(trainable: object) -> float:
    """Return how many GPUs a job of a trainable uses."""
    gpus: float = getattr(trainable, "gpus", 1.0)
    return gpus


def trains_anew(trainable: object) -> bool:
    """Return whether every epoch of a trainable trains anew."""
    anew: bool = getattr(trainable, "trains_anew", False)
    return anew


def dump(trainable: Any, state: State) -> bytes:
    """Return the state as bytes, by the trainable's own ``save`` or by pickle."""
    if not has_method(trainable, "save"):
        name = f"the state, a {type(state).__name__},"
        try:
            with blaming_the_disk(name, "make room, and resume", always=()):
                return pickle.dumps(state, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise NotTrainableError(
                f"{name} cannot be pickled ({error}): give the trainable "
                "save(state, path) and load(path)"
            ) from error
    with temporary_folder() as folder:
        path = folder / CHECKPOINT
        trainable.save(state, str(path))
        return path.read_bytes()


def restore(trainable: Any, checkpoint: bytes) -> State:
    """Return the state that ``dump`` wrote."""
    if not has_method(trainable, "load"):
        return pickle.loads(checkpoint)
    with temporary_folder() as folder:
        path = folder / CHECKPOINT
        path.write_bytes(checkpoint)
        return trainable.load(str(path))


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield a new folder for a checkpoint; a RunDirError if no more can be written."""
    with blaming_the_disk("a temporary folder", _ROOM):
        made = tempfile.TemporaryDirectory(prefix="risingsearch-")
    with made as name:
        folder = Path(name)
        with blaming_the_disk(folder.parent, _ROOM, folder, always=()):
            yield folder


def has_method(trainable: object, name: str) -> bool:
    """Return whether a trainable has an optional method."""
    return callable(getattr(trainable, name, None))


class Seeds:
    """All seeds of a search, derived from one entropy."""

    def __init__(self, entropy: int | None) -> None:
        root = np.random.SeedSequence(entropy)
        self.entropy = root.entropy
        self._order, policy, self._arms, self._candidates = root.spawn(4)
        self.of_policy = int(policy.generate_state(1)[0])

    def order(self, n_arms: int) -> np.ndarray[Any, Any]:
        """Return the order in which arms are opened."""
        return np.random.default_rng(self._order).permutation(n_arms)

    def of_candidates(self) -> np.random.Generator:
        """Return the generator that configurations are drawn with."""
        return np.random.default_rng(self._candidates)

    def more_configurations(
        self, space: Space, known: Sequence[Configuration]
    ) -> Configurations:
        """Return as many configurations again as are known, or all others."""
        rng = np.random.default_rng(_child(self._candidates, len(known)))
        return space.draw(len(known), rng, known)

    def of_arm(self, arm: int) -> int:
        """Return the seed of an arm, whenever it is opened."""
        return int(_child(self._arms, arm).generate_state(1)[0])

    def of_repeat(self, arm: int, number: int) -> int:
        """Return the seed of an arm that is trained again."""
        return int(_child(_child(self._arms, arm), number).generate_state(1)[0])


def _child(seeds: np.random.SeedSequence, n: int) -> np.random.SeedSequence:
    return np.random.SeedSequence(seeds.entropy, spawn_key=(*seeds.spawn_key, n))
