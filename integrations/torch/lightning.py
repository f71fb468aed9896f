"""Lightning: a module and its data as a trainable, an epoch or some steps at a time."""

import copy
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from risingsearch.arms import Configuration, Params
from risingsearch.checks import call_problem, checked_int
from risingsearch.errors import (
    InvalidParameterError,
    MissingDependencyError,
    NotTrainableError,
    SetupError,
    unknown_name,
)
from risingsearch.integrations.torch.attributes import Attributes
from risingsearch.integrations.torch.batches import Batches
from risingsearch.integrations.torch.paused_runs import (
    TorchFrameworkTrainable,
    TorchPausedRun,
)
from risingsearch.integrations.torch.random_states import (
    States,
    alone,
    kept_random_states,
    random_states,
    seed_all,
    set_random_states,
)
from risingsearch.search.frameworks import checkpoint_of, quiet_log
from risingsearch.search.trainable import temporary_folder

try:
    from lightning.pytorch import (
        Callback,
        LightningDataModule,
        LightningModule,
        Trainer,
    )
    from lightning.pytorch.callbacks import (
        BaseFinetuning,
        BatchSizeFinder,
        Checkpoint,
        DeviceStatsMonitor,
        LearningRateFinder,
        LearningRateMonitor,
        ModelCheckpoint,
        ModelPruning,
        ProgressBar,
        ThroughputMonitor,
    )
    from lightning.pytorch.utilities.exceptions import (
        MisconfigurationException,
        _TunerExitException,
    )
except ModuleNotFoundError as error:
    raise MissingDependencyError(
        "lightning is not installed; run: pip install lightning"
    ) from error

NEEDS_A_LOGGER = (DeviceStatsMonitor, LearningRateMonitor, ThroughputMonitor)
CANNOT_RESUME = (BaseFinetuning, BatchSizeFinder, LearningRateFinder, ModelPruning)
QUIET = {
    "logger": False,
    "enable_checkpointing": False,
    "enable_progress_bar": False,
    "enable_model_summary": False,
    "num_sanity_val_steps": 0,
}


class FirstCallback(Callback):  # type: ignore[misc]
    """Restores a run before the first epoch of a ``fit``, first of all callbacks."""

    def __init__(self, run: "LightningRun") -> None:
        self.run = run
        self.attributes: Attributes | None = None  # as a fit begins with them

    def on_train_epoch_start(self, trainer: Trainer, _: LightningModule) -> None:
        """Restore, once; from here on all is as within one ``fit``."""
        if self.attributes is None:
            self.restore(trainer)
            trainer.fit_loop.restarting = False
            trainer.fit_loop._resuming_from_checkpoint = False  # a new epoch of batches

    def restore(self, trainer: Trainer) -> None:
        """Restore the attributes, random states, and the position in the batches."""
        run = self.run
        objects = {
            "model": trainer.lightning_module,
            "callbacks": [
                callback
                for callback in trainer.callbacks
                if not isinstance(callback, FirstCallback | LastCallback)
            ],
            "datamodule": trainer.datamodule,
            "optimizers": trainer.optimizers,
            "lr_schedulers": [each.scheduler for each in trainer.lr_scheduler_configs],
            "precision": trainer.precision_plugin,
        }
        if not trainer.fit_loop._should_reload_train_dl:
            objects["train_dataloaders"] = trainer.train_dataloader
            objects["val_dataloaders"] = trainer.val_dataloaders
        bases = (Callback, LightningModule, LightningDataModule)
        self.attributes = Attributes(objects, bases)
        self.attributes.restore(run.attributes, trainer.strategy.root_device)
        if run.batches is not None:
            trainer.train_dataloader.load_state_dict(run.batches)
        if run.states is not None:
            set_random_states(run.states)

    def save_at_end(self, trainer: Trainer) -> None:
        """Have the fit save the run where it stops, without the hooks of its end."""

        def save() -> NoReturn:
            run = self.run
            run.attributes = self.attributes.changes() if self.attributes else []
            run.states = random_states()
            loader = trainer.train_dataloader
            run.batches = loader.state_dict() if isinstance(loader, Batches) else None
            path = Path(trainer.default_root_dir, "run.ckpt")
            trainer.save_checkpoint(path)
            run.checkpoint = path.read_bytes()
            raise _TunerExitException

        trainer.fit_loop.on_run_end = save

    def end_at_once(self, trainer: Trainer) -> None:
        """Have the fit train no more, but call the hooks of its end."""
        loop = trainer.fit_loop
        max_epochs = loop.max_epochs  # which callbacks change

        def end() -> None:
            loop.setup_data()
            loop.reset()
            loop.on_run_start()
            if loop.epoch_progress.current.processed >= max_epochs:
                while not loop.done:  # a callback has added an epoch for its end
                    loop.on_advance_start()
                    loop.advance()
                    loop.on_advance_end()
            if self.attributes is None:
                self.restore(trainer)
            loop.on_run_end()

        loop.run = end


