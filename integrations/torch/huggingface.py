"""Hugging Face: a ``Trainer`` as a trainable, one epoch or some steps at a time."""

import io
import logging
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from risingsearch.checks import checked_int
from risingsearch.errors import MissingDependencyError, NotTrainableError, SetupError
from risingsearch.integrations.torch.paused_runs import (
    FrameworkTrainable,
    PausedRun,
    quiet_log,
)
from risingsearch.integrations.torch.random_states import alone, kept_random_states

try:
    from transformers import PrinterCallback, Trainer, TrainerCallback
    from transformers.trainer import DEFAULT_PROGRESS_CALLBACK
except ModuleNotFoundError as error:
    msg = "transformers is not installed; run: pip install 'transformers[torch]'"
    raise MissingDependencyError(msg) from error


class RisingTrainerCallback(TrainerCallback):  # type: ignore[misc]
    """Callback of ``HuggingFaceTrainable``: ends an epoch, or so many steps."""

    def __init__(self, n_steps: int | None) -> None:
        self.n_steps = n_steps  # until it stops; None for the end of the epoch
        self.metrics: dict[str, float] = {}  # of the evaluation
        self.first_step = 0  # steps that the run had trained when it began
        self.is_over = False  # whether the Trainer would end here by itself
        self._is_last = False  # whether no step follows in this epoch

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Note where this job begins."""
        self.first_step = state.global_step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop after so many steps, or the last."""
        if self.n_steps is not None:
            last = min(self.first_step + self.n_steps, state.max_steps)
            if state.global_step >= last:
                self._stop(control)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop after the epoch."""
        if self.n_steps is None:
            self._stop(control)

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Any = None, **_: Any
    ) -> None:
        """Keep the metrics."""
        self.metrics = dict(metrics or {})

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop, and note whether another has stopped before."""
        if self._is_last:
            self.is_over = control.should_training_stop
            control.should_training_stop = True

    def _stop(self, control: Any) -> None:
        control.should_evaluate = True
        control.should_save = True
        self._is_last = True


class HuggingFaceTrainable(FrameworkTrainable[PausedRun]):
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

    run_type = PausedRun

    def __init__(
        self,
        build: Callable[[dict[str, Any], int, str], Trainer],
        *,
        monitor: str,
        n_steps: int | None = None,
    ) -> None:
        self.build, self.monitor = build, monitor
        self.n_steps = None if n_steps is None else checked_int("n_steps", n_steps, 1)

    def train(self, run: PausedRun) -> dict[str, float]:
        """Train one more epoch; return the monitored metric and all others."""
        if run.is_over:
            raise StopIteration
        with alone(), kept_random_states(), tempfile.TemporaryDirectory() as folder:
            callback = RisingTrainerCallback(self.n_steps)
            trainer = self.build(dict(run.params), run.seed, folder)
            if trainer.args.save_only_model:
                msg = "save_only_model=True leaves out the optimizer: build without it"
                raise SetupError(msg)
            trainer.add_callback(callback)
            for progress in (PrinterCallback, DEFAULT_PROGRESS_CALLBACK):
                trainer.pop_callback(progress)  # the search has its own
            trainer.args.restore_callback_states_from_checkpoint = True
            trainer.args.save_total_limit = None  # the folder is a temporary one
            trainer.args.save_strategy = type(trainer.args.save_strategy)("no")
            before = None if run.checkpoint is None else unpacked(run, folder)
            # A resumed run would be warned of folders that are no more.
            with quiet_log("transformers", logging.ERROR if before else logging.NOTSET):
                trainer.train(resume_from_checkpoint=before)
            if trainer.state.global_step == callback.first_step:
                raise StopIteration  # the Trainer had no step left
            metrics, advice = callback.metrics, "let compute_metrics return it"
            self._check_monitored(metrics, "the evaluation has returned", advice)
            last = f"checkpoint-{trainer.state.global_step}"
            file = io.BytesIO()
            with tarfile.open(fileobj=file, mode="w") as archive:
                archive.add(Path(folder, last), last)
            run.checkpoint, run.is_over = file.getvalue(), callback.is_over
        others = {
            name: float(value)
            for name, value in metrics.items()
            if name not in (self.monitor, "epoch")
        }
        return {"score": float(metrics[self.monitor]), **others}

    def best_model(self, run: PausedRun) -> Any:
        """Return the model of a run with its weights, from ``result.best_state()``."""
        with kept_random_states(), tempfile.TemporaryDirectory() as folder:
            trainer = self.build(dict(run.params), run.seed, folder)
            trainer._load_from_checkpoint(unpacked(run, folder))
            return trainer.model


def unpacked(run: PausedRun, folder: str) -> str:
    """Write a run's checkpoint into a folder; return its path, for Hugging Face."""
    if run.checkpoint is None:
        raise NotTrainableError("this run has no checkpoint yet: train it first")
    with tarfile.open(fileobj=io.BytesIO(run.checkpoint)) as archive:
        archive.extractall(folder, filter="data")
        [name] = {Path(member).parts[0] for member in archive.getnames()}
    return str(Path(folder, name))
