"""Paused runs of frameworks that train with PyTorch."""

from dataclasses import dataclass, field
from typing import IO, Any, Generic

import torch

from risingsearch.integrations.torch.attributes import Change
from risingsearch.search.frameworks import (
    Fields,
    FrameworkTrainable,
    PausedRun,
    RunT,
)


@dataclass
class TorchPausedRun(PausedRun):
    """A run between two slices, with attributes that its checkpoint leaves out."""

    attributes: list[Change] = field(default_factory=list, repr=False)


class TorchFrameworkTrainable(FrameworkTrainable[RunT], Generic[RunT]):
    """Base class of adapters whose runs have tensors, which torch writes and reads."""

    def write(self, fields: Fields, path: str) -> None:
        """Write the fields of a run to a file."""
        torch.save(fields, path)

    def read(self, path: str) -> Fields:
        """Read the fields that ``write`` was given."""
        fields: Fields = read(path)
        return fields


def read(file: str | IO[bytes]) -> Any:
    """Read a file of ``torch.save``, tensors on the CPU and nothing unpickled."""
    return torch.load(file, map_location="cpu", weights_only=True)
