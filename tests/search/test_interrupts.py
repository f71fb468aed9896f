"""Ctrl-C at every line that a run executes: the search continues as without it.

Each case interrupts one line, once, and runs on. Without workers every other line is
interrupted half-way through the run, the others when they are reached. Without a
directory the epochs in flight are charged and their arms given up; with one they are
trained again.
"""

import signal
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

import risingsearch
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
        policy="trusted-damped-slope",
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
    assert scheduler.spent == len(result.history) <= BUDGET
    for arm, params in enumerate(CANDIDATES):
        rows = [row for row in result.history if row["arm"] == arm]
        given_up = [row for row in rows if "failure" in row]
        trained = rows[: len(rows) - len(given_up)]
        assert all(row["failure"] == "interrupted" for row in given_up)
        assert [row["score"] for row in trained] == [
            score_of(params["top"], epoch + 1) for epoch in range(len(trained))
        ]
    assert result.best_state()["epochs"] == result.best_epoch
    assert result.n_calls == sum(row["seconds"] >= 0 for row in result.history)
    arms = [arm.epochs for arm in result.arms]
    assert sum(arms) == result.n_calls


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
