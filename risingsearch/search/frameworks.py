"""Base of the adapters for frameworks that write checkpoints themselves."""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from zipfile import ZipFile

from risingsearch.arms import Configuration, Params
from risingsearch.errors import NotTrainableError, SetupError
from risingsearch.json_values import as_json, from_json

Metric = TypeVar("Metric")
Fields = dict[str, Any]
"""The fields of a run, by name."""


@dataclass
class PausedRun:
    """A run between two slices, with its framework's own checkpoint as bytes.

    Parameters
    ----------
    params : dict
        The parameters of the arm.
    seed : int
        The seed of the arm.
    checkpoint : bytes, optional
        As the framework writes it; None before the first epoch.
    is_over : bool, default False
        Whether the framework itself has ended the training.
    """

    params: Params
    seed: int
    checkpoint: bytes | None = field(default=None, repr=False)
    is_over: bool = False


RunT = TypeVar("RunT", bound=PausedRun)


class FrameworkTrainable(ABC, Generic[RunT]):
    """Base class of adapters: starts, saves and loads the paused runs of a framework.

    An adapter defines ``train_epoch``. One whose runs have more fields gives their
    class as ``run_type``, and if JSON has no place for these, ``write`` and ``read``.

    Attributes
    ----------
    run_type : type
        Class of the runs, ``PausedRun`` or one derived from it.
    monitor : str
        The metric that is the score.

    Examples
    --------
    >>> class Approach(FrameworkTrainable[PausedRun]):
    ...     monitor = "accuracy"
    ...
    ...     def train_epoch(self, run):
    ...         weight = json.loads(run.checkpoint or b"0.0")
    ...         weight += run.params["rate"] * (1 - weight)
    ...         run.checkpoint = json.dumps(weight).encode()
    ...         metrics = {"accuracy": weight}
    ...         score = self.monitored(metrics, "evaluate has returned", "return it")
    ...         return {"score": score}
    >>> from risingsearch.testing import check_trainable
    >>> check_trainable(Approach(), {"rate": 0.5})
    """

    run_type: type[Any] = PausedRun
    monitor: str

    @abstractmethod
    def train_epoch(self, run: RunT) -> dict[str, float]:
        """Train a run one more epoch, from its checkpoint to the next.

        It makes the model of ``run.params`` and ``run.seed``, gives it the state in
        ``run.checkpoint`` if there is one, and replaces that when the epoch is over.

        Parameters
        ----------
        run : PausedRun
            The run, which is changed.

        Returns
        -------
        dict of str to float
            The ``"score"``, and other metrics.

        Raises
        ------
        StopIteration
            If there is nothing more to train.
        """

    def start(self, params: Configuration, seed: int) -> RunT:
        """Return a run that has not trained yet."""
        run: RunT = self.run_type(dict(params), seed)
        return run

    def train(self, run: RunT) -> dict[str, float]:
        """Train one more epoch; return the monitored metric and all others."""
        if run.is_over:
            raise StopIteration
        return self.train_epoch(run)

    def save(self, run: RunT, path: str) -> None:
        """Write a run to a file."""
        self.write({**vars(run), "params": params_as_text(run.params)}, path)

    def load(self, path: str) -> RunT:
        """Return the run of a file."""
        fields = self.read(path)
        fields["params"] = params_from_text(fields["params"])
        run: RunT = self.run_type(**fields)
        return run

    def write(self, fields: Fields, path: str) -> None:
        """Write the fields of a run to a file: bytes as they are, others as JSON.

        Parameters
        ----------
        fields : mapping of str to object
            The fields by name; the parameters are text.
        path : str
            The file.
        """
        others = dict(fields)
        with ZipFile(path, "w") as archive:
            for name, value in fields.items():
                if isinstance(value, bytes):
                    archive.writestr(name, others.pop(name))
            archive.writestr("run.json", json.dumps(as_json(others)))

    def read(self, path: str) -> Fields:
        """Read the fields that ``write`` was given; nothing is unpickled.

        Parameters
        ----------
        path : str
            The file.

        Returns
        -------
        dict of str to object
            The fields by name.
        """
        with ZipFile(path) as archive:
            contents = {name: archive.read(name) for name in archive.namelist()}
        fields: Fields = from_json(json.loads(contents.pop("run.json")))
        return fields | contents

    def monitored(self, metrics: Mapping[str, Metric], who: str, advice: str) -> Metric:
        """Return the metric that is the score.

        Parameters
        ----------
        metrics : mapping of str to float
            All metrics of the epoch.
        who : str
            Who has returned them and how, for the message.
        advice : str
            The remedy if it is missing, for the message.

        Returns
        -------
        float
            That of the name ``monitor``.

        Raises
        ------
        SetupError
            If it is missing.
        """
        if self.monitor not in metrics:
            raise SetupError(
                f"{who} {sorted(metrics)}, and monitor is {self.monitor!r}: {advice}"
            )
        return metrics[self.monitor]


def checkpoint_of(run: PausedRun) -> bytes:
    """Return the checkpoint of a run; a NotTrainableError if it has not trained."""
    if run.checkpoint is None:
        raise NotTrainableError("this run has no checkpoint yet: train it first")
    return run.checkpoint


@contextmanager
def quiet_log(name: str, level: int) -> Iterator[None]:
    """Silence the log messages of a framework below a level."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(max(before, level))
    try:
        yield
    finally:
        logger.setLevel(before)


def params_as_text(params: Params) -> str:
    """Return the parameters of a run as JSON; a NotTrainableError if that fails."""
    try:
        return json.dumps(as_json(params))
    except TypeError as error:
        raise NotTrainableError(
            f"the params of a run are saved as JSON: {error}"
        ) from error


def params_from_text(text: str) -> Params:
    """Return the parameters that ``params_as_text`` was given."""
    params: Params = from_json(json.loads(text))
    return params
