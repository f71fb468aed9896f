"""Which policy a search runs, with which parameters, over how many arms."""

import math

import numpy as np
import pytest

from risingsearch import Budget, Scheduler, list_policies
from risingsearch.errors import InvalidParameterError, UnknownNameError
from risingsearch.scheduling.policy_choice import (
    choose_policy,
    recommended_candidates,
)

GATED, SCREENED = "gated-damped-slope", "screened-damped-slope"


def chosen(n_arms=None, **options):
    return choose_policy("auto", 270, 27, n_arms, **options)


@pytest.mark.parametrize("n_arms", [None, 109, 1000])
def test_auto_keeps_arms_for_proposals_where_there_is_a_choice(n_arms):
    assert chosen(n_arms) == (GATED, {"late_arms": True}, 108, 270, False)


def test_auto_screens_all_arms_where_there_is_none():
    assert chosen(108).name == chosen(109, proposals=False).name == SCREENED
    assert chosen(108).opens_all
    assert chosen(108).n_opened == chosen(108).n_candidates == 81


def test_auto_for_the_sum_of_scores():
    assert chosen(109, objective="sum").name == "cure-ucb"


@pytest.mark.parametrize("n_arms", [None, 60, 109])
@pytest.mark.parametrize(
    "default",
    [
        {"eps": 0.25},
        {"reward_range": (-math.inf, math.inf)},
        {"reward_range": np.array([-math.inf, math.inf])},
        {"screening_share": 0.3},
        {"eps": 0.25, "promoted_share": 0.5},
        {"gate": 0.8, "late_arms": False},
    ],
)
def test_giving_a_default_changes_nothing(n_arms, default):
    plain, given = chosen(n_arms), chosen(n_arms, parameters=default)
    assert given._replace(parameters={}) == plain._replace(parameters={})
    late = {name: given.parameters.get(name) for name in plain.parameters}
    assert late == plain.parameters


def test_parameters_apply_to_the_policy_that_auto_chooses():
    late = {"late_arms": True}
    assert chosen(parameters={"eps": 0.1})[:2] == (GATED, late | {"eps": 0.1})
    assert chosen(60, parameters={"eps": 0.1})[:2] == (SCREENED, {"eps": 0.1})
    assert chosen(parameters={"gate": 0.9})[:2] == (GATED, late | {"gate": 0.9})


@pytest.mark.parametrize("n_arms", [60, 109])
@pytest.mark.parametrize(
    ("wrong", "right"), [("gat", "gate"), ("screenig_share", "screening_share")]
)
def test_an_unknown_parameter_is_named_with_the_closest_of_both(n_arms, wrong, right):
    with pytest.raises(
        UnknownNameError, match=f"parameter of auto: '{wrong}'; did you mean '{right}'"
    ):
        chosen(n_arms, parameters={wrong: 0.9})


def test_a_parameter_of_the_gate_alone_chooses_it():
    gate = {"gate": 0.9}
    assert chosen(60, parameters=gate)[:2] == (GATED, gate)
    assert chosen(proposals=False, parameters=gate)[:2] == (GATED, gate)


def test_a_parameter_of_the_screening_alone_chooses_it():
    share = {"screening_share": 0.1}
    assert chosen(parameters=share) == (SCREENED, share, 27, 27, False)


def test_every_other_name_stands_for_itself():
    assert choose_policy("asha", 270, 27).name == "asha"
    late = choose_policy(GATED, 270, 27, parameters={"late_arms": True})
    assert (late.n_opened, late.n_candidates) == (270, 270)


def test_a_budget_that_is_not_in_epochs_trains_all_arms_in_full():
    assert choose_policy("auto", Budget(seconds=60), 27, 10).name == SCREENED
    with pytest.raises(InvalidParameterError, match="in seconds needs max_epochs"):
        choose_policy("auto", Budget(seconds=60), None, 10)


class LastUnopened:
    """Proposes the unopened arm with the highest number."""

    def propose(self, opened, unopened, rng):
        return int(unopened[-1])


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "sum"},
        {"policy_params": {"screening_share": 0.1}},
        {"policy_params": {"screening_share": 0.1}, "objective": "best"},
    ],
)
def test_a_proposer_is_asked_whatever_else_is_given(options):
    scheduler = Scheduler(
        "auto", 41, 100, 50, proposer=LastUnopened(), seed=0, **options
    )
    assert scheduler.ask().arm == 40


@pytest.mark.parametrize("policy", ["auto", *[p.name for p in list_policies()]])
@pytest.mark.parametrize(("budget", "max_epochs"), [(270, 27), (100, None), (7, 3)])
def test_every_policy_has_a_rule_that_can_spend_the_budget(policy, budget, max_epochs):
    n = recommended_candidates(policy, "best", budget, max_epochs, None)
    assert 1 <= n <= budget
    assert n * (max_epochs or budget) >= budget


def test_the_rule_of_the_default():
    assert recommended_candidates("auto", "best", 270, 27, None) == 270
    assert recommended_candidates("auto", "best", 270, 120, None) == 135
    params = {"screening_share": 0.1}
    assert recommended_candidates("auto", "best", 270, 27, params) == 27
    assert recommended_candidates("auto", "best", Budget(epochs=270), 27, {}) == 270


def test_none_where_it_cannot_be_known():
    budget = Budget(seconds=60)
    assert recommended_candidates("auto", "best", budget, 27, None) is None
    assert recommended_candidates(lambda *a: None, "best", 9, 3, None) is None


def test_checks_the_policy_and_its_parameters():
    with pytest.raises(UnknownNameError, match="did you mean 'asha'"):
        recommended_candidates("ascha", "best", 9, 3, None)
    with pytest.raises(UnknownNameError, match="did you mean 'eta'"):
        recommended_candidates("asha", "best", 9, 3, {"etta": 3})
    with pytest.raises(InvalidParameterError, match="eta must be"):
        recommended_candidates("successive-halving", "best", 9, 3, {"eta": 1})


@pytest.mark.parametrize("budget", [0, 1.5, None, Budget(epochs=0)])
def test_checks_the_budget(budget):
    with pytest.raises(InvalidParameterError, match="budget must be a whole"):
        recommended_candidates("auto", "best", budget, None, None)
