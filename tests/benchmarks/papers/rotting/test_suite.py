import csv
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.papers.rotting import study, suite
from benchmarks.papers.rotting.paper import CASES, HORIZON, NP
from benchmarks.papers.rotting.study import Scale
from risingsearch.simulation import Comparison


def comparison(case, regret):
    """Return one in which policies have these regrets, run by run."""
    rows = np.array([np.asarray(own, dtype=float) for own in regret.values()])
    rows = rows[None, None]
    return Comparison(list(regret), [case.environment], [HORIZON], rows, 0 * rows)


def spread(mean, n_runs=100):
    return mean + np.random.default_rng(0).uniform(-0.01, 0.01, n_runs)


def with_wins(shares, n_runs=100):
    """Return regrets that are below those of ``ucb1``, all 0, in percent of the runs.

    That is also how often they beat a policy with a smaller percentage.
    """
    runs = np.arange(n_runs) * 100 / n_runs
    zero = {"ucb1": np.zeros(n_runs)}
    return zero | {name: np.where(runs < s, -s, s) for name, s in shares.items()}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_paper_compares_every_pair_once(case):
    names = [name for name in suite.policies(case) if name not in suite.LATER]
    assert list(case.means) == names
    expected = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    assert sorted(case.wins) == sorted(expected)
    assert {(b, a) for a, b in case.p_values} <= set(case.wins)


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


@pytest.mark.slow
def test_suite_leaves_results_figures_and_summary(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)

    def compare(policies, environments, horizons, n_runs, seed, jobs):
        regret = rng.uniform(1, 9, (1, 1, len(policies), n_runs))
        return Comparison(list(policies), environments, horizons, regret, regret)

    def simulate(policy, environment, horizon, n_runs, seed, **options):
        marks = np.linspace(500, HORIZON, 60)
        return SimpleNamespace(checkpoints=marks, regret=rng.random((n_runs, 60)))

    monkeypatch.setattr(study, "compare", compare)
    monkeypatch.setattr(suite, "simulate", simulate)
    monkeypatch.setitem(suite.SCALES, "full", Scale(120, 3, full=True))
    suite.run(tmp_path, scale="full", seed=0)
    with (tmp_path / "results.csv").open() as file:
        parts = {row["part"] for row in csv.DictReader(file)}
    assert parts == {"main", "xi", "grid", "beyond"}
    summary = (tmp_path / "summary.md").read_text()
    figures = {path.stem for path in tmp_path.glob("*.png")}
    assert figures == {path.stem for path in tmp_path.glob("*.svg")}
    assert figures == {"regret", "wins", "grids"}
    assert all(f"({name}.png)" in summary for name in figures)
