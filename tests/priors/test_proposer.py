"""Which candidate earlier searches have opened, and how far they are trusted."""

from types import SimpleNamespace

import numpy as np
import pytest

from risingsearch.priors import PriorProposer
from risingsearch.priors.models import Predictions
from risingsearch.proposers.base import Opened

SCORES = np.array([np.linspace(-1.5, 1.5, 40), np.linspace(1.5, -1.5, 40)])
FAR = 10.0 * np.arange(40)[:, None]  # no candidate is like another


def after(*agreement, places=FAR):
    n = len(agreement)
    learnt = SimpleNamespace(
        digests=["May", "June"][:n],
        agreement=np.array(agreement),
        predictions=lambda _: Predictions(SCORES[:n], places),
    )
    return PriorProposer(learnt, [{}] * 40)


BOTH, NEAR = after(0.6, 0.6), after(0.6, 0.6, places=FAR / 40)


def opened(arms, ends=None):
    arms = np.array(arms, dtype=np.int64)
    ends = arms.astype(float) if ends is None else np.array(ends, dtype=float)
    n = len(arms)
    return Opened(arms, np.ones(n, dtype=np.int64), ends, np.full(n, False), 9)


def proposed(known, proposer=BOTH):
    unopened = np.setdiff1d(np.arange(40), known.arms)
    found = proposer.propose(known, unopened, np.random.default_rng(0))
    assert found is None or found.by_prior
    return found and found.arm


def test_the_first_arm_and_every_third_are_opened_as_without():
    assert [proposed(opened(range(n))) is None for n in range(7)] == [
        True,
        False,
        False,
        True,
        False,
        False,
        True,
    ]


def test_it_follows_the_search_that_ranks_what_is_seen():
    assert proposed(opened([3, 9])) == 39
    assert proposed(opened([3, 9], [1.0, 0.0])) == 0


def test_nothing_is_proposed_while_nothing_is_trusted():
    one = after(0.6)
    falling = opened([3, 9, 20, 30], [4.0, 3.0, 2.0, 1.0])
    assert proposed(falling, one) is None
    assert one.trusted(falling) == {"May": 0.0}
    assert proposed(opened([3, 9, 20, 30]), one) == 39


def test_of_candidates_like_an_opened_arm_less_is_expected():
    known = opened([3, 39])
    assert proposed(known) == 38
    assert 30 < proposed(known, NEAR) < 36
    in_training = opened([3, 9])._replace(without_score=np.array([39]))
    unopened = np.arange(30, 39)
    found = NEAR.most_promising(in_training, unopened, np.random.default_rng(0))
    assert found.arm == proposed(known, NEAR)


def test_below_the_mean_what_is_like_no_arm_is_no_better():
    found = NEAR.propose(opened([19, 39]), np.arange(15), np.random.default_rng(0))
    assert found.arm == 14


def test_later_arms_are_this_searchs_own_business():
    assert proposed(opened(range(23))) is not None
    assert proposed(opened(range(25))) is None


def test_trust_is_shared_out_and_sums_to_a_correlation():
    trusted = BOTH.trusted(opened([3, 9, 20, 30]))
    assert trusted["May"] > 0.7
    assert trusted["June"] == pytest.approx(0.0, abs=1e-6)
    assert sum(trusted.values()) <= 1.0


def test_trust_is_lost_sooner_than_won():
    good, bad = after(0.9), after(0.1)
    for n_arms in (2, 3, 5):
        arms = list(range(n_arms))
        lost = 0.9 - good.trusted(opened(arms, arms[::-1]))["May"]
        won = bad.trusted(opened(arms))["May"] - 0.1
        assert lost > 2 * won > 0


def test_a_few_arms_do_not_make_a_prior_of_one_that_says_little():
    doubted = after(0.1)
    assert proposed(opened([3, 9]), doubted) is None
    assert proposed(opened(range(11)), doubted) == 39