class LastCallback(Checkpoint):  # type: ignore[misc]
    """Stops a ``Trainer`` at the end of an epoch, and keeps the logged metrics."""

    # Lightning calls callbacks of this kind last, after all that may end the training.

    def __init__(self, n_epochs: int) -> None:
        self.metrics: list[dict[str, float]] = []  # of each epoch
        self.is_over = False  # whether the Trainer would end here by itself
        self._n_epochs = n_epochs  # to train

    def on_train_batch_end(self, trainer: Trainer, *_: object) -> None:
        """Let the last of ``max_steps`` have its validation."""
        if 0 <= trainer.max_steps <= trainer.global_step:
            self._stop(trainer)

    def on_train_epoch_end(self, trainer: Trainer, _: LightningModule) -> None:
        """Note the metrics, and stop."""
        self.metrics.append(
            {name: float(value) for name, value in trainer.callback_metrics.items()}
        )
        self.is_over = trainer.should_stop and trainer.fit_loop._can_stop_early
        if len(self.metrics) >= self._n_epochs:
            self._stop(trainer)

    def _stop(self, trainer: Trainer) -> None:
        trainer.should_stop = True
        loop = trainer.fit_loop
        loop.min_epochs = loop.epoch_loop.min_steps = None  # they would train on


@dataclass
class LightningRun(TorchPausedRun):
    """A run between two epochs."""

    states: States | None = field(default=None, repr=False)
    batches: States | None = field(default=None, repr=False)


class LightningTrainable(TorchFrameworkTrainable[LightningRun]):
    """A ``LightningModule`` and its data, to be searched with ``RisingSearch``.

    Every epoch is ``Trainer.fit(ckpt_path=...)`` from the last one's checkpoint, and
    equals that of a single ``fit``, bit for bit. Attributes that Lightning's checkpoint
    leaves out are carried over, or an error names them. The hooks for the end of
    training are called by ``best_model`` alone. With
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
        Arguments of ``Trainer``. Every arm has copies of the ``callbacks``. By default
        nothing is logged, saved or shown.

    Raises
    ------
    InvalidParameterError
        If ``max_epochs`` is not a whole number of at least 1, an option is unknown, or
        they have a logger, or a callback that mixes the files of all arms, needs a
        logger, or cannot be resumed.
    NotTrainableError
        If ``build`` takes other arguments.
    SetupError
        Of a search, if ``monitor`` is not logged in an epoch, Lightning refuses the
        options, something changes that cannot be saved, or threads train at the same
        time: the search stops.
    MissingDependencyError
        On import, if lightning is not installed.
    """

    run_type = LightningRun

    def __init__(
        self,
        build: Callable[[Params], Mapping[str, Any]],
        *,
        monitor: str,
        max_epochs: int,
        **trainer_options: object,
    ) -> None:
        if why := call_problem(build, "params"):
            raise NotTrainableError(f"build must take (params): {why}")
        _check_names("argument of Trainer", trainer_options, Trainer.__init__)
        self.build = build
        self.monitor = monitor
        self.max_epochs = checked_int("max_epochs", max_epochs, 1)
        self.trainer_options = trainer_options
        self._callbacks = as_list(trainer_options.get("callbacks"))
        check_resumable(self._callbacks)
        if trainer_options.get("logger"):
            raise InvalidParameterError(
                f"logger={trainer_options['logger']!r:.80} would mix the curves of all "
                "arms: leave it out, and give the search a tracker of "
                "risingsearch.integrations.trackers as a callback"
            )

    def train_epoch(self, run: LightningRun) -> dict[str, float]:
        """Train one more epoch; return the monitored metric and all others."""
        trainer, last = self._fit(run, 1, FirstCallback.save_at_end)
        if not last.metrics:
            raise StopIteration  # the Trainer had no epoch left
        run.is_over = last.is_over
        return self._score(trainer, last.metrics[-1])

    def uninterrupted(
        self, params: Configuration, seed: int, n_epochs: int
    ) -> list[dict[str, float]]:
        """Return the results of some epochs of one ``fit``, which nothing pauses."""
        trainer, last = self._fit(self.start(params, seed), n_epochs)
        return [self._score(trainer, metrics) for metrics in last.metrics]

    def best_model(self, run: LightningRun) -> LightningModule:
        """Return the module of a run, from ``result.best_state()``.

        The hooks for the end of training have run: averaged weights are in place.
        """
        checkpoint_of(run)
        trainer, _ = self._fit(run, 0, FirstCallback.end_at_once)
        return trainer.lightning_module

    def _fit(
        self,
        run: LightningRun,
        n_epochs: int,
        change_end: Callable[[FirstCallback, Trainer], None] | None = None,
    ) -> tuple[Trainer, LastCallback]:
        """Resume a run in a Trainer; return that, and the callback with the metrics."""
        with (
            alone(),
            kept_random_states(),
            quiet_log("lightning.pytorch", logging.WARNING),
            temporary_folder() as folder,
        ):
            seed_all(run.seed)
            arguments = self._arguments(run)
            if run.checkpoint is not None:
                path = folder / "resumed.ckpt"
                path.write_bytes(run.checkpoint)
                arguments |= {"ckpt_path": path, "weights_only": True}
            has_bar = any(isinstance(each, ProgressBar) for each in self._callbacks)
            options = QUIET | {"enable_progress_bar": has_bar} | self.trainer_options
            options.setdefault("default_root_dir", folder)
            options["callbacks"] = copy.deepcopy(self._callbacks)
            with _misconfigured(MisconfigurationException, TypeError, ValueError):
                trainer = Trainer(max_epochs=self.max_epochs, **options)
            first = FirstCallback(run)
            last = LastCallback(n_epochs)
            trainer.callbacks.insert(0, first)
            trainer.callbacks.append(last)
            # With max_steps Lightning would take a resumed epoch for one that is over.
            trainer.fit_loop._iteration_based_training = lambda: False
            if change_end is not None:
                change_end(first, trainer)
            with _misconfigured(MisconfigurationException):
                trainer.fit(**arguments)
            if trainer.interrupted:
                raise KeyboardInterrupt
            return trainer, last

    def _arguments(self, run: LightningRun) -> dict[str, object]:
        """Return the arguments of ``Trainer.fit`` that ``build`` makes."""
        arguments = self.build(dict(run.params))
        if not isinstance(arguments, Mapping) or "model" not in arguments:
            raise SetupError(
                "build must return a dict of the arguments of Trainer.fit, with a "
                f"'model' among them; got {arguments!r:.200}"
            )
        try:
            _check_names(
                "argument", arguments, Trainer.fit, "ckpt_path", "weights_only"
            )
        except InvalidParameterError as error:
            raise SetupError(f"build: {error}") from error
        check_resumable(as_list(arguments["model"].configure_callbacks()))
        return dict(arguments)

    def _score(self, trainer: Trainer, metrics: dict[str, float]) -> dict[str, float]:
        """Return the metrics of an epoch with the monitored one as the score."""
        advice = "log it in validation_step"
        if trainer.check_val_every_n_epoch != 1:
            n = trainer.check_val_every_n_epoch
            advice = (
                f"with check_val_every_n_epoch={n} not every epoch has a score: "
                "leave it out, and let an epoch be longer with Batches"
            )
        score = self.monitored(metrics, "the module has logged", advice)
        others = {f"logged_{name}": value for name, value in metrics.items()}
        return {"score": score} | others


