from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from risingsearch.curves.rested import CurveTable
from risingsearch.errors import InvalidParameterError, PolicyError
from risingsearch.policies import make_policy
from risingsearch.policies.rising.cure_ucb import CureUCB
from risingsearch.simulation import simulate

interpreted = partial(simulate, compiled=False)
N = np.arange(1, 301)
TWO_ARMS = CurveTable.create([np.full(300, 0.4), N / 300], 0.01, "best-arm")


def test_shapes_and_what_the_rows_mean():
    result = simulate("cure-ucb", TWO_ARMS, 300, n_runs=4, checkpoints=[10, 150, 300])
    assert result.regret.shape == result.reward.shape == (4, 3)
    assert result.optimal.shape == result.best_mean.shape == (4, 3)
    assert result.pulls.shape == (4, 2)
    assert result.pulls.sum(axis=1).tolist() == [300] * 4
    assert result.n_played.tolist() == [300] * 4
    np.testing.assert_array_equal(result.regret, result.optimal - result.reward)
    np.testing.assert_allclose(
        result.optimal[0], TWO_ARMS.optimal(np.array([10, 150, 300]))
    )
    assert result.arms is None
    assert result.rewards is None
    assert "cure-ucb in CurveTable, 300 rounds, 4 runs" in repr(result)


def test_reward_adds_up_the_means_of_the_arms_pulled():
    result = interpreted("random", TWO_ARMS, 50, trace=True, seed=4)
    n = np.zeros(2, dtype=int)
    total = 0.0
    for arm in result.arms[0]:
        n[arm] += 1
        total += TWO_ARMS.mean(arm, n[arm], 0)
    assert result.reward[0, 0] == pytest.approx(total)
    assert result.pulls[0].tolist() == n.tolist()


@pytest.mark.parametrize(
    ("policy", "simulate"), [("random", interpreted), ("cure-ucb", simulate)]
)
def test_runs_do_not_depend_on_jobs_nor_on_how_many_there_are(policy, simulate):
    two = simulate(policy, "ltf", 200, n_runs=7, seed=5, jobs=2, trace=True)
    one = simulate(policy, "ltf", 200, n_runs=3, seed=5, jobs=1, trace=True)
    np.testing.assert_array_equal(two.regret[:3], one.regret)
    np.testing.assert_array_equal(two.arms[:3], one.arms)
    np.testing.assert_array_equal(two.rewards[:3], one.rewards)
    other = simulate(policy, "ltf", 200, n_runs=3, seed=6)
    assert not np.array_equal(other.regret, one.regret)


def test_arms_of_a_run_are_the_same_for_every_policy_and_horizon():
    long = interpreted("random", "ltf", 500, n_runs=5, checkpoints=[100, 500])
    short = interpreted("round-robin", "ltf", 100, n_runs=5)
    np.testing.assert_array_equal(long.optimal[:, 0], short.optimal[:, 0])


def test_a_policy_may_be_a_name_a_class_or_a_factory():
    given = [
        simulate("cure-ucb", TWO_ARMS, 80, policy_params={"sigma": 0.1}),
        simulate(CureUCB, TWO_ARMS, 80, policy_params={"sigma": 0.1}),
        simulate(CureUCB.create, TWO_ARMS, 80, policy_params={"sigma": 0.1}),
        simulate(partial(make_policy, "cure-ucb", sigma=0.1), TWO_ARMS, 80),
    ]
    assert len({result.regret[0, 0] for result in given}) == 1
    names = [result.policy for result in given]
    assert names == ["cure-ucb", "CureUCB", "CureUCB", "make_policy"]


