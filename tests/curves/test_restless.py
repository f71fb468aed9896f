"""Arms that move with the rounds: means, sums and best sums, against adding up."""

import math
import re

import numpy as np
import pytest

from risingsearch.curves.base import fresh
from risingsearch.curves.restless import DriftingMeans, Sinusoid
from risingsearch.errors import InvalidParameterError

T = 300


def random_arms(seed, between, **options):
    rng = np.random.default_rng(seed)
    rounds = np.sort(np.append(rng.choice(np.arange(2, T), 7, replace=False), 1))
    means = rng.uniform(0.2, 0.8, (4, 8))
    deviations = rng.uniform(0.0, 0.3, (4, 8))
    return DriftingMeans.create(
        means, rounds, deviations=deviations, between=between, **options
    )


def table(arms, last=T):
    return np.array(
        [
            [arms.mean(arm, 1, t) for t in range(1, last + 1)]
            for arm in range(arms.n_arms)
        ]
    )


class TestMeans:
    def test_held_means_change_at_the_knots(self):
        arms = DriftingMeans.create([[0.1, 0.2, 0.3]], [1, 4, 6])
        expected = [0.1, 0.1, 0.1, 0.2, 0.2, 0.3, 0.3, 0.3]
        assert table(arms, 8)[0].tolist() == expected

    @pytest.mark.parametrize("between", ["linear", "mixture"])
    def test_interpolated_means_move_in_straight_lines(self, between):
        arms = random_arms(0, between)
        for arm in range(4):
            expected = np.interp(np.arange(1, T + 1), arms.rounds, arms.means[:, arm])
            np.testing.assert_allclose(table(arms)[arm], expected)


class TestRewards:
    def drawn(self, arms, t, n=20_000):
        rng = np.random.default_rng(3)
        return np.array([arms.draw(arms.mean(0, 1, t), 0, 1, t, rng) for _ in range(n)])

    @pytest.mark.parametrize(
        ("t", "mean", "deviation"),
        [(1, 0.0, 0.1), (11, 0.5, math.sqrt(0.05)), (21, 1, 0.3)],
    )
    def test_variances_move_in_straight_lines(self, t, mean, deviation):
        arms = DriftingMeans.create(
            [[0.0, 1.0]], [1, 21], deviations=[[0.1, 0.3]], between="linear"
        )
        drawn = self.drawn(arms, t)
        assert drawn.mean() == pytest.approx(mean, abs=0.01)
        assert drawn.std() == pytest.approx(deviation, rel=0.03)

    def test_a_mixture_comes_from_either_side(self):
        arms = DriftingMeans.create(
            [[0.0, 10.0]], [1, 11], deviations=[[0.1, 0.2]], between="mixture"
        )
        drawn = self.drawn(arms, 4)
        old, new = drawn[drawn < 5.0], drawn[drawn > 5.0]
        assert len(new) / len(drawn) == pytest.approx(0.3, abs=0.015)
        assert [old.mean(), new.mean()] == pytest.approx([0.0, 10.0], abs=0.01)
        assert [old.std(), new.std()] == pytest.approx([0.1, 0.2], rel=0.05)
        assert self.drawn(arms, 1, 100).max() < 5.0
        assert self.drawn(arms, 11, 100).min() > 5.0


class TestBestSums:
    @pytest.mark.parametrize("seed", range(2))
    @pytest.mark.parametrize("between", ["held", "linear"])
    def test_the_best_of_every_round_is_counted(self, between, seed):
        arms = random_arms(seed, between, noise="none")
        best = table(arms).max(axis=0)
        rounds = np.array([T, 1, 50, 51, 299, 123])
        np.testing.assert_allclose(arms.optimal(rounds), np.cumsum(best)[rounds - 1])

    def test_a_hundred_million_rounds_are_no_more_than_their_knots(self):
        n = 10**8
        arms = DriftingMeans.create(
            [[0.0, 1.0], [0.5, 0.5]], [1, n + 1], between="linear"
        )
        assert arms.optimal(np.array([n]))[0] == pytest.approx(0.625 * n)

    def test_the_static_reference_is_a_constant_per_round(self):
        rounds = np.array([1, 10])
        means = [[0.2, 0.9], [0.4, 0.9]]
        arms = DriftingMeans.create(means, [1, 2], reference="static")
        np.testing.assert_allclose(arms.optimal(rounds), [0.4, 4.0])


