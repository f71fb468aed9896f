import csv
import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.papers.raven import (
    logistics,
    reduction,
    sensitivity,
    study,
    suite,
    trials,
)
from benchmarks.papers.raven.logistics import TABLE_4
from benchmarks.papers.raven.reduction import AS_SCRIPT, AS_TEXT, UNTUNED, Bernoulli
from benchmarks.papers.raven.sensitivity import LONG, PAIRS, SHORT, VARIANCE, label
from benchmarks.papers.raven.study import PAPER, SCALES, Scale
from benchmarks.papers.raven.trials import DYNAMIC, MEASURES, REWARD, STATIC, SUBOPTIMAL
from risingsearch.curves import make_environment
from risingsearch.errors import MissingDependencyError
from risingsearch.policies import make_policy
from risingsearch.simulation import Comparison, simulate


class TestReduction:
    def test_shares_have_mean_and_spread_of_a_ratio(self):
        rng = np.random.default_rng(0)
        ucb1 = rng.normal(100, 10, 20_000)
        raven = 0.2 * ucb1 + rng.normal(0, 1, 20_000)
        found = reduction.shares(raven, ucb1)
        assert found.mean() == pytest.approx(1 - raven.mean() / ucb1.mean())
        assert found.std() == pytest.approx(1 / 100, rel=0.02)

    def test_only_the_text_tunes_eps(self, monkeypatch):
        tuned = {"alpha0": 0.2, "beta0": 3.0, "eps": 0.4}
        monkeypatch.setattr(reduction, "tune", lambda tried, trials, seed: tuned)
        runs = Bernoulli(100, 5, 0, 1)
        script, text, untuned = (
            reduction.chosen(tuning, runs) for tuning in (AS_SCRIPT, AS_TEXT, UNTUNED)
        )
        assert script == tuned | {"eps": 1e-6, "variance": "alg1"}
        assert text == tuned | {"variance": "eq5"}
        assert (untuned["alpha0"], untuned["beta0"]) == (0.5, 1.0)

    def test_search_is_seeded_and_within_the_papers_ranges(self, monkeypatch):
        asked = {}

        class Trial:
            def suggest_float(self, name, low, high, log=False):
                asked[name] = (low, high, log)
                return low

        def create_study(sampler):
            def optimize(objective, n_trials):
                study.regrets = [objective(Trial()) for _ in range(n_trials)]

            study = SimpleNamespace(
                optimize=optimize, best_params={"alpha0": sampler.seed}
            )
            return study

        optuna = SimpleNamespace(
            logging=SimpleNamespace(set_verbosity=lambda level: None, WARNING=30),
            samplers=SimpleNamespace(TPESampler=SimpleNamespace),
            create_study=create_study,
        )
        monkeypatch.setitem(sys.modules, "optuna", optuna)
        tried = []
        found = reduction.tune(lambda **given: tried.append(given) or 1.0, 3, 7)
        assert found == {"alpha0": 7}
        assert tried == [{"alpha0": 0.01, "beta0": 0.01, "eps": 0.001}] * 3
        assert asked["beta0"] == (0.01, 10.0, True)
        assert asked["eps"] == (0.001, 0.5, False)

    def test_without_optuna_it_says_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "optuna", None)
        with pytest.raises(MissingDependencyError, match=r"risingsearch\[bench\]"):
            reduction.tune(lambda **given: 1.0, 3, 7)

    def test_claims_follow_the_shares(self):
        good = {100: 0.81, 5_000: 0.83, 10_000: 0.86}
        assert reduction.all_above(good, "").holds
        assert reduction.near_limit(good, "").holds
        low = reduction.all_above(good | {100: 0.22}, "")
        assert not low.holds
        assert low.ours == "at 2 of 3 horizons; not at 100 (22%)"
        assert not reduction.near_limit(good | {10_000: 0.88}, "").holds


def grid(best):
    """Return a grid in which a pair is best at each (environment, horizon)."""
    environments = [*sensitivity.STUDIED, *sensitivity.TABLE_1]
    horizons = list(sensitivity.HORIZONS)
    noise = np.random.default_rng(0).uniform(size=(len(environments), 2, 16, 160))
    regret = 50 + noise
    for e, environment in enumerate(environments):
        for h, horizon in enumerate(horizons):
            regret[e, h, PAIRS.index(best(environment, horizon))] -= 40
    names = [label(*pair) for pair in PAIRS]
    return Comparison(names, environments, horizons, regret, regret)


