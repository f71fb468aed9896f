"""``confirm`` keeps a part of the budget to train the best arms with other seeds."""

import json

import numpy as np
import pytest

from risingsearch import Budget, Functions, RisingSearch
from risingsearch.errors import InvalidParameterError

LEVELS = (0.6, 0.82, 0.81, 0.7, 0.3)
CANDIDATES = [{"level": level} for level in LEVELS]


def start(params, seed):
    return {"rng": np.random.default_rng(seed), "epochs": 0, **params}


def train(state):
    state["epochs"] += 1
    noise = 0.02 * state["rng"].standard_normal()
    return state["level"] * (1 - 0.5 ** state["epochs"]) + noise


def search(train=train, **more):
    arguments = {"budget": 100, "max_epochs": 8, "confirm": "40 %", "seed": 0, **more}
    return RisingSearch(Functions(start, train), CANDIDATES, **arguments)


@pytest.mark.parametrize("confirm", ["30 %", "30%", 0.3])
def test_the_budget_is_kept_with_the_repeats(confirm):
    n_calls = 0

    def counted(state):
        nonlocal n_calls
        n_calls += 1
        return train(state)

    result = search(counted, confirm=confirm, max_epochs=None).run()
    assert n_calls == result.n_epochs == result.n_calls == result.spent <= 100
    assert len(result.history) == 70
    assert result.budget == Budget(epochs=100)


def test_repeats_correct_the_best_score():
    result = search().run()
    assert len(result.repeats[result.best_arm]) >= 2
    assert result.corrected_score == np.mean(result.repeats[result.best_arm])
    assert result.corrected_source.endswith(
        " with other seeds, on the same validation rows"
    )
    low, high = result.corrected_interval
    assert low < LEVELS[result.best_arm] < high
    assert 4 not in result.tied
    assert len(set(result.repeats[result.best_arm])) > 1


def test_a_repeat_has_the_epochs_of_the_arms_best():
    lengths = []

    def noted(params, seed):
        lengths.append(0)
        return start(params, seed)

    def counted(state):
        lengths[-1] += 1
        return train(state)

    one = RisingSearch(
        Functions(noted, counted),
        CANDIDATES,
        policy="random-search",
        budget=100,
        max_epochs=8,
        confirm=0.4,
        seed=0,
    )
    result = one.run()
    best = {arm.arm: arm.best_epoch for arm in result.arms}
    repeated = [best[arm] for arm, scores in result.repeats.items() for _ in scores]
    assert sorted(lengths[5:]) == sorted(repeated)


def test_a_killed_search_repeats_nothing_twice(tmp_path):
    whole = search().run()

    class Killed(BaseException):
        pass

    left = 75

    def killed(state):
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed
        return train(state)

    with pytest.raises(Killed):
        search(killed, run_dir=tmp_path).run()
    before = RisingSearch.saved_result(tmp_path)
    n_before = sum(map(len, before.repeats.values()))
    assert 0 < n_before < sum(map(len, whole.repeats.values()))
    resumed = RisingSearch.resume(tmp_path, Functions(start, train)).run()
    saved = RisingSearch.saved_result(tmp_path)
    for result in (resumed, saved):
        assert result.repeats == whole.repeats
        assert result.n_epochs == whole.n_epochs
        assert result.evidence.verdict == whole.evidence.verdict
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    events = [json.loads(line) for line in lines if '"repeated"' in line]
    assert len(events) == sum(map(len, whole.repeats.values()))


def test_an_extension_keeps_its_share_too():
    one = search()
    one.run()
    one.extend(50)
    result = one.run()
    assert result.budget == Budget(epochs=150)
    assert len(result.history) + one._log.reserve.spent == result.n_epochs <= 150


def test_a_failed_repeat_is_charged_and_has_no_score():
    n_begun = 0

    def failing(params, seed):
        nonlocal n_begun
        n_begun += 1
        return start(params, seed) | {"fails": n_begun == 6}

    def trained(state):
        if state["fails"]:
            raise ValueError("too hot")
        return train(state)

    one = RisingSearch(
        Functions(failing, trained),
        CANDIDATES,
        budget=100,
        max_epochs=8,
        confirm=0.4,
        seed=0,
    )
    result = one.run()
    failed = [event for event in one._log.reserve.repeated if event.failure]
    assert [event.failure for event in failed] == ["ValueError: too hot"]
    assert [event.cost for event in failed] == [1.0]
    assert result.n_epochs <= 100


def test_processes_repeat_as_this_one_does():
    alone = search().run()
    together = search(n_jobs=2, policy="round-robin").run()
    assert together.n_epochs <= 100
    assert alone.repeats
    assert together.repeats


def test_training_time_can_be_kept_too():
    result = search(budget=Budget(seconds=0.05), max_epochs=5).run()
    assert result.budget == Budget(seconds=0.05)
    assert result.spent < 0.1


def test_too_little_for_two_repeats_is_left():
    result = search(confirm=0.02, policy="random-search").run()
    assert result.repeats == {}
    assert result.n_epochs <= 98
    assert "from epoch to epoch" in result.corrected_source


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"confirm": "5"}, "^confirm must be a share of the budget, such as '5 %'"),
        ({"confirm": 5}, "^confirm must be a share"),
        ({"confirm": True}, "^confirm must be a share"),
        ({"confirm": "0 %"}, "^confirm must be a share"),
        ({"confirm": 1.0}, "^confirm must be a share"),
        ({"confirm": 0.001}, "keeps less than one epoch of Budget"),
        ({"budget": "9wall-s"}, "^confirm needs a budget in epochs"),
        ({"epoch_costs": [1.0] * 8}, "^confirm needs epochs that cost the same"),
    ],
)
def test_bad_shares_are_refused(more, message):
    with pytest.raises(InvalidParameterError, match=message):
        search(**more)


def test_a_run_directory_keeps_its_share(tmp_path):
    search(run_dir=tmp_path).run()
    with pytest.raises(Exception, match=r"confirm=0\.4, and it was opened with"):
        search(run_dir=tmp_path, confirm=0.2)


def test_an_arm_whose_repeat_fails_is_repeated_no_more():
    seeds = {}

    def starts_once(params, seed):
        if seeds.setdefault(params["level"], seed) != seed:
            raise OSError("the file is gone")
        return start(params, seed)

    result = RisingSearch(
        Functions(starts_once, train),
        CANDIDATES,
        budget=Budget(seconds=0.5),
        max_epochs=8,
        confirm=0.5,
    ).run()
    assert result.repeats == {}


def test_repeats_that_cost_nothing_end():
    def free(state):
        return {"score": train(state), "cost": float(state["level"] < 0.8)}

    result = RisingSearch(
        Functions(start, free),
        [{"level": 0.9}, {"level": 0.5}],
        budget=Budget(cost=4),
        max_epochs=5,
        confirm=0.5,
        shuffle=False,
        seed=0,
    ).run()
    assert len(result.repeats[0]) == 20
