import pytest

from risingsearch.policies import list_policies
from risingsearch.testing import check_policy

MODELS = [[0.9, 0.8, 0.7, *[0.6] * 45], [0.9, 0.5, 0.3, *[0.1] * 45]]


@pytest.mark.parametrize("name", [info.name for info in list_policies()])
def test_registered_policies_keep_the_contract(name):
    check_policy(name)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("asha", {"eta": 2, "min_pulls": 3}),
        ("be", {"budget_factor": 0.01, "epoch_factor": 0.3}),
        ("be", {"known_reward": 0.5, "budget_factor": 0.1, "n_arms": [2]}),
        ("be", {"rate": "non-smooth", "budget_factor": 0.1}),
        ("ccb", {"reward_range": (-100.0, 0.0)}),
        ("cto-sim", {"models": MODELS}),
        ("cure-ucb", {"deterministic": True}),
        ("cure-ucb", {"sigma": 0.1, "eps": 0.5}),
        ("d-cto-sim-ucb", {"models": MODELS, "sigma": 0.0}),
        ("d-cto-ucb", {"explore_pulls": 4}),
        ("d-cto-ucb", {"models": MODELS, "sigma": 0.05}),
        ("d-ucb", {"discount": 0.5, "reward_range": (-3.0, 3.0)}),
        ("d-ucb", {"discount": 1.0, "xi": 0.0}),
        ("epsilon-greedy", {"epsilon": 1.0}),
        ("et-swgts", {"window": 10, "forced_pulls": 2, "precision": 0.3}),
        ("et-swgts", {"window": 5, "forced_pulls": 0}),
        ("f-dsw-ts", {"combine": "max", "discount": 0.2}),
        ("f-dsw-ts", {"combine": "mean", "window": 3}),
        ("f-dsw-ts", {"discount": 0.99, "window": None}),
        ("fewa", {"growth": 1, "sigma": 0.02}),
        ("fewa", {"growth": 1.2, "alpha": 4.0}),
        ("trusted-damped-slope", {"trust": 1.0, "reward_range": (0.0, 1.0)}),
        ("trusted-damped-slope", {"eps": 0.5, "promoted_share": 1.0}),
        ("hyperband", {"eta": 2, "n_arms": [1, 7, 15]}),
        ("kl-ucb", {"c": 3.0, "reward_range": (-1.0, 0.5)}),
        ("max-ucb", {"alpha": 0.0}),
        ("max-ucb", {"alpha": 5.0}),
        ("median-stopping", {"min_arms": 1}),
        ("r-ed-ae", {"sigma": 0.01, "delta": 1.0}),
        ("r-ed-ae", {"sigma": 0.0}),
        ("r-ed-ucb", {"deterministic": True}),
        ("r-ed-ucb", {"sigma": 0.1, "alpha": 2.5}),
        ("r-sr", {"eps": 0.5}),
        ("r-ucbe", {"eps": 0.03}),
        ("r-ucbe", {"eps": 0.5, "sigma": 0.01}),
        ("r-ucbe", {"exploration": 0.0}),
        ("raven-ucb", {"variance": "alg1"}),
        ("raven-ucb", {"variance": "table4", "alpha0": 5.0}),
        ("raw-ucb", {"growth": 1, "sigma": 0.02}),
        ("raw-ucb", {"growth": 2.0, "alpha": 4.0}),
        ("rexp3", {"variation": 0.05, "batch_rule": "printed"}),
        ("rexp3", {"variation": 0.05}),
        ("rexp3", {"variation": 1000.0, "reward_range": (-1.0, 3.0)}),
        ("rising-bandits-cash", {"window": 1}),
        ("rising-bandits-cash", {"window": 2, "reward_range": (-1.0, 2.0)}),
        ("ser4", {"switches": 0, "delta": 1.0, "eps": 1.0}),
        ("ser4", {"switches": 1000, "delta": 0.5}),
        (
            "ser4",
            {"switches": 30, "delta": 1.0, "eps": 0.6, "reward_range": (-1.0, 2.0)},
        ),
        ("successive-halving", {"eta": 3, "n_arms": [3, 10]}),
        ("sw-kl-ucb", {"reward_range": (-2.0, 2.0)}),
        ("sw-kl-ucb", {"window": 6, "c": 3.0}),
        ("sw-ts", {"window": 1}),
        ("sw-ts", {"window": 20}),
        ("sw-ucb", {"reward_range": (-2.0, 2.0)}),
        ("sw-ucb", {"window": 1}),
        ("sw-ucb", {"window": 3, "xi": 0.0}),
        ("swa", {"alpha": 5.0}),
        ("swa", {"sigma": 0.01}),
        ("thompson-beta", {"fractional": True, "reward_range": (-1.0, 0.5)}),
        ("thompson-gaussian", {"sigma": 0.0}),
        ("ti-ucb", {"omega": 2, "gamma": 0.01}),
        ("ti-ucb", {"omega": 3, "reward_range": (-1.0, 2.0)}),
        ("ucb-improved", {"order": "random"}),
        ("ucb-improved", {"reward_range": (0.4, 0.5)}),
        ("ucb-v", {"zeta": 1.0, "variance": "table4", "denominator": "n+1"}),
        ("ucb1", {"c": 0.1}),
        ("ucb1", {"denominator": "n+1", "reward_range": (-2.0, 5.0)}),
        ("wls-ots", {"decay": 1.0, "window": 2, "reward_range": (-1.0, 3.0)}),
        ("wswa", {"alpha": 1.0}),
        ("wswa", {"sigma": 0.0}),
    ],
)
def test_parameters_do_not_break_the_contract(name, options):
    check_policy(name, **options)
