"""Earlier searches, and what a new one learns from them."""

from risingsearch.priors.earlier import EarlierSearch

__all__ = ["EarlierSearch"]
