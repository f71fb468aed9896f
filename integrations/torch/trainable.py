"""A PyTorch training loop as a trainable."""

import io
import multiprocessing
import re
from collections.abc import Callable, Mapping
from pickle import UnpicklingError
from typing import Any

import torch

from risingsearch.arms import Configuration, Params
from risingsearch.checks import call_problem, checked_int
from risingsearch.errors import NotTrainableError, SetupError
from risingsearch.integrations.torch.paused_runs import read
from risingsearch.integrations.torch.random_states import alone
from risingsearch.integrations.torch.run import Residents, TorchRun
from risingsearch.search.frameworks import params_from_text

Build = Callable[[Params, torch.device], Mapping[str, Any]]
TrainEpoch = Callable[[TorchRun], object]
Validate = Callable[[TorchRun], object]

TAKES = {"build": "params, device", "train_epoch": "run", "validate": "run"}
RESIDENT = 2  # default number of runs on an accelerator at the same time


class TorchTrainable:
    """A PyTorch training loop, to be searched with ``RisingSearch``.

    Give the three parts of the loop, or subclass and define them as methods. Paused and
    resumed, in memory, on disk or in another process, a run equals one that was never
    interrupted, bit for bit on the CPU; on a GPU with
    ``torch.use_deterministic_algorithms(True)``.

    Parameters
    ----------
    build : callable
        ``build(params, device) -> dict``: model, optimizer, loader, ... by name. It is
        called again whenever the run comes back, so load data outside.
    train_epoch : callable
        ``train_epoch(run)`` trains one epoch, or some steps (see ``Batches``); ``run``
        is a ``TorchRun``.
    validate : callable
        ``validate(run)`` returns the validation score, or a dict with a ``"score"`` and
        other metrics.
    device : str or torch.device, default "auto"
        "auto" is the GPU if there is one; worker processes take turns on several. One
        that is not there is a ``SetupError`` once a run begins.
    max_resident : int, optional
        Runs on the device at the same time, by default 2 on an accelerator, all on the
        CPU. With 0 a run leaves it after every epoch, and cached memory is given back.

    Raises
    ------
    NotTrainableError
        If a part is missing, or takes other arguments.
    InvalidParameterError
        If another argument is invalid.
    SetupError
        Of a search, if an object of ``build`` cannot be used or saved, or threads train
        at the same time: the search stops.

    Notes
    -----
    Saved are the states of all objects with a ``state_dict``, of random generators
    (also a loader's), numbers, texts, tensors and arrays, all of these in lists, tuples
    and dicts too, and the global random states of Python, NumPy and torch, which every
    run has for itself. Other objects, such as a function or a data set, are built
    again. Attributes that no ``state_dict`` has are compared with those that ``build``
    has made; what has changed is saved too, or is an error that names it.
    Checkpoints are read with ``torch.load(weights_only=True)``.

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

    build: Build
    train_epoch: TrainEpoch
    validate: Validate
    scored_by = "validate"

    def __init__(
        self,
        build: Build | None = None,
        train_epoch: TrainEpoch | None = None,
        validate: Validate | None = None,
        *,
        device: str | torch.device = "auto",
        max_resident: int | None = None,
    ) -> None:
        parts = {"build": build, "train_epoch": train_epoch, "validate": validate}
        for name, function in parts.items():
            if function is not None:
                setattr(self, name, function)
            elif not hasattr(self, name):
                raise NotTrainableError(
                    f"{type(self).__name__} has no {name}: give it as an argument, or "
                    "define it in a subclass"
                )
        for name, takes in TAKES.items():
            if why := call_problem(getattr(self, name), takes):
                raise NotTrainableError(f"{name} must take ({takes}): {why}")
        self.device = device
        if max_resident is not None:
            max_resident = checked_int("max_resident", max_resident, 0)
        self.max_resident = max_resident
        self._residents: Residents | None = None
        self._is_checked = False  # whether a checkpoint can be read again

    @property
    def torch_device(self) -> torch.device:
        """Device on which this process trains."""
        if self.device != "auto":
            return _checked_device(self.device)
        if torch.cuda.is_available():
            # The standard library numbers worker processes, from 1.
            number = re.search(r"(\d+)$", multiprocessing.current_process().name)
            worker = 0
            if number:
                worker = int(number[1]) - 1
            return torch.device("cuda", worker % torch.cuda.device_count())
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")

    @property
    def residents(self) -> Residents:
        """The runs of this process by where they are."""
        if self._residents is None:
            max_resident = self.max_resident
            if max_resident is None and self.torch_device.type != "cpu":
                max_resident = RESIDENT
            self._residents = Residents(max_resident)
        return self._residents

    def start(self, params: Configuration, seed: int) -> TorchRun:
        """Return a run that has not trained yet."""
        with alone():
            run = TorchRun(self, dict(params), seed)
            run.revive()
            return run

    def train(self, run: TorchRun) -> Any:
        """Train one epoch and return the validation score."""
        with alone():
            score = run.train()
            self.residents.make_room(None)
            if self.max_resident == 0 and run.device.type != "cpu":
                getattr(torch, run.device.type).empty_cache()
            return score

    def save(self, run: TorchRun, path: str) -> None:
        """Write a checkpoint."""
        checkpoint = run.checkpoint()
        torch.save(checkpoint, path)
        if not self._is_checked:
            nodes = dict(checkpoint["objects"])
            for owner, name, node in checkpoint["attributes"]:
                nodes[f"{owner}.{name}"] = node
            for name, node in nodes.items():
                _check_readable(name, node)
            self._is_checked = True

    def load(self, path: str) -> TorchRun:
        """Return the run of a checkpoint; it is built when it is needed."""
        checkpoint = read(path)
        run = TorchRun(self, params_from_text(checkpoint["params"]), checkpoint["seed"])
        run.resume_from(checkpoint)
        return run

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | {"_residents": None}


def _checked_device(name: str | torch.device) -> torch.device:
    """Return a device, or raise a SetupError if this machine does not have it."""
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        why = str(error).splitlines()[0]
    else:
        backend: Any = getattr(torch, device.type, None)
        if not hasattr(backend, "is_available"):
            return device
        n_devices = 0
        if backend.is_available():
            n_devices = backend.device_count()
        if (device.index or 0) < n_devices:
            return device
        why = f"torch finds {n_devices} of these"
    raise SetupError(
        f"device={name!r} cannot be used on this machine ({why}): give 'auto', 'cpu', "
        "or a device that torch finds, such as 'cuda:0'"
    )


def _check_readable(name: str, state: object) -> None:
    """Raise a SetupError if the saved state of an object cannot be read again."""
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    try:
        read(file)
    except UnpicklingError as error:
        raise SetupError(
            f"the state of {name!r} holds more than tensors, arrays, numbers, text, "
            "lists and dicts, so torch.load(weights_only=True) refuses it: "
            f"{str(error).splitlines()[0]}"
        ) from error
