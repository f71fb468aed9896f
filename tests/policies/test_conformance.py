import pytest

from risingsearch.policies import list_policies
from risingsearch.testing import check_policy

MODELS = [[0.9, 0.8, 0.7, *[0.6] * 45], [0.9, 0.5, 0.3, *[0.1] * 45]]


@pytest.mark.parametrize("name", [info.name for info in list_policies()])
def test_registered_policies_keep_the_contract(name):
    check_policy(name)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("asha", {"eta": 2, "min_pulls": 3}),
        ("be", {"budget_factor": 0.01, "epoch_factor": 0.3}),
        ("be", {"known_reward": 0.5, "budget_factor": 0.1, "n_arms": [2]}),
        ("cto-sim", {"models": MODELS}),
        ("d-cto-sim-ucb", {"models": MODELS, "sigma": 0.0}),
        ("d-ucb", {"discount": 0.5, "reward_range": (-3.0, 3.0)}),
        ("f-dsw-ts", {"combine": "mean", "window": 3}),
        ("looks-then-slope", {"later_share": 0.5, "shortest_look": 2}),
        ("looks-then-slope", {"opening_share": 1.0, "kept_share": 1.0}),
        ("hyperband", {"eta": 2, "n_arms": [1, 7, 15]}),
        ("kl-ucb", {"c": 3.0, "reward_range": (-1.0, 0.5)}),
        ("r-ed-ae", {"sigma": 0.0}),
        ("raven-ucb", {"variance": "table4", "alpha0": 5.0}),
        ("rising-bandits-cash", {"window": 2, "reward_range": (-1.0, 2.0)}),
        (
            "ser4",
            {"switches": 30, "delta": 1.0, "eps": 0.6, "reward_range": (-1.0, 2.0)},
        ),
        ("successive-halving", {"eta": 3, "n_arms": [3, 10]}),
        ("thompson-beta", {"fractional": True, "reward_range": (-1.0, 0.5)}),
        ("ucb-improved", {"order": "random"}),
        ("ucb-v", {"zeta": 1.0, "variance": "table4", "denominator": "n+1"}),
        ("ucb1", {"denominator": "n+1", "reward_range": (-2.0, 5.0)}),
        ("wls-ots", {"decay": 1.0, "window": 2, "reward_range": (-1.0, 3.0)}),
    ],
)
def test_parameters_do_not_break_the_contract(name, options):
    check_policy(name, **({"n_arms": [4]} | options))
