"""The divergence against scipy's, and its upper bound against a root finder."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

from risingsearch.policies.shared.kl import bernoulli_kl, kl_upper

MEANS = [1e-9, 1e-6, 0.01, 0.2, 0.5, 0.77, 0.95, 1.0 - 1e-4, 1.0 - 1e-9]
LEVELS = [1e-14, 1e-9, 1e-5, 1e-3, 0.02, 0.1, 0.4, 1.0, 3.0, 12.0]


@pytest.mark.parametrize("p", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("q", [0.0, 1e-6, 0.4, 0.5, 1.0])
def test_divergence_is_the_sum_of_relative_entropies(p, q):
    direct = rel_entr(p, q) + rel_entr(1.0 - p, 1.0 - q)
    assert bernoulli_kl(p, q) == pytest.approx(direct)


def upper_by_root_finding(mean, level):
    """Return the root, found for the distance to the mean: precise if it is small."""
    rest = 1.0 - mean

    def excess(d):
        return -mean * np.log1p(d / mean) - rest * np.log1p(-d / rest) - level

    top = rest * (1.0 - 1e-15)
    if excess(top) <= 0.0:
        return 1.0
    return mean + brentq(excess, 0.0, top, xtol=1e-15, rtol=1e-14)


@pytest.mark.parametrize("mean", MEANS)
def test_upper_bound_is_where_the_divergence_reaches_the_level(mean):
    for level in LEVELS:
        direct = upper_by_root_finding(mean, level)
        assert kl_upper(mean, level) == pytest.approx(direct, rel=0, abs=1e-9)


def test_upper_bound_on_random_means_and_levels():
    rng = np.random.default_rng(0)
    means = rng.uniform(1e-9, 1.0 - 1e-9, 2000)
    levels = np.exp(rng.uniform(np.log(1e-8), np.log(20.0), 2000))
    found = [kl_upper(*pair) for pair in zip(means, levels, strict=True)]
    direct = [upper_by_root_finding(*pair) for pair in zip(means, levels, strict=True)]
    assert found == pytest.approx(direct, rel=0, abs=1e-9)
