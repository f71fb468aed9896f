"""The published experiments, at their scale: what came out when we first ran them."""

import numpy as np
import pytest

from risingsearch.simulation import compare, simulate

SIGMA = {"sigma": 0.01}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("environment", "horizon", "n_runs", "expected"),
    [
        ("ltf", 10_000, 250, {"cure-ucb": 598, "r-ed-ucb": 823, "sw-ucb": 1555}),
        ("ltf", 50_000, 1000, {"cure-ucb": 3335, "r-ed-ucb": 10_074, "sw-ucb": 6537}),
        ("concave", 10_000, 250, {"cure-ucb": 921, "r-ed-ucb": 2003, "sw-ucb": 2085}),
        ("concave", 50_000, 250, {"cure-ucb": 4206, "r-ed-ucb": 5300, "sw-ucb": 6842}),
    ],
)
def test_regret_of_rising_policies(environment, horizon, n_runs, expected):
    policies = {
        "cure-ucb": ("cure-ucb", SIGMA),
        "r-ed-ucb": ("r-ed-ucb", SIGMA),
        "sw-ucb": "sw-ucb",
    }
    noisy = {environment: (environment, {"noise": 0.01})}
    result = compare(policies, noisy, [horizon], n_runs=n_runs)
    regret = dict(zip(result.policies, result.regret[0, 0].mean(axis=-1), strict=True))
    assert regret == pytest.approx(expected, rel=0.15)


def test_cure_is_never_above_r_ed_on_linear_then_flat_arms_without_noise():
    exact = {"sigma": 0.0, "eps": 1e-9}
    policies = {"cure": ("cure-ucb", exact), "r-ed": ("r-ed-ucb", exact)}
    silent = {"ltf": ("ltf", {"noise": 0.0})}
    result = compare(policies, silent, [5000, 50_000], n_runs=60)
    cure, r_ed = result.regret[0].swapaxes(0, 1)
    assert np.all(cure <= r_ed + 1e-6 * r_ed)


D_UCB = {"rotting-np": 0.999, "rotting-av": 0.999999, "rotting-anv": 0.999999}
SW_UCB = {"rotting-np": 4000, "rotting-av": 8000, "rotting-anv": 16_000}
ROTTING = {
    "rotting-np": {
        "means": {"ucb1": 2008, "d-ucb": 638, "sw-ucb": 486, "wswa": 63},
        "wins": {
            "d-ucb": {"ucb1": 100},
            "sw-ucb": {"ucb1": 100, "d-ucb": 100},
            "wswa": {"ucb1": 100, "d-ucb": 100, "sw-ucb": 100},
        },
    },
    "rotting-av": {
        "means": {"ucb1": 497, "d-ucb": 501, "sw-ucb": 587, "wswa": 179},
        "wins": {
            "d-ucb": {"ucb1": 50},
            "sw-ucb": {"ucb1": 6, "d-ucb": 5},
            "wswa": {"ucb1": 100, "d-ucb": 99, "sw-ucb": 100},
            "cto-sim": {"ucb1": 100, "d-ucb": 100, "sw-ucb": 100, "wswa": 100},
        },
    },
    "rotting-anv": {
        "means": {
            "ucb1": 487,
            "d-ucb": 494,
            "sw-ucb": 509,
            "wswa": 222,
            "d-cto-sim-ucb": 181,
        },
        "wins": {
            "d-ucb": {"ucb1": 43},
            "sw-ucb": {"ucb1": 41, "d-ucb": 41},
            "wswa": {"ucb1": 99, "d-ucb": 99, "sw-ucb": 99},
            "d-cto-sim-ucb": {"ucb1": 100, "d-ucb": 100, "sw-ucb": 100, "wswa": 69},
        },
    },
}


@pytest.mark.parametrize("environment", ROTTING)
def test_rotting_bandits_table_1(environment):
    sigma = {"sigma": 0.2**0.5}
    policies = {
        "ucb1": "ucb1",
        "d-ucb": ("d-ucb", {"discount": D_UCB[environment]}),
        "sw-ucb": ("sw-ucb", {"window": SW_UCB[environment], "xi": 2.0}),
        "wswa": ("wswa", {"alpha": 0.2} | sigma),
    }
    if environment == "rotting-av":
        policies["cto-sim"] = "cto-sim"
    if environment == "rotting-anv":
        policies["d-cto-sim-ucb"] = ("d-cto-sim-ucb", sigma)
    result = compare(policies, [environment], [30_000], n_runs=300)
    regret = dict(zip(result.policies, result.regret[0, 0].mean(axis=-1), strict=True))
    for policy, mean in ROTTING[environment]["means"].items():
        assert regret[policy] == pytest.approx(mean, rel=0.15), policy
    if "cto-sim" in regret:
        assert regret["cto-sim"] < 20
    wins = 100 * result.wins(environment, 30_000)
    for row, columns in ROTTING[environment]["wins"].items():
        for column, expected in columns.items():
            close = pytest.approx(expected, abs=10)
            assert wins.loc[row, column] == close, (row, column)


# One test, because several may run in several processes, each with runs of its own.
def test_the_raven_experiment_against_the_static_reference():
    def regret(policy, n_runs=50, **params):
        result = simulate(
            policy,
            "logistics",
            50_000,
            n_runs=n_runs,
            policy_params=params,
            environment_params={"reference": "static"},
        )
        return result.regret[:, -1].mean()

    capped = {"reward_range": (0.3, 0.8)}
    as_in_script = {"denominator": "n+1"}
    found = {
        "raven-ucb": regret("raven-ucb", variance="table4"),
        "ccb": regret("ccb"),
        "thompson-beta": regret("thompson-beta", n_runs=20, fractional=True, **capped),
        "epsilon-greedy": regret("epsilon-greedy"),
        "ucb1": regret("ucb1", n_runs=10, **as_in_script),
        "ucb-v": regret(
            "ucb-v", n_runs=10, variance="table4", zeta=1.0, **as_in_script
        ),
        "ucb-improved": regret("ucb-improved", n_runs=10, order="random"),
    }
    assert found["raven-ucb"] == pytest.approx(1810, abs=250)
    assert sorted(found, key=found.get) == list(found)
    f_dsw = regret("f-dsw-ts", n_runs=3, discount=0.99, window=None, **capped)
    assert found["epsilon-greedy"] < f_dsw < found["ucb-v"]
