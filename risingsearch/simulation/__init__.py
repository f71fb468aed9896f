"""Policies played in environments, compiled: on paper, before an epoch is spent.

>>> from risingsearch.simulation import compare
>>> result = compare(["cure-ucb", "round-robin"], ["two-arm"], [2000, 20_000])
>>> result.policies
['cure-ucb', 'round-robin']
"""

from risingsearch.simulation.comparison import Comparison, compare
from risingsearch.simulation.recorded_search import RecordedSearch, search_recorded
from risingsearch.simulation.runs import SimulationResult, simulate

__all__ = [
    "Comparison",
    "RecordedSearch",
    "SimulationResult",
    "compare",
    "search_recorded",
    "simulate",
]
