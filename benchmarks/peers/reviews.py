"""Film reviews as rows for classifiers: a part of them, as logarithms of counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.papers.cure_ucb.imdb import text

N_REVIEWS = 7_500


def write(data_dir: Path | None, out: Path) -> Path:
    """Write X and y of some reviews, the same ones always; see ``load_texts``."""
    path = (out / "imdb.npz").absolute()
    texts, labels = text.load_texts(data_dir)
    drawn = np.random.default_rng(0).choice(len(texts), N_REVIEWS, replace=False)
    counts = text.count([texts[i] for i in drawn], None)
    np.savez_compressed(path, X=np.log1p(counts.astype(np.float32)), y=labels[drawn])
    return path
