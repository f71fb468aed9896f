import argparse

import torch
from ray import tune
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from risingsearch.integrations.ray import RisingScheduler, TrialState


def train_digits(config):
    pixels, labels = load_digits(return_X_y=True)
    X, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)
    loader = DataLoader(TensorDataset(X[:1200], y[:1200]), batch_size=64, shuffle=True)
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(
        net.parameters(), lr=config["lr"], momentum=config["momentum"]
    )
    state = TrialState(net, optimizer)
    for _ in range(state.epochs, 10):
        for X_batch, y_batch in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X_batch), y_batch).backward()
            optimizer.step()
        with torch.no_grad():
            guesses = net(X[1200:]).argmax(dim=1)
        state.report({"mean_accuracy": (guesses == y[1200:]).float().mean().item()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-samples", type=int, default=20)
    args = parser.parse_args()

    tuner = tune.Tuner(
        train_digits,
        param_space={
            "lr": tune.loguniform(1e-4, 1e0),
            "momentum": tune.uniform(0.1, 0.9),
        },
        tune_config=tune.TuneConfig(
            metric="mean_accuracy",
            mode="max",
            num_samples=args.num_samples,
            reuse_actors=True,
            scheduler=RisingScheduler(budget=args.num_samples * 3, max_epochs=10),
        ),
    )
    results = tuner.fit()
    best = results.get_best_result(scope="all")
    print(best.config, best.metrics_dataframe["mean_accuracy"].max())
