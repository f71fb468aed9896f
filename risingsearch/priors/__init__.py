"""Earlier searches, and proposals by them.

``sources`` reads runs, studies and tables as data; ``models`` predicts the candidates
of the new search from them; ``proposer`` opens the best while their ranks agree.
"""

from risingsearch.priors.earlier import EarlierSearch, Source
from risingsearch.priors.proposer import PriorProposer
from risingsearch.priors.sources import earlier_searches, read_prior

__all__ = [
    "EarlierSearch",
    "PriorProposer",
    "Source",
    "earlier_searches",
    "read_prior",
]
