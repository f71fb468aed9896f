"""Runs of frameworks between two slices: parameters, a seed and a checkpoint."""

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, Generic, TypeVar

import torch

from risingsearch.arms import Configuration, Params
from risingsearch.errors import NotTrainableError, SetupError
from risingsearch.json_values import as_json, from_json


@dataclass
class PausedRun:
    """A run between two slices, with its framework's own checkpoint as bytes."""

    params: Params
    seed: int
    checkpoint: bytes | None = field(default=None, repr=False)
    is_over: bool = False  # whether the framework itself has ended the training


RunT = TypeVar("RunT", bound=PausedRun)


class FrameworkTrainable(Generic[RunT]):
    """Base class that starts, saves and loads paused runs of a framework."""

    run_type: type[RunT]
    monitor: str

    def start(self, params: Configuration, seed: int) -> RunT:
        """Return a run that has not trained yet."""
        return self.run_type(dict(params), seed)

    def save(self, run: RunT, path: str) -> None:
        """Write a run to a file."""
        torch.save({**vars(run), "params": params_as_text(run.params)}, path)

    def load(self, path: str) -> RunT:
        """Return the run of a file."""
        saved = read(path)
        return self.run_type(**saved | {"params": params_from_text(saved["params"])})

    def _check_monitored(
        self, metrics: Mapping[str, Any], who: str, advice: str
    ) -> None:
        if self.monitor not in metrics:
            msg = f"{who} {sorted(metrics)}, and monitor is {self.monitor!r}: {advice}"
            raise SetupError(msg)


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


def read(file: str | IO[bytes]) -> Any:
    """Read a file of ``torch.save``, tensors on the CPU and nothing unpickled."""
    return torch.load(file, map_location="cpu", weights_only=True)


def params_as_text(params: Params) -> str:
    """Return the parameters of a run as JSON; a NotTrainableError if that fails."""
    try:
        return json.dumps(as_json(params))
    except TypeError as error:
        msg = f"the params of a run are saved as JSON: {error}"
        raise NotTrainableError(msg) from error


def params_from_text(text: str) -> Any:
    """Return the parameters that ``params_as_text`` was given."""
    return from_json(json.loads(text))
