import csv
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.papers.rotting import grids, study, suite, table
from benchmarks.papers.rotting.paper import ANV, AV, CASES, HORIZON, NP
from benchmarks.papers.rotting.study import Scale
from risingsearch.policies import make_policy
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


def test_policies_can_be_built():
    named = [policy for case in CASES for policy in suite.policies(case).values()]
    named += [p for values in grids.grids().values() for p in values.values()]
    named += [p for p in grids.padded(AV).values() if p != "ucb1"]
    for name, parameters in named:
        make_policy(name, 3, 50, **parameters)


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


def test_table_has_wins_below_and_p_values_above_the_diagonal():
    given = with_wins({"sw-ucb": 10, "d-ucb": 40, "wswa": 99, "cto-sim": 100})
    text = table.table_1(AV, comparison(AV, given | {"fewa": spread(1)}))
    cells = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.split("\n")
    ]
    assert "fewa" not in cells[0]
    at = {row[0]: dict(zip(cells[0], row, strict=True)) for row in cells[2:]}
    assert at["sw-ucb"]["ucb1"] == "10 (15)"
    assert at["wswa"]["sw-ucb"] == "99 (100)"
    assert at["ucb1"]["d-ucb"].endswith("(0.81)")
    assert at["ucb1"]["wswa"] == "<1e-5 (<<1e-5)"
    assert at["wswa"]["wswa"] == ""


def test_counts_say_whether_ours_and_the_papers_differ_by_chance():
    shares = {"sw-ucb": 1, "d-ucb": 50, "wswa": 99, "cto-sim": 100}
    found = comparison(AV, with_wins(shares, 1000))
    rows = {(r["wins of"], r["over"]): r for r in table.counts(AV, found)}
    assert rows["sw-ucb", "ucb1"]["ours and the paper's"].startswith("differ, p = ")
    assert rows["d-ucb", "ucb1"]["ours and the paper's"] == "agree"
    assert rows["d-ucb", "ucb1"]["all"] == "50.0"
    assert rows["d-ucb", "ucb1"]["first 100"] == "100"


def test_a_pair_that_never_differs_is_not_significant():
    same = comparison(NP, {"ucb1": [1, 2], "d-ucb": [1, 2]})
    assert table.p_value(same, "ucb1", "d-ucb") == 1.0


def test_grids_name_the_best_value_and_what_the_papers_costs():
    names = [
        f"{name} {value:g}"
        for name, values in grids.grids().items()
        for value in values
    ]
    means = dict.fromkeys(names, 100.0) | {"d-ucb 0.999": 80.0, "sw-ucb 3000": 90.0}
    found = comparison(NP, {name: spread(mean) for name, mean in means.items()})
    d_ucb, sw_ucb, _ = grids.choices(NP, found)
    assert (d_ucb["best here"], d_ucb["p"]) == ("0.999", "the same value")
    assert (sw_ucb["best here"], sw_ucb["the paper's"]) == ("3000", "4000")
    assert (sw_ucb["mean regret"], sw_ucb["its mean regret"]) == ("90", "100")


def test_constant_of_the_papers_counts_lies_between_two():
    falling = dict(zip(grids.PADDINGS, [100, 90, 70, 60, 30, 10], strict=True))
    shares = {f"sw-ucb {xi:g}": share for xi, share in falling.items()}
    shares |= {f"d-ucb {xi:g}": 100 for xi in falling}
    found = comparison(ANV, with_wins(shares))
    sw_ucb, d_ucb = grids.paddings(ANV, found)
    assert sw_ucb["which lies"] == "between c = 1.7 and 2"
    assert (sw_ucb["c = 1.5"], sw_ucb["paper"]) == ("70", 50)
    assert d_ucb["which lies"] == "outside"


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
