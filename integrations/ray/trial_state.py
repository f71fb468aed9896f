"""State that a function trainable keeps while its trial is paused."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ray.tune import Checkpoint, get_checkpoint, report

from risingsearch.errors import InvalidParameterError, RunDirError

FILE = "states.pt"


class TrialState:
    """Saves models and optimizers with each report, and brings them back.

    For a function trainable of PyTorch that saves no checkpoints: make one as soon as
    all objects are built, begin with its ``epochs``, and call its ``report`` in place
    of ``tune.report``.

    All else begins anew after a pause, such as local variables and random states.

    Parameters
    ----------
    *objects : object
        Objects with ``state_dict`` and ``load_state_dict``: modules, optimizers,
        learning-rate schedulers. Always the same ones, in the same order.

    Attributes
    ----------
    epochs : int
        Reports that the trial has behind it.

    Raises
    ------
    InvalidParameterError
        If an object has no such state, or there is no object.
    RunDirError
        If the trial's checkpoint has another number of states.

    Examples
    --------
    >>> from torch import nn, ones, optim
    >>> def train(config):
    ...     net = nn.Linear(4, 1)
    ...     optimizer = optim.SGD(net.parameters(), lr=config["lr"])
    ...     state = TrialState(net, optimizer)
    ...     for epoch in range(state.epochs, 10):
    ...         optimizer.zero_grad()
    ...         loss = net(ones(8, 4)).square().mean()
    ...         loss.backward()
    ...         optimizer.step()
    ...         state.report({"loss": loss.item()})
    >>> from ray import tune
    >>> tuner = tune.Tuner(train, param_space={"lr": tune.loguniform(1e-4, 1e-1)})
    """

    def __init__(self, *objects: Any) -> None:
        for given in objects or (None,):
            has_state = hasattr(given, "state_dict")
            if not (has_state and hasattr(given, "load_state_dict")):
                raise InvalidParameterError(
                    "TrialState keeps objects with state_dict and load_state_dict, "
                    f"such as modules and optimizers of PyTorch; got {given!r:.100}"
                )
        self._objects = objects
        self.epochs = 0
        checkpoint = get_checkpoint()
        if checkpoint is not None:
            self._load(checkpoint)

    def _load(self, checkpoint: Checkpoint) -> None:
        import torch

        with checkpoint.as_directory() as folder:
            saved = torch.load(Path(folder, FILE), "cpu", weights_only=True)
        states = saved["states"]
        if len(states) != len(self._objects):
            raise RunDirError(
                f"the checkpoint has {len(states)} states, and TrialState was given "
                f"{len(self._objects)} objects: give it those that were saved"
            )
        for kept, state in zip(self._objects, states, strict=True):
            kept.load_state_dict(state)
        self.epochs = saved["epochs"]

    def report(self, metrics: Mapping[str, object]) -> None:
        """Report metrics as ``tune.report`` does, with the epoch and all states.

        Parameters
        ----------
        metrics : dict
            The score and other metrics of the epoch.
        """
        import torch

        self.epochs += 1
        states = [kept.state_dict() for kept in self._objects]
        with tempfile.TemporaryDirectory() as folder:
            torch.save(
                {
                    "epochs": self.epochs,
                    "states": states,
                },
                Path(folder, FILE),
            )
            checkpoint = Checkpoint.from_directory(folder)
            report({"epoch": self.epochs, **metrics}, checkpoint=checkpoint)
