"""PyTorch: training loops whose runs can be paused, parked and resumed bit for bit.

``TorchTrainable`` makes a ``Trainable`` of three functions, or of a subclass with three
methods. With ``Batches`` an epoch of the search is a number of steps, not a pass.
"""

from risingsearch.errors import needed

with needed("torch", "torch", of=("torch",)):
    import torch  # noqa: F401 - what the rest of the package needs

from risingsearch.integrations.torch.batches import Batches
from risingsearch.integrations.torch.run import TorchRun
from risingsearch.integrations.torch.trainable import TorchTrainable

__all__ = ["Batches", "TorchRun", "TorchTrainable"]
