"""What is said of jobs that start slowly."""

import math

import pytest

from risingsearch import Functions, RisingSearch
from risingsearch.arms import Job
from risingsearch.budget import Budget
from risingsearch.scheduling.events import Extended, Failed, Returned
from risingsearch.search import training
from risingsearch.search.progress import Starts
from risingsearch.search.training import count_seconds


def starts_of(*jobs, max_epochs=81):
    starts = Starts(max_epochs)
    for n_epochs, seconds, startup in jobs:
        starts.add(n_epochs, seconds, startup)
    return starts


@pytest.mark.parametrize(
    ("job", "max_epochs", "wanted"),
    [
        ((2, 32.0, 30.0), 81, 15),
        ((2, 32.0, 30.0), 50, 50),  # a start takes more than half an arm
        ((2, 4.0, 1.0), 81, None),  # a quarter of the time is little
    ],
)
def test_jobs_should_train_half_as_long_as_they_start(job, max_epochs, wanted):
    assert starts_of(*[job] * 5, max_epochs=max_epochs).wanted() == wanted


def test_a_few_starts_and_unknown_ones_say_nothing():
    known, unknown = (2, 32.0, 30.0), (1, 31.0, math.nan)
    assert starts_of(*[known] * 4, unknown, (1, 31.0, None)).advice(None) is None
    assert "set epochs_per_job to 15" in starts_of(*[known] * 5).advice(None)


def test_events_of_a_journal_say_it_too():
    facts = {"job": Job(0, 0, 2, 0), "scores": (0.1, 0.2), "elapsed": 32.0}
    event = Returned(**facts, startup=30.0)
    failed = Failed(**facts, startup=30.0, failure="no disk", charged=2)
    unknown = Returned(**facts, startup=math.nan)
    events = [*[event] * 5, failed, Extended(budget=Budget(epochs=2)), unknown]
    starts = Starts.of_events(events, max_epochs=81)
    assert (starts.share, starts.wanted()) == (30 / 32, 15)


def test_a_search_says_once_how_long_its_jobs_should_be(monkeypatch, capsys):
    monkeypatch.setattr(training.time, "perf_counter", lambda: 0.0)

    def start(params, seed):
        count_seconds(30.0)
        return {"epochs": 0, **params}

    def train(state):
        count_seconds(1.0)
        state["epochs"] += 1
        return state["top"] * (1 - 0.7 ** state["epochs"])

    candidates = [{"top": top / 20} for top in range(20)]
    options = {"budget": 60, "max_epochs": 81, "seed": 0, "progress": True}
    RisingSearch(Functions(start, train), candidates, **options).run()
    said = capsys.readouterr().err
    assert said.count("of their time to start") == 1
    assert "30 s a start, 1 s an epoch" in said
