"""How a search in another environment asks for epochs.

Each line that it prints asks for the next epoch of an arm, with the parameters if the
arm is new and the seconds of processor time so far; each line that it reads is the
score, NaN where the training has failed for good. It asks until it is ended. What the
libraries print goes to standard error.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

Job = dict[str, Any]


class Arms:
    """Trainings, by their parameters; what has failed scores as the worst so far."""

    def __init__(self, asks: TextIO, scores: TextIO) -> None:
        self._asks = asks
        self._answers = scores
        self._scores: dict[str, list[float]] = {}
        self._numbers: dict[str, int] = {}
        self._worst = math.inf

    def scores(self, params: Mapping[str, Any], n_epochs: int) -> list[float]:
        """Return the scores of this many epochs, and train those that are missing."""
        key = json.dumps(
            dict(params), sort_keys=True, default=lambda value: value.item()
        )
        known = self._scores.setdefault(key, [])
        while len(known) < n_epochs and not (known and math.isnan(known[-1])):
            asked = {"seconds": time.process_time()}
            if not known:
                self._numbers[key] = len(self._numbers)
                asked["params"] = json.loads(key)
            asked["arm"] = self._numbers[key]
            print(json.dumps(asked), file=self._asks, flush=True)
            known.append(json.loads(self._answers.readline()))
            if known[-1] < self._worst:
                self._worst = known[-1]
        worst = self._worst if math.isfinite(self._worst) else 0.0
        found = [worst if math.isnan(score) else score for score in known[:n_epochs]]
        return found + [worst] * (n_epochs - len(found))


def plain(value: Any) -> Any:
    """Return a number of numpy's as one of Python's."""
    return value.item()


def main(search: Callable[[Job, Arms], None]) -> None:
    """Search as the job says that is the argument, as JSON."""
    asks = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    search(json.loads(sys.argv[1]), Arms(asks, sys.stdin))
