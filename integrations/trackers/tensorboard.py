"""TensorBoard: the scalars of every arm, and the HParams page."""

from __future__ import annotations

import time
import uuid
from pathlib import Path
from typing import Any

from risingsearch.arms import EpochFacts, SearchFacts
from risingsearch.integrations.trackers.tracker import (
    SearchLog,
    Tracker,
    numbers,
    shown,
)

SEARCH = "search"
FILE_VERSION = "brain.Event:2"


class TensorBoardTracker(Tracker):
    """Logs a search to TensorBoard.

    A search is a folder with a run for the search (the best score so far, by all epochs
    spent) and one for each arm, with its parameters for the HParams page and a step per
    epoch; an arm that is paused and revived stays one run.

    Parameters
    ----------
    folder : path, default "tensorboard"
        What ``tensorboard --logdir`` is given.

    Raises
    ------
    MissingDependencyError
        When a search begins, if TensorBoard is not installed.

    Examples
    --------
    >>> TensorBoardTracker("logs").folder.name
    'logs'
    """

    package = "tensorboard"

    def __init__(self, folder: str | Path = "tensorboard") -> None:
        super().__init__()
        self.folder = Path(folder).absolute()

    def open(self, search: SearchFacts) -> SearchLog:
        """Open the folder of a search."""
        return _TensorBoardRuns(search, self.folder / search.search[:16])


class _TensorBoardRuns:
    """The runs of a search: a folder for each, and a file in it for each log.

    A file that a crash has torn is read up to there, and never added to.
    """

    def __init__(self, search: SearchFacts, folder: Path) -> None:
        self._metric = search.metric
        self._folder = folder
        self._file = f"events.out.tfevents.{int(time.time())}.{uuid.uuid4().hex[:8]}"
        self._last: dict[str, int] = {}  # logged step, by run; -1: nothing yet

    def write(self, epochs: list[EpochFacts]) -> None:
        """Log those of the epochs that the folder does not have yet."""
        from tensorboard.plugins.hparams import summary_v2 as hparams

        for epoch in epochs:
            run = f"arm-{epoch.arm}"
            if self._last_step(run) < 0:
                params = shown(epoch.params)
                names = [hparams.HParam(name) for name in params]
                metrics = [hparams.Metric(self._metric)]
                columns = hparams.hparams_config_pb(names, metrics)
                self._add(run, 0, columns, hparams.hparams_pb(params, trial_id=run))
            if not epoch.is_lost:
                values = {self._metric: epoch.score, **numbers(epoch)}
                self._log(run, epoch.epoch, values)
            if epoch.is_best:
                best = {f"best_{self._metric}": epoch.best_score}
                self._log(SEARCH, epoch.number, best)

    def close(self, search: SearchFacts) -> None:
        """Do nothing: everything is written, and all files are closed."""

    def _log(self, run: str, step: int, values: dict[str, float]) -> None:
        """Log the values of a step, unless the run has it already."""
        from tensorboard.compat.proto.summary_pb2 import Summary

        if step > self._last_step(run):
            named = values.items()
            scalars = [
                Summary.Value(tag=tag, simple_value=value) for tag, value in named
            ]
            self._add(run, step, Summary(value=scalars))

    def _last_step(self, run: str) -> int:
        if run not in self._last:
            self._last[run] = max(_steps(self._folder / run), default=-1)
        return self._last[run]

    def _add(self, run: str, step: int, *summaries: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.summary.writer.record_writer import RecordWriter

        path = self._folder / run / self._file
        events = [] if path.exists() else [Event(file_version=FILE_VERSION)]
        events += [Event(step=step, summary=summary) for summary in summaries]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            for event in events:
                event.wall_time = time.time()
                RecordWriter(file).write(event.SerializeToString())
        self._last[run] = step


def _steps(folder: Path) -> list[int]:
    """Return the steps in the files of a run."""
    from tensorboard.backend.event_processing.event_file_loader import (
        RawEventFileLoader,
    )
    from tensorboard.compat.proto.event_pb2 import Event

    return [
        Event.FromString(record).step
        for path in sorted(folder.glob("events.out.tfevents.*"))
        for record in RawEventFileLoader(str(path)).Load()
    ]
