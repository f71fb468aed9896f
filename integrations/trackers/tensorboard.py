"""TensorBoard: the scalars of every arm, and the HParams page."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from risingsearch.checks import kept_path
from risingsearch.integrations.trackers.tracker import SEARCH_RUN, SearchLog, Tracker

FILE_VERSION = "brain.Event:2"


class _TensorBoardRuns(SearchLog):
    """The runs of a search: a folder for each, and a file in it for each log."""

    def connect(self) -> None:
        self._folder = self.tracker.folder / self.search.search[:16]
        self._file = f"events.out.tfevents.{int(time.time())}.{uuid.uuid4().hex[:8]}"

    def open_run(self, run: str) -> int:
        from tensorboard.backend.event_processing import event_file_loader as reader
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.plugins.hparams import summary_v2 as hparams

        steps = [
            Event.FromString(record).step
            for path in (self._folder / run).glob("events.out.tfevents.*")
            for record in reader.RawEventFileLoader(str(path)).Load()
        ]
        if not steps and run != SEARCH_RUN:
            names = [hparams.HParam(name) for name in self.params[run]]
            columns = hparams.hparams_config_pb(names, [hparams.Metric(self.metric)])
            values = hparams.hparams_pb(self.params[run], trial_id=run)
            self._write(run, 0, columns, values)
        return max(steps, default=0)

    def log(
        self,
        run: str,
        step: int,
        values: Mapping[str, float],
    ) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        scalars = [Summary.Value(tag=k, simple_value=v) for k, v in values.items()]
        self._write(run, step, Summary(value=scalars))

    def _write(self, run: str, step: int, *summaries: object) -> None:
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


@dataclass(eq=False)
class TensorBoardTracker(Tracker):
    """Logs a search to TensorBoard.

    A search is a folder with a run for the search (the best score so far, by all epochs
    spent) and one for each arm, with its parameters for the HParams page and a step per
    epoch; an arm that is paused and revived stays one run.

    Parameters
    ----------
    folder : path, default "tensorboard"
        Folder for ``tensorboard --logdir``.

    Raises
    ------
    MissingDependencyError
        If tensorboard is not installed, when the search begins.

    Examples
    --------
    >>> str(TensorBoardTracker("/logs").folder)
    '/logs'
    """

    package = "tensorboard"
    runs = _TensorBoardRuns
    folder: str | Path = "tensorboard"

    def __post_init__(self) -> None:
        self.folder = kept_path("folder", self.folder)
