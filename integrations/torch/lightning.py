"""Lightning: a module and its data as a trainable, an epoch or some steps at a time."""

import copy
import io
import logging
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from risingsearch.checks import checked_int
from risingsearch.errors import InvalidParameterError, MissingDependencyError
from risingsearch.integrations.torch import paused_runs
from risingsearch.integrations.torch.batches import Batches
from risingsearch.integrations.torch.random_states import (
    alone,
    kept_random_states,
    random_states,
    seed_all,
    set_random_states,
)

try:
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import Checkpoint, ModelCheckpoint
except ModuleNotFoundError as error:
    msg = "lightning is not installed; run: pip install lightning"
    raise MissingDependencyError(msg) from error

QUIET = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
}


class RisingCallback(Checkpoint):  # type: ignore[misc]
    """Stops a ``Trainer`` at the end of an epoch, and keeps the logged metrics."""

    # Lightning calls callbacks of this kind last, after all that may end the training.

    def __init__(
        self, states: dict[str, Any] | None, batches: dict[str, Any] | None
    ) -> None:
        self.states, self.batches = states, batches
        self.metrics: dict[str, float] | None = None
        self.is_over = False  # whether the Trainer would end here by itself

    def on_train_start(self, trainer: Trainer, pl_module: Any) -> None:
        """Restore the random states and the position in the batches."""
        if self.states is not None:
            set_random_states(self.states)
        loader = trainer.train_dataloader
        if self.batches is not None and isinstance(loader, Batches):
            loader.load_state_dict(self.batches)

    def on_train_batch_end(self, trainer: Trainer, *_: Any) -> None:
        """Let the last of ``max_steps`` have its validation."""
        if 0 <= trainer.max_steps <= trainer.global_step:
            self._stop(trainer)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Note the metrics, and stop."""
        self.metrics = {
            name: float(value) for name, value in trainer.callback_metrics.items()
        }
        self.is_over = trainer.should_stop and trainer.fit_loop._can_stop_early
        self._stop(trainer)

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        """Note the random states, and the position in the batches."""
        self.states = random_states()
        loader = trainer.train_dataloader
        self.batches = loader.state_dict() if isinstance(loader, Batches) else None

    def _stop(self, trainer: Trainer) -> None:
        trainer.should_stop = True
        loop = trainer.fit_loop
        loop.min_epochs = loop.epoch_loop.min_steps = None  # they would train on


@dataclass
class LightningRun(paused_runs.PausedRun):
    """A run between two epochs: a Lightning checkpoint, and where its data are."""

    states: dict[str, Any] | None = field(default=None, repr=False)
    batches: dict[str, Any] | None = field(default=None, repr=False)


class LightningTrainable(paused_runs.FrameworkTrainable[LightningRun]):
    """A ``LightningModule`` and its data, to be searched with ``RisingSearch``.

    Every epoch is ``Trainer.fit(ckpt_path=...)`` from the last one's checkpoint, paused
    or not, so a run is the same bit for bit however often it was paused. A single
    ``fit`` over several epochs draws its shuffling a little differently. With
    ``Batches(loader, n_batches)`` as the loader an epoch is ``n_batches`` steps. Where
    ``EarlyStopping``, ``max_steps`` or ``max_time`` end the training, the arm is
    finished.

    Parameters
    ----------
    build : callable
        ``build(params) -> dict``: the arguments of ``Trainer.fit``, such as ``model``
        and ``datamodule``, or ``train_dataloaders`` and ``val_dataloaders``.
    monitor : str
        The logged metric that is the score.
    max_epochs : int
        Epochs of a full run, for the schedules: the ``max_epochs`` of the search.
    **trainer_options
        Arguments of ``Trainer``. Every epoch has copies of the ``callbacks``, whose
        ``state_dict`` is kept. By default nothing is logged, saved or shown.

    Raises
    ------
    InvalidParameterError
        If ``max_epochs`` is not a whole number of at least 1, or the options have a
        logger or a ``ModelCheckpoint``, which would mix the files of all arms.
    SetupError
        Of a search, if ``monitor`` is not logged in an epoch, or threads train at the
        same time: the search stops.
    MissingDependencyError
        On import, if lightning is not installed.
    """

    run_type = LightningRun

    def __init__(
        self,
        build: Callable[[dict[str, Any]], Mapping[str, Any]],
        *,
        monitor: str,
        max_epochs: int,
        **trainer_options: Any,
    ) -> None:
        self.build, self.monitor = build, monitor
        self.max_epochs = checked_int("max_epochs", max_epochs, 1)
        self.trainer_options = trainer_options
        own = trainer_options.get("callbacks") or []
        self._callbacks = list(own) if isinstance(own, list | tuple) else [own]
        if any(isinstance(one, ModelCheckpoint) for one in self._callbacks):
            raise InvalidParameterError(
                "ModelCheckpoint would mix the files of all arms: leave it out; the "
                "search keeps every arm; the best by monitor is "
                "best_model(result.best_state())"
            )
        if trainer_options.get("logger"):
            raise InvalidParameterError(
                f"logger={trainer_options['logger']!r:.80} would mix the curves of all "
                "arms: leave it out, and give the search a tracker of "
                "risingsearch.integrations.trackers as a callback"
            )

    def train(self, run: LightningRun) -> dict[str, float]:
        """Train one more epoch; return the monitored metric and all others."""
        if run.is_over:
            raise StopIteration
        callback = RisingCallback(run.states, run.batches)
        with (
            alone(),
            kept_random_states(),
            paused_runs.quiet_log("lightning.pytorch", logging.WARNING),
            tempfile.TemporaryDirectory() as folder,
        ):
            path = Path(folder, "run.ckpt")
            resume_from: dict[str, Any] = {}
            if run.checkpoint is not None:
                path.write_bytes(run.checkpoint)
                resume_from = {"ckpt_path": path, "weights_only": True}
            seed_all(run.seed)
            arguments = self.build(dict(run.params))
            options = QUIET | {"default_root_dir": folder} | self.trainer_options
            options["callbacks"] = copy.deepcopy(self._callbacks)
            trainer = Trainer(max_epochs=self.max_epochs, **options)
            trainer.callbacks.append(callback)
            # With max_steps Lightning would take a resumed epoch for one that is over.
            trainer.fit_loop._iteration_based_training = lambda: False
            trainer.fit(**arguments, **resume_from)
            if trainer.interrupted:
                raise KeyboardInterrupt
            metrics = callback.metrics
            if metrics is None:
                raise StopIteration  # the Trainer had no epoch left
            advice = "log it in validation_step"
            if trainer.check_val_every_n_epoch != 1:
                n = trainer.check_val_every_n_epoch
                advice = (
                    f"with check_val_every_n_epoch={n} not every epoch has a score: "
                    "leave it out, and let an epoch be longer with Batches"
                )
            self._check_monitored(metrics, "the module has logged", advice)
            trainer.save_checkpoint(path)
            run.checkpoint = path.read_bytes()
            run.states, run.batches = callback.states, callback.batches
            run.is_over = callback.is_over
        others = {f"logged_{name}": value for name, value in metrics.items()}
        return {"score": metrics[self.monitor], **others}

    def best_model(self, run: LightningRun) -> Any:
        """Return the module of a run with its weights, from ``result.best_state()``."""
        with kept_random_states():
            seed_all(run.seed)
            model = self.build(dict(run.params))["model"]
        model.load_state_dict(
            paused_runs.read(io.BytesIO(run.checkpoint or b""))["state_dict"]
        )
        return model
