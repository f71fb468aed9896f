import pytest

from risingsearch.policies import list_policies
from risingsearch.testing import check_policy


@pytest.mark.parametrize("name", [info.name for info in list_policies()])
def test_registered_policies_keep_the_contract(name):
    check_policy(name)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("asha", {"eta": 2, "min_pulls": 3}),
        ("be", {"budget_factor": 0.01, "epoch_factor": 0.3}),
        ("be", {"rate": "non-smooth", "budget_factor": 0.1}),
        ("be", {"known_reward": 0.5, "budget_factor": 0.1, "n_arms": [2]}),
        ("cure-ucb", {"deterministic": True}),
        ("cure-ucb", {"sigma": 0.1, "eps": 0.5}),
        ("epsilon-greedy", {"epsilon": 1.0}),
        ("hyperband", {"eta": 2, "n_arms": [1, 7, 15]}),
        ("median-stopping", {"min_arms": 1}),
        ("r-ed-ucb", {"deterministic": True}),
        ("r-ed-ucb", {"sigma": 0.1, "alpha": 2.5}),
        ("screened-damped-slope", {"reward_range": (0.0, 1.0), "promoted_share": 1.0}),
        ("successive-halving", {"eta": 3, "n_arms": [3, 10]}),
    ],
)
def test_parameters_do_not_break_the_contract(name, options):
    check_policy(name, **options)
