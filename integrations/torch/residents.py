"""Which runs are on the device, which wait in memory, and which on disk."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from risingsearch.integrations.torch.trainable import TorchRun


class Residents:
    """Keeps the runs used last on the device, the others in memory, then on disk.

    Parameters
    ----------
    max_resident : int or None
        Runs whose objects live on the device at the same time; None for all.
    max_host : int or None
        Runs that wait in memory besides; None for all.
    """

    def __init__(self, max_resident: int | None, max_host: int | None) -> None:
        self.max_resident = max_resident
        self.max_host = max_host
        self._used: weakref.WeakKeyDictionary[TorchRun, int] = (
            weakref.WeakKeyDictionary()
        )
        self._clock = itertools.count()
        self._folder: Path | None = None
        self._files = itertools.count()

    def make_room(self, run: TorchRun) -> None:
        """Park what was used longest ago, so that one more run may be on the device."""
        self._used[run] = next(self._clock)
        if self.max_resident is not None:
            live = [other for other in self._by_use() if other.is_live]
            others = [other for other in live if other is not run]
            for other in others[: max(0, len(others) + 1 - self.max_resident)]:
                other.park()
        if self.max_host is not None:
            waiting = [other for other in self._by_use() if other.is_in_memory]
            waiting = [other for other in waiting if other is not run]
            for other in waiting[: max(0, len(waiting) - self.max_host)]:
                other.spill(self._new_file())

    def _by_use(self) -> list[TorchRun]:
        return sorted(self._used, key=self._used.__getitem__)

    def _new_file(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="risingsearch-"))
            weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder / f"run-{next(self._files)}.pt"
