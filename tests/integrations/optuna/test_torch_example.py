"""The structure of pytorch_simple.py, from Optuna's own examples."""

import optuna
import pytest
import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.nn import functional

import risingsearch.integrations.optuna as rising

CLASSES, EPOCHS, BATCHSIZE, N_TRAIN, N_VALID = 10, 8, 64, 512, 256
BUDGET = 48


@pytest.fixture(scope="module")
def loaders():
    X, y = load_digits(return_X_y=True)
    X = torch.tensor(X / 16, dtype=torch.float32)
    data = torch.utils.data.TensorDataset(X, torch.tensor(y))
    train = torch.utils.data.Subset(data, range(N_TRAIN))
    valid = torch.utils.data.Subset(data, range(N_TRAIN, N_TRAIN + N_VALID))
    return [torch.utils.data.DataLoader(part, BATCHSIZE) for part in (train, valid)]


def define_model(trial):
    torch.manual_seed(0)
    n_layers = trial.suggest_int("n_layers", 1, 2)
    layers = []
    in_features = 64
    for i in range(n_layers):
        out_features = trial.suggest_int(f"n_units_l{i}", 4, 32)
        layers.append(nn.Linear(in_features, out_features))
        layers.append(nn.ReLU())
        p = trial.suggest_float(f"dropout_l{i}", 0.2, 0.5)
        layers.append(nn.Dropout(p))
        in_features = out_features
    layers.append(nn.Linear(in_features, CLASSES))
    layers.append(nn.LogSoftmax(dim=1))
    return nn.Sequential(*layers)


def define_optimizer(trial, model):
    name = trial.suggest_categorical("optimizer", ["Adam", "RMSprop", "SGD"])
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    return getattr(optim, name)(model.parameters(), lr=lr)


def train_epoch(model, optimizer, train_loader):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        functional.nll_loss(model(data), target).backward()
        optimizer.step()


def accuracy_of(model, valid_loader):
    model.eval()
    with torch.no_grad():
        correct = sum(
            (model(data).argmax(dim=1) == target).sum().item()
            for data, target in valid_loader
        )
    return correct / len(valid_loader.dataset)


def run(objective, **options):
    study = optuna.create_study(
        direction="maximize",
        sampler=rising.RisingSampler(BUDGET, EPOCHS, seed=0, **options),
        pruner=rising.RisingPruner(),
    )
    study.optimize(objective)
    return study


def test_it_runs_with_sampler_and_pruner_changed(loaders):
    train_loader, valid_loader = loaders

    def objective(trial):
        model = define_model(trial)
        optimizer = define_optimizer(trial, model)
        for epoch in range(EPOCHS):
            train_epoch(model, optimizer, train_loader)
            accuracy = accuracy_of(model, valid_loader)
            trial.report(accuracy, epoch)
            if trial.should_prune():
                raise optuna.exceptions.TrialPruned()
        return accuracy

    with pytest.warns(UserWarning, match="did not ask for its arm"):
        study = run(objective)
    assert sum(len(trial.intermediate_values) for trial in study.trials) == BUDGET
    assert study.best_value > 0.5


def test_it_goes_on_from_a_saved_state(loaders, tmp_path):
    train_loader, valid_loader = loaders
    n_trained = 0

    def objective(trial):
        nonlocal n_trained
        model = define_model(trial)
        optimizer = define_optimizer(trial, model)
        arm = rising.arm(trial)
        if arm.checkpoint:
            state = torch.load(arm.checkpoint / "state.pt", weights_only=True)
            model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            last = trial.study.trials[trial.number].intermediate_values
            assert accuracy_of(model, valid_loader) == last[arm.from_epoch - 1]
        for epoch in range(arm.from_epoch, EPOCHS):
            train_epoch(model, optimizer, train_loader)
            n_trained += 1
            accuracy = accuracy_of(model, valid_loader)
            trial.report(accuracy, epoch)
            if trial.should_prune():
                with arm.save() as folder:
                    state = {
                        "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(),
                    }
                    torch.save(state, folder / "state.pt")
                raise optuna.exceptions.TrialPruned()
        return accuracy

    study = run(objective, checkpoint_dir=tmp_path)
    assert n_trained == BUDGET
    assert rising.best_arm(study).best_score > 0.5
    assert max(result.n_trials for result in rising.arm_results(study)) > 1
