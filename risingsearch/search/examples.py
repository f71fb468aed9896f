"""Per-example scores of the arms, each at its best epoch: checked, and kept."""

import io
import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from risingsearch.arms import Arm
from risingsearch.checks import shown
from risingsearch.errors import SetupError
from risingsearch.storage.files import (
    PRIVATE,
    digest_line,
    make_folder,
    open_regular_file,
    undigested,
    usable,
)

EXAMPLES = "examples"
"""The name in the result of ``train``, and of a folder in a run directory."""
SCORES_OF = "scores_of"
"""The method of a trainable that returns predictions: it scores those of an arm."""
MOST_BLOCKS = 2_000  # values that are kept of an epoch; of more rows, means of blocks
TOLERANCE = 1e-3  # of the mean, as a share of the score or of the spread
HIGHEST = 1e30  # above or below it, values count as this: sums of float32 stay finite

Values = NDArray[np.float32]
"""One score per example; with two axes, predictions that the trainable can score."""


class Measured(NamedTuple):
    """The values of an arm's epoch, with its score."""

    epoch: int
    score: float
    values: Values


def checked_examples(given: object, score: float, by: str) -> Values:
    """Return per-example scores as they are kept; a SetupError if they are none."""
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError, RuntimeError):
        values = np.empty(0)
    is_column = values.ndim == 1 and len(values) > 1
    near = TOLERANCE * max(abs(score), np.std(values)) if is_column else 0.0
    if not is_column or not abs(values.mean() - score) <= near:
        raise SetupError(
            f"{by} returned {shown(given)} as {EXAMPLES!r} beside the score {score:g}: "
            "return an array with a score of each validation row, at least two, in the "
            "same order after every epoch, whose mean is the score"
        )
    return in_blocks(values)


def in_blocks(values: NDArray[np.float64]) -> Values:
    """Return values of at most so many blocks of examples, with the same mean.

    Examples
    --------
    >>> blocks = in_blocks(np.arange(9_000.0))
    >>> len(blocks), round(float(blocks.mean()))
    (2000, 4500)
    """
    n = len(values)
    values = np.clip(values, -HIGHEST, HIGHEST)
    if n <= MOST_BLOCKS:
        return values.astype(np.float32)
    mixed = values[np.random.default_rng(0).permutation(n)]  # for rows are often sorted
    begins = np.linspace(0, n, MOST_BLOCKS, endpoint=False).astype(int)
    sums = np.add.reduceat(mixed, begins)
    return (sums * (MOST_BLOCKS / n)).astype(np.float32)


class KeptExamples:
    """The values of every arm at the epoch that it counts by, in memory and on disk.

    A file is written before its epoch is recorded, and the arm's earlier one removed
    after that. None is brought to disk: after a crash of the machine a file may be
    damaged, and counts as absent.
    """

    def __init__(self, sign: float, *, latest_counts: bool) -> None:
        self.folder: Path | None = None
        self._sign = sign
        self._latest_counts = latest_counts
        self._of_arm: dict[int, Measured] = {}

    def improves(self, arm: int, epoch: int, score: float) -> bool:
        """Whether an arm counts by an epoch from now on."""
        before = self._of_arm.get(arm)
        if before is None or (self._latest_counts and epoch > before.epoch):
            return True
        return self._sign * score > self._sign * before.score

    def write(self, arm: int, measured: Measured) -> None:
        """Write the values of an epoch that is not recorded yet."""
        if self.folder is None or not self.improves(arm, *measured[:2]):
            return
        buffer = io.BytesIO()
        np.save(buffer, measured.values, allow_pickle=False)
        content = buffer.getvalue()
        path = self.folder / _file_name(arm, measured.epoch)
        beside = path.with_suffix(".tmp")
        with usable(
            path, "written", "; the results so far are safe: make room, resume"
        ):
            make_folder(self.folder)
            beside.touch(PRIVATE)
            beside.write_bytes(digest_line(content) + content)
            os.replace(beside, path)

    def keep(self, arm: int, measured: Measured) -> None:
        """Keep the values of an epoch that is recorded, if the arm counts by it."""
        if not self.improves(arm, *measured[:2]):
            return
        before = self._of_arm.get(arm)
        self._of_arm[arm] = measured
        if self.folder is not None and before is not None:
            old = self.folder / _file_name(arm, before.epoch)
            with usable(old, "removed"):
                if before.epoch != measured.epoch:
                    old.unlink(missing_ok=True)

    def read(self, score_of: Mapping[tuple[int, int], float]) -> None:
        """Read the files of recorded epochs, of which this has the scores."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in sorted(self.folder.glob("arm-*.npy")):
            match = _NAME.fullmatch(path.name)
            key = (int(match[1]), int(match[2])) if match else (-1, -1)
            score = score_of.get(key, math.nan)
            if math.isfinite(score) and self.improves(*key, score):
                values = _read(path)
                if values is not None:
                    self._of_arm[key[0]] = Measured(key[1], score, values)

    def of(self, arms: Iterable[Arm]) -> dict[int, Values]:
        """Return the values of the arms that have some of their best epoch."""
        values = {}
        for arm in arms:
            measured = self._of_arm.get(arm.arm)
            if measured is not None and measured.epoch == arm.best_epoch:
                values[arm.arm] = measured.values
        return values


def _file_name(arm: int, epoch: int) -> str:
    return f"arm-{arm:06d}-epoch-{epoch:06d}.npy"


_NAME = re.compile(r"arm-(\d{6,})-epoch-(\d{6,})\.npy")


def _read(path: Path) -> Values | None:
    """Return the values in a file; None if it is damaged, or was replaced just now."""
    try:
        with open_regular_file(path) as file:
            content = undigested(file.read())
        return np.load(io.BytesIO(content), allow_pickle=False)  # type: ignore[no-any-return]
    except (OSError, ValueError):
        return None