class TestCompiled:
    def test_a_run_shares_tables_and_nothing_that_changes(self):
        arms = DriftingMeans.create([[0.1, 0.2]], [1, 3])
        arms.mean(0, 1, 5)
        own = fresh(arms)
        assert own.means is arms.means
        assert own.knot.tolist() == [0]

    @pytest.mark.slow
    @pytest.mark.parametrize("between", ["held", "mixture"])
    def test_runs_are_the_same(self, between, same_either_way):
        same_either_way(random_arms(5, between), T)

    @pytest.mark.slow
    def test_runs_on_the_sinusoid_are_the_same(self, same_either_way):
        arms = Sinusoid.create(0.5, 0.01, 1.0, "bernoulli")
        _, rewards, total = same_either_way(arms, 3_000)
        assert rewards.mean() == pytest.approx(total / 3_000, abs=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"means": [[0.1, np.nan]]}, "means must be a table of finite numbers"),
        ({"rounds": [1]}, "rounds must be 2 whole numbers, one per column of means,"),
        ({"rounds": [1, 1]}, "increasing from 1; got [1, 1]"),
        ({"rounds": [1.0, 2.0]}, "rounds must be 2 whole numbers"),
        ({"between": "spline"}, "between must be one of 'held', 'linear', 'mixture';"),
        ({"deviations": -0.1}, "deviations must be finite numbers of at least 0: one,"),
        ({"deviations": [[0.1], [0.1]]}, "one per arm, or one per arm and knot; got"),
        ({"noise": "bernoulli"}, "these reach from -0.1 to 0.9"),
        ({"reference": "greedy"}, "reference must be one of 'dynamic', 'static'"),
    ],
)
def test_drifting_means_say_what_is_wrong(options, message):
    given = {"means": [[0.1, 0.2], [-0.1, 0.9]], "rounds": [1, 5]} | options
    with pytest.raises(InvalidParameterError, match=re.escape(message)):
        DriftingMeans.create(**given)


class TestSinusoid:
    def test_the_mean_is_the_sine_whatever_was_asked_before(self):
        arms = Sinusoid.create(0.3, 0.0123, 2.0)
        forward = [arms.mean(1, 1, t) for t in range(1, 3_001)]
        expected = 0.3 - 0.3 * np.sin(0.0123 * np.arange(1, 3_001) + 2.0)
        np.testing.assert_allclose(forward, expected, atol=1e-13)
        assert [arms.mean(1, 1, t) for t in range(3_000, 0, -1)] == forward[::-1]
        assert arms.mean(0, 1, 17) == 0.3

    def test_the_sine_is_as_good_at_the_end_of_a_long_run(self):
        n = 10**8
        frequency = 2.0 * math.pi * 4.5 / n
        arms = Sinusoid.create(1.0, frequency, 0.7)
        for t in range(n - 1_000, n, 97):
            expected = 1.0 - math.sin(frequency * t + 0.7)
            assert arms.mean(1, 1, t) == pytest.approx(expected, abs=1e-14)

    @pytest.mark.parametrize("amplitude", [0.4, -0.4])
    @pytest.mark.parametrize(
        ("frequency", "phase"), [(0.02, 0.0), (0.3, 5.0), (3.1, -9)]
    )
    def test_the_best_sum_is_what_adding_up_gives(self, amplitude, frequency, phase):
        arms = Sinusoid.create(amplitude, frequency, phase)
        t = np.arange(1, 1_001)
        means = amplitude - amplitude * np.sin(frequency * t + phase)
        best = np.cumsum(np.maximum(means, amplitude))
        rounds = np.array([1_000, 1, 2, 10, 333, 999])
        np.testing.assert_allclose(arms.optimal(rounds), best[rounds - 1])

    def test_the_best_sum_of_a_hundred_million_rounds(self):
        n = 10**8
        arms = Sinusoid.create(0.02, 2.0 * math.pi * 3.0 / n)
        # The swinging arm is ahead by the mean of a sine's half, half of the time.
        expected = 0.02 * n + 0.02 * n / math.pi
        assert arms.optimal(np.array([n]))[0] == pytest.approx(expected, rel=1e-9)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ((math.nan, 0.1), "amplitude must be a finite number; got nan"),
            ((0.1, 0.0), "frequency must be a finite number above 0 and at most 3.1"),
            ((0.1, 0.1, math.inf), "phase must be a finite number; got inf"),
            ((0.6, 0.1, 0.0, "bernoulli"), "these reach from 0 to 1.2"),
        ],
    )
    def test_it_says_what_is_wrong(self, arguments, message):
        with pytest.raises(InvalidParameterError, match=re.escape(message)):
            Sinusoid.create(*arguments)
