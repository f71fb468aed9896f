"""TensorBoard: the scalars of every arm, and the HParams page."""

from __future__ import annotations

import time
import uuid
from itertools import groupby
from pathlib import Path
from typing import Any

from risingsearch.arms import EpochFacts, SearchFacts
from risingsearch.integrations.trackers.background import Log
from risingsearch.integrations.trackers.tracker import (
    Tracker,
    numbers,
    require,
    shown,
)

SEARCH = "search"
FILE_VERSION = "brain.Event:2"


class TensorBoardTracker(Tracker):
    """Logs a search to TensorBoard.

    A search is a folder of its own, with a run for the search (the best score so far,
    by all epochs spent) and one for each arm, with its parameters for the
    HParams page and a step per epoch; an arm that is paused and revived stays one run.

    Parameters
    ----------
    folder : path, default "tensorboard"
        What ``tensorboard --logdir`` is given.

    Raises
    ------
    MissingDependencyError
        When a search begins, where TensorBoard is not installed.

    Examples
    --------
    >>> TensorBoardTracker("logs").folder.name
    'logs'
    """

    def __init__(self, folder: str | Path = "tensorboard") -> None:
        super().__init__()
        self.folder = Path(folder).absolute()

    def check(self) -> None:
        """Raise a MissingDependencyError where TensorBoard is missing."""
        require("tensorboard")

    def open(self, search: SearchFacts) -> Log:
        """Open the folder of a search."""
        return _Runs(search, self.folder / search.search[:16])


class _Runs(Log):
    """The runs of a search: a folder for each, and a file in it for each log.

    A file that a crash has torn is read up to there, and never added to.
    """

    def __init__(self, search: SearchFacts, folder: Path) -> None:
        self._metric = search.metric
        self._folder = folder
        self._file = f"events.out.tfevents.{int(time.time())}.{uuid.uuid4().hex[:8]}"
        self._logged: dict[str, set[tuple[str, int]]] = {}  # tags and steps, by run

    def write(self, epochs: list[EpochFacts]) -> None:
        """Log those of the epochs that the folder does not have yet."""
        of_arm = sorted(epochs, key=lambda epoch: epoch.arm)
        for arm, told in groupby(of_arm, key=lambda epoch: epoch.arm):
            self._write_arm(arm, list(told))
        self._write(
            SEARCH,
            {
                epoch.number: {f"best_{self._metric}": epoch.best_score}
                for epoch in epochs
                if epoch.is_best
            },
        )

    def close(self, search: SearchFacts) -> None:
        """Do nothing: everything is written, and all files are closed."""

    def _write_arm(self, arm: int, epochs: list[EpochFacts]) -> None:
        trained = {
            epoch.epoch: {self._metric: epoch.score, **numbers(epoch)}
            for epoch in epochs
            if not epoch.is_lost
        }
        begin = hparams(shown(epochs[0].params), self._metric)
        self._write(f"arm-{arm}", trained, begin)

    def _write(
        self,
        run: str,
        values: dict[int, dict[str, float]],
        begin: list[Any] | None = None,
    ) -> None:
        """Log values by step; before the first of all, the summaries to begin with."""
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.compat.proto.summary_pb2 import Summary
        from tensorboard.summary.writer.record_writer import RecordWriter

        path = self._folder / run / self._file
        if run not in self._logged:
            self._logged[run] = _looked_up(path.parent)
        logged, now = self._logged[run], time.time()
        events = [] if path.exists() else [Event(file_version=FILE_VERSION)]
        if not logged and begin:
            events += [Event(summary=summary) for summary in begin]
        for step, named in values.items():
            new = {name: v for name, v in named.items() if (name, step) not in logged}
            scalars = [Summary.Value(tag=n, simple_value=v) for n, v in new.items()]
            if scalars:
                events.append(Event(step=step, summary=Summary(value=scalars)))
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            writer = RecordWriter(file)
            for event in events:
                event.wall_time = now
                writer.write(event.SerializeToString())
        for step, named in values.items():
            logged.update((name, step) for name in named)


def _looked_up(folder: Path) -> set[tuple[str, int]]:
    """Return the tags and steps in the files of a run."""
    from tensorboard.backend.event_processing.event_file_loader import (
        RawEventFileLoader,
    )
    from tensorboard.compat.proto.event_pb2 import Event

    return {
        (value.tag, event.step)
        for path in sorted(folder.glob("events.out.tfevents.*"))
        for event in map(Event.FromString, RawEventFileLoader(str(path)).Load())
        for value in event.summary.value
    }


def hparams(params: dict[str, Any], metric: str) -> list[Any]:
    """Return the summaries that put a run on the HParams page."""
    from tensorboard.plugins.hparams.api_pb2 import (
        DATA_TYPE_BOOL,
        DATA_TYPE_FLOAT64,
        DATA_TYPE_STRING,
        Experiment,
        HParamInfo,
        MetricInfo,
        MetricName,
    )
    from tensorboard.plugins.hparams.metadata import (
        EXPERIMENT_TAG,
        SESSION_START_INFO_TAG,
    )
    from tensorboard.plugins.hparams.plugin_data_pb2 import (
        HParamsPluginData,
        SessionStartInfo,
    )

    kinds = {bool: DATA_TYPE_BOOL, str: DATA_TYPE_STRING}
    start = SessionStartInfo(start_time_secs=time.time())
    infos = []
    for name, value in params.items():
        kind = kinds.get(type(value), DATA_TYPE_FLOAT64)
        infos.append(HParamInfo(name=name, type=kind))
        field = {DATA_TYPE_BOOL: "bool_value", DATA_TYPE_STRING: "string_value"}
        setattr(start.hparams[name], field.get(kind, "number_value"), value)
    metrics = [MetricInfo(name=MetricName(tag=metric), display_name=metric)]
    experiment = Experiment(hparam_infos=infos, metric_infos=metrics)
    return [
        _summary(EXPERIMENT_TAG, HParamsPluginData(experiment=experiment)),
        _summary(SESSION_START_INFO_TAG, HParamsPluginData(session_start_info=start)),
    ]


def _summary(tag: str, content: Any) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams.metadata import (
        NULL_TENSOR,
        create_summary_metadata,
    )

    metadata = create_summary_metadata(content)
    value = Summary.Value(tag=tag, metadata=metadata, tensor=NULL_TENSOR)
    return Summary(value=[value])
