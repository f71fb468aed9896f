"""Hugging Face: a ``Trainer`` as a trainable, one epoch or some steps at a time."""

import io
import logging
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from risingsearch.arms import Configuration, Params
from risingsearch.checks import call_problem, checked_int
from risingsearch.errors import MissingDependencyError, NotTrainableError, SetupError
from risingsearch.integrations.torch.attributes import Attributes
from risingsearch.integrations.torch.paused_runs import (
    TorchFrameworkTrainable,
    TorchPausedRun,
)
from risingsearch.integrations.torch.random_states import alone, kept_random_states
from risingsearch.search.frameworks import PausedRun, checkpoint_of, quiet_log
from risingsearch.search.trainable import temporary_folder

try:
    from transformers import (
        PreTrainedModel,
        PrinterCallback,
        Trainer,
        TrainerCallback,
        TrainerControl,
        TrainerState,
        TrainingArguments,
    )
    from transformers.trainer import DEFAULT_PROGRESS_CALLBACK
    from transformers.utils.logging import (
        disable_progress_bar,
        enable_progress_bar,
        is_progress_bar_enabled,
    )
except ModuleNotFoundError as error:
    raise MissingDependencyError(
        "transformers is not installed; run: pip install 'transformers[torch]'"
    ) from error


class _Paused(Exception):  # noqa: N818 - it is no error
    """Leaves a training whose state is saved, without the hooks of its end."""


