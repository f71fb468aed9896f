"""Earlier searches, and what a new one learns from them."""

from risingsearch.priors.earlier import EarlierSearch, Source
from risingsearch.priors.proposer import PriorProposer
from risingsearch.priors.sources import earlier_searches, read_prior

__all__ = ["EarlierSearch", "PriorProposer", "Source", "earlier_searches", "read_prior"]
