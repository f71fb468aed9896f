import optuna
import pytest
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import TrialState

import risingsearch.integrations.optuna as rising


class Looking(RandomSampler):
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
    base = Looking()
    study = make_study(budget=100, base=base)
    study.optimize(objective)
    arms = {result.id: result for result in rising.arm_results(study)}
    assert base.ended == list(arms)
    continued = [i for i, result in arms.items() if result.n_trials > 1]
    assert continued
    last = {trial.number for trial in study.sampler._seen(study)}
    assert last == set(continued)  # a first look alone says too little
    assert len(base.seen) == len(arms)
    for n_before, seen in enumerate(base.seen):
        assert set(seen) <= set(list(arms)[:n_before])
        for number, trial in seen.items():
            assert trial.params == arms[number].params
            assert trial.state == TrialState.COMPLETE
            assert trial.value >= max(trial.intermediate_values.values())


def test_trials_of_before_are_seen_too(objective, make_study):
    base = Looking()
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
    base = Looking()
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