class TestSensitivity:
    def test_claims_follow_the_regrets(self):
        said = {place: best[:2] for place, best in sensitivity.PAPER.items()}
        as_said = sensitivity.check(grid(lambda *place: said.get(place, (0.5, 0.5))))
        assert [claim.holds for claim in as_said[:6]] == [True] * 6
        # What the paper concludes does not follow from its own pairs.
        assert not as_said[7].holds
        other = sensitivity.check(grid(lambda *place: (10.0, 10.0)))
        assert not any(claim.holds for claim in other)
        assert "lowest is (10, 10)" in other[0].ours

    def test_alpha0_grows_with_the_horizon_in_all_three_or_the_claim_fails(self):
        def best(environment, horizon):
            return (0.5, 0.5) if horizon == SHORT else (5.0, 0.5)

        assert sensitivity.check(grid(best))[6].holds

    def test_repetitions_choose_on_runs_of_their_own(self):
        regret = np.ones((16, 170))
        regret[3] = 0.5
        assert sensitivity.repeated(regret).tolist() == [3] * 17
        # Lucky in one block alone: chosen in one repetition.
        regret[5, 20:30] = 0.0
        assert (sensitivity.repeated(regret) == 5).sum() == 1
        # Two lucky in the same runs meet in no repetition.
        regret[6, 20:30] = 0.0
        chosen = sensitivity.repeated(regret).tolist()
        assert (chosen.count(5), chosen.count(6)) == (1, 1)

    def test_choices_of_the_paper_stand_beside_the_best(self):
        found = grid(lambda environment, horizon: (1.0, 5.0))
        first, second, *_ = sensitivity.choices(found)
        assert (first["the paper's"], first["best here"]) == ("(0.5, 0.5)", "(1, 5)")
        assert (first["p"], first["chosen again"]) == ("< 0.001", "0%")
        assert (second["p"], second["best chosen"]) == ("the same", "100%")
        rows = list(sensitivity.optima(found))
        assert len(rows) == 20
        assert rows[0]["environment"] == VARIANCE
        assert rows[1]["T"] == f"{LONG:,}"
        assert rows[0]["as good as the best but for chance"] == "0 of 15"


def made_trials(regret, n_trials=50, error=30.0):
    """Return trials in which policies have these mean static regrets."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(n_trials, len(regret)))
    noise *= error * n_trials**0.5
    noise -= noise.mean(axis=0)
    static = np.array(list(regret.values())) + noise
    sums = np.stack([static, static - 200, 40_000 - static, static], axis=2)
    marks = np.array([25_000, 50_000])
    return trials.Trials(list(regret), marks, sums[..., None] * np.array([0.5, 1.0]))


AGAIN = {name: row.again_regret for name, row in TABLE_4.items()}
OTHERS = {name: regret for name, (regret, _) in logistics.INDEPENDENT.items()}


class TestLogistics:
    def test_policies_can_be_built(self):
        for name, parameters in logistics.policies().values():
            make_policy(name, 100, 1000, **parameters)
        assert list(PAPER) == list(TABLE_4)

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

    def test_dynamic_regret_is_against_the_best_mean_of_the_round(self, monkeypatch):
        interpreted = partial(simulate, compiled=False)
        monkeypatch.setattr(trials, "simulate", interpreted)
        arms = make_environment("logistics", 200, 3, every=50, reference="dynamic")
        run = interpreted("round-robin", arms, 200, seed=3, trace=True)
        found = trials.sums(arms, run, np.array([200]))
        assert found[MEASURES.index(DYNAMIC), 0] == pytest.approx(run.regret[0, 0])

    def test_bars_are_computed(self):
        def verdicts(**changed):
            changed = {name.replace("_", "-"): v for name, v in changed.items()}
            found = logistics.bars(made_trials(AGAIN | changed))
            return [row["verdict"] for row in found]

        assert verdicts() == ["holds", "holds"]
        assert verdicts(wls_ots=9_729) == ["holds", "holds"]
        assert verdicts(ucb1=5_750) == ["holds", "does not hold"]
        assert verdicts(ccb=2_990, thompson_beta=2_980) == [
            "does not hold",
            "does not hold",
        ]

    def test_claims_follow_the_regrets(self):
        good = list(logistics.check(made_trials(AGAIN | OTHERS)))
        # With Algorithm 1's own recursion it is no more than level with CCB.
        assert [claim.holds for claim in good] == [True] * 6
        assert "not beyond chance" in good[-1].ours
        bad = made_trials(AGAIN | OTHERS | {"raven-ucb": 3_100, "ccb": 3_200})
        assert not any(claim.holds for claim in list(logistics.check(bad))[:4])


@pytest.mark.slow
def test_suite_leaves_results_figures_and_summary(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)

    def compare(policies, environments, horizons, n_runs, seed, jobs):
        shape = (len(environments), len(horizons), len(policies), n_runs)
        regret = rng.uniform(1, 9, shape)
        return Comparison(list(policies), environments, list(horizons), regret, regret)

    def play(named, n_trials, seed, jobs):
        return made_trials({name: 5000 * rng.random() for name in named}, n_trials)

    def drawn(policy, environment, horizon, n_runs, seed, **options):
        return SimpleNamespace(regret=rng.uniform(1, 9, (n_runs, 1)))

    def tune(tried, trials, seed):
        found = {"alpha0": 1.0, "beta0": 1.0, "eps": 0.1}
        assert tried(**found) > 0
        return found

    monkeypatch.setattr(study, "compare", compare)
    monkeypatch.setattr(logistics, "play", play)
    monkeypatch.setattr(suite, "play", play)
    monkeypatch.setattr(reduction, "simulate", drawn)
    monkeypatch.setattr(reduction, "tune", tune)
    monkeypatch.setitem(SCALES, "quick", Scale((100, 5_000), 20, 160, 5, 5))
    suite.run(tmp_path, scale="quick", seed=0)
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["part"] for row in rows} == {
        *("reduction", "sensitivity", "logistics", "scenarios", "other policies"),
    }
    summary = (tmp_path / "summary.md").read_text()
    figures = {path.stem for path in tmp_path.glob("*.png")}
    assert figures == {path.stem for path in tmp_path.glob("*.svg")}
    assert figures == {
        *("reduction", "sensitivity-1000", "sensitivity-10000", "logistics", "boxes"),
    }
    assert all(f"({name}.png)" in summary for name in figures)
