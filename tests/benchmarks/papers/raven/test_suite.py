from functools import partial

import pytest

from benchmarks.papers.raven import trials
from benchmarks.papers.raven.logistics import TABLE_4
from benchmarks.papers.raven.trials import DYNAMIC, REWARD, STATIC, SUBOPTIMAL
from risingsearch.curves import make_environment
from risingsearch.simulation import simulate


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
