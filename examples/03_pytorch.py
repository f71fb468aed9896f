"""
PyTorch: a training loop
========================

Three functions: build the objects of a run, train an epoch, validate. The search
pauses runs and resumes them bit for bit; the loop does not know of it.
"""

import torch
from sklearn.datasets import make_moons
from torch import nn

from risingsearch import RisingSearch
from risingsearch.integrations.torch import TorchTrainable

points, labels = make_moons(400, noise=0.2, random_state=0)
X, y = torch.tensor(points, dtype=torch.float32), torch.tensor(labels)


def build(params, device):
    model = nn.Sequential(
        nn.Linear(2, params["width"]), nn.Tanh(), nn.Linear(params["width"], 2)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=params["lr"], momentum=0.9)
    return {"model": model.to(device), "optimizer": optimizer}


def train_epoch(run):
    for batch in torch.randperm(300).split(30):
        run.optimizer.zero_grad()
        nn.functional.cross_entropy(run.model(X[batch]), y[batch]).backward()
        run.optimizer.step()


def validate(run):
    with torch.no_grad():
        return nn.functional.cross_entropy(run.model(X[300:]), y[300:]).item()


candidates = [
    {"lr": 10.0**power, "width": width}
    for power in (-4, -3, -2, -1, 0)
    for width in (4, 16, 64)
]
search = RisingSearch(
    TorchTrainable(build, train_epoch, validate, device="cpu"),
    candidates,
    direction="minimize",
    budget=90,
    max_epochs=25,
    seed=0,
)
result = search.run()
print(f"loss {result.best_score:.3f} with {result.best_params}")

# %%
# Learning rates over five decades: the small ones would take hundreds of epochs.

labels = {
    arm: f"lr {c['lr']:g}, width {c['width']}" for arm, c in enumerate(candidates)
}
result.plot_curves(labels=labels)

# %%
# The best run is there as it was at its best epoch: model, optimizer and all.

best = result.best_state()
print(best.model)