class RisingTrainerCallback(TrainerCallback):  # type: ignore[misc]
    """Callback of ``HuggingFaceTrainable``: restores a run, and ends its epochs.

    Parameters
    ----------
    trainer : transformers.Trainer
        The trainer, with the callbacks of the user alone.
    run : TorchPausedRun
        The run that it trains.
    n_steps : int or None
        Steps of an epoch of the search; None for the Trainer's epoch.
    n_epochs : int
        Epochs of the search after which it stops; 0 for the hooks of its end alone.
    is_paused : bool
        Whether the run is saved there, without these hooks.
    """

    def __init__(
        self,
        trainer: Trainer,
        run: TorchPausedRun,
        n_steps: int | None,
        n_epochs: int,
        is_paused: bool,
    ) -> None:
        self.trainer = trainer
        self.metrics: list[dict[str, float]] = []  # of the evaluations
        self.is_over = False  # whether the Trainer would end here by itself
        self._run = run
        self._users = list(trainer.callback_handler.callbacks)
        self._n_steps = n_steps
        self._n_epochs = n_epochs
        self._is_paused = is_paused
        self._first_step = 0  # steps that the run had trained when it began
        self._is_last = False  # whether no step of the epoch follows
        self._evaluated: dict[str, float] = {}

    def on_train_begin(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Note where this job begins, and restore the run."""
        trainer = self.trainer
        self._first_step = state.global_step
        objects = {
            "model": trainer.model,
            "callbacks": self._users,
            "optimizer": getattr(trainer.optimizer, "optimizer", trainer.optimizer),
            "lr_scheduler": trainer.lr_scheduler,
            "data_collator": trainer.data_collator,
            "trainer": trainer,
        }
        self._attributes = Attributes(objects, (Trainer, TrainerCallback))
        self._attributes.restore(self._run.attributes, args.device)
        if self._n_epochs == 0:
            trainer.callback_handler.on_train_end(args, state, control)
            raise _Paused

    def on_step_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Evaluate after so many steps, and after the last."""
        if self._n_steps is not None:
            n_done = state.global_step - self._first_step
            is_end = state.global_step >= state.max_steps
            if n_done % self._n_steps == 0 or is_end:
                self._end_epoch(control)

    def on_epoch_end(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Evaluate after the epoch."""
        if self._n_steps is None:
            self._end_epoch(control)

    def on_evaluate(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        metrics: dict[str, float] | None = None,
        **_: object,
    ) -> None:
        """Keep the metrics."""
        self._evaluated = dict(metrics or {})
        if self._is_last and not self._is_paused:
            self._stop(control)

    def on_save(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        **_: object,
    ) -> None:
        """Save the run, and leave."""
        if not (self._is_last and self._is_paused):
            return
        self._stop(control)
        self._run.attributes = self._attributes.changes()
        name = f"checkpoint-{state.global_step}"
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w") as archive:
            archive.add(Path(args.output_dir, name), name)
        self._run.checkpoint = file.getvalue()
        raise _Paused

    def _end_epoch(self, control: TrainerControl) -> None:
        control.should_evaluate = True
        control.should_save = self._is_paused
        self._is_last = True

    def _stop(self, control: TrainerControl) -> None:
        self._is_last = False
        self.metrics.append(self._evaluated)
        self.is_over = control.should_training_stop
        if len(self.metrics) >= self._n_epochs:
            control.should_training_stop = True


class HuggingFaceTrainable(TorchFrameworkTrainable[TorchPausedRun]):
    """A ``transformers.Trainer``, to be searched with ``RisingSearch``.

    Every epoch is ``Trainer.train(resume_from_checkpoint=...)`` from the last one's
    checkpoint, which holds model, optimizer, schedule, random states and the position
    in the data. Where a callback ends the training, as ``EarlyStoppingCallback`` does,
    the arm is finished.

    Parameters
    ----------
    build : callable
        ``build(params, seed, folder) -> Trainer``, with ``output_dir=folder`` and
        ``seed=seed`` among its ``TrainingArguments``, and the epochs of a full run,
        which its schedules count with.
    monitor : str
        The metric of the evaluation that is the score, such as ``"eval_accuracy"``. For
        ``"eval_loss"`` search with ``direction="minimize"``.
    n_steps : int, optional
        Steps of an epoch of the search; by default those of the Trainer's epoch.

    Raises
    ------
    InvalidParameterError
        If ``n_steps`` is not a whole number of at least 1.
    SetupError
        Of a search, if the evaluation does not return ``monitor``, the optimizer is not
        saved, or threads train at the same time: the search stops.
    MissingDependencyError
        On import, if transformers is not installed.
    """

    run_type = TorchPausedRun

    def __init__(
        self,
        build: Callable[[Params, int, str], Trainer],
        *,
        monitor: str,
        n_steps: int | None = None,
    ) -> None:
        if why := call_problem(build, "params, seed, folder"):
            raise NotTrainableError(f"build must take (params, seed, folder): {why}")
        self.build = build
        self.monitor = monitor
        self.n_steps = None if n_steps is None else checked_int("n_steps", n_steps, 1)

    def train_epoch(self, run: TorchPausedRun) -> dict[str, float]:
        """Train one more epoch; return the monitored metric and all others."""
        trained = self._trained(run, 1, is_paused=True)
        if not trained.metrics:
            raise StopIteration  # the Trainer had no step left
        run.is_over = trained.is_over
        return self._score(trained.metrics[-1])

    def uninterrupted(
        self, params: Configuration, seed: int, n_epochs: int
    ) -> list[dict[str, float]]:
        """Return the results of some epochs of one ``train``, which nothing pauses."""
        trained = self._trained(self.start(params, seed), n_epochs)
        return [self._score(metrics) for metrics in trained.metrics]

    def best_model(self, run: TorchPausedRun) -> PreTrainedModel:
        """Return the model of a run, from ``result.best_state()``.

        The hooks for the end of training have run, as of averaged weights.
        """
        checkpoint_of(run)
        return self._trained(run, 0).trainer.model

    def _trained(
        self, run: TorchPausedRun, n_epochs: int, *, is_paused: bool = False
    ) -> RisingTrainerCallback:
        """Train a run from its checkpoint; return the callback that has seen it."""
        with alone(), kept_random_states(), temporary_folder() as folder:
            trainer = self.build(dict(run.params), run.seed, str(folder))
            if not isinstance(trainer, Trainer):
                raise SetupError(f"build must return a Trainer; got {trainer!r:.200}")
            if trainer.args.save_only_model:
                raise SetupError(
                    "save_only_model=True leaves out the optimizer: build without it"
                )
            for progress in (PrinterCallback, DEFAULT_PROGRESS_CALLBACK):
                trainer.pop_callback(progress)  # the search has another
            callback = RisingTrainerCallback(
                trainer, run, self.n_steps, n_epochs, is_paused
            )
            trainer.add_callback(callback)
            trainer.args.output_dir = str(folder)
            trainer.args.restore_callback_states_from_checkpoint = True
            trainer.args.save_total_limit = None  # the folder is a temporary one
            trainer.args.load_best_model_at_end = False
            trainer.args.save_strategy = type(trainer.args.save_strategy)("no")
            before = None
            if run.checkpoint is not None:
                before = unpacked(run, folder)
            # A resumed run would be warned of folders that are no more.
            level = logging.ERROR if before else logging.NOTSET
            with quiet_log("transformers", level), _no_bars(), suppress(_Paused):
                trainer.train(resume_from_checkpoint=before)
            return callback

    def _score(self, metrics: dict[str, float]) -> dict[str, float]:
        """Return the metrics of an evaluation with the monitored one as the score."""
        advice = "let compute_metrics return it"
        score = self.monitored(metrics, "the evaluation has returned", advice)
        others = {
            name: float(value)
            for name, value in metrics.items()
            if name not in (self.monitor, "epoch")
        }
        return {"score": float(score)} | others


@contextmanager
def _no_bars() -> Iterator[None]:
    """Hide the progress bars of checkpoints, one of which is written every epoch."""
    was_shown = is_progress_bar_enabled()
    disable_progress_bar()
    try:
        yield
    finally:
        if was_shown:
            enable_progress_bar()


def unpacked(run: PausedRun, folder: Path) -> str:
    """Write a run's checkpoint into a folder; return its path, for Hugging Face."""
    with tarfile.open(fileobj=io.BytesIO(checkpoint_of(run))) as archive:
        archive.extractall(folder, filter="data")
        [name] = {Path(member).parts[0] for member in archive.getnames()}
    return str(Path(folder, name))
