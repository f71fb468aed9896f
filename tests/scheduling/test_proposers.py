import numpy as np

from risingsearch.scheduling.proposers import (
    FEWEST,
    GaussianProcessProposer,
    Kernel,
    Opened,
    Seen,
)


def opened(features, n, finished=True, epochs=10, seed=0):
    """Open some arms whose end is high where the first feature is near 0.3."""
    arms = np.random.default_rng(seed).choice(len(features), n, replace=False)
    ends = 1.0 - np.abs(features[arms, 0] - 0.3)
    return Opened(arms, np.full(n, epochs), ends, np.full(n, finished), 10)


def test_what_looks_like_the_best_is_proposed():
    features = np.random.default_rng(1).uniform(size=(400, 3))
    proposer = GaussianProcessProposer(features)
    known = opened(features, 60)
    unopened = np.setdiff1d(np.arange(400), known.arms)
    proposed = [
        proposer.propose(known, unopened, np.random.default_rng(seed))
        for seed in range(10)
    ]
    assert set(proposed) <= set(unopened.tolist())
    assert np.abs(features[proposed, 0] - 0.3).mean() < 0.06


def test_with_too_few_arms_nothing_is_proposed():
    features = np.random.default_rng(1).uniform(size=(50, 2))
    known = opened(features, FEWEST - 1)
    proposer = GaussianProcessProposer(features)
    assert proposer.propose(known, np.array([49]), np.random.default_rng(0)) is None


def test_equal_and_infinite_ends_are_no_trouble():
    features = np.random.default_rng(1).uniform(size=(500, 2))
    for ends in (np.zeros(400), np.where(np.arange(400) % 3, 0.5, -np.inf)):
        known = opened(features, 400)._replace(ends=ends)
        arm = GaussianProcessProposer(features).propose(
            known, np.array([499]), np.random.default_rng(0)
        )
        assert arm == 499


def test_predictions_are_those_of_a_gaussian_process():
    rng = np.random.default_rng(2)
    features, new = rng.uniform(size=(12, 2)), rng.uniform(size=(4, 2))
    seen = Seen(features, rng.standard_normal(12), rng.uniform(size=(12, 2)))
    kernel = Kernel(np.array([2.0, 0.5]), np.array([1.0, 0.1]))

    def matern(a, b):
        r = np.sqrt(5) * np.linalg.norm((a - b) * kernel.inverse_lengths)
        return (1 + r + r * r / 3) * np.exp(-r)

    K = np.array([[matern(a, b) for b in features] for a in features])
    K += np.diag(0.05 + seen.doubts @ kernel.noise)
    across = np.array([[matern(a, b) for b in new] for a in features])
    mean, deviation = kernel.predict(seen, new)
    np.testing.assert_allclose(mean, across.T @ np.linalg.solve(K, seen.scores))
    variance = 1 - np.sum(across * np.linalg.solve(K, across), axis=0)
    np.testing.assert_allclose(deviation, np.sqrt(variance))
