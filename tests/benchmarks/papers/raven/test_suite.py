from functools import partial

import numpy as np
import pytest

from benchmarks.papers.raven import scenarios, trials
from benchmarks.papers.raven.logistics import TABLE_4
from benchmarks.papers.raven.trials import DYNAMIC, REWARD, STATIC, SUBOPTIMAL
from risingsearch.curves import make_environment
from risingsearch.simulation import simulate

STUDY = [scenarios.variance, scenarios.incremental, scenarios.blips]


def make(scenario, horizon):
    return scenario(np.random.default_rng(0), horizon)


class TestSensitivity:
    def test_at_a_thousand_rounds_the_three_scenarios_are_one(self):
        drawn = [make(experiment, 1_000) for experiment in STUDY]
        for arms in drawn:
            assert arms.rounds.tolist() == [1]
            np.testing.assert_array_equal(arms.means, drawn[0].means)
            np.testing.assert_array_equal(arms.variances, drawn[0].variances)

    @pytest.mark.parametrize("experiment", STUDY)
    def test_shifts_come_at_the_multiples_of_5000(self, experiment):
        arms = make(experiment, 19_950)
        assert arms.rounds.tolist() == [1, 5_000, 10_000, 15_000]
        for table, low, high in [(arms.means, 0.3, 0.8), (arms.variances, 0.01, 0.09)]:
            assert low <= table.min() < table.max() <= high

    def test_blips_are_left_out_of_the_last_hundred_rounds(self):
        assert make(scenarios.blips, 10_099).rounds.tolist() == [1, 5_000]
        assert make(scenarios.blips, 10_100).rounds[-1] == 10_000
        assert make(scenarios.variance, 10_000).rounds[-1] == 10_000

    def test_what_shifts(self):
        def changed(experiment):
            arms = make(experiment, 9_000)
            return [
                np.mean(np.diff(x, axis=0) != 0.0) for x in (arms.means, arms.variances)
            ]

        assert changed(scenarios.variance) == [0.0, 1.0]
        assert changed(scenarios.incremental) == [1.0, 0.0]
        assert changed(scenarios.blips) == [1.0, 1.0]


class TestLogistics:
    def test_paper_rewards_and_regrets_make_up_the_best_arms_sum(self):
        for row in TABLE_4.values():
            assert row.reward + row.regret == pytest.approx(40_000, abs=30)
            assert row.again_reward + row.again_regret == pytest.approx(40_000, abs=20)

    def test_sums_are_those_of_the_simulation(self, monkeypatch):
        interpreted = partial(simulate, compiled=False)
        monkeypatch.setattr(trials, "simulate", interpreted)
        named = {"ucb1": ("ucb1", {}), "sweeps": ("round-robin", {})}
        found = trials.play(named, 2, seed=4, jobs=1, horizon=300)
        for k in range(2):
            arms = make_environment("logistics", 300, 4 + k)
            run = interpreted("ucb1", arms, 300, seed=4 + k, trace=True)
            assert found.ends(STATIC, "ucb1")[k] == pytest.approx(run.regret[0, -1])
            assert found.ends(REWARD, "ucb1")[k] == pytest.approx(run.rewards.sum())
            assert found.ends(SUBOPTIMAL, "ucb1")[k] == (run.arms != 99).sum()
        # Every arm three times: all pulls but three miss the best.
        assert found.ends(SUBOPTIMAL, "sweeps").tolist() == [297, 297]
        assert found.ends(DYNAMIC, "sweeps") == pytest.approx(75.0)
        assert found.checkpoints[-1] == 300
