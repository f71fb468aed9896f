import numpy as np
import pytest

from risingsearch.errors import InvalidParameterError
from risingsearch.policies.shared.sums import (
    append_reward,
    checked_eps,
    prefix_sums,
    window_length,
)


@pytest.mark.parametrize(("max_pulls", "columns"), [(None, 51), (20, 21)])
def test_any_window_is_a_difference_of_two_sums(max_pulls, columns):
    P, pulls = prefix_sums(2, 50, max_pulls), np.zeros(2, dtype=np.int64)
    assert P.shape == (2, columns)
    rewards = np.random.default_rng(0).normal(size=20)
    numbers = [append_reward(P, pulls, 1, reward) for reward in rewards]
    assert numbers == list(range(1, 21))
    assert pulls.tolist() == [0, 20]
    assert P[1, 20] - P[1, 13] == pytest.approx(rewards[13:].sum())
    assert not P[0].any()


def test_window_is_a_share_of_the_pulls_and_never_empty():
    assert [window_length(0.25, n) for n in (2, 7, 8, 11, 12)] == [1, 1, 2, 2, 3]


@pytest.mark.parametrize("eps", [0.0, 0.51, "half"])
def test_a_window_is_at_most_half_of_the_pulls(eps):
    with pytest.raises(InvalidParameterError, match="eps must be a finite number"):
        checked_eps(eps)
