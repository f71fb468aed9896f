"""What a long search may use, and whether its samples bear that out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from benchmarks.shared.claims import Claim
from risingsearch.search.retention import PER_ARM

Sample = dict[str, Any]
Searches = Mapping[tuple[str, str], list[Sample]]  # by workers, and where it is kept

NOISE = 1.25
"""What grows by less than this factor may be the same."""
MOST_MEMORY = 2000.0
"""Bytes per epoch: its row of the history, its report, its part of an arm's state."""


def all_of(searches: Searches) -> Iterator[Claim]:
    """Yield every promise, held against all searches that it speaks of."""
    kept = {cell: found for cell, found in searches.items() if cell[1] == "run_dir"}
    in_memory = {cell: found for cell, found in searches.items() if cell not in kept}
    yield ends_as_one_that_was_not_killed(searches)
    yield memory_is_linear(in_memory)
    yield is_flat(searches, "descriptors")
    yield is_flat(searches, "threads")
    yield journal_is_linear(kept)
    yield checkpoints_are_bounded(kept)
    yield time_per_epoch_does_not_grow(searches)


def ends_as_one_that_was_not_killed(searches: Searches) -> Claim:
    """Compare the searches in process, whose order does not depend on any timing."""
    digests = {
        found[-1]["digest"] for cell, found in searches.items() if "in process" in cell
    }
    reasons = {found[-1]["ended"] for found in searches.values()}
    history = "the same history" if len(digests) == 1 else "another history"
    return Claim(
        "a search that is killed ends as one that is not",
        "in process: the same epochs and scores in the same order",
        "; ".join([history, *sorted(reasons)]),
        len(digests) == len(reasons) == 1,
    )


def memory_is_linear(searches: Searches) -> Claim:
    """Check how fast memory grows, and that it does not grow ever faster."""
    slopes = [
        [1e6 * per_epoch(half, "MB") for half in halves(found)]
        for found in searches.values()
    ]
    return Claim(
        "memory grows with the history",
        f"{MOST_MEMORY:,.0f} bytes per epoch at most, in the second half no more than "
        "in the first",
        f"{_range(slopes, 0)}, then {_range(slopes, 1)} bytes per epoch",
        all(
            first <= MOST_MEMORY and second <= NOISE * first for first, second in slopes
        ),
    )


def is_flat(searches: Searches, name: str) -> Claim:
    """Check that the second half of every search has no more than the first."""
    most = [
        [max(sample[name] for sample in half) for half in halves(found)]
        for found in searches.values()
    ]
    return Claim(
        f"{name} stay as many",
        "in the second half no more than in the first",
        f"{_range(most, 0)}, then {_range(most, 1)}",
        all(second <= first for first, second in most),
    )


def journal_is_linear(searches: Searches) -> Claim:
    """Check that the journal grows as fast at the end as at the beginning."""
    slopes = [
        [per_epoch(half, "journal") for half in halves(found)]
        for found in searches.values()
    ]
    return Claim(
        "the journal grows by a line per job",
        "in the second half no more bytes per epoch than in the first",
        f"{_range(slopes, 0)}, then {_range(slopes, 1)} bytes per epoch",
        all(second <= NOISE * first for first, second in slopes),
    )


def checkpoints_are_bounded(searches: Searches) -> Claim:
    """Check that only arms that may train on have checkpoints, and the best one."""
    spare = [
        PER_ARM * sample["arms that may train on"] + 1 - sample["checkpoints"]
        for found in searches.values()
        for sample in found
    ]
    return Claim(
        "checkpoints are those of the arms that may train on, and the best",
        f"at most {PER_ARM} of each, and one, at any time",
        f"at least {min(spare):,} fewer",
        min(spare) >= 0,
    )


def time_per_epoch_does_not_grow(searches: Searches) -> Claim:
    """Compare the last tenth of every search with the first."""
    times = [list(map(cpu_ms_per_epoch, ends(found))) for found in searches.values()]
    return Claim(
        "an epoch takes as long at the end as at the beginning",
        "CPU time of the searching process: in the last tenth no more than in the "
        "first",
        f"{_range(times, 0, '.2f')}, then {_range(times, 1, '.2f')} ms",
        all(last <= NOISE * first for first, last in times),
    )


# ---------------------------------------------------------------------------- measures


def windows(found: list[Sample]) -> list[Sample]:
    """Return the samples at the end of a stretch of epochs."""
    return [sample for sample in found if sample["new epochs"]]


def halves(found: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Return the samples of the first and of the second half; both have the middle."""
    shown = windows(found)
    return shown[: len(shown) // 2 + 1], shown[len(shown) // 2 :]


def ends(found: list[Sample]) -> tuple[list[Sample], list[Sample]]:
    """Return the samples of the first and of the last tenth."""
    shown = windows(found)
    n = max(1, len(shown) // 10)
    return shown[:n], shown[-n:]


def per_epoch(found: list[Sample], name: str) -> float:
    """Return how much something grows per epoch from the first sample to the last."""
    first, last = found[0], found[-1]
    return float((last[name] - first[name]) / (last["epochs"] - first["epochs"]))


def ms_per_epoch(found: list[Sample]) -> float:
    """Return how long an epoch takes."""
    seconds = sum(sample["seconds"] for sample in found)
    return float(1e3 * seconds / sum(sample["new epochs"] for sample in found))


def cpu_ms_per_epoch(found: list[Sample]) -> float:
    """Return how much of its processor the searching process uses for an epoch."""
    seconds = sum(sample["CPU seconds"] for sample in found)
    return float(1e3 * seconds / sum(sample["new epochs"] for sample in found))


def most_mb(found: list[Sample]) -> float:
    """Return the most memory of the searching process."""
    return float(max(sample["MB"] for sample in found))


def _range(pairs: list[list[Any]], which: int, form: str = ",.0f") -> str:
    values = [pair[which] for pair in pairs]
    low, high = format(min(values), form), format(max(values), form)
    return low if low == high else f"{low} to {high}"
