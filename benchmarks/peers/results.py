"""The results of the searches, from their logs, and the verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.peers import audit
from benchmarks.peers.audit import Event
from benchmarks.peers.jobs import Run
from benchmarks.shared.problems import BUDGET, PROBLEMS
from risingsearch.simulation.statistics import half_width

OWN = "RisingSearchCV"


class Result(NamedTuple):
    """A run and its log."""

    run: Run
    events: list[Event]

    @property
    def n_epochs(self) -> int:
        return sum(event.score is None for event in self.events)

    @property
    def n_configurations(self) -> int:
        return len({event.configuration for event in self.events})

    @property
    def curve(self) -> NDArray[np.float64]:
        """Epochs, seconds and the best score so far, a row per score."""
        epochs, best, rows = 0, -np.inf, []
        for event in self.events:
            if event.score is None:
                epochs += 1
            else:
                best = max(best, event.score)
                rows.append((epochs, event.time - self.run.begin, best))
        return np.array(rows).reshape(-1, 3)

    def best(self, epochs: float = np.inf) -> float:
        """Return the best score seen by the time some epochs were trained."""
        curve = self.curve
        n = int(np.searchsorted(curve[:, 0], epochs, side="right"))
        return float(curve[n - 1, 2]) if n else float("nan")


def read(runs: Iterable[Run]) -> list[Result]:
    """Return the runs with their logs."""
    return [Result(run, audit.read(Path(run.log))) for run in runs]


def searches(results: Sequence[Result], problem: str) -> dict[str, list[Result]]:
    """Return the results on a problem by search; without those that failed."""
    found: dict[str, list[Result]] = {}
    for result in results:
        if result.run.problem == problem and not result.run.error:
            found.setdefault(result.run.search, []).append(result)
    return found


def rows(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return the rows of ``results.csv``: one per run."""
    return [
        {
            "problem": run.problem,
            "search": run.search,
            "seed": run.seed,
            "score": float("nan") if run.error else result.best(BUDGET),
            "score in the end": float("nan") if run.error else result.best(),
            "audited epochs": result.n_epochs,
            "own count": "" if run.own_epochs is None else run.own_epochs,
            "configurations": result.n_configurations,
            "seconds": run.seconds,
            "error": run.error,
        }
        for result in results
        for run in [result.run]
    ]


def table(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Return a row per problem and search, those that failed among them."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        key = (result.run.problem, result.run.search)
        groups.setdefault(key, []).append(result)
    return [_row(problem, search, group) for (problem, search), group in groups.items()]


def _row(problem: str, search: str, group: list[Result]) -> dict[str, Any]:
    done = [result for result in group if not result.run.error]
    reasons = sorted({result.run.error for result in group if result.run.error})
    row: dict[str, Any] = {"problem": problem, "search": search}
    scores = [result.best(BUDGET) for result in done]
    own = [r.run.own_epochs for r in done if r.run.own_epochs is not None]
    row |= {
        "mean": f"{np.mean(scores):.4f}" if done else "-",
        "worst seed": f"{min(scores):.4f}" if done else "-",
        "in the end": f"{np.mean([r.best() for r in done]):.4f}" if done else "-",
        "audited epochs": _range([result.n_epochs for result in done]),
        "own count": _range(own),
        "tried": _range([result.n_configurations for result in done]),
        "seconds": f"{np.mean([r.run.seconds for r in done]):.1f}" if done else "-",
        "failed": f"{len(group) - len(done)} of {len(group)}: {'; '.join(reasons)}"
        if reasons
        else "",
    }
    return row


def _range(values: Sequence[int]) -> str:
    if not values:
        return "-"
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low} to {high}"


def margins(own: Sequence[Result], peer: Sequence[Result]) -> NDArray[np.float64]:
    """Return by how much the own score is above, per seed that both finished.

    Both at the same audited epochs: the budget, or the fewer epochs that one used.
    """
    by_seed = {result.run.seed: result for result in own}
    differences = []
    for other in peer:
        if (ours := by_seed.get(other.run.seed)) is not None:
            epochs = min(BUDGET, ours.n_epochs, other.n_epochs)
            differences.append(ours.best(epochs) - other.best(epochs))
    return np.array(differences)


