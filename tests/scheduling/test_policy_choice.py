"""Which policy a search runs, with which parameters, over how many arms."""

import pytest

from risingsearch import Budget, list_policies
from risingsearch.errors import InvalidParameterError
from risingsearch.scheduling.policy_choice import choose_policy, recommended_candidates

DEFAULT = "looks-then-slope"


def chosen(n_arms=None, policy="auto", **options):
    return choose_policy(policy, 270, 27, n_arms, **options)


@pytest.mark.parametrize("n_arms", [None, 120, 1000])
def test_auto_has_more_candidates_than_it_opens_where_there_is_a_choice(n_arms):
    assert chosen(n_arms) == (DEFAULT, {}, 119, 270)
    assert chosen(n_arms).proposes


def test_auto_opens_all_arms_where_there_is_none():
    assert chosen(119) == (DEFAULT, {}, 119, 119)
    assert not chosen(119).proposes


def test_a_first_look_is_a_slice():
    assert chosen(epochs_per_job=3) == (DEFAULT, {"shortest_look": 3}, 40, 90)
    assert chosen(epochs_per_job=3, min_epochs=5)[1:3] == ({"shortest_look": 5}, 24)
    assert chosen(epochs_per_job=1) == chosen()
    assert chosen(policy="asha", epochs_per_job=3) == chosen(policy="asha")
    own = {"shortest_look": 1}
    assert chosen(epochs_per_job=3, parameters=own)[1:3] == (own, 119)
    assert recommended_candidates("auto", 270, 27, None, epochs_per_job=3) == 90


def test_parameters_apply_to_the_policy_that_auto_stands_for():
    given = {"kept_share": 0.5, "opening_share": 0.2}
    assert chosen(parameters=given) == (DEFAULT, given, 97, 270)
    with pytest.raises(
        InvalidParameterError, match="'kept_shar'; did you mean 'kept_share'"
    ):
        chosen(parameters={"kept_shar": 0.9})
    with pytest.raises(InvalidParameterError, match=r"auto \(looks.*: 'gate'; Known"):
        chosen(parameters={"gate": 0.9})


def test_a_budget_that_is_not_in_epochs_trains_all_arms_in_full():
    chosen = choose_policy("auto", Budget(seconds=60), 27, 10)
    assert (chosen.name, chosen.proposes) == (DEFAULT, False)
    with pytest.raises(InvalidParameterError, match="in seconds needs max_epochs"):
        choose_policy("auto", Budget(seconds=60), None, 10)


@pytest.mark.parametrize("policy", ["auto", *[p.name for p in list_policies()]])
@pytest.mark.parametrize(("budget", "max_epochs"), [(270, 27), (100, None), (7, 3)])
def test_every_policy_has_a_rule_that_can_spend_the_budget(policy, budget, max_epochs):
    n = recommended_candidates(policy, budget, max_epochs, None)
    assert 1 <= n <= budget
    assert n * (max_epochs or budget) >= budget


def test_the_rule_of_the_default():
    assert recommended_candidates("auto", 270, 27, None) == 270
    assert recommended_candidates("auto", 270, 120, None) == 135
    params = {"opening_share": 0.1}
    assert recommended_candidates("auto", 270, 27, params) == 270
    assert recommended_candidates("auto", Budget(epochs=270), 27, {}) == 270


def test_checks_the_policy_and_its_parameters():
    with pytest.raises(InvalidParameterError, match="did you mean 'asha'"):
        recommended_candidates("ascha", 9, 3, None)
    with pytest.raises(InvalidParameterError, match="did you mean 'eta'"):
        recommended_candidates("asha", 9, 3, {"etta": 3})
    with pytest.raises(InvalidParameterError, match="eta must be"):
        recommended_candidates("successive-halving", 9, 3, {"eta": 1})
