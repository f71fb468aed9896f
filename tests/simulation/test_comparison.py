import numpy as np
import pytest
from scipy import stats

from risingsearch.curves.rested import CurveTable
from risingsearch.errors import InvalidParameterError
from risingsearch.simulation import compare, simulate

POLICIES = {
    "cure": ("cure-ucb", {"sigma": 0.01}),
    "even": "round-robin",
    "chance": "random",
}


@pytest.fixture(scope="module")
def comparison():
    return compare(POLICIES, ["ltf"], [200, 1000], 12, 3, compiled=False)


@pytest.mark.usefixtures("interpreted")
def test_runs_are_those_that_simulate_plays(comparison):
    alone = simulate("cure-ucb", "ltf", 1000, 12, 3, policy_params={"sigma": 0.01})
    np.testing.assert_array_equal(comparison.regret[0, 1, 0], alone.regret[:, -1])
    np.testing.assert_array_equal(comparison.best_mean[0, 1, 0], alone.best_mean[:, -1])


def test_frame_has_mean_interval_and_rank(comparison):
    frame = comparison.to_frame().set_index(["horizon", "policy"])
    row = frame.loc[1000, "cure"]
    regret = comparison.regret[0, 1, 0]
    interval = stats.t.interval(0.95, 11, regret.mean(), stats.sem(regret))
    assert (row.low, row.high) == pytest.approx(interval)
    assert row.mean_regret == pytest.approx(regret.mean())
    ranks = frame.loc[1000].average_rank
    assert ranks.sum() == pytest.approx(6.0)
    assert ranks.idxmin() == "cure"


def test_wins_are_shares_of_the_runs(comparison):
    wins = comparison.wins("ltf", 1000)
    regret = comparison.regret[0, 1]
    assert wins.loc["cure", "even"] == np.mean(regret[0] < regret[1])
    assert wins.loc["cure", "even"] + wins.loc["even", "cure"] == pytest.approx(1.0)
    assert np.isnan(wins.loc["cure", "cure"])


def test_ties_count_half():
    flat = CurveTable.create(np.full((2, 30), 0.5), 0.01)
    tied = compare(["random", "round-robin"], {"flat": flat}, [30], 3, compiled=False)
    assert tied.wins("flat", 30).loc["random", "round-robin"] == 0.5
    assert tied.to_frame().average_rank.tolist() == [1.5, 1.5]


def test_the_same_name_twice_is_refused():
    pair = [("cure-ucb", {"eps": 0.25}), ("cure-ucb", {"eps": 0.5})]
    with pytest.raises(InvalidParameterError, match="names of your own"):
        compare(pair, ["ltf"], [100])


def test_unknown_environment_or_horizon(comparison):
    with pytest.raises(InvalidParameterError, match="Known: ltf"):
        comparison.wins("concave", 200)
    with pytest.raises(InvalidParameterError, match=r"one of \[200, 1000\]; got 300"):
        comparison.wins("ltf", 300)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"policies": []}, r"policies must be at least one; got \[\]"),
        ({"n_runs": 1.5}, "n_runs must be a whole number of at least 1; got 1.5"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    given = {"policies": ["random"], "environments": ["ltf"], "horizons": [5]}
    with pytest.raises(InvalidParameterError, match=message):
        compare(**(given | arguments))
