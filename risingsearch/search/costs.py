"""What a job has cost, in the unit of the budget."""

from __future__ import annotations

import math

from risingsearch.scheduling.units import SECONDS
from risingsearch.search.trainable import COST, Outcome


def priced(outcome: Outcome, unit: str, gpus: float) -> Outcome:
    """Return what a job has brought back, with what it has cost.

    Under a budget in cost that is what its epochs say; it is not known where one has
    failed. Else it is the time of its training, under one in epochs in seconds. Only
    under a budget in time does it count how much of that was needed to start.
    """
    if unit in SECONDS:
        each, second = gpus if unit == "gpu_hours" else 1.0, SECONDS[unit]
        startup = outcome.startup
        return outcome._replace(
            cost=outcome.elapsed * each / second,
            startup=None if startup is None else startup * each / second,
        )
    outcome = outcome._replace(startup=None)
    if unit != COST:
        return outcome._replace(cost=outcome.elapsed)
    report = outcome.report
    if report.failure is not None:
        return outcome._replace(cost=None)
    return outcome._replace(cost=math.fsum(one[COST] for one in report.metrics))