@contextmanager
def _misconfigured(*errors: type[Exception]) -> Iterator[None]:
    """Raise a SetupError for mistakes that Lightning finds, which all arms share."""
    try:
        yield
    except errors as error:
        raise SetupError(f"Lightning refuses to train: {error}") from error


def _check_names(
    kind: str,
    names: Iterable[str],
    function: Callable[..., object],
    *others: str,
) -> None:
    """Refuse names that a function does not take, or that are for others to give."""
    known = inspect.signature(function).parameters.keys() - {"self", *others}
    for name in names:
        if name not in known:
            raise unknown_name(kind, name, known)


def as_list(callbacks: object) -> list[Callback]:
    """Return callbacks as a list, one alone too."""
    if isinstance(callbacks, list | tuple):
        return list(callbacks)
    return [callbacks] if callbacks else []


def check_resumable(callbacks: list[Callback]) -> None:
    """Refuse callbacks that mix the files of arms, or that Lightning cannot resume."""
    for callback in callbacks:
        name = type(callback).__name__
        if isinstance(callback, ModelCheckpoint):
            raise InvalidParameterError(
                f"{name} would mix the files of all arms: leave it out; the "
                "search keeps every arm; the best by monitor is "
                "best_model(result.best_state())"
            )
        if isinstance(callback, NEEDS_A_LOGGER):
            raise InvalidParameterError(
                f"{name} needs a logger, which would mix the curves of all arms: leave "
                "it out, log such values in the module, and give the search a tracker"
            )
        if isinstance(callback, CANNOT_RESUME):
            raise InvalidParameterError(
                f"Lightning does not resume {name} in the middle of a training, as a "
                "paused run has to be: leave it out, and let the module do it itself "
                "(with all parameter groups from the start in configure_optimizers, "
                "for a backbone that is trained later)"
            )