class AgainstPeers(NamedTuple):
    """``RisingSearchCV`` against the other searches on a problem."""

    problem: str
    differences: dict[str, NDArray[np.float64]]  # by peer, those with a seed in common

    @property
    def closest(self) -> str:
        """The peer that it is least above, or most below."""
        return min(self.differences, key=self._mean)

    @property
    def at_least_best(self) -> bool:
        return self._mean(self.closest) >= 0.0

    @property
    def worst(self) -> bool:
        return all(self._mean(peer) < 0.0 for peer in self.differences)

    @property
    def clearly_below(self) -> list[str]:
        """The peers that it is above by more than the 95 % interval."""
        return [
            peer
            for peer, differences in self.differences.items()
            if self._mean(peer) > float(half_width(differences))
        ]

    @property
    def clearly_best(self) -> bool:
        return len(self.clearly_below) == len(self.differences)

    def clearly(self) -> str:
        """Return how many peers are clearly below it, and the margin to the best."""
        return (
            f"clearly above {len(self.clearly_below)} of {len(self.differences)}; "
            f"{_with_interval(self.differences[self.closest])} against {self.closest}"
        )

    def row(self) -> dict[str, str]:
        """Return a row of the table of comparisons."""
        ahead = [peer for peer in self.differences if self._mean(peer) >= 0.0]
        return {
            "problem": self.problem,
            "not below": f"{len(ahead)} of {len(self.differences)}",
            "best peer": self.closest,
            "RisingSearchCV above it by": _with_interval(
                self.differences[self.closest]
            ),
        }

    def _mean(self, peer: str) -> float:
        return round(float(self.differences[peer].mean()), 12)


def _with_interval(differences: NDArray[np.float64]) -> str:
    half = float(half_width(differences))
    text = f"{differences.mean():+.4f}"
    return text if np.isnan(half) else f"{text} ± {half:.4f}"


def compare_with_peers(results: Sequence[Result]) -> list[AgainstPeers]:
    """Return a comparison per problem that our search and a peer have finished."""
    found = []
    for problem in PROBLEMS:
        by_search = searches(results, problem)
        own = by_search.pop(OWN, [])
        differences = {name: margins(own, peer) for name, peer in by_search.items()}
        kept = {name: each for name, each in differences.items() if len(each)}
        if kept:
            found.append(AgainstPeers(problem, kept))
    return found


def verdicts(found: Sequence[AgainstPeers]) -> Iterator[dict[str, str]]:
    """Yield the bars, what came out, and whether they hold."""
    n, best = len(found), [s.problem for s in found if s.at_least_best]
    yield _bar(
        "mean best score at least the best peer's on three of the four problems",
        f"on {len(best)} of {n}" + (f": {', '.join(best)}" if best else ""),
        len(best) >= 3,
        decided=len(best) >= 3 or len(best) + len(PROBLEMS) - n < 3,
    )
    worst = [s.problem for s in found if s.worst]
    yield _bar(
        "never the worst",
        f"the worst on {', '.join(worst)}" if worst else f"on none of {n} the worst",
        not worst,
        decided=bool(worst) or n == len(PROBLEMS),
    )
    late = [s for s in found if s.problem == "late-bloomers"]
    yield _bar(
        "clearly best on late-bloomers: above every peer by more than the interval",
        "; ".join(s.clearly() for s in late) or "not measured",
        all(s.clearly_best for s in late),
        decided=bool(late),
    )


def _bar(bar: str, measured: str, holds: bool, *, decided: bool) -> dict[str, str]:
    verdict = "holds" if holds else "does not hold"
    return {
        "bar": bar,
        "came out": measured,
        "verdict": verdict if decided else "not decided",
    }
