import optuna
import pytest
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import TrialState

import risingsearch.integrations.optuna as rising
from risingsearch.scheduling.policy_adapter import PolicyAdapter


class Observing(RandomSampler):
    """Notes what it sees whenever it proposes, and when a trial has ended."""

    def __init__(self):
        super().__init__(seed=0)
        self.seen = []
        self.ended = []

    def sample_relative(self, study, trial, search_space):
        trials = study._get_trials(deepcopy=False, use_cache=True)
        assert trials == study.get_trials(deepcopy=False)
        self.seen.append({t.number: t for t in trials if t.number != trial.number})
        return super().sample_relative(study, trial, search_space)

    def after_trial(self, study, trial, state, values):
        self.ended.append(trial.number)


def test_a_sampler_sees_one_trial_per_arm(objective, make_study):
    base = Observing()
    study = make_study(budget=100, base=base)
    study.optimize(objective)
    arms = {result.id: result for result in rising.arm_results(study)}
    assert base.ended == list(arms)
    assert len(base.seen) == len(arms)
    for n_before, seen in enumerate(base.seen):
        assert set(seen) <= set(list(arms)[:n_before])
        for number, trial in seen.items():
            assert trial.params == arms[number].params
            if trial.state == TrialState.COMPLETE:
                assert trial.value in trial.intermediate_values.values()


def test_arms_are_compared_after_equally_many_epochs(objective, make_study):
    objective.suggest = lambda trial: trial.number + trial.suggest_float("x", 0, 1)
    study = make_study(budget=200, policy="successive-halving", n_candidates=32)
    study.optimize(objective)
    seen = {trial.number: trial for trial in study.sampler._seen(study)}
    lengths = sorted(len(trial.intermediate_values) for trial in seen.values())
    epoch = lengths[-10]  # that many arms are compared at least
    assert lengths[0] < epoch < lengths[-1]
    for trial in seen.values():
        scores = list(trial.intermediate_values.values())
        if len(scores) < epoch:
            assert trial.state == TrialState.FAIL
        else:
            assert trial.state == TrialState.COMPLETE
            assert trial.value == scores[epoch - 1]


@pytest.mark.parametrize("proposing", [True, False])
def test_scores_are_seen_when_the_policy_wants_proposals(
    objective, make_study, monkeypatch, proposing
):
    study = make_study(budget=40)
    study.optimize(objective)
    monkeypatch.setattr(PolicyAdapter, "proposing", lambda policy: proposing)
    with_score = [one.value is not None for one in study.sampler._seen(study)]
    assert any(with_score) is proposing


@pytest.mark.parametrize("base", ["grid", "brute force"])
@pytest.mark.filterwarnings("ignore:BruteForceSampler is experimental")
def test_a_sampler_with_no_more_to_propose_leaves_the_budget_to_its_arms(
    objective, make_study, base
):
    objective.suggest = lambda trial: (
        trial.suggest_int("x", 0, 2) + trial.suggest_int("y", 0, 3) / 10
    )
    study = make_study(
        budget=150,
        base=optuna.samplers.BruteForceSampler(seed=0)
        if base == "brute force"
        else optuna.samplers.GridSampler({"x": [0, 1, 2], "y": [0, 1, 2, 3]}, seed=0),
    )
    study.optimize(objective)
    assert objective.trained.total() == 150
    found = [tuple(arm.params.values()) for arm in rising.arm_results(study)]
    assert sorted(found) == sorted({(x, y) for x in range(3) for y in range(4)})
    assert rising.best_arm(study).params == {"x": 2, "y": 3}


def test_a_study_that_is_taken_up_again_opens_no_more_either(objective, make_study):
    base = optuna.samplers.GridSampler({"x": [0.1, 0.3, 0.9]}, seed=0)
    study = make_study(budget=30, base=base)
    study.optimize(objective)
    more = make_study(budget=45, base=base).sampler
    study.sampler = more
    study.optimize(objective)
    assert objective.trained.total() == 45
    assert len(rising.arm_results(study)) == 3


def test_trials_of_before_are_seen_too(objective, make_study):
    base = Observing()
    study = make_study(budget=20, base=base)
    uniform = optuna.distributions.FloatDistribution(0.0, 1.0)
    known = optuna.trial.create_trial(
        params={"x": 0.3}, distributions={"x": uniform}, value=0.99
    )
    study.add_trial(known)
    study.optimize(objective)
    assert all(seen[0].value == 0.99 for seen in base.seen)
    assert objective.trained.total() == 20


def test_running_arms_are_seen_as_running(make_study):
    base = Observing()
    study = make_study(budget=50, base=base)
    for _ in range(3):
        trial = study.ask()
        trial.suggest_float("x", 0.0, 1.0)
        rising.arm(trial)
    assert [t.state for t in base.seen[-1].values()] == [TrialState.RUNNING] * 2


@pytest.mark.parametrize(
    "make",
    [
        optuna.samplers.RandomSampler,
        optuna.samplers.TPESampler,
        optuna.samplers.QMCSampler,
        lambda: optuna.samplers.TPESampler(constant_liar=True, multivariate=True),
        lambda: optuna.samplers.GridSampler({"x": [0.1, 0.2, 0.3, 0.4]}),
        optuna.samplers.BruteForceSampler,
        optuna.samplers.NSGAIISampler,
    ],
)
@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.filterwarnings("ignore:Argument ``group``")
@pytest.mark.filterwarnings("ignore:Trial .* is pruned")
def test_any_stock_sampler_proposes(objective, make_study, make):
    base: BaseSampler = make()
    if not isinstance(base, optuna.samplers.BruteForceSampler):
        objective.suggest = lambda trial: trial.suggest_float("x", 0.0, 1.0)
    else:
        objective.suggest = lambda trial: trial.suggest_categorical("x", [0.1, 0.9])
    study = make_study(budget=40, base=base)
    study.optimize(objective)
    assert set(objective.trained.values()) == {1}
    assert 0 < objective.trained.total() <= 40