def test_an_environment_may_be_a_name_a_generator_or_ready_made():
    def pair(rng, horizon, *, gap=0.1):
        return CurveTable.create([[0.5] * horizon, [0.5 + gap] * horizon])

    quiet = {"noise": 0.0}
    named = interpreted("round-robin", "two-arm", 10, environment_params=quiet)
    assert named.environment == "two-arm"
    made = interpreted("round-robin", pair, 10, environment_params={"gap": 0.2})
    assert made.environment == "pair"
    assert made.regret[0, 0] == pytest.approx(1.0)
    ready = interpreted("round-robin", pair(None, 10), 10)
    assert ready.regret[0, 0] == pytest.approx(0.5)


def test_policies_are_told_how_long_the_curves_are():
    table = np.full((3, 4), 0.5)
    table[1, 2:] = np.nan
    result = interpreted("random-search", CurveTable.create(table), 100)
    assert result.pulls[0].tolist() == [4, 2, 4]
    assert result.n_played[0] == 10
    assert result.regret[0, 0] == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("given", "rounds"),
    [(None, [90]), (3, [30, 60, 90]), ([1, 90], [1, 90]), (200, list(range(1, 91)))],
)
def test_checkpoints(given, rounds):
    result = interpreted("random", TWO_ARMS, 90, checkpoints=given)
    assert result.checkpoints.tolist() == rounds


def test_to_frame():
    frame = interpreted(
        "random", TWO_ARMS, 40, n_runs=2, checkpoints=[20, 40]
    ).to_frame()
    assert frame["run"].tolist() == [0, 0, 1, 1]
    assert frame["round"].tolist() == [20, 40, 20, 40]
    assert set(frame["policy"]) == {"random"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number of at least 1; got 0"),
        ({"checkpoints": [51]}, "increasing rounds from 1 to the horizon 50"),
        ({"environment_params": {"noise": 0.1}}, "ready-made environment"),
        (
            {"policy": make_policy("random", 2, 50)},
            r"policy must be a registered name or a function of \(n_arms, .* Uniform",
        ),
        (
            {"policy": CureUCB, "policy_params": {"sigmo": 3}},
            r"CureUCB must take \(n_arms, horizon, max_pulls\) and policy_params "
            r"{'sigmo': 3}: got an unexpected keyword argument 'sigmo'",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    given = {"policy": "random", "environment": TWO_ARMS, "horizon": 50}
    given |= {"compiled": False} | arguments
    with pytest.raises(InvalidParameterError, match=message):
        simulate(**given)


def test_unknown_names_are_answered_with_the_closest():
    with pytest.raises(InvalidParameterError, match="did you mean 'cure-ucb'"):
        simulate("cure", TWO_ARMS, 5)
    with pytest.raises(InvalidParameterError, match="did you mean 'two-arm'"):
        simulate("random", "two-arms", 5)


def test_a_policy_must_fit_the_environment():
    with pytest.raises(PolicyError, match=r"length n_arms=2, .* it has bool of shape"):
        simulate(lambda *_: make_policy("random", 3, 50), TWO_ARMS, 50)


class Partial(NamedTuple):
    """A policy of which something is missing."""

    available: object
    pulls_left: object

    def select(self, t, rng):
        return 7

    def update(self, t, arm, reward, rng):
        pass


class NoUpdate(Partial):
    update = None


class NoGenerator(Partial):
    def select(self, t):
        return 0


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (NoUpdate(None, None), "with select and update; NoUpdate lacks update"),
        (NoGenerator(None, None), r"NoGenerator.select must take \(t, rng\): too many"),
        (Partial(None, None), "array available of type bool.*; it has none"),
        (
            Partial(np.ones(2, dtype=bool), np.full(2, 50.0)),
            "pulls_left of type integer .* has float64 of shape",
        ),
        (
            Partial(np.ones(2, dtype=bool), np.full(2, 50)),
            "Partial, after 0 pulls: select must return an available arm or WAIT",
        ),
    ],
)
def test_a_policy_must_keep_the_contract(policy, message):
    with pytest.raises(PolicyError, match=message):
        simulate(lambda *_: policy, TWO_ARMS, 50, compiled=False)
