import argparse
import tempfile
from pathlib import Path

import torch
from ray import tune
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from risingsearch.integrations.ray import RisingScheduler


def train_digits(config):
    pixels, labels = load_digits(return_X_y=True)
    X, y = torch.tensor(pixels / 16, dtype=torch.float32), torch.tensor(labels)
    rows = TensorDataset(X[:1200], y[:1200])
    loader = DataLoader(rows, batch_size=config["batch_size"], shuffle=True)
    net = nn.Sequential(nn.Linear(64, config["l1"]), nn.ReLU(), nn.LazyLinear(10))
    net(X[:1])
    optimizer = torch.optim.SGD(net.parameters(), lr=config["lr"], momentum=0.9)

    checkpoint = tune.get_checkpoint()
    if checkpoint:
        with checkpoint.as_directory() as folder:
            net_state, optimizer_state = torch.load(Path(folder, "checkpoint.pt"))
        net.load_state_dict(net_state)
        optimizer.load_state_dict(optimizer_state)

    while True:
        for X_batch, y_batch in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(X_batch), y_batch).backward()
            optimizer.step()
        with torch.no_grad():
            loss = nn.functional.cross_entropy(net(X[1200:]), y[1200:]).item()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "checkpoint.pt")
            torch.save((net.state_dict(), optimizer.state_dict()), path)
            checkpoint = tune.Checkpoint.from_directory(folder)
            tune.report({"loss": loss}, checkpoint=checkpoint)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-samples", type=int, default=10)
    parser.add_argument("--max-num-epochs", type=int, default=10)
    args = parser.parse_args()

    scheduler = RisingScheduler(
        budget=args.num_samples * 3,
        max_epochs=args.max_num_epochs,
    )
    tuner = tune.Tuner(
        train_digits,
        param_space={
            "l1": tune.choice([4, 8, 16, 32, 64, 128, 256]),
            "lr": tune.loguniform(1e-4, 1e-1),
            "batch_size": tune.choice([16, 32, 64]),
        },
        tune_config=tune.TuneConfig(
            metric="loss",
            mode="min",
            num_samples=args.num_samples,
            scheduler=scheduler,
            reuse_actors=True,
        ),
    )
    results = tuner.fit()
    best = results.get_best_result("loss", "min", scope="all")
    print("best config:", best.config)
    print("best loss:", scheduler.best_score)
