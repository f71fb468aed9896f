import math

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from benchmarks.papers.cure_ucb.imdb.arms import ARMS, PUBLISHED, TORCH
from benchmarks.papers.cure_ucb.imdb.learners import make_learner

N_WORDS = 30
LINEAR = [code for code, arm in ARMS.items() if arm.rule != "network"]


@pytest.fixture(scope="module")
def reviews():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (200, N_WORDS)).astype(float)
    labels = (counts @ rng.normal(size=N_WORDS) > 0).astype(np.uint8)
    return counts, labels


def by_the_formula(code, counts, labels):
    """Return the weights after all reviews, by the rules as they are published."""
    arm, w = ARMS[code], [1 / N_WORDS] * N_WORDS
    squares = [0.0] * N_WORDS
    for t, (row, label) in enumerate(zip(counts, labels, strict=True), 1):
        p = 1 / (1 + math.exp(-sum(a * b for a, b in zip(w, row, strict=True))))
        p = max(min(p, 1 - 1e-4), 1e-4)
        for j, x in enumerate(row):
            gradient = (p - label) * x
            squares[j] += gradient**2
            w[j] -= {
                "logistic": arm.step * gradient,
                "gradient": arm.step / math.sqrt(t) * gradient,
                "adagrad": arm.step * gradient / math.sqrt(squares[j] + 1e-8),
            }[arm.rule]
            if arm.rule == "gradient":
                w[j] = min(max(w[j], -2.0), 2.0)
    return w


@pytest.mark.parametrize("code", LINEAR)
def test_linear_learners_follow_the_published_rules(code, reviews):
    learner = make_learner(PUBLISHED, code, N_WORDS, 0)
    learner.learn(*reviews)
    np.testing.assert_allclose(learner.weights, by_the_formula(code, *reviews))


@pytest.mark.parametrize("code", LINEAR)
def test_torch_follows_them(code, reviews):
    learner = make_learner(TORCH, code, N_WORDS, 0)
    learner.learn(*reviews)
    weights = learner.model.weight.detach().numpy()[0]
    np.testing.assert_allclose(weights, by_the_formula(code, *reviews), atol=1e-3)


def test_networks_learn_what_scikit_learn_teaches_them_review_by_review(reviews):
    counts, labels = reviews
    learner = make_learner(PUBLISHED, "nn7", N_WORDS, 0)
    checked = MLPClassifier(**learner.estimator.get_params() | {"random_state": 0})
    for row, label in zip(counts[:50], labels[:50], strict=True):
        learner.learn(row[None], label[None])
        checked.partial_fit(row[None], label[None], classes=[0, 1])
    for ours, theirs in zip(learner.estimator.coefs_, checked.coefs_, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(learner.predict(counts), checked.predict(counts))
