"""What the replayed and the live games on IMDB have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.cure_ucb import policies
from risingsearch.curves.rising import IMDB_FILE

HORIZON = 50_000
BATCH = 100


class Settings(NamedTuple):
    """What the paper does not give, or gives for single reviews only."""

    sigma: float
    eps: float
    et_swgts: Mapping[str, int]


SETTINGS = {
    1: Settings(0.1, 1 / 32, {"window": 200, "forced_pulls": 1000}),
    BATCH: Settings(0.001, 1 / 4, {"window": 200, "forced_pulls": 1000 // BATCH}),
}


class Found(NamedTuple):
    """What a part of the suite returns."""

    rows: list[dict[str, Any]]  # of results.csv
    bars: list[dict[str, str]]
    paragraphs: list[str]  # of the summary, tables and figures among them


def paper_policies(batch: int) -> dict[str, Any]:
    """Return the policies of section 6.3, and the order without any policy."""
    sigma, eps, et_swgts = SETTINGS[batch]
    order = {"round-robin": ("round-robin", {})}
    return policies.paper_policies(sigma, et_swgts, eps) | order


def has_curves(data_dir: Path | None) -> bool:
    """Return whether the folder holds the recorded curves."""
    return data_dir is not None and (data_dir / IMDB_FILE).is_file()


def recorded_curves(
    data_dir: Path, codes: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """Return the recorded curves of some arms."""
    with np.load(data_dir / IMDB_FILE, allow_pickle=False) as recorded:
        known = recorded["codes"].tolist()
        rows = [known.index(code) for code in codes]
        return dict(zip(codes, recorded["mean"][rows].astype(float), strict=True))


def pull_size(batch: int) -> str:
    """Return how many reviews a pull takes, in words."""
    return "single reviews" if batch == 1 else f"pulls of {batch} reviews"


def standard_error(values: NDArray[np.float64]) -> float:
    """Return the standard error of the mean."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def with_error(values: NDArray[np.float64]) -> str:
    """Return the mean and its standard error, in words."""
    return f"{values.mean():,.0f} ± {standard_error(values):,.0f} (s.e.)"


def bar_row(bar: str, measured: str, holds: bool) -> dict[str, str]:
    """Return a row of the table of bars."""
    verdict = "holds" if holds else "does not hold"
    return {"bar": bar, "measured": measured, "verdict": verdict}
