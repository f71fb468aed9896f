"""Runs of frameworks between two slices: parameters, a seed and a checkpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Self

import torch

from risingsearch.json_values import as_json, from_json


@dataclass
class PausedRun:
    """A run between two slices, with its framework's own checkpoint as bytes."""

    params: dict[str, Any]
    seed: int
    checkpoint: bytes | None = field(default=None, repr=False)

    def save(self, path: str) -> None:
        """Write the run to a file."""
        params = json.dumps(as_json(self.params))
        torch.save({**vars(self), "params": params}, path)

    @classmethod
    def load(cls, path: str) -> Self:
        """Return the run of a file."""
        kept = torch.load(path, weights_only=True)
        return cls(**{**kept, "params": from_json(json.loads(kept["params"]))})
