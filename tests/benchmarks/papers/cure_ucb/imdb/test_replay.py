import numpy as np

from benchmarks.papers.cure_ucb.imdb import replay
from benchmarks.papers.cure_ucb.imdb.replay import BATCHES, HORIZON, SINGLE
from risingsearch.simulation import Comparison


def played(**means):
    """Return a comparison with these mean regrets, and a spread of about 1."""
    rng = np.random.default_rng(0)
    base = {"cure-ucb": 1, "r-ed-ucb": 1, "sw-ucb": 1, "round-robin": 1} | means
    regret = np.array([*base.values()])[:, None] + rng.normal(size=(len(base), 20))
    regret = regret[None, None]
    return Comparison([*base], ["here"], [HORIZON], regret, regret)


def test_bars_follow_the_regrets():
    good = played(**{"cure-ucb": 3500, "r-ed-ucb": 3900})
    half = played(**{"cure-ucb": 400, "round-robin": 900})
    verdicts = [b["verdict"] for b in replay.bars({SINGLE: good, BATCHES: half})]
    assert verdicts == ["holds"] * 3
    far = played(**{"cure-ucb": 1900, "r-ed-ucb": 6000})
    more = played(**{"cure-ucb": 500, "round-robin": 900})
    verdicts = [b["verdict"] for b in replay.bars({SINGLE: far, BATCHES: more})]
    assert verdicts == ["does not hold"] * 3


def test_claims_follow_the_regrets():
    near = played(**{"cure-ucb": 10.0, "r-ed-ucb": 10.4, "sw-ucb": 20.0})
    assert all(claim.holds for claim in replay.check(SINGLE, near))
    far = played(**{"cure-ucb": 20.0, "r-ed-ucb": 10.0, "sw-ucb": 5.0})
    assert not any(claim.holds for claim in replay.check(SINGLE, far))
