"""The registry: names, parameters, and errors that say what to do."""

import re

import pytest

from risingsearch import policies
from risingsearch.errors import InvalidParameterError
from risingsearch.policies import (
    POLICIES,
    list_policies,
    make_policy,
    recommended_arms,
    resolve_policy,
)

NAMES = [info.name for info in list_policies()]


def test_public_names_exist():
    assert [name for name in policies.__all__ if not hasattr(policies, name)] == []


def test_policies_are_listed_by_name():
    assert sorted(POLICIES) == NAMES
    assert all(re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name) for name in NAMES)


@pytest.mark.parametrize("info", list_policies(), ids=NAMES)
def test_what_is_listed_is_complete_and_true(info):
    assert info.summary.endswith(".")
    assert info.paper
    assert info.provenance in (
        "formula of the paper",
        "standard formula",
        "reconstruction",
        "own rule",
    )
    assert info.parameters.keys().isdisjoint({"n_arms", "horizon", "max_pulls"})
    policy = make_policy(info.name, 3, 20, 5, **info.parameters)
    assert policy.pulls_left.tolist() == [5, 5, 5]


def test_planning_policies_are_marked():
    planning = {info.name for info in list_policies() if info.plans_rounds}
    assert planning >= {"be", "successive-halving"}
    assert planning.isdisjoint({"asha", "cure-ucb", "looks-then-slope"})


def test_policies_that_may_stop_early_are_marked():
    stopping = {info.name for info in list_policies() if not info.adaptive}
    assert stopping >= {"median-stopping", "successive-halving"}
    assert stopping.isdisjoint({"asha", "cure-ucb", "looks-then-slope"})


def test_auto_is_the_default_for_tuning():
    assert resolve_policy("auto") == "looks-then-slope"
    assert resolve_policy("asha") == "asha"
    assert type(make_policy("auto", 2, 5)).__name__ == "LooksThenSlope"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("CURE-UCB", None),
        ("cure", "cure-ucb"),
        ("r_ed_ucb", "r-ed-ucb"),
        ("hyper-band", "hyperband"),
        ("medianstop", "median-stopping"),
    ],
)
def test_an_unknown_policy_is_met_with_the_closest(given, meant):
    expected = f"unknown policy {given!r};"
    if meant:
        expected += f" did you mean {meant!r}?"
    with pytest.raises(InvalidParameterError, match=re.escape(expected)):
        make_policy(given, 2, 10)
    with pytest.raises(InvalidParameterError, match=r"Known: asha, auto, be"):
        recommended_arms(given, 10, 5)


def test_an_unknown_parameter_is_met_with_the_closest():
    with pytest.raises(
        InvalidParameterError,
        match=re.escape("unknown parameter of cure-ucb: 'epsilon'; did you mean 'eps'"),
    ):
        make_policy("cure-ucb", 2, 10, epsilon=0.1)
    with pytest.raises(InvalidParameterError, match="Known: none"):
        make_policy("round-robin", 2, 10, eps=0.1)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((0, 10), "n_arms must be a whole number of at least 1; got 0"),
        ((2.0, 10), "n_arms must be a whole number of at least 1; got 2.0"),
        ((2, 0), "horizon must be a whole number of at least 1; got 0"),
        ((2, 10, 0), "max_pulls must be a whole number of at least 1; got 0"),
    ],
)
def test_sizes_are_checked(sizes, message):
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        make_policy("asha", *sizes)


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_recommends_some_arms(name):
    for horizon, max_pulls in [(1, 1), (10, 50), (50, 10), (500, 120), (5000, 27)]:
        n_arms = recommended_arms(name, horizon, max_pulls)
        assert type(n_arms) is int
        assert n_arms >= 1


def test_more_budget_never_means_fewer_arms():
    for name in NAMES:
        recommended = [recommended_arms(name, 10 * k, 27) for k in range(1, 40)]
        assert recommended == sorted(recommended), name


def test_some_policies_get_as_many_arms_as_the_budget_trains_in_full():
    for name in ("be", "r-ed-ae", "random", "rising-bandits-cash", "ucb-improved"):
        assert recommended_arms(name, 100, 20) == 5
        assert recommended_arms(name, 10, 20) == 2


def test_the_recommended_arms_can_use_the_budget_and_each_have_a_round():
    assert recommended_arms("cure-ucb", 400, 30) == 100
    assert recommended_arms("round-robin", 100, 30) == 4
    assert recommended_arms("looks-then-slope", 1, 30) == 1
    with pytest.raises(InvalidParameterError, match="eta must be"):
        recommended_arms("hyperband", 100, 27, eta=1)


def test_own_parameters_of_a_rule_are_used_and_others_ignored():
    assert recommended_arms("auto", 100, 27, opening_share=0.5, kept_share=0.1) == 60
