import argparse

import optuna
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import risingsearch.integrations.optuna as rising

args = argparse.ArgumentParser()
args.add_argument("--trials", type=int, default=100)
args.add_argument("--epochs", type=int, default=10)
args = args.parse_args()

pixels, labels = load_digits(return_X_y=True)
X, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)
train_rows = DataLoader(TensorDataset(X[:1200], y[:1200]), batch_size=128, shuffle=True)
models = {}  # by arm, so that they can resume


def define_model(trial):
    layers, width = [], X.shape[1]
    for i in range(trial.suggest_int("n_layers", 1, 3)):
        units = trial.suggest_int(f"n_units_l{i}", 4, 128)
        dropout = trial.suggest_float(f"dropout_l{i}", 0.2, 0.5)
        layers += [nn.Linear(width, units), nn.ReLU(), nn.Dropout(dropout)]
        width = units
    return nn.Sequential(*layers, nn.Linear(width, 10))


def objective(trial):
    model = define_model(trial)
    optimizer_name = trial.suggest_categorical("optimizer", ["Adam", "RMSprop", "SGD"])
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=lr)
    arm = rising.arm(trial)
    model, optimizer = models.setdefault(arm.id, (model, optimizer))
    for epoch in range(arm.from_epoch, args.epochs):
        model.train()
        for X_batch, y_batch in train_rows:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(X_batch), y_batch).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            guesses = model(X[1200:]).argmax(dim=1)
        accuracy = (guesses == y[1200:]).float().mean().item()
        trial.report(accuracy, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return accuracy


torch.manual_seed(0)
study = optuna.create_study(
    direction="maximize",
    sampler=rising.RisingSampler(args.trials * 3, args.epochs, seed=0),
    pruner=rising.RisingPruner(),
)
study.optimize(objective, timeout=600)
rising.finalize(study)
print(study.best_params, study.best_value)
