"""What the best score of many is worth, and which arms are level with the winner."""

import math

import numpy as np
import pytest

from risingsearch.search.corrected import Evidence


def evidence(values, *, sign=1.0, curves=None, **more):
    """What is known of arms whose examples have these scores."""
    scores = {arm: float(np.mean(of_arm)) for arm, of_arm in values.items()}
    winner = max(scores, key=lambda arm: sign * scores[arm])
    curves = curves or {arm: [score] for arm, score in scores.items()}
    examples = {arm: np.float32(of_arm) for arm, of_arm in values.items()}
    return Evidence(winner, scores, sign, curves, examples, **more)


def coins(seed, shares, n=120):
    """Hits and misses of independent arms."""
    rng = np.random.default_rng(seed)
    return {arm: rng.random(n) < share for arm, share in enumerate(shares)}


def test_the_best_of_equals_is_corrected_to_their_level():
    verdicts = []
    naive = []
    for seed in range(40):
        known = evidence(coins(seed, [0.85] * 30))
        verdicts.append(known.verdict)
        naive.append(known.scores[known.winner])
    assert np.mean(naive) > 0.91
    assert np.mean([verdict.score for verdict in verdicts]) == pytest.approx(0.85, 0.02)
    holds = [low <= 0.85 <= high for low, high in (v.interval for v in verdicts)]
    assert np.mean(holds) >= 0.9
    says_better = [len(verdict.tied) < 29 for verdict in verdicts]
    assert np.mean(says_better) <= 0.05


def test_an_arm_that_is_clearly_worse_is_not_level():
    verdict = evidence(coins(0, [0.9, 0.9, 0.5])).verdict
    assert verdict.winner in (0, 1)
    assert verdict.tied == [1 - verdict.winner]
    assert f"arm {verdict.winner} is level with 1 other; corrected ." in verdict.text


def test_lower_scores_can_be_better():
    values = coins(3, [0.8, 0.8, 0.3])
    up = evidence(values).verdict
    down = evidence(
        {arm: 1.0 - hits for arm, hits in values.items()}, sign=-1.0
    ).verdict
    assert down.tied == up.tied
    assert down.score == pytest.approx(1 - up.score, abs=1e-6)
    assert down.interval == pytest.approx((1 - up.high, 1 - up.low), abs=1e-6)


def test_small_differences_in_every_example_are_told_apart():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal(200)
    values = {arm: shared + 0.05 * arm + 0.02 * rng.random(200) for arm in range(3)}
    verdict = evidence(values).verdict
    assert (verdict.winner, verdict.tied) == (2, [])
    assert verdict.text.startswith("arm 2 is better than all others; corrected ")


def test_a_winner_without_any_miss_is_not_certain():
    verdict = evidence({0: np.ones(30), 1: np.r_[np.ones(20), np.zeros(10)]}).verdict
    assert verdict.low == pytest.approx(30 / (30 + 1.96**2), abs=1e-3)  # Wilson's
    values = {0: np.zeros(30), 1: -np.arange(30) / 30}
    assert evidence(values).verdict.low == pytest.approx(-3 / 30, abs=0.01)


def test_examples_of_some_arms_are_said_to_be():
    known = evidence(coins(0, [0.9, 0.8, 0.7]))
    del known.examples[2]
    assert known.verdict.source == "bootstrap of 120 examples of 2 of 3 arms"
    assert 2 not in known.verdict.tied


def test_predictions_are_scored_by_the_function_for_them():
    hits = coins(1, [0.9, 0.6])
    expected = evidence(hits).verdict
    known = evidence({arm: of_arm[:, None] for arm, of_arm in hits.items()})
    assert "from epoch to epoch" in known.verdict.source
    known = evidence(
        {arm: of_arm[:, None] for arm, of_arm in hits.items()},
        scores_of=lambda predictions: predictions[:, 0],
    )
    assert known.verdict == expected
    assert known.without_data().verdict == expected


def test_without_examples_the_noise_of_the_curves_tells():
    rng = np.random.default_rng(0)
    noise = 0.01 * rng.standard_normal((3, 40))
    levels = np.array([0.9, 0.9, 0.6])
    curves = {arm: list(levels[arm] + noise[arm]) for arm in range(3)}
    scores = {arm: max(curve) for arm, curve in curves.items()}
    winner = max(scores, key=scores.get)
    verdict = Evidence(winner, scores, 1.0, curves, {}).verdict
    assert verdict.tied == [1 - winner]
    assert scores[winner] - 0.9 > 0.015
    assert verdict.score == pytest.approx(0.9, abs=0.01)
    assert "not of the validation rows" in verdict.text


def test_one_epoch_of_each_arm_tells_of_no_noise():
    curves = {0: [0.7], 1: [0.9], 2: [math.nan]}
    verdict = Evidence(1, {0: 0.7, 1: 0.9}, 1.0, curves, {}).verdict
    assert verdict.tied == [0]
    assert math.isnan(verdict.low)
    assert "corrected" not in verdict.text


def test_a_single_arm_is_compared_with_none():
    text = evidence(coins(0, [0.9])).verdict.text
    assert text.startswith("arm 0 is the only one with a score; corrected .")
