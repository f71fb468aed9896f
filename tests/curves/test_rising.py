"""Rising arms: what the papers say of them, and of the recorded IMDB curves."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from risingsearch.curves.noise import make_noise
from risingsearch.curves.rising import concave, imdb_replay, ltf, two_arm
from risingsearch.errors import InvalidParameterError

T0 = 50_000


def generators(n):
    return [np.random.default_rng(seed) for seed in range(n)]


class TestTwoArm:
    def test_the_better_arm_changes_at_sixteen_thousand_rounds(self):
        arms = two_arm(np.random.default_rng(0), T0)
        rounds = np.array([10_000, 15_998, 16_000, 30_000])
        first = 0.4 * rounds
        written = np.minimum(1.0, np.arange(1, 30_001) / 20_000)
        second = np.cumsum(written)[rounds - 1]
        assert (second > first).tolist() == [False, False, True, True]
        np.testing.assert_allclose(arms.optimal(rounds), np.maximum(first, second))


class TestLTF:
    def test_arms_are_drawn_from_the_papers_ranges(self):
        drawn = [ltf(rng, T0 + 1) for rng in generators(60)]
        assert {arms.n_arms for arms in drawn} == {2, 3, 4, 5}
        means = np.concatenate([arms.means for arms in drawn])
        plateaus = means[:, -1]
        saturation = plateaus / means[:, 0]
        assert 0.1 <= plateaus.min() < 0.15 < 0.95 < plateaus.max() <= 1.0
        assert 0.05 * T0 <= saturation.min() < 0.1 * T0
        assert 0.95 * T0 < saturation.max() <= T0

    def test_the_arms_do_not_depend_on_the_horizon(self):
        short, long = (ltf(np.random.default_rng(3), n) for n in (5_000, 50_000))
        np.testing.assert_array_equal(short.means, long.means[:, :5_000])


class TestConcave:
    def test_two_arms_are_the_late_bloomer_and_the_early_peaker(self):
        for rng in generators(10):
            arms = concave(rng, T0)
            np.testing.assert_allclose(arms.means[:2, -1], [0.95, 0.58])
            np.testing.assert_allclose(arms.means[:2, 0], [0.1, 0.55], atol=0.003)
            assert np.all((arms.means[2:, -1] > 0.9) & (arms.means[2:, -1] < 0.99))
            assert np.all((arms.means[2:, 0] > 0.05) & (arms.means[2:, 0] < 0.352))

    def test_three_quarters_of_the_growth_comes_in_the_first_fifth(self):
        shares = []
        for rng in generators(60):
            means = concave(rng, T0, n_arms=5).means
            start = means[:, :1] - (means[:, 1:2] - means[:, :1])  # at pull 0, nearly
            shares.extend((means[:, 9_999:10_000] - start) / (means[:, -1:] - start))
        assert 0.75 <= np.min(shares) < 0.77
        assert np.max(shares) < 1.0

    def test_the_arms_do_not_depend_on_the_horizon(self):
        short, long = (concave(np.random.default_rng(3), n) for n in (700, 60_000))
        np.testing.assert_array_equal(short.means, long.means[:, :700])


@pytest.fixture
def recording(tmp_path):
    """A folder with made-up curves of 600 reviews under the names of the real ones."""
    (tmp_path / "imdb_curves").mkdir()
    codes = ["lr0003", "ogd01", "nn1", "nn2", "nn6", "nn7", "other", "nn11"]
    means = np.arange(8 * 600, dtype=np.float32).reshape(8, 600) / 4800
    np.savez(
        tmp_path / "imdb_curves" / "imdb_online_curves.npz", mean=means, codes=codes
    )
    return tmp_path


class TestIMDB:
    rng = np.random.default_rng(0)

    def test_the_arms_of_the_published_experiment_or_all(self, recording):
        arms = imdb_replay(self.rng, 600, data_dir=recording)
        assert arms.means[:, 0].tolist() == [0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.875]
        assert arms.noise == make_noise("bernoulli")
        assert arms.reference == "best-arm"
        assert imdb_replay(self.rng, 600, data_dir=recording, arms="all").n_arms == 8

    def test_a_pull_may_be_a_batch_of_reviews(self, recording):
        single = imdb_replay(self.rng, 600, data_dir=str(recording))
        arms = imdb_replay(self.rng, 5, data_dir=recording, batch=100)
        np.testing.assert_allclose(
            arms.means, single.means[:, :500].reshape(7, 5, 100).mean(axis=2)
        )
        assert arms.noise == make_noise("bernoulli", batch=100)
        assert imdb_replay(
            self.rng, 9, data_dir=recording, batch=100, noise=0.1
        ).noise == make_noise("gaussian", 0.1)

    def test_it_says_what_is_wrong(self, recording, tmp_path):
        with pytest.raises(InvalidParameterError, match="arms must be one of 'all'"):
            imdb_replay(self.rng, 5, data_dir=recording, arms="some")
        with pytest.raises(InvalidParameterError, match="batch must be at most 600"):
            imdb_replay(self.rng, 5, data_dir=recording, batch=601)
        nowhere = tmp_path / "nowhere"
        message = re.escape(f"there is no {nowhere}")
        with pytest.raises(InvalidParameterError, match=message):
            imdb_replay(self.rng, 5, data_dir=nowhere)


@pytest.mark.skipif("RISINGSEARCH_DATA" not in os.environ, reason="needs real data")
class TestRecordedIMDB:
    def arms(self, horizon=T0, **options):
        data = Path(os.environ["RISINGSEARCH_DATA"])
        return imdb_replay(np.random.default_rng(0), horizon, data_dir=data, **options)

    def test_sums_are_those_of_the_publication(self):
        sums = self.arms().means.sum(axis=1)
        expected = [39_846, 40_653, 38_261, 41_544, 38_168, 35_059, 30_381]
        np.testing.assert_allclose(sums, expected, atol=0.5)

    def test_the_network_of_two_units_overtakes_after_5694_reviews(self):
        arms = self.arms(10_000)
        sums = np.cumsum(arms.means, axis=1)
        best = sums.argmax(axis=0)
        assert set(best[5_000 - 1 : 5_694 - 1]) == {1}
        assert set(best[5_694 - 1 :]) == {3}
        rounds = np.array([5_000, 10_000])
        np.testing.assert_allclose(
            arms.optimal(rounds), [sums[1, 4_999], sums[3, 9_999]]
        )
