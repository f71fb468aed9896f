"""What chooses over all arms at once chooses as the policy that looks at one by one."""

import random

import numpy as np
import pytest

from risingsearch import Budget, Scheduler
from risingsearch.policies import make_policy
from risingsearch.policies.tuning.vectorized import vectorized
from risingsearch.scheduling import policy_adapter

POLICIES = [
    ("trusted-damped-slope", {}),
    ("trusted-damped-slope", {"trust": 1.0}),
    ("trusted-damped-slope", {"trust": -1.0, "opening_share": 0.2}),
]
HOW = [
    {"n_jobs": 1, "digits": 1, "deterministic": False},
    {"n_jobs": 5, "digits": 12, "deterministic": False},
    {"n_jobs": 5, "digits": 1, "deterministic": True},
]


def decisions(
    policy, n_arms, budget, max_epochs, extra, *, n_jobs, digits, deterministic
):
    """Return all that a search decides whose jobs end, fail and break off by chance."""
    name, params = policy
    draw = random.Random(digits)
    tops = [draw.random() for _ in range(n_arms)]
    scheduler = Scheduler(
        name,
        n_arms,
        budget,
        max_epochs,
        params,
        n_jobs=n_jobs,
        deterministic=deterministic,
        seed=0,
        max_failures=1,
    )
    jobs, decided, extended = [], [], False
    while True:
        while len(jobs) < n_jobs and (job := scheduler.ask()) is not None:
            jobs.append(job)
            decided.append((job.arm, job.from_epoch, job.n_epochs))
        if not jobs:
            if extended:
                return decided, scheduler.state_dict()
            scheduler.extend(extra)
            extended = True
            continue
        job = jobs.pop(draw.randrange(len(jobs)))
        epochs = range(job.from_epoch + 1, job.from_epoch + job.n_epochs + 1)
        scores = [round(tops[job.arm] * (1 - 1 / (e + 1)), digits) for e in epochs]
        cost = job.n_epochs * (1.0 + draw.random())
        chance = draw.random()
        if chance < 0.03:
            scheduler.fail(job, "lost", scores[:-1], cost)
        else:
            n_told = len(scores) - (chance > 0.97)
            scheduler.tell(job, scores[:n_told], cost, ended=chance > 0.95)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("n_arms", "budget", "max_epochs"),
    [(1, 12, 5), (30, 90, 12), (60, 400, 20), (80, 600, 120), (40, 300, None)],
)
def test_every_decision_is_that_of_the_policy(
    monkeypatch, policy, n_arms, budget, max_epochs
):
    for how in HOW:
        search = (policy, n_arms, budget, max_epochs, budget // 3)
        at_once = decisions(*search, **how)
        with monkeypatch.context() as one_by_one:
            one_by_one.setattr(policy_adapter, "vectorized", lambda policy: policy)
            assert decisions(*search, **how) == at_once


@pytest.mark.parametrize("policy", POLICIES)
def test_costs_that_differ_by_arm_are_the_same_too(monkeypatch, policy):
    search = (policy, 50, Budget(seconds=300.5), 15, Budget(seconds=77.7))
    at_once = decisions(*search, **HOW[1])
    monkeypatch.setattr(policy_adapter, "vectorized", lambda policy: policy)
    assert decisions(*search, **HOW[1]) == at_once


def test_other_policies_choose_themselves():
    policy = make_policy("cure-ucb", 3, 10)
    assert vectorized(policy) is policy


@pytest.mark.parametrize("name", sorted({name for name, _ in POLICIES}))
def test_rewards_beyond_all_bounds_choose_an_arm(name):
    policy = make_policy(name, 4, 40, 10)
    chooser, rng = vectorized(policy), np.random.default_rng(0)
    with np.errstate(over="ignore", invalid="ignore"):
        for t in range(1, 41):
            arm = chooser.select(t, rng)
            assert policy.available[arm]
            chooser.update(t, arm, 1e308 * (arm + 1), rng)
            policy.pulls_left[arm] -= 1
            policy.available[arm] = policy.pulls_left[arm] > 0
