"""What is proposed early, by the learning rate."""

import json
import math

import numpy as np
import pytest
from scipy.stats import loguniform, randint, uniform

from risingsearch.errors import InvalidParameterError
from risingsearch.proposers.base import Opened
from risingsearch.proposers.early import EarlyProposer
from risingsearch.proposers.learning_rate import NAMED, LearningRate
from risingsearch.scheduling.scheduler import Scheduler
from risingsearch.space import Space

OPEN = {"lr": loguniform(1e-6, 1.0), "kind": ["a", "b"], "alpha": uniform(0, 1)}
SPACE = Space.of(OPEN)
FEW = Opened(*(np.empty(0, dtype=kind) for kind in (int, int, float, bool)), 20)
FEW = FEW._replace(wanted=False)


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((name, True) for name in ("lr", "eta0", "sgd__eta0", "optimizer.lr", "eta")),
        *((name, True) for name in ("learningRate", "learning-rate", "initial_lr")),
        *((name, False) for name in ("beta", "alr", "lrs", "theta", "slr", "momentum")),
    ],
)
def test_a_learning_rate_is_known_by_its_name(name, is_one):
    assert bool(NAMED.search(name.lower())) == is_one
    found = LearningRate.of(Space.of({"x": uniform(), name: loguniform(1e-3, 1)}))
    assert found == (LearningRate(name, (1,), 0.5) if is_one else None)


def test_words_and_few_values_are_no_learning_rate():
    for values in (["constant", "adaptive"], [0.1, 0.2, 0.3, 0.4]):
        other = {"learning_rate": values, "eta0": loguniform(1e-3, 1)}
        assert LearningRate.of(Space.of(other)).name == "eta0"
    five = Space.of({"lr": [0.1, 0.2, 0.3, 0.4, 0.5], "x": uniform()})
    assert LearningRate.of(five).name == "lr"


def test_it_can_be_declared_and_its_centre_be_known():
    assert LearningRate.of(SPACE, False) is None
    assert LearningRate.of(SPACE, "alpha").name == "alpha"
    assert LearningRate.of(SPACE, {"lr": 1e-2}).centre == pytest.approx(2 / 3)
    known = [{"alpha": 1.0}, {"lr": 1e-4}, {"lr": 1e-1}]
    assert LearningRate.of(SPACE, None, known).centre == pytest.approx(1 / 3)
    assert LearningRate.of(SPACE, {"lr": 1e-5}, known).centre == pytest.approx(1 / 3)
    assert LearningRate.of(SPACE, {"lr": 1e-5}).centre == pytest.approx(1 / 6)
    assert LearningRate.of(SPACE, None, [{"lr": 10.0}]).centre == 0.5
    for wrong in ("kind", "rate", {"rate": 0.1}):
        with pytest.raises(InvalidParameterError, match=r"^learning_rate must name a"):
            LearningRate.of(SPACE, wrong)


def test_every_part_of_a_space_has_its_own():
    parts = [{"lr": loguniform(1e-3, 1)}, {"k": randint(1, 9), "lr": uniform()}]
    space = Space.of(parts)
    rate = LearningRate.of(space)
    assert len(rate.columns) == 2
    assert EarlyProposer([{"lr": 0.9}] * 3, space, rate).propose(
        FEW, np.arange(3), np.random.default_rng(0)
    ).params.keys() >= {"lr"}


def place(params):
    return 1.0 + math.log10(params["lr"]) / 6.0


def searched(best, centre=1e-3, n=30, seed=0, rate=True):
    """Return the places of the learning rates of arms, opened one by one."""
    rng = np.random.default_rng(seed)
    candidates = [SPACE.sample(rng) for _ in range(n)]
    known = LearningRate.of(SPACE, {"lr": centre})
    proposer = EarlyProposer(candidates, SPACE, known)
    ends = np.empty(0)
    for arm in range(n):
        ones = np.ones(arm, dtype=int)
        opened = Opened(np.arange(arm), ones, ends, ones < 1, 20, wanted=False)
        if rate and proposer.is_due(arm, wanted=False):
            proposed = proposer.propose(opened, np.arange(arm, n), rng)
            candidates[arm] = proposed.params
        end = -abs(place(candidates[arm]) - best) + 0.1 * rng.standard_normal()
        ends = np.append(ends, end)
    return np.array([place(params) for params in candidates])


def test_the_first_arm_is_at_the_centre_and_every_third_as_it_was_drawn():
    with_it, without = searched(0.5, n=39), searched(0.5, n=39, rate=False)
    assert abs(with_it[0] - 0.5) < 0.05
    same = np.flatnonzero(with_it == without)
    assert same.tolist() == [*range(2, 30, 3), *(k for k in range(30, 39) if k % 3)]


def test_arms_gather_where_the_scores_are_high():
    off = np.mean([abs(searched(0.7, seed=seed)[:30] - 0.7) for seed in range(4)])
    drawn = [abs(searched(0.7, seed=s, rate=False)[:30] - 0.7) for s in range(4)]
    assert off < 0.75 * np.mean(drawn)


def test_a_centre_that_is_wrong_is_left_within_ten_arms():
    best, wrong = 0.7, 1e-6 ** (1 - 0.1)
    off = [abs(searched(best, wrong, seed=seed)[10:30] - best) for seed in range(4)]
    drawn = [abs(searched(best, seed=s, rate=False)[10:30] - best) for s in range(4)]
    assert np.mean(off) < np.mean(drawn)


def test_arms_in_training_keep_others_away():
    rate = LearningRate.of(SPACE)
    candidates = [{"lr": 1e-3, "kind": "a", "alpha": 0.5}] * 9

    def first(n_waiting):
        known = FEW._replace(without_score=np.arange(n_waiting))
        proposer = EarlyProposer(candidates, SPACE, rate)
        rng = np.random.default_rng(1)
        return place(proposer.propose(known, np.arange(4, 9), rng).params)

    assert abs(first(0) - 0.5) < 0.05 < abs(first(4) - 0.5)


def test_a_saved_search_proposes_the_same():
    def made():
        candidates = [SPACE.sample(np.random.default_rng(k)) for k in range(30)]
        proposer = EarlyProposer(candidates, SPACE, LearningRate.of(SPACE))
        options = {"budget": 60, "max_epochs": 10, "seed": 3}
        return Scheduler(n_arms=30, proposer=proposer, **options), candidates

    def run(scheduler, candidates, n):
        for _ in range(n):
            job = scheduler.ask()
            if job.arm in scheduler.proposals:
                candidates[job.arm] = scheduler.proposals[job.arm].params
            end = -abs(place(candidates[job.arm]) - 0.7)
            scheduler.tell(job, [end] * job.n_epochs)

    scheduler, candidates = made()
    run(scheduler, candidates, 6)
    saved = json.loads(json.dumps(scheduler.state_dict()))
    again, others = made()
    again.load_state_dict(saved)
    for arm, proposal in again.proposals.items():
        others[arm] = proposal.params
    run(scheduler, candidates, 9)
    run(again, others, 9)
    assert again.proposals == scheduler.proposals
    assert len(again.proposals) > 5
    assert all(one.like for arm, one in again.proposals.items() if arm)
