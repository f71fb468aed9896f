"""
Lightning: a module and its data
================================

``LightningTrainable`` takes what ``Trainer.fit`` takes, and the metric that is the
score. The module is as it would be without a search.
"""

import torch
from lightning.pytorch import LightningModule
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from risingsearch import RisingSearch
from risingsearch.integrations.torch.lightning import LightningTrainable

x = torch.linspace(-3, 3, 300).reshape(-1, 1)
wave = TensorDataset(x, torch.sin(2 * x))


class Wave(LightningModule):
    def __init__(self, lr, width):
        super().__init__()
        self.lr = lr
        self.net = nn.Sequential(nn.Linear(1, width), nn.Tanh(), nn.Linear(width, 1))

    def training_step(self, batch, number):
        return nn.functional.mse_loss(self.net(batch[0]), batch[1])

    def validation_step(self, batch, number):
        self.log("error", nn.functional.mse_loss(self.net(batch[0]), batch[1]))

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.lr)


def objects(params):
    return {
        "model": Wave(**params),
        "train_dataloaders": DataLoader(wave, batch_size=30, shuffle=True),
        "val_dataloaders": DataLoader(wave, batch_size=300),
    }


trainable = LightningTrainable(
    objects, monitor="error", max_epochs=8, accelerator="cpu"
)
candidates = [
    {"lr": lr, "width": w} for lr in (1e-4, 1e-3, 1e-2, 1e-1) for w in (8, 64)
]
search = RisingSearch(trainable, candidates, direction="minimize", budget=30, seed=0)
result = search.run()
print(f"error {result.best_score:.3f} with {result.best_params}")

# %%
# Where the epochs went, with the configurations as labels.

labels = {
    arm: f"lr {c['lr']:g}, width {c['width']}" for arm, c in enumerate(candidates)
}
result.plot_allocation(labels=labels)

# %%
# The best module, with its weights.

print(trainable.best_model(result.best_state()))
