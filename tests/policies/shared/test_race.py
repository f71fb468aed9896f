import numpy as np
import pytest

from risingsearch.policies import WAIT
from risingsearch.policies.shared.race import (
    all_have,
    in_race,
    next_below,
    next_in_turn,
)


@pytest.fixture
def race():
    """Return four arms: one dropped, one at its end, two in the race, one busy."""
    return {
        "available": np.array([True, False, False, True]),
        "pulls_left": np.array([5, 0, 5, 5]),
        "alive": np.array([False, True, True, True]),
    }


def test_dropped_and_ended_arms_are_out_of_the_race(race):
    alive, pulls_left = race["alive"], race["pulls_left"]
    assert [in_race(alive, pulls_left, i) for i in range(4)] == [
        False,
        False,
        True,
        True,
    ]


def test_arms_in_the_race_are_taken_in_turn(race):
    turns, value = np.array([0, 0, 2, 3]), np.zeros(4)
    assert next_in_turn(**race, turns=turns, value=value) == 3
    race["available"][2] = True
    assert next_in_turn(**race, turns=turns, value=value) == 2
    turns[2] = 3
    assert next_in_turn(**race, turns=turns, value=value) == 2


def test_the_last_arm_is_waited_for_and_replaced_only_when_it_has_ended(race):
    race["alive"][3] = False
    turns, value = np.array([1, 1, 4, 1]), np.array([0.2, 0.9, 0.8, 0.4])
    assert next_in_turn(**race, turns=turns, value=value) == WAIT
    race["pulls_left"][2] = 0
    assert next_in_turn(**race, turns=turns, value=value) == 3
    race["available"][3] = False
    assert next_in_turn(**race, turns=turns, value=value) == 0


def test_arms_that_lack_pulls_are_taken_one_after_another(race):
    pulls = np.array([0, 0, 1, 1])
    assert next_below(**race, pulls=pulls, target=2) == (3, True)
    pulls[3] = 2
    assert next_below(**race, pulls=pulls, target=2) == (WAIT, True)
    pulls[2] = 2
    assert next_below(**race, pulls=pulls, target=2) == (WAIT, False)


def test_there_is_nothing_to_compare_before_all_in_the_race_have_their_pulls(race):
    alive, pulls_left = race["alive"], race["pulls_left"]
    pulls = np.array([0, 0, 2, 3])
    assert all_have(pulls_left, alive, pulls, 2)
    assert not all_have(pulls_left, alive, pulls, 3)
    alive[2] = False
    assert not all_have(pulls_left, alive, pulls, 2)
