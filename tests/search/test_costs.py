"""What jobs cost: as train says, or the time of their training in the budget's unit."""

import json
import math

import pytest
from example_search import start

from risingsearch import Budget, Functions, RisingSearch
from risingsearch.arms import Job, Report
from risingsearch.errors import SearchFailedError
from risingsearch.search import training
from risingsearch.search.loop import with_cost
from risingsearch.search.training import Outcome, count_seconds

CANDIDATES = [{"top": top / 10} for top in range(1, 10)]


def train(state):
    state["epochs"] += 1
    return {"score": state["top"] * (1 - 0.7 ** state["epochs"]), "cost": state["top"]}


def search(budget, trained=None, **options):
    return RisingSearch(
        trained or Functions(start, train),
        CANDIDATES,
        budget=budget,
        max_epochs=8,
        seed=0,
        **options,
    )


@pytest.mark.parametrize(
    ("unit", "gpus", "cost"),
    [
        ("epochs", 1.0, 7200.0),
        ("seconds", 4.0, 7200.0),
        ("hours", 4.0, 2.0),
        ("gpu_hours", 4.0, 8.0),
        ("gpu_hours", 0.5, 1.0),
        ("wall_hours", 1.0, 2.0),
        ("cost", 1.0, 5.0),
    ],
)
def test_what_two_hours_of_training_have_cost(unit, gpus, cost):
    report = Report(Job(0, 0, 2, 0), (0.1, 0.2), (1.0, 1.0), ({"cost": 2}, {"cost": 3}))
    outcome = Outcome(report, False, None, None, 2, 7200.0)
    assert with_cost(outcome, unit, gpus).cost == cost


def test_any_cost_that_train_returns_is_spent():
    result = search(Budget(cost=6)).run()
    paid = math.fsum(row["cost"] for row in result.history)
    assert result.spent == pytest.approx(paid)
    assert 5.0 < paid <= 6.0 + 0.9
    assert result.budget == Budget(cost=6)


def test_a_cost_goes_on_where_it_was(tmp_path):
    whole = search(Budget(cost=6)).run()
    half = search(Budget(cost=6), run_dir=tmp_path / "run")
    half.callbacks = [lambda epoch: epoch.stop()]
    half.run()
    went_on = search(Budget(cost=6), run_dir=tmp_path / "run").run()
    assert went_on.spent == whole.spent
    assert went_on.curves == whole.curves


@pytest.mark.parametrize("cost", [None, -1.0, math.nan, "much", 1e200, 10**400])
def test_an_epoch_has_to_say_what_it_has_cost(cost):
    def without(state):
        return train(state) | {"cost": cost}

    with pytest.raises(SearchFailedError, match="train must return a mapping with"):
        search(Budget(cost=6), Functions(start, without)).run()


def test_gpu_hours_count_the_gpus_of_a_job():
    trainable = Functions(start, train, gpus=4)
    result = search(Budget(gpu_hours=1e-9), trainable).run()
    assert result.spent == pytest.approx(result.training_seconds * 4 / 3600)


@pytest.mark.parametrize("gpus", [0, -1, "2"])
def test_gpus_of_a_job_are_above_0(gpus):
    with pytest.raises(ValueError, match="gpus of the trainable must be"):
        search("1gpu-h", Functions(start, train, gpus=gpus))


def test_a_budget_begun_in_seconds_goes_on_in_hours(tmp_path):
    search(Budget(seconds=7200), run_dir=tmp_path / "run")
    again = search("2h", run_dir=tmp_path / "run")
    assert (again.scheduler.budget, again.scheduler.unit) == (7200, "seconds")


def test_the_kind_of_an_earlier_failure_is_known(tmp_path):
    def fails(state):
        return {}["train.csv"]

    for _ in range(2):
        one = search(10, Functions(start, fails), run_dir=tmp_path / "run")
        with pytest.raises(SearchFailedError, match=r"KeyError: 'train\.csv'"):
            one.run()
    journal = (tmp_path / "run" / "journal.jsonl").read_text()
    assert '"failure_type":"KeyError"' in journal.replace(" ", "")
    assert json.dumps("'train.csv'") in journal


@pytest.fixture
def still(monkeypatch):
    """Let no time pass by the clock of the trainables."""
    monkeypatch.setattr(training.time, "perf_counter", lambda: 0.0)


def test_time_that_a_trainable_has_waited_is_no_training_time(still):
    def waits(state):
        count_seconds(1.0)  # whatever the clock says
        count_seconds(0.5)
        return train(state)

    result = search(Budget(seconds=6.0), Functions(start, waits)).run()
    assert (result.n_epochs, result.spent) == (4, 6.0)
    assert result.history["seconds"] == [1.5] * 4
