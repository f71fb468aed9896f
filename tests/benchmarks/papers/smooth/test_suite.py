import numpy as np
import pytest

from benchmarks.papers.smooth import sinusoid
from benchmarks.papers.smooth.sinusoid import REFERENCES, instance
from risingsearch.simulation import Comparison


def comparison(regret, n_runs=30):
    """Return one whose policies have these mean regrets, by horizon."""
    rng = np.random.default_rng(0)
    rows = np.array(
        [
            [m + rng.uniform(-1, 1, n_runs) for m in of.values()]
            for of in regret.values()
        ]
    )[None]
    names = list(next(iter(regret.values())))
    return Comparison(names, ["sinusoid"], list(regret), rows, rows)


class TestSinusoid:
    def test_an_instance_is_the_same_at_every_horizon(self):
        short, long = (instance(horizon, 1.0, 3) for horizon in (10**4, 10**6))
        assert short.amplitude == long.amplitude
        assert short.mean(1, 1, 1234) == pytest.approx(long.mean(1, 1, 123_400))

    def test_bars_are_computed(self):
        def verdicts(changes):
            regret = {h: of | changes for h, of in REFERENCES.items()}
            return [row["verdict"] for row in sinusoid.bars(comparison(regret))]

        assert verdicts({}) == ["holds", "holds"]
        assert verdicts({"be-s": 290_000}) == ["does not hold", "does not hold"]

    def test_claims_are_computed(self):
        def verdicts(be_ns, be_s):
            return [
                claim.holds
                for claim in sinusoid.check(
                    comparison(
                        {
                            h: {"be-ns": h**be_ns, "be-s": h**be_s, "rexp3": h**0.7}
                            for h in REFERENCES
                        }
                    )
                )
            ]

        assert verdicts(0.69, 0.63) == [True] * 4
        assert verdicts(0.69, 0.71) == [False, True, False, False]
