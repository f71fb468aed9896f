"""Earlier searches, and what a new one learns from them."""

from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.sources import earlier_searches

__all__ = ["EarlierSearch", "earlier_searches"]
