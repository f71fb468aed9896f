"""A PyTorch training loop as a trainable."""

from __future__ import annotations

import io
import json
import multiprocessing
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from risingsearch.checks import checked_int
from risingsearch.errors import NotTrainableError, SetupError
from risingsearch.integrations.torch.random_states import (
    alone,
    kept_random_states,
    random_states,
    seed_all,
    set_random_states,
)
from risingsearch.integrations.torch.residents import Residents
from risingsearch.integrations.torch.snapshots import is_value, restore, snapshot
from risingsearch.json_values import as_json, from_json

VERSION = 1
RESIDENT = 2
"""Runs on an accelerator at the same time, where nothing else is said."""


class TorchRun:
    """One run of a training loop: what its three functions are given.

    The objects that ``build`` returned are attributes, under their names. Numbers,
    texts, tensors and arrays among them, and containers of these, may be set anew, and
    are saved like all the others. Nothing else can be set.

    Attributes
    ----------
    params : dict
        The parameters of the arm.
    device : torch.device
        Where to train.
    epoch : int
        Epochs behind the run: 0 when the first one trains.
    """

    __slots__ = (
        "__weakref__",
        "_file",
        "_objects",
        "_owner",
        "_parked",
        "_random",
        "_seed",
        "_set_anew",
        "device",
        "epoch",
        "params",
    )

    def __init__(self, owner: TorchTrainable, params: dict[str, Any], seed: int):
        self.params = params
        self.device = owner.torch_device
        self.epoch = 0
        self._owner = owner
        self._seed = seed
        self._objects: dict[str, Any] | None = None
        self._set_anew: set[str] = set()
        self._random: dict[str, Any] = {}
        self._parked: dict[str, Any] | None = None
        self._file: Path | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._objects_with(name)[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in TorchRun.__slots__:
            super().__setattr__(name, value)
            return
        objects = self._objects_with(name)
        if value is objects[name]:  # an object changed in place, as by +=
            return
        if not (is_value(value) and is_value(objects[name])):
            msg = (
                f"{name!r} cannot be set anew: only numbers, texts, tensors, arrays, "
                "and lists, tuples and dicts of these can be; change it in place"
            )
            raise AttributeError(msg, name=name)
        objects[name] = value
        self._set_anew.add(name)

    @property
    def is_live(self) -> bool:
        """Whether its objects are there, on the device."""
        return self._objects is not None

    @property
    def is_in_memory(self) -> bool:
        """Whether it waits in memory."""
        return self._parked is not None

    def begin(self) -> None:
        """Build the objects for the first time."""
        self._owner.residents.make_room(self)
        with kept_random_states():
            seed_all(self._seed)
            self._objects = self._built()
            self._random = random_states()

    def train(self) -> Any:
        """Train one epoch and return what ``validate`` says."""
        self.revive()
        with self._own_random_states():
            self._owner.train_epoch(self)
            self.epoch += 1
            return self._owner.validate(self)

    def checkpoint(self) -> dict[str, Any]:
        """Return all that the run goes on from: numbers, texts and CPU tensors."""
        if self._parked is not None:
            return self._parked
        if self._file is not None:
            return _loaded(self._file)
        return {
            "version": VERSION,
            "params": _as_text(self.params),
            "seed": self._seed,
            "epoch": self.epoch,
            "objects": snapshot(self._objects or {}),
            "set_anew": sorted(self._set_anew),
            "random": self._random,
        }

    def go_on_from(self, checkpoint: dict[str, Any]) -> None:
        """Wait in memory at a checkpoint; it is built when it is needed."""
        self.epoch = checkpoint["epoch"]
        self._set_anew = set(checkpoint["set_anew"])
        self._random = checkpoint["random"]
        self._objects, self._parked = None, checkpoint

    def park(self) -> None:
        """Leave the device and wait in memory."""
        self.go_on_from(self.checkpoint())

    def spill(self, file: Path) -> None:
        """Leave memory and wait on disk."""
        torch.save(self._parked, file)
        self._parked, self._file = None, file

    def revive(self) -> dict[str, Any]:
        """Return the objects, built again and put back where they are not there."""
        self._owner.residents.make_room(self)
        if self._objects is not None:
            return self._objects
        checkpoint = self.checkpoint()
        with kept_random_states():
            seed_all(self._seed)
            objects = self._built()
            restore(objects, checkpoint["objects"], self.device, self._set_anew)
        self._objects, self._parked = objects, None
        if self._file is not None:
            self._file.unlink()
            self._file = None
        return objects

    def _objects_with(self, name: str) -> dict[str, Any]:
        objects = self.revive()
        if name not in objects:
            msg = (
                f"this run has no {name!r}: build has returned {sorted(objects)}; what "
                "is to be kept from one epoch to the next, return from build"
            )
            raise AttributeError(msg, name=name)
        return objects

    def _built(self) -> dict[str, Any]:
        objects = self._owner.build(dict(self.params), self.device)
        if not isinstance(objects, Mapping) or not all(
            isinstance(name, str) and re.fullmatch(r"[^\W\d_]\w*", name)
            for name in objects
        ):
            msg = (
                "build must return a dict of the run's objects by name, such as "
                f"{{'model': ..., 'optimizer': ...}}; got {objects!r:.200}"
            )
            raise SetupError(msg)
        taken = sorted(objects.keys() & set(dir(TorchRun)))
        if taken:
            msg = f"build names objects {taken}, which a run uses itself: rename them"
            raise SetupError(msg)
        return dict(objects)

    @contextmanager
    def _own_random_states(self) -> Iterator[None]:
        with kept_random_states():
            set_random_states(self._random)
            yield
            self._random = random_states()


class TorchTrainable:
    """A PyTorch training loop, to be searched with ``RisingSearch``.

    Give the three parts of the loop, or subclass and define them as methods. Paused and
    resumed, in memory, on disk or in another process, a run equals one that was never
    interrupted, bit for bit on the CPU; on a GPU with
    ``torch.use_deterministic_algorithms(True)``.

    Parameters
    ----------
    build : callable
        ``build(params, device) -> dict``: model, optimizer, learning-rate scheduler,
        gradient scaler, averaged weights, loader, ... by name. It is called again
        whenever the run comes back, so load data outside.
    train_epoch : callable
        ``train_epoch(run)`` trains one epoch, or some steps (see ``Batches``); ``run``
        is a ``TorchRun``.
    validate : callable
        ``validate(run)`` returns the validation score, or a dict with a ``"score"`` and
        other metrics.
    device : str or torch.device, default "auto"
        "auto" is the GPU where there is one; worker processes take turns on several.
    max_resident : int, optional
        Runs on the device at the same time; the one used longest ago leaves it. By
        default 2 on an accelerator, and all on the CPU.
    max_host : int, optional
        Runs that wait in memory; others wait on disk. By default all.

    Raises
    ------
    NotTrainableError
        If a part is missing.
    InvalidParameterError
        If another argument is outside what is allowed.
    SetupError
        Of a search, if ``build`` returns what cannot be used or saved, or threads train
        at the same time: the search stops.

    Notes
    -----
    Saved are the states of all objects with a ``state_dict``, of random generators
    (also a loader's), numbers, texts, tensors and arrays, all of these in lists, tuples
    and dicts too, and the global random states of Python, NumPy and torch, which every
    run has for itself. What has none of these, a function or a data set, is built
    again. Checkpoints are read with ``torch.load(weights_only=True)``.

    The global random states belong to the process: use processes, not threads, to train
    several runs at a time.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> X = torch.linspace(-1, 1, 64).reshape(-1, 1)
    >>> def build(params, device):
    ...     model = nn.Linear(1, 1).to(device)
    ...     optimizer = torch.optim.SGD(model.parameters(), lr=params["lr"])
    ...     return {"model": model, "optimizer": optimizer}
    >>> def train_epoch(run):
    ...     run.optimizer.zero_grad()
    ...     nn.functional.mse_loss(run.model(X), 3 * X).backward()
    ...     run.optimizer.step()
    >>> def validate(run):
    ...     with torch.no_grad():
    ...         return -nn.functional.mse_loss(run.model(X), 3 * X).item()
    >>> from risingsearch import RisingSearch
    >>> search = RisingSearch(
    ...     TorchTrainable(build, train_epoch, validate, device="cpu"),
    ...     [{"lr": 10.0**-power} for power in range(5)],
    ...     budget=30,
    ...     max_epochs=15,
    ...     seed=0,
    ... )
    >>> result = search.run()
    >>> result.best_params, result.best_state().model.weight.shape
    ({'lr': 1.0}, torch.Size([1, 1]))
    """

    build: Callable[[dict[str, Any], torch.device], Mapping[str, Any]]
    train_epoch: Callable[[TorchRun], object]
    validate: Callable[[TorchRun], Any]

    def __init__(
        self,
        build: Callable[[dict[str, Any], torch.device], Mapping[str, Any]]
        | None = None,
        train_epoch: Callable[[TorchRun], object] | None = None,
        validate: Callable[[TorchRun], Any] | None = None,
        *,
        device: str | torch.device = "auto",
        max_resident: int | None = None,
        max_host: int | None = None,
    ) -> None:
        parts = {"build": build, "train_epoch": train_epoch, "validate": validate}
        for name, given in parts.items():
            if given is not None:
                setattr(self, name, given)
            elif not hasattr(self, name):
                msg = (
                    f"{type(self).__name__} has no {name}: give it as an argument, or "
                    "define it in a subclass"
                )
                raise NotTrainableError(msg)
        self.device = device
        self.max_resident = _checked_number("max_resident", max_resident, 1)
        self.max_host = _checked_number("max_host", max_host, 0)
        self._residents: Residents | None = None
        self._readable = False

    @property
    def torch_device(self) -> torch.device:
        """Where this process trains."""
        if self.device != "auto":
            return torch.device(self.device)
        if torch.cuda.is_available():
            return torch.device("cuda", _worker_number() % torch.cuda.device_count())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")

    @property
    def residents(self) -> Residents:
        """Who is on the device."""
        if self._residents is None:
            most = self.max_resident
            if most is None and self.torch_device.type != "cpu":
                most = RESIDENT
            self._residents = Residents(most, self.max_host)
        return self._residents

    def start(self, params: Mapping[str, Any], seed: int) -> TorchRun:
        """Return a run that has seen nothing."""
        with alone():
            run = TorchRun(self, dict(params), seed)
            run.begin()
            return run

    def train(self, run: TorchRun) -> Any:
        """Train one epoch and return the validation score."""
        with alone():
            return run.train()

    def save(self, run: TorchRun, path: str) -> None:
        """Write a checkpoint."""
        checkpoint = run.checkpoint()
        torch.save(checkpoint, path)
        if not self._readable:
            _check_readable(checkpoint)
            self._readable = True

    def load(self, path: str) -> TorchRun:
        """Return the run of a checkpoint; it is built when it is needed."""
        checkpoint = _loaded(Path(path))
        version = checkpoint.get("version")
        if version != VERSION:
            msg = (
                f"this run was saved in version {version!r}, this release reads "
                f"version {VERSION}: load it with the release that saved it"
            )
            raise SetupError(msg)
        params = from_json(json.loads(checkpoint["params"]))
        run = TorchRun(self, params, checkpoint["seed"])
        run.go_on_from(checkpoint)
        return run

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_residents": None}


def _loaded(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    return loaded


def _check_readable(checkpoint: dict[str, Any]) -> None:
    """Find out before it matters whether the checkpoint can be read again."""
    for name, state in checkpoint["objects"].items():
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        try:
            torch.load(file, weights_only=True)
        except UnpicklingError as error:
            msg = (
                f"the state of {name!r} holds more than tensors, arrays, numbers, "
                "text, lists and dicts, so torch.load(weights_only=True) refuses it: "
                f"{str(error).splitlines()[0]}"
            )
            raise SetupError(msg) from error


def _as_text(params: dict[str, Any]) -> str:
    try:
        return json.dumps(as_json(params))
    except TypeError as error:
        msg = f"the params of a run are saved as JSON: {error}"
        raise NotTrainableError(msg) from error


def _checked_number(name: str, value: int | None, least: int) -> int | None:
    return None if value is None else checked_int(name, value, least)


def _worker_number() -> int:
    """Return the number that the standard library gives worker processes, from 0."""
    number = re.search(r"(\d+)$", multiprocessing.current_process().name)
    return int(number[1]) - 1 if number else 0
