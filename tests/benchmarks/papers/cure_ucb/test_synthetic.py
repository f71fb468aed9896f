from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers.cure_ucb import concave, ltf, synthetic, two_arm
from risingsearch.simulation import Comparison

TINY = synthetic.Scale(4, synthetic.HORIZONS, 6, beyond=False)


@pytest.fixture
def drawn_regret(monkeypatch):
    """Let ``compare`` draw the regrets, the first policy's the lowest."""

    def compare(policies, environments, horizons, n_runs, seed, jobs):
        rng = np.random.default_rng(seed)
        shape = (1, len(horizons), len(policies), n_runs)
        regret = rng.uniform(100, 101, shape) * np.arange(1, len(policies) + 1)[:, None]
        names = list(policies), list(environments), list(horizons)
        return Comparison(*names, regret, regret)

    monkeypatch.setattr(synthetic, "compare", compare)
    monkeypatch.setitem(synthetic.SCALES, "quick", TINY)


@pytest.mark.parametrize("suite", [ltf, concave])
def test_verdicts_follow_the_regrets(suite, drawn_regret):
    study = synthetic.Study(suite.__name__, suite.ET_SWGTS, TINY)
    good = study.play()
    bad = replace(good, regret=good.regret[:, :, ::-1])
    for comparison, holds in ((good, True), (bad, False)):
        of_cure = [c for c in suite.check(comparison) if "CURE-UCB" in c.claim]
        assert len(of_cure) == 6
        assert all(claim.holds is holds for claim in of_cure)


def test_late_bloomer_is_better_from_16000_rounds_on():
    claim = two_arm.switch()
    assert claim.holds
    assert claim.ours == "from 16,000 on"
