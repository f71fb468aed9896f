import numpy as np
import pytest

from risingsearch import Scheduler
from risingsearch.errors import InvalidParameterError
from risingsearch.policies import RandomSearch, list_policies, recommended_arms
from risingsearch.simulation.recorded_search import RecordedSearch, search_recorded


@pytest.fixture(scope="module")
def curves():
    """Return 40 curves of 10 epochs that cross."""
    rng = np.random.default_rng(1)
    height, pace = rng.uniform(0.5, 1.0, (40, 1)), rng.uniform(1.0, 8.0, (40, 1))
    return height * (1.0 - np.exp(-np.arange(1, 11) / pace))


def search(curves, policies, budgets=None, n_runs=3, **options):
    return search_recorded(curves, policies, budgets, n_runs, compiled=False, **options)


def order_of_run(run, n_runs, n_configurations, seed=0):
    """Return the order in which the arms of a run of ``simulate`` are drawn."""
    sequence = np.random.SeedSequence(seed).spawn(n_runs)[run].spawn(2)[0]
    return np.random.default_rng(sequence).permutation(n_configurations)


@pytest.mark.parametrize("name", ["auto", "successive-halving", "random-search"])
@pytest.mark.parametrize(("budget", "direction"), [(7, "minimize"), (200, "maximize")])
def test_it_finds_what_a_live_search_finds(curves, name, budget, direction):
    scores = curves if direction == "maximize" else 5.0 - curves
    found = search(scores, [name], [budget], minimize=direction == "minimize")
    for run in range(3):
        order = order_of_run(run, 3, len(curves))
        n_arms = max(recommended_arms(name, budget, 10), -(-budget // 10))
        live = Scheduler(
            name, min(n_arms, 40), budget, min(10, budget), direction=direction
        )
        while (job := live.ask()) is not None:
            curve = scores[order[job.arm]]
            live.tell(job, curve[job.from_epoch : job.from_epoch + job.n_epochs])
        assert found.score[0, 0, run] == pytest.approx(live.best_score, abs=1e-15)
        assert found.epochs[0, 0, run] == live.spent


def test_budgets_are_multiples_of_the_longest_curve(curves):
    assert search(curves, ["random"]).budgets == [10, 20, 50, 100, 200]
    assert search(curves[:3], ["random"]).budgets == [10, 20, 30]
    assert search(curves, ["random"], [30, 10, 30]).budgets == [10, 30]


@pytest.mark.parametrize("info", list_policies(), ids=lambda info: info.name)
def test_every_policy_can_be_asked(curves, info):
    found = search(100.0 * curves[:6], [info.name], [25], n_runs=1)
    assert 0 < found.epochs[0, 0, 0] <= 25
    assert 0.0 < found.score[0, 0, 0] <= found.best


def test_curves_of_different_lengths_use_the_budget_up():
    curves = np.full((30, 20), np.nan)
    rng = np.random.default_rng(0)
    for row, length in enumerate(rng.integers(1, 21, size=30)):
        curves[row, :length] = rng.random(length)
    total = int(np.isfinite(curves).sum())
    found = search(curves, ["random-search", "asha", "auto"], [5, 50, total], n_runs=4)
    assert np.all(found.epochs == np.array([5, 50, total])[:, None, None])
    assert np.all(found.score[-1] == found.best)


def test_losses_are_told_in_their_own_sign(curves):
    higher = search(curves, ["asha"], [50])
    lower = search(3.0 - curves, ["asha"], [50], minimize=True)
    np.testing.assert_allclose(lower.score, 3.0 - higher.score)
    np.testing.assert_allclose(lower.distance, higher.distance)
    assert lower.best == pytest.approx(3.0 - higher.best)
    assert lower.typical == pytest.approx(3.0 - higher.typical)


class Own(RandomSearch):
    """A policy that is not registered."""


def test_it_takes_the_policies_that_compare_takes(curves):
    policies = [Own, lambda *sizes: Own.create(*sizes), ("asha", {"eta": 2}), "auto"]
    found = search(curves, policies, [50], n_runs=10)
    assert found.policies == ["Own", "<lambda>", "asha", "looks-then-slope"]
    named = {"two": ("asha", {"eta": 2}), "four": ("asha", {"eta": 4}), "own": Own}
    again = search(curves, named, [50], n_runs=10)
    assert again.policies == ["two", "four", "own"]
    np.testing.assert_array_equal(again.score[0, [2, 2, 0]], found.score[0, :3])
    assert np.any(again.score[0, 0] != again.score[0, 1])


def test_scores_outside_0_and_1_are_told_to_policies_that_need_a_range(curves):
    small = search(curves, ["ucb1"], [100], seed=3)
    large = search(100.0 * curves - 70.0, ["ucb1"], [100], seed=3)
    own = {"ucb1": ("ucb1", {"reward_range": (-70.0, 30.0)})}
    same = search(100.0 * curves - 70.0, own, [100], seed=3)
    np.testing.assert_allclose(same.score, 100.0 * small.score - 70.0)
    assert np.all(large.distance < 60.0)


def made(score, best=1.0, typical=0.0):
    score = np.asarray(score, dtype=float)
    n_budgets, n_policies, _ = score.shape
    return RecordedSearch(
        [f"p{i}" for i in range(n_policies)],
        [10 * (i + 1) for i in range(n_budgets)],
        score,
        np.full(score.shape, 5),
        best,
        typical,
    )


def test_winners_and_those_as_good():
    base = np.array([0.5, 0.6, 0.7, 0.8])
    near = base + np.array([0.01, -0.02, 0.0, 0.005])
    found = made([[base, base - 0.1, near]])
    assert found.winners() == ["p0"]
    assert found.as_good().tolist() == [[True, False, True]]


def test_rows_are_sorted_within_a_budget():
    found = made([[[0.2, 0.4], [0.5, 0.7]], [[0.9, 0.9], [0.8, 0.8]]])
    rows = found.rows()
    assert [(row["budget"], row["policy"]) for row in rows] == [
        (10, "p1"), (10, "p0"), (20, "p0"), (20, "p1"),
    ]  # fmt: skip
    assert [row["best"] for row in rows] == [True, False, True, False]
    assert rows[1]["mean_score"] == pytest.approx(0.3)
    assert rows[1]["distance"] == pytest.approx(0.7)
    assert rows[1]["high"] - rows[1]["low"] == pytest.approx(2 * 12.706 * 0.1, rel=0.2)
    assert rows[1]["epochs"] == 5.0


def test_enough_is_the_smallest_budget_that_comes_near():
    found = made([[[0.90], [0.80]], [[0.91], [0.96]], [[0.99], [0.98]]])
    assert found.enough() == (20, "p1")
    assert found.enough(0.1) == (10, "p0")
    assert found.enough(0.02) == (30, "p0")
    assert found.enough(0.001) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budgets": [401]}, "at most the 400 epochs that the curves hold in all"),
        ({"budgets": [0]}, "a budget must be a whole number of at least 1; got 0"),
        ({"n_runs": 0}, "n_runs must be"),
        ({"noise": -1.0}, "noise must be"),
        ({"policies": {"a": ("asha", {"eta": 1})}}, "eta must be"),
        ({"policies": [("asha", 2)]}, "policies must be names, functions, or pairs"),
        ({"policies": None}, "policies must be at least one; got None"),
    ],
)
def test_bad_arguments(curves, arguments, message):
    arguments = {"policies": ["asha"]} | arguments
    with pytest.raises(InvalidParameterError, match=message):
        search(curves, **arguments)
