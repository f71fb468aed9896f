"""What the curves of an earlier search say of early scores."""

import numpy as np
import pytest

from risingsearch import Scheduler
from risingsearch.policies.tuning.trusted_damped_slope import TrustedDampedSlope
from risingsearch.priors import EarlierSearch, PriorProposer
from risingsearch.priors.curves import step_correlation


def earlier(curves, max_epochs=0):
    params = [{"rate": float(run)} for run in range(len(curves))]
    return EarlierSearch("May", params, curves, max_epochs)


def drawn(n_runs=30, n_epochs=40):
    rng = np.random.default_rng(0)
    return rng.random((n_runs, n_epochs)).cumsum(axis=1)


def test_it_is_what_the_policy_itself_would_have_learnt():
    curves = drawn()
    policy = TrustedDampedSlope.create(30, 30 * 40, 40)
    for t, (run, epoch) in enumerate(np.ndindex(30, 40), start=1):
        policy.update(t, run, curves[run, epoch], np.random.default_rng(0))
    found = step_correlation(earlier(curves))
    assert found == pytest.approx(float(policy.step_correlation[0]), abs=1e-12)


def test_final_scores_alone_say_nothing():
    assert step_correlation(earlier(drawn(n_epochs=1))) == 0.9


def test_epochs_that_no_run_has_had_cost_no_memory():
    assert step_correlation(earlier(drawn(), max_epochs=2**53)) == 0.9
    halves = step_correlation(earlier(drawn(), max_epochs=80))
    assert halves == pytest.approx(step_correlation(earlier(drawn())))


def test_scores_as_large_as_floats_can_be_say_the_same():
    largest = 1.7e308
    curves = drawn() / 40.0
    expected = step_correlation(earlier(curves))
    assert step_correlation(earlier(largest * curves)) == pytest.approx(expected)
    candidates = [{"rate": run / 2} for run in range(60)]
    ends = [np.array([largest * end]) for end in np.linspace(-1.0, 1.0, 30)]
    proposer = PriorProposer.between(candidates, [earlier(ends)])
    assert proposer.said.scores.argmax() > 50


def test_curves_of_different_lengths_and_without_scores_are_read():
    curves = list(drawn())
    curves[0] = np.array([])
    curves[1] = np.full(40, np.nan)
    curves[2] = np.r_[np.nan, curves[2][1:17]]
    assert -1.0 <= step_correlation(earlier(curves)) <= 1.0


def test_late_bloomers_are_looked_at_for_longer_from_the_start():
    rates = [float(rate) for rate in range(40)]
    late = [np.r_[np.full(4, -rate), np.full(12, rate)] for rate in rates]
    candidates = [{"rate": rate} for rate in rates]

    def first_jobs(curves):
        search = EarlierSearch("May", candidates, curves)
        proposer = PriorProposer.between(candidates, [search])
        scheduler = Scheduler(n_arms=40, budget=80, max_epochs=16, proposer=proposer)
        lengths = []
        for _ in range(8):
            job = scheduler.ask()
            lengths.append(job.n_epochs)
            scheduler.tell(job, [1.0 + job.arm] * job.n_epochs)
        return lengths

    on_time = [np.full(16, rate) for rate in rates]
    assert max(first_jobs(on_time)) == 1
    assert max(first_jobs(late)) >= 4


def test_what_the_user_says_of_the_policy_counts_more():
    candidates = [{"rate": float(rate)} for rate in range(30)]
    proposer = PriorProposer.between(candidates, [earlier(drawn())])

    def expected(**given):
        scheduler = Scheduler(
            n_arms=30, budget=60, max_epochs=16, proposer=proposer, **given
        )
        scheduler.tell(scheduler.ask(), 1.0)
        return scheduler.explain()[0].index["step_correlation"]

    assert expected() == pytest.approx((0.9 + step_correlation(earlier(drawn()))) / 2)
    assert expected(policy_params={"expected_correlation": 0.2}) == 0.2
    scheduler = Scheduler(
        "cure-ucb", n_arms=30, budget=60, max_epochs=16, proposer=proposer
    )
    assert scheduler.ask() is not None  # which knows no such parameter
