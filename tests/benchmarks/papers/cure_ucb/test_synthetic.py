import csv
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.papers.cure_ucb import concave, ltf, policies, synthetic, two_arm
from risingsearch.policies import make_policy
from risingsearch.simulation import Comparison

TINY = synthetic.Scale(4, synthetic.HORIZONS, 6, beyond=True)


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


@pytest.mark.slow
@pytest.mark.parametrize("suite", [two_arm, ltf, concave])
def test_suite_leaves_results_figures_and_summary(suite, drawn_regret, tmp_path):
    suite.run(tmp_path, scale="quick", seed=0)
    with (tmp_path / "results.csv").open() as file:
        parts = {row["part"] for row in csv.DictReader(file)}
    assert parts >= {"main", "sweep", "reference", "beyond"}
    summary = (tmp_path / "summary.md").read_text()
    figures = {path.stem for path in tmp_path.glob("*.png")}
    assert figures == {path.stem for path in tmp_path.glob("*.svg")}
    assert figures >= {"regret", "ranks", "at-30000", "instances", "noise"}
    assert all(f"({name}.png)" in summary for name in figures)


@pytest.mark.parametrize("suite", [ltf, concave])
def test_verdicts_follow_the_regrets(suite, drawn_regret):
    study = synthetic.Study(suite.__name__, suite.ET_SWGTS, TINY)
    good = study.play()
    bad = replace(good, regret=good.regret[:, :, ::-1])
    for comparison, holds in ((good, True), (bad, False)):
        of_cure = [c for c in suite.check(comparison) if "CURE-UCB" in c.claim]
        assert len(of_cure) == 6
        assert all(claim.holds is holds for claim in of_cure)


@pytest.mark.parametrize("suite", [two_arm, ltf, concave])
def test_policies_of_the_paper_can_be_built(suite):
    given = policies.paper_policies(0.01, suite.ET_SWGTS)
    assert set(given) == {*policies.RISING, *policies.NON_STATIONARY}
    for name, parameters in given.values():
        make_policy(name, 3, 100, **parameters)


def test_late_bloomer_is_better_from_16000_rounds_on():
    claim = two_arm.switch()
    assert claim.holds
    assert claim.ours == "from 16,000 on"
