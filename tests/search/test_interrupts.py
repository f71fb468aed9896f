"""Ctrl-C at every line that a run executes: the search continues as without it.

Each case interrupts one line, once, and runs on. Without workers every other line is
interrupted half-way through the run, the others when they are reached. Jobs in flight
are trained again.
"""

import signal
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

import risingsearch
from risingsearch.errors import SearchFailedError, SetupError
from risingsearch.search.search import RisingSearch

PACKAGE = Path(risingsearch.__file__).parent
TRACED = tuple(str(PACKAGE / room) for room in ("scheduling", "search", "storage"))
CANDIDATES = [{"top": 0.5 + arm / 10} for arm in range(4)]
BUDGET = 5
N_CHUNKS = 4


class Line(NamedTuple):
    file: str
    number: int


class Tracer:
    """Counts the lines of this thread; interrupts one where it runs the nth time."""

    def __init__(self, line=None, nth=0):
        self.lines = Counter()
        self.line, self.nth = line, nth
        self.files = TRACED if line is None else (line.file,)

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(self.files):
            return None
        if event == "line":
            line = Line(frame.f_code.co_filename, frame.f_lineno)
            self.lines[line] += 1
            if line == self.line and self.lines[line] == self.nth:
                signal.raise_signal(signal.SIGINT)
        return self

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, *exception):
        sys.settrace(None)


class Counting:
    """A state that has trained once too often, or not at all, scores wrong."""

    def start(self, params, seed):
        return {"epochs": 0, **params}

    def train(self, state):
        state["epochs"] += 1
        return score_of(state["top"], state["epochs"])


def score_of(top, epoch):
    return top * (1 - 1 / (epoch + 1))


def a_search(executor, run_dir, deterministic):
    return RisingSearch(
        Counting(),
        CANDIDATES,
        policy="looks-then-slope",
        proposer=None,
        budget=BUDGET,
        max_epochs=3,
        seed=1,
        deterministic=deterministic,
        executor=executor,
        n_jobs=None if executor is None else 2,
        run_dir=run_dir,
    )


def check_whole(search, result):
    """Nothing is lost, trained twice or overspent."""
    scheduler = search.scheduler
    assert not scheduler.in_flight
    assert scheduler.done
    assert scheduler.spent == len(result.history) == BUDGET
    for arm, params in enumerate(CANDIDATES):
        rows = [row for row in result.history if row["arm"] == arm]
        assert [row["score"] for row in rows] == [
            score_of(params["top"], epoch + 1) for epoch in range(len(rows))
        ]
    assert result.best_state()["epochs"] == result.best_epoch
    assert result.n_calls == len(result.history)
    assert sum([arm.epochs for arm in result.arms]) == result.n_calls


def decisions(result):
    return [(row["arm"], row["epoch"], row["score"]) for row in result.history]


# An interrupt between the opening of a file and ``with`` leaves it to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(N_CHUNKS))
@pytest.mark.parametrize(
    ("where", "deterministic", "kept"),
    [
        ("here", False, False),
        ("here", True, True),
        ("threads", False, False),
        ("threads", True, True),
    ],
)
def test_at_every_line(tmp_path, where, deterministic, kept, chunk):
    executor = ThreadPoolExecutor(2) if where == "threads" else None

    def searched(name):
        return a_search(executor, tmp_path / name if kept else None, deterministic)

    whole = searched("whole")
    with Tracer() as plain:
        expected = whole.run()
    n_hit = 0
    for i, (line, count) in enumerate(sorted(plain.lines.items())[chunk::N_CHUNKS]):
        late = executor is None and i % 2 == kept
        nth = count // 2 + 1 if late else 1
        search = searched(f"{i}-{nth}")
        tracer = Tracer(line, nth)
        try:
            with tracer:
                search.run()
        except KeyboardInterrupt:
            n_hit += 1
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        result = search.run()
        check_whole(search, result)
        if kept:
            assert decisions(result) == decisions(expected), (line, nth)
            again = a_search(executor, tmp_path / f"{i}-{nth}", deterministic)
            assert decisions(again.result()) == decisions(expected)
            assert again.scheduler.state_dict() == search.scheduler.state_dict()
    assert n_hit > 50
    if executor is not None:
        executor.shutdown()


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("event", [KeyboardInterrupt, SystemExit, OSError, SetupError])
def test_events_of_the_environment_fail_no_arm(tmp_path, event, workers, kept):
    def raising(epoch):
        if epoch.number == 2:
            raise event

    executor = workers and ThreadPoolExecutor(workers)
    search = a_search(executor, tmp_path / "run" if kept else None, True)
    search.callbacks = [raising]
    with pytest.raises(event):
        search.run()
    assert "failed" not in search.scheduler.statuses()
    search.callbacks = []
    result = search.run()
    check_whole(search, result)
    assert decisions(result) == decisions(a_search(executor, None, True).run())


def test_a_pool_that_is_closed_fails_no_arm():
    def close(epoch):
        if epoch.number == 2:
            executor.shutdown()

    executor = ThreadPoolExecutor(2)
    search = a_search(executor, None, False)
    search.callbacks = [close]
    with pytest.raises(SearchFailedError, match="after shutdown") as raised:
        search.run()
    assert raised.value.result.n_epochs == search.result().n_calls
    assert not raised.value.result.failures
    assert "failed" not in search.scheduler.statuses()
