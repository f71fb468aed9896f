"""Runs of a PyTorch training loop, which wait on the device or in memory."""

import gc
import re
import weakref
from collections.abc import Mapping
from typing import Any

from torch import nn

from risingsearch.arms import Params
from risingsearch.errors import SetupError
from risingsearch.integrations.torch.attributes import Attributes
from risingsearch.integrations.torch.random_states import (
    States,
    kept_random_states,
    random_states,
    seed_all,
    set_random_states,
)
from risingsearch.integrations.torch.snapshots import is_value, restore, snapshot
from risingsearch.search.frameworks import params_as_text

Objects = dict[str, Any]
"""The objects that ``build`` has returned, by name."""
Checkpoint = dict[str, Any]
"""All that a run resumes from."""
OWN = ("params", "device", "epoch")


class TorchRun:
    """One run of a training loop: the argument of its functions.

    The objects that ``build`` returned are attributes, under their names. Numbers,
    texts, tensors and arrays among them, and containers of these, may be replaced, and
    are saved like all the others. Nothing else can be set.

    Attributes
    ----------
    device : torch.device
        Where to train.
    epoch : int
        Epochs that the run has trained: 0 while the first one trains.

    Parameters
    ----------
    owner : TorchTrainable
        The trainable that makes the run.
    params : dict
        The parameters of the arm.
    seed : int
        The seed of the arm.

    Examples
    --------
    >>> import torch
    >>> from risingsearch.integrations.torch import TorchTrainable
    >>> def build(params, device):
    ...     return {"weight": torch.tensor(params["first"], device=device)}
    >>> def train_epoch(run):
    ...     run.weight += 1.0
    >>> def validate(run):
    ...     return float(run.weight)
    >>> trainable = TorchTrainable(build, train_epoch, validate, device="cpu")
    >>> run = trainable.start({"first": 0.5}, seed=0)
    >>> trainable.train(run), run.epoch, run.params
    (1.5, 1, {'first': 0.5})
    """

    def __init__(self, owner: Any, params: Params, seed: int):
        self._objects: Objects | None = None
        self.params = params
        self.device = owner.torch_device
        self.epoch = 0
        self._owner = owner  # a TorchTrainable, whose module imports this one
        self._seed = seed
        self._replaced: set[str] = set()
        self._random: States = {}
        self._parked: Checkpoint | None = None
        self._attributes: Attributes | None = None  # as they were built

    def __del__(self) -> None:
        self._leave_device()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._objects_with(name)[name]

    def __setattr__(self, name: str, value: object) -> None:
        if name in OWN or name.startswith("_"):
            super().__setattr__(name, value)
            return
        objects = self._objects_with(name)
        if value is objects[name]:  # an object changed in place, as by +=
            return
        if not (is_value(value) and is_value(objects[name])):
            msg = (
                f"{name!r} cannot be replaced: only numbers, texts, tensors, arrays, "
                "and lists, tuples and dicts of these can be; change it in place"
            )
            raise AttributeError(msg, name=name)
        objects[name] = value
        self._replaced.add(name)

    @property
    def is_live(self) -> bool:
        """Whether its objects are on the device."""
        return self._objects is not None

    def train(self) -> object:
        """Train one epoch and return the result of ``validate``."""
        self.revive()
        with kept_random_states():
            set_random_states(self._random)
            self._owner.train_epoch(self)
            self.epoch += 1
            score = self._owner.validate(self)
            self._random = random_states()
        return score

    def checkpoint(self) -> Checkpoint:
        """Return all that the run resumes from: numbers, texts and CPU tensors."""
        if self._parked is not None:
            return self._parked
        return {
            "params": params_as_text(self.params),
            "seed": self._seed,
            "epoch": self.epoch,
            "objects": snapshot(self._objects or {}),
            "attributes": self._attributes.changes() if self._attributes else [],
            "replaced": sorted(self._replaced),
            "random": self._random,
        }

    def resume_from(self, checkpoint: Checkpoint) -> None:
        """Wait in memory at a checkpoint; the objects are built when needed."""
        self.epoch = checkpoint["epoch"]
        self._replaced = set(checkpoint["replaced"])
        self._random = checkpoint["random"]
        self._parked = checkpoint
        self._leave_device()

    def revive(self) -> Objects:
        """Return the objects, built and restored if they are not on the device."""
        self._owner.residents.make_room(self)
        if self._objects is not None:
            return self._objects
        with kept_random_states():
            seed_all(self._seed)
            objects = self._built()
            attributes = Attributes(objects)
            if self._parked is None:
                self._random = random_states()
            else:
                restore(objects, self._parked["objects"], self.device, self._replaced)
                attributes.restore(self._parked.get("attributes", []), self.device)
        self._objects = objects
        self._attributes = attributes
        self._parked = None
        return objects

    def _leave_device(self) -> None:
        """Release the objects; if runs are limited, their memory is free at once."""
        # Cycles, as of modules whose hooks are their own methods, would keep it.
        objects, self._objects = self._objects, None
        self._attributes = None
        if objects is None or self._owner.residents.max_resident is None:
            return
        weights = [
            weakref.ref(weight)
            for module in objects.values()
            if isinstance(module, nn.Module)
            for weight in module.parameters()
        ]
        del objects
        if any(weight() is not None for weight in weights):
            gc.collect()

    def _objects_with(self, name: str) -> Objects:
        objects = self.revive()
        if name not in objects:
            msg = (
                f"this run has no {name!r}: build has returned {sorted(objects)}; let "
                "build return all that is kept from one epoch to the next"
            )
            raise AttributeError(msg, name=name)
        return objects

    def _built(self) -> Objects:
        objects = self._owner.build(dict(self.params), self.device)
        if not isinstance(objects, Mapping) or not all(
            isinstance(name, str) and re.fullmatch(r"[^\W\d_]\w*", name)
            for name in objects
        ):
            raise SetupError(
                "build must return a dict of the run's objects by name, such as "
                f"{{'model': ..., 'optimizer': ...}}; got {objects!r:.200}"
            )
        taken = sorted(objects.keys() & {*dir(TorchRun), *OWN})
        if taken:
            raise SetupError(
                f"build names objects {taken}, which a run uses itself: rename them"
            )
        return dict(objects)


class Residents:
    """Keeps ``max_resident`` runs on the device (None: all), and others in memory."""

    def __init__(self, max_resident: int | None) -> None:
        self.max_resident = max_resident
        # The least recently used run comes first.
        self._live = weakref.WeakKeyDictionary[TorchRun, None]()

    def make_room(self, run: TorchRun | None) -> None:
        """Park the least recently used runs, so that this one may be on the device."""
        if run is not None:
            self._live.pop(run, None)
            self._live[run] = None
        while self.max_resident is not None:
            if len(self._live) <= max(self.max_resident, int(run is not None)):
                break
            oldest = next(iter(self._live))
            if oldest.is_live:  # then it leaves the device, and waits in memory
                oldest.resume_from(oldest.checkpoint())
            self._live.pop(oldest)
