"""Earlier searches, and what a new one learns from them."""

from risingsearch.priors.earlier import EarlierSearch
from risingsearch.priors.prior import Prior, read_prior
from risingsearch.priors.proposer import PriorProposer
from risingsearch.priors.sources import earlier_searches

__all__ = [
    "EarlierSearch",
    "Prior",
    "PriorProposer",
    "earlier_searches",
    "read_prior",
]
