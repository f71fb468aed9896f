"""An ordinary training loop on the handwritten digits, with all that can be random."""

import random

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)  # sums depend on it, and workers may have another number

PIXELS, LABELS = load_digits(return_X_y=True)
X = torch.tensor(PIXELS[:600] / 16, dtype=torch.float32)
Y = torch.tensor(LABELS[:600])
TRAIN, HELD_OUT = TensorDataset(X[:400], Y[:400]), (X[400:], Y[400:])
ACCUMULATED = 2
CANDIDATES = [
    {"rate": 10.0**-power, "width": width}
    for power in (1, 2, 3)
    for width in (16, 32, 64, 128)
]


def build(params, device):
    """Dropout, momentum, a schedule, averaged weights, a scaler, shuffled batches."""
    width = params["width"]
    model = nn.Sequential(
        nn.Linear(64, width),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(width, 10),
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=params["rate"])
    shuffler = torch.Generator().manual_seed(1)
    return {
        "model": model,
        "optimizer": optimizer,
        "schedule": torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=params["rate"], total_steps=400
        ),
        "average": AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9)),
        "scaler": torch.amp.GradScaler(device.type, enabled=device.type == "cuda"),
        "loader": DataLoader(TRAIN, batch_size=50, shuffle=True, generator=shuffler),
        "augmenting": np.random.default_rng(2),
        "n_steps": 0,
        "loss": nn.CrossEntropyLoss(),
    }


def train_epoch(run):
    """Mixed precision, accumulated gradients, noise from four generators."""
    run.model.train()
    for number, (pixels, labels) in enumerate(run.loader):
        noise = random.random() + np.random.random() + run.augmenting.random()
        pixels = pixels + 0.01 * noise * torch.randn_like(pixels)
        with torch.autocast(run.device.type, dtype=torch.bfloat16):
            outputs = run.model(pixels.to(run.device))
            loss = run.loss(outputs, labels.to(run.device)) / ACCUMULATED
        run.scaler.scale(loss).backward()
        if (number + 1) % ACCUMULATED == 0:
            run.scaler.step(run.optimizer)
            run.scaler.update()
            run.optimizer.zero_grad()
            run.schedule.step()
            run.average.update_parameters(run.model)
            run.n_steps += 1


def validate(run):
    """Return the accuracy on the rows held out, and facts about the run."""
    run.model.eval()
    with torch.no_grad():
        guesses = run.model(HELD_OUT[0].to(run.device)).argmax(dim=1).cpu()
    accuracy = (guesses == HELD_OUT[1]).float().mean().item()
    rate = run.optimizer.param_groups[0]["lr"]
    return {"score": accuracy, "rate": rate, "steps": run.n_steps}
