import numpy as np

from benchmarks.papers.rotting import suite
from benchmarks.papers.rotting.paper import CASES, HORIZON, NP
from risingsearch.simulation import Comparison


def comparison(case, regret):
    """Return one in which policies have these regrets, run by run."""
    rows = np.array([np.asarray(own, dtype=float) for own in regret.values()])
    rows = rows[None, None]
    return Comparison(list(regret), [case.environment], [HORIZON], rows, 0 * rows)


def spread(mean, n_runs=100):
    return mean + np.random.default_rng(0).uniform(-0.01, 0.01, n_runs)


def test_bars_are_computed():
    def verdicts(means):
        found = comparison(NP, {name: spread(mean) for name, mean in means.items()})
        return [row["verdict"] for row in suite.bars({NP: found})]

    assert verdicts(NP.means) == ["holds", "holds"]
    assert verdicts(NP.means | {"wswa": 80}) == ["holds", "does not hold"]
    swapped = NP.means | {"d-ucb": 500, "sw-ucb": 520}
    assert verdicts(swapped) == ["does not hold", "does not hold"]


def test_claims_follow_the_regrets():
    good = {
        case: comparison(
            case, {name: spread(mean) for name, mean in case.means.items()}
        )
        for case in CASES
    }
    assert [claim.holds for claim in suite.check(good)] == [True] * 3
    best = {"d-ucb": 1.0, "wswa": 2.0}
    bad = {
        case: comparison(
            case, {n: spread(m) for n, m in (dict(case.means) | best).items()}
        )
        for case in CASES
    }
    leader, wswa, informed = suite.check(bad)
    assert not leader.holds
    assert leader.ours == "NP: d-ucb, AV: d-ucb, ANV: d-ucb"
    assert not wswa.holds
    assert "NP: wswa wins 0 % or more (d-ucb)" in wswa.ours
    assert not informed.holds
