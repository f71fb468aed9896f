"""Options that all faces of a search have in common: one name, default and meaning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from risingsearch.budget import Budget


@dataclass(frozen=True, kw_only=True)
class SearchOptions:
    """Common options of a search; each face documents those that it takes.

    ``tests/test_faces.py`` compares the faces with it, and says why one differs.
    """

    budget: int | str | Budget | None = None
    max_epochs: int | None = None
    min_epochs: int = 1
    policy: Any = "auto"
    policy_params: Mapping[str, Any] | None = None
    n_candidates: int | None = None
    n_jobs: int | None = None
    deterministic: bool = False
    seed: int | None = None
    error_score: float | None = None
    max_failures: int = 0
    enqueue: Sequence[Any] = ()
    prior: Any = None
    timeout: float | None = None
    patience: int | None = None
    target_score: float | None = None
    epochs_per_job: int | None = None
    callbacks: Sequence[Callable[..., object]] = ()
    run_dir: Any = None  # a path
